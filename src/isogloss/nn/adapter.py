"""Adapters: a bottleneck with a residual of its own, put after a layer that is there already.

Houlsby et al. (2019), "Parameter-Efficient Transfer Learning for NLP", Section 2.1; as in "On Negative
Interference in Multilingual Models", Appendix A, Eqs 6 and 7: o = W_h·g(W_z·z) + z.
"""

import torch
from jaxtyping import Float
from torch import Tensor, nn


class Adapter(nn.Module):
    """A bottleneck of some width around which its input goes; as it is made it changes nothing, to the bit.

    Only the projection down is drawn, from N(0, ``spread``²): the one back up is zero.
    """

    def __init__(self, dim: int, bottleneck: int, *, spread: float, seed: int) -> None:
        super().__init__()
        # Made without numbers, or torch would draw some of its own.
        self.down = nn.Linear(dim, bottleneck, device="meta").to_empty(device="cpu")
        self.up = nn.Linear(bottleneck, dim, device="meta").to_empty(device="cpu")
        generator = torch.Generator().manual_seed(seed)
        with torch.no_grad():
            self.down.weight.normal_(0.0, spread, generator=generator)
            for zero in (self.down.bias, self.up.weight, self.up.bias):
                zero.zero_()

    def forward(self, states: Float[Tensor, "*place dim"]) -> Float[Tensor, "*place dim"]:
        """Return the states with what the bottleneck adds; g is the GELU of the encoders around it."""
        added: Tensor = self.up(nn.functional.gelu(self.down(states)))
        return states + added
