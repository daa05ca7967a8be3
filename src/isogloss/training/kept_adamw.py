"""AdamW over parameters that ``fit`` is to leave alone, with moments that its checkpoints hold.

A loss that updates parameters itself needs an optimiser that an interrupted training finds as it was. A
checkpoint holds a model's parameters; so the moments are parameters here, which nothing trains.
"""

from collections.abc import Iterable

import torch
from torch import Tensor, nn

from isogloss.training.optimizer import Schedule, adamw


class KeptAdamW(nn.Module):
    """AdamW as ``fit`` has it; a parameter is updated, and counted, when it is given a gradient."""

    def __init__(self, parameters: Iterable[nn.Parameter], schedule: Schedule) -> None:
        """Take the parameters away from every other optimiser: they no longer ask for gradients."""
        super().__init__()
        trained = list(parameters)
        self._clip = schedule.clip
        self._optimizer = adamw(nn.ParameterList(trained), schedule)
        self.updates = kept(torch.zeros(()) for _ in trained)
        self.means = kept(torch.zeros_like(one) for one in trained)
        self.squares = kept(torch.zeros_like(one) for one in trained)
        for one, updates, mean, square in zip(trained, self.updates, self.means, self.squares, strict=True):
            self._optimizer.state[one] = {"step": updates, "exp_avg": mean, "exp_avg_sq": square}
            one.requires_grad_(False)

    def update(self, gradients: Iterable[tuple[nn.Parameter, Tensor]], rate: float) -> None:
        """Move those parameters against their gradients, clipped together; the gradients are not kept."""
        given = list(gradients)
        for one, gradient in given:
            one.grad = gradient
        if self._clip:
            nn.utils.clip_grad_norm_([one for one, _ in given], self._clip)
        for group in self._optimizer.param_groups:
            group["lr"] = rate
        self._optimizer.step()
        self._optimizer.zero_grad(set_to_none=True)

    def give_back(self) -> None:
        """Let the parameters ask for gradients again."""
        for group in self._optimizer.param_groups:
            for one in group["params"]:
                one.requires_grad_(True)


def kept(values: Iterable[Tensor]) -> nn.ParameterList:
    """Return what a checkpoint is to hold, as parameters that nothing trains."""
    return nn.ParameterList(nn.Parameter(value.detach(), requires_grad=False) for value in values)
