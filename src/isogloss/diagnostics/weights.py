"""A model's weights by part, and other weights standing in for them for a while."""

from collections.abc import Iterable
from typing import Any

from torch import Tensor, nn

from isogloss.core.errors import ModelError

PARTS = ("all", "encoder", "head")

Weights = list[Tensor]


def chosen_parameters(model: Any, part: str) -> list[str]:
    """Name the parameters of a part: all, the encoder (everything below the base model), or the head."""
    prefix = f"{model.base_model_prefix}."
    names = [name for name, _ in model.named_parameters()]
    if part == "all":
        return names
    return [name for name in names if name.startswith(prefix) == (part == "encoder")]


def weights_of(model: nn.Module, names: Iterable[str]) -> Weights:
    """Return parameters by name; ModelError when the models do not have the same ones."""
    there = dict(model.named_parameters())
    missing = [name for name in names if name not in there]
    if missing:
        raise ModelError(
            f"these models cannot be mixed: one has no parameter {missing[0]!r}. "
            f"Both must come from one encoder and task."
        )
    return [there[name].detach() for name in names]


class standing_in:  # noqa: N801 (reads as a statement: with standing_in(model, weights))
    """Let other tensors stand in for a model's parameters for a while."""

    def __init__(self, model: nn.Module, weights: dict[str, nn.Parameter]) -> None:
        """Remember what is there."""
        self.places = [(*_owner(model, name), weight) for name, weight in weights.items()]
        self.before: list[nn.Parameter] = []

    def __enter__(self) -> None:
        """Put the other tensors in."""
        self.before = [getattr(owner, name) for owner, name, _ in self.places]
        for owner, name, weight in self.places:
            setattr(owner, name, weight)

    def __exit__(self, *_: object) -> None:
        """Put the model's own back."""
        for (owner, name, _), weight in zip(self.places, self.before, strict=True):
            setattr(owner, name, weight)


def _owner(model: nn.Module, name: str) -> tuple[nn.Module, str]:
    path, _, last = name.rpartition(".")
    return model.get_submodule(path), last
