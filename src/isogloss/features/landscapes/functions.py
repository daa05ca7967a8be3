"""Models in weight space: scores along a path and on a plane, and the differences between models.

"Zero-shot Cross-lingual Transfer is Under-specified Optimization", Section 3.1 and Appendix B. Any
``torch.nn.Module`` will do; all models need the same parameters. Buffers come from the first model.
"""

import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import deepcopy
from typing import Annotated, Any, Literal, TypeVar

import pandas as pd
import torch
from pydantic import Strict
from torch import Tensor, nn

from isogloss.core.arguments import checks_arguments
from isogloss.core.errors import ConfigError, ModelError, check_named
from isogloss.core.identity import derive
from isogloss.core.progress import OnProgress, Progress
from isogloss.core.run_parts import Whole
from isogloss.diagnostics.mixed_parts import HEAD
from isogloss.diagnostics.weight_space import matching_weights, moves_on_path, moves_on_plane, parameter_names
from isogloss.encoders.families import has_known_layers
from isogloss.encoders.parameter_groups import parts_of
from isogloss.encoders.shared_weights import evaluation_copy
from isogloss.features.landscapes.alike_models import check_alike
from isogloss.features.landscapes.deltas import delta_between
from isogloss.features.landscapes.diagnostic import COARSE, FINE
from isogloss.features.landscapes.remembering import RememberedStates
from isogloss.features.landscapes.scored_points import recalled_states, visit_points
from isogloss.functional.beginning import showing_progress
from isogloss.functional.comparable_models import is_encoder_of
from isogloss.functional.model_scores import Score, read_scores
from isogloss.functional.preparing import unwrap_module, unwrap_torch

AnyModel = TypeVar("AnyModel", bound=nn.Module)

MATRIX = 2
"""Dimensions from which on a parameter has rows."""

Finite = Annotated[float, Strict()]

Part = Literal["all", "encoder", "head"]
"""The parameters that move."""


@checks_arguments
def path(
    start: nn.Module,
    end: nn.Module,
    score: Score,
    alphas: Iterable[Finite] = tuple(sorted((*COARSE, *FINE))),
    *,
    part: Part = "all",
    on_progress: OnProgress | None = None,
) -> pd.DataFrame:
    """Return the scores of αθ_end + (1 - α)θ_start (Eqs 1 and 2), by α.

    ``score`` is called with a copy of ``start`` whose parameters are each point's, in evaluation mode and
    without gradients; ``start`` stays as it is. A score of ``start`` itself is therefore the same at every
    point, which a warning says. α = 0 and α = 1 are ``start`` and ``end`` to the bit. A
    column for each name that ``score`` returns, or ``score``.

    ``part`` is what moves of a model of transformers: "all", "encoder" or "head"; the rest stays as in
    ``start``. Where only the head moves, the encoder computes the states of equal inputs once.

    ConfigError for a part of a model without an encoder or without a head.
    ModelError where the models differ in the names or shapes of parameters, in buffers, which do not move
    (such as the statistics of BatchNorm), or in the labels of their heads.

    Device: as ``start``. Cost: a call of ``score`` for each α, and the memory of one more model.

    >>> import torch, isogloss
    >>> start, end = torch.nn.Linear(2, 1), torch.nn.Linear(2, 1)
    >>> ends = isogloss.path(start, end, lambda model: model.bias.item(), alphas=[0, 1])["score"]
    >>> bool(ends[0] == start.bias.item() and ends[1] == end.bias.item())
    True
    """
    start = unwrap_torch(start)
    end = unwrap_torch(end)
    check_alike("path", {"start": start, "end": end})
    names = _names_of("path", start, part)
    move = moves_on_path(*matching_weights(names, [start, end]))
    index = pd.Index([float(alpha) for alpha in alphas], name="alpha")
    return _scores(start, names, index, move, score, part=part, on_progress=on_progress)


@checks_arguments
def plane(
    origin: nn.Module,
    first: nn.Module,
    second: nn.Module,
    score: Score,
    alphas: Iterable[Finite] = COARSE,
    *,
    part: Part = "all",
    on_progress: OnProgress | None = None,
) -> pd.DataFrame:
    """Return the scores of θ_O + α₁(θ_1 - θ_O) + α₂(θ_2 - θ_O) (Eq. 3), by α₁ and α₂.

    ``alphas`` are the values on each of the two axes. ``score``, ``part`` and the rest are as for ``path``.

    ModelError where the models differ, DataError for a score that is no number.

    Device: as ``origin``. Cost: a call of ``score`` for each pair of values, and the memory of
    one more model.

    >>> isogloss.plane(bilingual, source_only, target_only, score)["qab"].unstack()    # doctest: +SKIP
    """
    origin = unwrap_torch(origin)
    ends = [origin, unwrap_torch(first), unwrap_torch(second)]
    check_alike("plane", dict(zip(("origin", "first", "second"), ends, strict=True)))
    names = _names_of("plane", origin, part)
    move = moves_on_plane(*matching_weights(names, ends))
    points = [[float(alpha) for alpha in alphas]] * 2
    index = pd.MultiIndex.from_product(points, names=["alpha_first", "alpha_second"])
    return _scores(origin, names, index, move, score, part=part, on_progress=on_progress)


def _names_of(function: str, model: nn.Module, part: Part) -> list[str]:
    """Name the parameters of a part of a model."""
    if part == "all":
        return [name for name, _ in model.named_parameters()]
    if getattr(model, "base_model", model) is model:
        raise ConfigError(
            f"{function}: part is {part!r}, and {type(model).__name__} has no encoder with a head. Give "
            'models of transformers with a head, or part="all".'
        )
    return parameter_names(model, part)


def _scores(
    model: nn.Module,
    names: Sequence[str],
    points: pd.Index,
    move: Callable[[Any, list[Any]], None],
    score: Score,
    *,
    part: Part,
    on_progress: OnProgress | None,
) -> pd.DataFrame:
    rows = []
    moved_model = evaluation_copy(model)
    states = RememberedStates() if part == HEAD else None
    calls = set()
    moved_model.register_forward_pre_hook(lambda *_: calls.add("forward"))
    with showing_progress(on_progress) as progress:
        for count, _ in enumerate(visit_points(moved_model, names, points.tolist(), move), start=1):
            with torch.no_grad(), recalled_states(states, moved_model):
                rows.append(read_scores(score(moved_model)))
            progress(Progress("path", count, len(points)))
    if not calls and len(rows) > 1 and all(row == rows[0] for row in rows):
        warnings.warn(
            f"the scores of all {len(rows)} points are equal, and score ran no model that it was given. "
            "Score its argument: the models themselves stay as they are.",
            stacklevel=3,
        )
    return pd.DataFrame(rows, index=points)


@checks_arguments
def random_direction(model: nn.Module, *, seed: Whole = 0) -> dict[str, Tensor]:
    """Return a random direction in weight space, by the names of parameters, as landscapes are drawn along.

    Li et al. (2018), "Visualizing the Loss Landscape of Neural Nets", Section 4: normal numbers, each row of
    a matrix as long as the model's row, and 0 for biases and norms. They depend on ``seed`` and the name of
    the parameter, but not on the device.

    ConfigError for a seed that is no whole number.

    Device: as the model; numbers are drawn on the CPU. Cost: the memory of one more model.

    >>> import torch, isogloss
    >>> model = torch.nn.Linear(2, 3)
    >>> direction = isogloss.random_direction(model)
    >>> bool(torch.allclose(direction["weight"].norm(dim=1), model.weight.norm(dim=1)))
    True
    """
    direction = {}
    for name, weight in unwrap_torch(model).named_parameters():
        if weight.ndim < MATRIX:
            direction[name] = torch.zeros_like(weight)
            continue
        generator = torch.Generator().manual_seed(derive(seed, "direction", name))
        rows = torch.randn(weight.shape, generator=generator).to(weight).flatten(1)
        lengths = weight.detach().flatten(1).norm(dim=1, keepdim=True)
        direction[name] = (rows / rows.norm(dim=1, keepdim=True) * lengths).view_as(weight)
    return direction


@checks_arguments
def move(model: AnyModel, direction: Mapping[str, Tensor], alpha: Finite) -> AnyModel:
    """Return a copy of a model, moved ``alpha`` times along a direction in weight space: θ + αd.

    ``direction`` is what ``random_direction`` returns, or your own tensors by the names of parameters;
    parameters that it lacks stay.

    ConfigError for a parameter that the model lacks, ModelError for one of a different shape.

    Device: as the model. Cost: the memory of one more model.

    >>> import torch, isogloss
    >>> model = torch.nn.Linear(2, 1)
    >>> moved = isogloss.move(model, {"bias": torch.ones(1)}, 0.5)
    >>> round((moved.bias - model.bias).item(), 6)
    0.5
    """
    result = deepcopy(unwrap_torch(model))
    parameters = dict(result.named_parameters())
    check_named("move: direction", "parameter", parameters, *direction)
    with torch.no_grad():
        for name, change in direction.items():
            if change.shape != parameters[name].shape:
                raise ModelError(
                    f"move: direction: {name} has the shape {list(change.shape)}, and the parameter "
                    f"{list(parameters[name].shape)}. Give a direction of this model."
                )
            parameters[name].add_(change.to(parameters[name]), alpha=alpha)
    return result


@checks_arguments
def deltas(origin: nn.Module, first: nn.Module, second: nn.Module, *, layers: bool = True) -> pd.DataFrame:
    """Return the lengths of two models' differences from an origin, their ratio and angle, by part.

    δ_1 = θ_1 - θ_O and δ_2 = θ_2 - θ_O (Appendix B, Fig. 4, with the bilingual model as the origin). Columns:
    ``norm_first``, ``norm_second``, ``ratio`` (first to second) and ``angle`` in degrees; nan where a length
    is 0. The row ``all`` is of all parameters, or of the encoder's parameters where ``origin`` has no head.
    Models of a known family of encoders have a row for each layer (``embeddings``, ``layer 1`` …) and for the
    rest, unless ``layers`` is false.

    ModelError where the models differ in parameters, buffers or labels.

    Device: as the models. Cost: one pass over the parameters.

    >>> isogloss.deltas(bilingual, source_only, target_only)                 # doctest: +SKIP
    """
    models = [unwrap_module(model, "deltas") for model in (origin, first, second)]
    origin = models[0]
    if any(is_encoder_of(origin, model) for model in models[1:]):
        models = [getattr(model, "base_model", model) for model in models]
    check_alike("deltas", dict(zip(("origin", "first", "second"), models, strict=True)))
    parts = {"all": [name for name, _ in origin.named_parameters()]}
    if layers and has_known_layers(origin):
        for name, part in parts_of(origin).items():
            if part.layer is None:
                label = part.module
            else:
                label = f"layer {part.layer}" if part.layer else "embeddings"
            parts.setdefault(label, []).append(name)
    rows = {part: delta_between(models, names, part) for part, names in parts.items()}
    columns = ("norm_first", "norm_second", "ratio", "angle")
    values = {part: {name: getattr(row, name) for name in columns} for part, row in rows.items()}
    return pd.DataFrame.from_dict(values, orient="index", dtype=float).rename_axis("part")
