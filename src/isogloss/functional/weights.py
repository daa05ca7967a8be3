"""Models in weight space: scores along a path and on a plane, and the differences between models.

"Zero-shot Cross-lingual Transfer is Under-specified Optimization", Section 3.1 and Appendix B. Any
``torch.nn.Module`` will do; all models must have the same parameters. Buffers stay those of the first model.
"""

import warnings
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from math import fsum
from typing import Any, TypeVar

import pandas as pd
import torch
from torch import nn

from isogloss.core.arguments import checks_arguments
from isogloss.core.errors import ConfigError
from isogloss.core.progress import OnProgress, Progress
from isogloss.core.run_parts import Whole
from isogloss.diagnostics.weight_space import (
    COARSE,
    FINE,
    delta_between,
    matching_weights,
    moves_on_path,
    moves_on_plane,
    visit_points,
)
from isogloss.encoders.families import has_known_layers
from isogloss.encoders.shared_weights import evaluation_copy
from isogloss.functional.beginning import showing_progress
from isogloss.functional.preparing import unwrap_module, unwrap_torch
from isogloss.methods.average import Average, Density, Dropped, Part, shapes_of
from isogloss.training.gradient_conflict import parts_of

AnyModel = TypeVar("AnyModel", bound=nn.Module)

Score = Callable[[Any], float | Mapping[str, float]]
"""From a model to a number, or to several by name (languages, measures)."""


@checks_arguments
def path(
    start: nn.Module,
    end: nn.Module,
    score: Score,
    alphas: Sequence[float] = tuple(sorted((*COARSE, *FINE))),
    *,
    on_progress: OnProgress | None = None,
) -> pd.DataFrame:
    """Return the scores of αθ_end + (1 - α)θ_start (Eqs 1 and 2), by α.

    ``score`` is called with a copy of ``start`` whose parameters are each point's, in evaluation mode and
    without gradients; ``start`` stays as it is. A score of ``start`` itself is therefore the same at every
    point, which a warning says. α = 0 and α = 1 are ``start`` and ``end`` to the bit. A
    column for each name that ``score`` returns, or ``score``.

    ModelError where the models have not the same parameters.

    >>> import torch, isogloss
    >>> start, end = torch.nn.Linear(2, 1), torch.nn.Linear(2, 1)
    >>> ends = isogloss.path(start, end, lambda model: model.bias.item(), alphas=[0, 1])["score"]
    >>> bool(ends[0] == start.bias.item() and ends[1] == end.bias.item())
    True
    """
    start, end = unwrap_torch(start), unwrap_torch(end)
    names = [name for name, _ in start.named_parameters()]
    move = moves_on_path(*matching_weights(names, [start, end]))
    index = pd.Index([float(alpha) for alpha in alphas], name="alpha")
    return _scores(start, names, index, move, score, on_progress)


@checks_arguments
def plane(
    origin: nn.Module,
    first: nn.Module,
    second: nn.Module,
    score: Score,
    alphas: Sequence[float] = COARSE,
    *,
    on_progress: OnProgress | None = None,
) -> pd.DataFrame:
    """Return the scores of θ_O + α₁(θ_1 - θ_O) + α₂(θ_2 - θ_O) (Eq. 3), by α₁ and α₂.

    ``alphas`` are the values on each of the two axes. ``score`` and the rest are as for ``path``.

    >>> isogloss.plane(bilingual, source_only, target_only, score)["qab"].unstack()    # doctest: +SKIP
    """
    origin = unwrap_torch(origin)
    names = [name for name, _ in origin.named_parameters()]
    ends = [origin, unwrap_torch(first), unwrap_torch(second)]
    move = moves_on_plane(*matching_weights(names, ends))
    points = [[float(alpha) for alpha in alphas]] * 2
    index = pd.MultiIndex.from_product(points, names=["alpha_first", "alpha_second"])
    return _scores(origin, names, index, move, score, on_progress)


def _scores(
    model: nn.Module,
    names: Sequence[str],
    points: pd.Index,
    move: Callable[[Any, list[Any]], None],
    score: Score,
    on_progress: OnProgress | None,
) -> pd.DataFrame:
    rows = []
    moved = evaluation_copy(model)
    used = set()
    moved.register_forward_pre_hook(lambda *_: used.add("forward"))
    with showing_progress(on_progress) as progress:
        for number, _ in enumerate(visit_points(moved, names, points.tolist(), move), start=1):
            scored = score(moved)
            rows.append(dict(scored) if isinstance(scored, Mapping) else {"score": float(scored)})
            progress(Progress("path", number, len(points)))
    if not used and len(rows) > 1 and all(row == rows[0] for row in rows):
        warnings.warn(
            f"the scores of all {len(rows)} points are equal, and score ran no model that it was given. "
            "Score its argument: the models themselves stay as they are.",
            stacklevel=3,
        )
    return pd.DataFrame(rows, index=points)


@checks_arguments
def average(
    models: Sequence[AnyModel],
    weights: Sequence[float] | None = None,
    *,
    origin: nn.Module | None = None,
    density: Density | None = None,
    dropped: Dropped = 0.0,
    seed: Whole = 0,
) -> AnyModel:
    """Return a new model whose weights are a weighted mean of models', or a sum of task vectors.

    ``weights`` are equal and sum to 1 if left out. What they lack to 1 is the weight of ``origin``, the
    pretrained model: (1, 1) adds two task vectors to it (Ilharco et al. 2023). ``density`` is the share of
    each vector's changes that TIES keeps (Yadav et al. 2023, Eqs 2 to 4), ``dropped`` the share that DARE
    drops at random, by ``seed`` (Yu et al. 2024); both require ``origin``.

    ConfigError where an origin is required, ModelError where the models have other parameters.

    >>> import torch, isogloss
    >>> first, second = torch.nn.Linear(2, 1), torch.nn.Linear(2, 1)
    >>> mean = isogloss.average([first, second])
    >>> bool(torch.allclose(mean.bias, (first.bias + second.bias) / 2))
    True
    """
    if not models or (weights is not None and len(weights) != len(models)):
        raise ConfigError(
            f"average: found {len(models)} models and {'no' if weights is None else len(weights)} weights. "
            f"Give one model or more, and as many weights or none."
        )
    models = [unwrap_torch(model) for model in models]
    method = Average(weights=None if weights is None else tuple(weights), density=density, dropped=dropped)
    shares = method.weights_of(len(models))
    parts = [_part(f"model {n}", *pair) for n, pair in enumerate(zip(models, shares, strict=True))]
    if method.needs_origin(len(models)):
        if origin is None:
            raise ConfigError(
                f"average: the weights sum to {fsum(shares):g}, density is {density}, dropped {dropped}. "
                f"Give the pretrained model as origin, or weights that sum to 1 and neither of the others."
            )
        parts.append(_part("origin", unwrap_torch(origin), 1 - fsum(shares)))
    averaged = deepcopy(models[0])
    with torch.no_grad():
        method.combine(averaged.state_dict(), parts, len(models), seed=seed)
    return averaged


def _part(name: str, model: nn.Module, weight: float) -> Part:
    tensors = {key: tensor.detach() for key, tensor in model.state_dict().items()}
    return Part(name, weight, has_head=True, shapes=shapes_of(tensors), read=tensors.__getitem__)


@checks_arguments
def deltas(origin: nn.Module, first: nn.Module, second: nn.Module, *, layers: bool = True) -> pd.DataFrame:
    """Return the lengths of two models' differences from an origin, their ratio and angle, by part.

    δ_1 = θ_1 - θ_O and δ_2 = θ_2 - θ_O (Appendix B, Fig. 4, with the bilingual model as the origin). Columns:
    ``norm_first``, ``norm_second``, ``ratio`` (first to second) and ``angle`` in degrees; nan where a length
    is 0. The row ``all`` is of all parameters. Models of a known family of encoders have a row for each
    layer (``embeddings``, ``layer 1`` …) and for the rest, unless ``layers`` is false.

    >>> isogloss.deltas(bilingual, source_only, target_only)                 # doctest: +SKIP
    """
    models = [unwrap_module(model, "deltas") for model in (origin, first, second)]
    origin = models[0]
    parts = {"all": [name for name, _ in origin.named_parameters()]}
    if layers and has_known_layers(origin):
        for name, part in parts_of(origin).items():
            label = (
                part.module if part.layer is None else f"layer {part.layer}" if part.layer else "embeddings"
            )
            parts.setdefault(label, []).append(name)
    rows = {part: delta_between(models, names, part) for part, names in parts.items()}
    columns = ("norm_first", "norm_second", "ratio", "angle")
    values = {part: {name: getattr(row, name) for name in columns} for part, row in rows.items()}
    return pd.DataFrame.from_dict(values, orient="index", dtype=float).rename_axis("part")
