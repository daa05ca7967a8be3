"""Paths and planes between models in weight space.

Paper: "Zero-shot Cross-lingual Transfer is Under-specified Optimization", Section 3.1, Eqs 1 to 3.

Models that mix inputs with translations (X-Mixup) are scored as they infer: λ₀, W and b of the ratio are
interpolated like the encoder's weights.

Models with LoRA are mixed by their merged weights, W + (alpha / rank) B A. Part "factors" mixes A and B.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager

import torch
from jaxtyping import Float
from torch import Tensor, nn

from isogloss.core.errors import ModelError
from isogloss.diagnostics.mixed_parts import FACTORS

Weights = list[Tensor]


def on_path(start: Float[Tensor, "..."], end: Float[Tensor, "..."], alpha: float, *, out: Tensor) -> None:
    """Write αθ_end + (1-α)θ_start (Eqs 1, 2) into ``out``. Exact to the bit at α = 0 and 1."""
    torch.lerp(start, end, alpha, out=out)


def on_plane(
    origin: Float[Tensor, "..."], corners: tuple[Tensor, Tensor], alphas: tuple[float, float], *, out: Tensor
) -> None:
    """Write θ_ST + α₁(θ_S-θ_ST) + α₂(θ_T-θ_ST) (Eq. 3) into ``out``. Equal to a path on both axes."""
    corner_x, corner_y = corners
    if alphas[0] == 0:
        torch.lerp(origin, corner_y, alphas[1], out=out)
        return
    torch.lerp(origin, corner_x, alphas[0], out=out)
    if alphas[1] != 0:
        out.add_(corner_y - origin, alpha=alphas[1])


def moves_on_path(start: Weights, end: Weights) -> Callable[[float, Weights], None]:
    """Return a function that writes the weights at α between two models (Eqs 1, 2)."""

    def move(alpha: float, targets: Weights) -> None:
        for x, y, target in zip(start, end, targets, strict=True):
            on_path(x, y, alpha, out=target)

    return move


def moves_on_plane(
    origin: Weights, first_weights: Weights, second_weights: Weights
) -> Callable[[tuple[float, float], Weights], None]:
    """Return a function that writes the weights at (α₁, α₂) on the plane through three models (Eq. 3)."""

    def move(alphas: tuple[float, float], targets: Weights) -> None:
        for o, x, y, target in zip(origin, first_weights, second_weights, targets, strict=True):
            on_plane(o, (x, y), alphas, out=target)

    return move


def parameter_names(model: nn.Module, part: str) -> list[str]:
    """Name the parameters of a part: the encoder (everything below the base model), the head, else all."""
    prefix = f"{model.base_model_prefix}."
    names = [name for name, _ in model.named_parameters()]
    if part in ("all", FACTORS):  # What the factors leave as it is, is equal in all models.
        return names
    return [name for name in names if name.startswith(prefix) == (part == "encoder")]


def weights_of(model: nn.Module, names: Iterable[str]) -> Weights:
    """Return parameters by name. Raises ModelError if the model lacks one."""
    parameters = dict(model.named_parameters())
    missing = [name for name in names if name not in parameters]
    if missing:
        raise ModelError(
            f"these models cannot be mixed: one has no parameter {missing[0]!r}. "
            f"Both must come from one encoder and task."
        )
    return [parameters[name].detach() for name in names]


def matching_weights(names: Sequence[str], models: Sequence[nn.Module]) -> list[Weights]:
    """Return each model's parameters by name. Raises ModelError for missing parameters or other shapes."""
    weights = [weights_of(model, names) for model in models]
    for name, tensor, *counterparts in zip(names, *weights, strict=True):
        if any(counterpart.shape != tensor.shape for counterpart in counterparts):
            raise ModelError(
                f"these models cannot be mixed: {name} has another shape in one of them. All must come from "
                f"one encoder and task, with adapters of one rank where factors are mixed."
            )
    return weights


@contextmanager
def replaced_parameters(model: nn.Module, weights: dict[str, nn.Parameter]) -> Iterator[None]:
    """Replace parameters of a model within the context. The originals are restored after it.

    One that has several names is replaced under all of them: mT5's embeddings have two.
    """
    parameters = dict(model.named_parameters(remove_duplicate=False))
    new_weights = {id(parameters[attribute]): weight for attribute, weight in weights.items()}
    places = [
        (attribute.rpartition("."), weight)
        for attribute, weight in parameters.items()
        if id(weight) in new_weights
    ]
    originals = [(model.get_submodule(path), leaf, weight) for (path, _, leaf), weight in places]
    try:
        for owner, attribute, weight in originals:
            setattr(owner, attribute, new_weights[id(weight)])
        yield
    finally:
        for owner, attribute, weight in originals:
            setattr(owner, attribute, weight)
