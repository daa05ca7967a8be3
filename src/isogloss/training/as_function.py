"""A model's loss on a batch as a function of its parameters, which the model itself keeps."""

from collections.abc import Callable, Mapping
from typing import Any

from torch import Tensor, nn
from torch.func import functional_call

MODEL = "model."


class _Objective(nn.Module):
    """A loss as a module: what is put in its model's place stands there for the whole loss."""

    def __init__(self, model: nn.Module, loss: Callable[[Any, Any], Tensor]) -> None:
        super().__init__()
        self.model, self.loss = model, loss

    def forward(self, batch: object) -> Tensor:
        return self.loss(self.model, batch)


def as_function(model: nn.Module, loss: Callable[[Any, Any], Tensor], batch: object) -> Callable[..., Tensor]:
    """Return the loss as a function of parameters by name; those not given are the model's own.

    Several mappings may be given; each name stands in one of them. Tied parameters go by their first name.
    """
    objective = _Objective(model, loss)

    def evaluated(*parameters: Mapping[str, Tensor]) -> Tensor:
        given = {MODEL + name: part for parts in parameters for name, part in parts.items()}
        value: Tensor = functional_call(objective, given, (batch,))
        return value

    return evaluated
