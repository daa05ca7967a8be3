"""Scores of models at points of a path or a plane."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from typing import TypedDict, TypeVar, cast

import numpy as np
import torch
from torch import Tensor, nn

from isogloss.core.errors import ModelError
from isogloss.core.progress import Progress
from isogloss.diagnostics.mixed_parts import FACTORS, HEAD, INCOMPATIBLE_MIXUPS
from isogloss.diagnostics.setting import MeasureSetting, role_of
from isogloss.diagnostics.weight_space import (
    Weights,
    matching_weights,
    parameter_names,
    replaced_parameters,
    weights_of,
)
from isogloss.encoders.family import Model
from isogloss.encoders.mixup import LearnedRatio, Mixup
from isogloss.features.landscapes.point_records import PointRecords
from isogloss.features.landscapes.remembering import RememberedStates

Point = TypeVar("Point")
"""Coordinates on a path or on a plane."""


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
    names = parameter_names(models[0], part)
    mixups = _mixups(setting)
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
