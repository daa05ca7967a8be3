"""A model's weights by part, and other weights standing in for them for a while."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
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


@contextmanager
def standing_in(model: nn.Module, weights: dict[str, nn.Parameter]) -> Iterator[None]:
    """Let other tensors stand in for a model's parameters for a while."""
    places = [(*_owner(model, name), weight) for name, weight in weights.items()]
    before = [getattr(owner, name) for owner, name, _ in places]
    try:
        for owner, name, weight in places:
            setattr(owner, name, weight)
        yield
    finally:
        for (owner, name, _), own in zip(places, before, strict=True):
            setattr(owner, name, own)


def _owner(model: nn.Module, name: str) -> tuple[nn.Module, str]:
    path, _, last = name.rpartition(".")
    return model.get_submodule(path), last
