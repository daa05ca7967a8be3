"""Paths and planes between models in weight space.

Paper: "Zero-shot Cross-lingual Transfer is Under-specified Optimization", Section 3.1, Eqs 1 to 3.

Models that mix inputs with translations (X-Mixup) are scored as they infer: λ₀, W and b of the ratio are
interpolated like the encoder's weights.

Models with LoRA are mixed by their merged weights, W + (alpha / rank) B A. Part "factors" mixes A and B.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from typing import TypedDict, TypeVar, cast

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn

from isogloss.core.errors import ModelError
from isogloss.core.progress import Progress
from isogloss.diagnostics.mixed_parts import FACTORS, HEAD, INCOMPATIBLE_MIXUPS
from isogloss.diagnostics.point_records import PointRecords
from isogloss.diagnostics.setting import MeasureSetting, role_of
from isogloss.encoders.family import Model
from isogloss.encoders.mixup import LearnedRatio, Mixup
from isogloss.encoders.remembering import RememberedStates

Weights = list[Tensor]

Point = TypeVar("Point")
"""Coordinates on a path or on a plane."""


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


class LanguageScore(TypedDict):
    """A score of a mixed model on one language."""

    language: str
    role: str
    split: str
    metric: str
    score: float


Moved = tuple[nn.Module, list[str], list[Mixup]]
"""A model, the names of its parameters that are moved, and how each model mixes, if they do."""


def load_corners(setting: MeasureSetting, part: str) -> tuple[Moved, list[Weights]]:
    """Return the first model with what of it is moved, and the weights of all models."""
    load = setting.load_factors if part == FACTORS else setting.load
    models = [load(subject) for subject in setting.subjects]
    names, mixups = parameter_names(models[0], part), _mixups(setting)
    return (models[0], names, mixups), _with_ratios(matching_weights(names, models), mixups, part)


def score_points(
    setting: MeasureSetting,
    part: str,
    models: Moved,
    points: Sequence[Point],
    move: Callable[[Point, Weights], None],
    sentences: int | None = None,
) -> Iterator[tuple[Point, LanguageScore]]:
    """Yield each point with the score on each language.

    The contributions of examples, and some sentences, are stored.
    """
    sources, (model, names, mixups) = setting.source or setting.languages[:1], models
    evaluations = {language: setting.evaluation(language) for language in setting.languages}
    records = {
        language: PointRecords(language_evaluation, sentences)
        for language, language_evaluation in evaluations.items()
    }
    ratios = [count.clone() for mixup in mixups[:1] for count in _ratio_of(mixup)]
    states = RememberedStates() if part == HEAD and not mixups else None
    for count, point in enumerate(visit_points(model, names, points, move, extra=ratios), start=1):
        for mixup in mixups[:1]:
            moved_mixup = _mixing_so(mixup, ratios)
            evaluations = {
                name_of_language: replace(e, mixup=moved_mixup) for name_of_language, e in evaluations.items()
            }
        for language, evaluation in evaluations.items():
            with torch.no_grad(), recalled_states(states, model, language):
                scores = evaluation.score_by_example(model)
            records[language].add(np.atleast_1d(cast(float, point)).tolist(), scores)
            yield (
                point,
                LanguageScore(
                    language=language,
                    role=role_of(language, sources),
                    split=setting.split,
                    metric=evaluation.metric,
                    score=scores[0],
                ),
            )
        setting.on_progress(Progress("path", count, len(points)))
    for language, record in records.items():
        setting.keep(record.predictions(language))


def recalled_states(
    states: RememberedStates | None, model: nn.Module, language: str = ""
) -> AbstractContextManager[None]:
    """Let the encoder compute the states of each batch once.

    It computes them at each point without ``states``, and in a model whose encoder is unknown.
    """
    if states is None or not hasattr(model, "base_model"):
        return nullcontext()
    return states.recall(cast(Model, model), language=language)


def visit_points(
    model: nn.Module,
    names: Sequence[str],
    points: Iterable[Point],
    move: Callable[[Point, Weights], None],
    *,
    extra: Sequence[Tensor] = (),
) -> Iterator[Point]:
    """Write the values of each point into the named parameters of a model, and yield the point.

    ``extra`` are tensors that are moved with them. The values are written into copies, which the model uses
    until the last point, so it must not be shared with other threads.
    """
    moving = {
        name: nn.Parameter(weight.clone(), requires_grad=False)
        for name, weight in zip(names, weights_of(model, names), strict=True)
    }
    with replaced_parameters(model, moving):
        for point in points:
            with torch.no_grad():
                move(point, [*moving.values(), *extra])
            yield point  # Outside of no_grad, which an iterator that is not finished would leave on.


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


def _mixups(setting: MeasureSetting) -> list[Mixup]:
    """Return the mixup of each model. Empty if inputs are not paired.

    Raises ModelError if the models mix differently.
    """
    mixups = [] if setting.paired is None else [setting.mixup(subject) for subject in setting.subjects]
    for mixup in mixups:
        if mixup is None or replace(mixup, ratio=0.0) != replace(mixups[0] or mixup, ratio=0.0):
            raise ModelError(INCOMPATIBLE_MIXUPS)
    return [mixup for mixup in mixups if mixup is not None]


def _with_ratios(weights: list[Weights], mixups: list[Mixup], part: str) -> list[Weights]:
    """Add the parameters of the ratio. If only the head is mixed, the first model's stay."""
    ratios = [_ratio_of(mixups[0] if part == HEAD else mixup) for mixup in mixups] or [[] for _ in weights]
    return [[*weights_of_model, *ratio] for weights_of_model, ratio in zip(weights, ratios, strict=True)]


def _ratio_of(mixup: Mixup) -> Weights:
    """Return W, b and λ₀ of Eq. 5 of X-Mixup."""
    ratio = [weight.detach().cpu() for weight in mixup.ratio_module.parameters()]
    return [*ratio, torch.tensor(mixup.ratio, dtype=torch.float64)]


def _mixing_so(mixup: Mixup, values: Weights) -> Mixup:
    """Return the same mixup with a different ratio. λ₀ is clipped to a share where a path is extended."""
    ratio = LearnedRatio()
    for weight, value in zip(ratio.parameters(), values, strict=False):
        weight.data.copy_(value)
    return replace(mixup, ratio=min(1.0, max(0.0, float(values[-1]))), ratio_module=ratio)


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
