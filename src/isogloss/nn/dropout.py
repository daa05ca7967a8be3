"""Dropout that draws its random numbers four at a time, for processors that draw them one after the other.

``torch.nn.functional.dropout`` on a CPU makes one call of the generator for each element; here each 64 random
bits decide on four. Draws are independent, of torch's generator (so a seed fixes them), and the
rate is exact to 1/65536.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from jaxtyping import Float
from torch import Tensor, nn

RATE_STEPS = 1 << 16
"""Values of the 16 bits that decide on an element."""

ELEMENTS_PER_DRAW = 4
"""Elements that one draw of 64 bits decides on."""


def drop(x: Float[Tensor, "..."], rate: float) -> Float[Tensor, "..."]:
    """Set a share of the elements to 0 and scale the others, so that the mean stays."""
    if rate <= 0:
        return x
    if x.device.type != "cpu" or rate >= 1:
        return nn.functional.dropout(x, rate, training=True)
    dropped = round(rate * RATE_STEPS)
    draws = torch.empty(-(-x.numel() // ELEMENTS_PER_DRAW), dtype=torch.int64).random_(-(1 << 63), None)
    bits = draws.view(torch.int16)[: x.numel()].view(x.shape)
    mask = (bits >= dropped - RATE_STEPS // 2).to(x.dtype)
    return x * mask.mul_(RATE_STEPS / (RATE_STEPS - dropped))


class Dropout(nn.Dropout):
    """A dropout layer that uses ``drop``."""

    def forward(self, input: Tensor) -> Tensor:  # noqa: A002 (torch's name)
        """Drop elements while training."""
        return drop(input, self.p) if self.training else input


@contextmanager
def quick_dropout(model: nn.Module) -> Iterator[list[str]]:
    """Replace every torch.nn.Dropout of a model by ``Dropout`` temporarily; yields their names."""
    layers = [
        (f"{outer}.{name}".lstrip("."), module, name, part)
        for outer, module in model.named_modules()
        for name, part in module.named_children()
        if type(part) is nn.Dropout
    ]
    for _, module, name, part in layers:
        setattr(module, name, Dropout(part.p).train(part.training))
    try:
        yield [path for path, *_ in layers]
    finally:
        for _, module, name, part in layers:
            setattr(module, name, part.train(module.training))
