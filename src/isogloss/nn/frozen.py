"""Frozen parameters: no training changes them, so no checkpoint needs to store them."""

from collections.abc import Iterable

from torch import nn

_MARK = "isogloss_frozen"
"""An attribute, as other parameters without gradients are the state of a training (``meta_learning``)."""


def freeze(parameters: Iterable[nn.Parameter]) -> None:
    """Freeze parameters: no training changes them until they are thawed."""
    for parameter in parameters:
        parameter.requires_grad_(False)
        setattr(parameter, _MARK, True)


def thaw(model: nn.Module) -> None:
    """Let training change all parameters of a model."""
    for parameter in model.parameters():
        parameter.requires_grad_(True)
        vars(parameter).pop(_MARK, None)


def unfrozen(model: nn.Module) -> dict[str, nn.Parameter]:
    """Return the parameters that are not frozen, by name."""
    return {name: parameter for name, parameter in model.named_parameters() if not hasattr(parameter, _MARK)}
