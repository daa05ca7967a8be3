"""Weighted means of models and sums of task vectors, of models that a caller has."""

from collections.abc import Iterable
from copy import deepcopy
from math import fsum
from typing import Annotated, TypeVar

import torch
from annotated_types import Ge, Gt, Le, Lt
from pydantic import Strict
from torch import nn

from isogloss.core.arguments import checks_arguments
from isogloss.core.errors import ConfigError
from isogloss.core.run_parts import Count, Whole
from isogloss.features.averaging.method import Average
from isogloss.features.averaging.weight_arithmetic import (
    OuterWeights,
    Trimming,
    WeightedModel,
    combine,
    shapes_of,
)
from isogloss.functional.comparable_models import check_labels, is_encoder_of
from isogloss.functional.preparing import unwrap_torch

AnyModel = TypeVar("AnyModel", bound=nn.Module)

Finite = Annotated[float, Strict()]
Density = Annotated[float, Strict(), Gt(0), Le(1)]
Dropped = Annotated[float, Strict(), Ge(0), Lt(1)]
"""Ranges of numbers: any, and the ranges of the fields of ``Average``."""


@checks_arguments
def average(
    models: Iterable[AnyModel],
    weights: Iterable[Finite] | None = None,
    *,
    origin: nn.Module | None = None,
    density: Density | None = None,
    scale: Finite | None = None,
    dropped: Dropped = 0.0,
    outer_weights: Iterable[Finite] | None = None,
    lowest: Count = 0,
    highest: Count = 0,
    transition: Count = 0,
    seed: Whole = 0,
) -> AnyModel:
    """Return a new model whose weights are a weighted mean of models', or a sum of task vectors.

    ``weights`` Default: equal weights that sum to 1. What they lack to 1 is the weight of ``origin``, the
    pretrained model: (1, 1) adds two task vectors to it (Ilharco et al. 2023). Where ``origin`` is an encoder
    and the models have heads, the head is the mean of theirs by ``weights``. Adapters of peft that are not
    merged are averaged as they are, both factors of LoRA by themselves. ``density`` is the share of
    each vector's changes that TIES keeps (Yadav et al. 2023, Eqs 2 to 4), ``dropped`` the share that DARE
    drops at random, by ``seed`` (Yu et al. 2024); both require ``origin``. ``scale`` is λ of TIES, by which
    the merged vector is multiplied. Default: the sum of the weights, so that weights (1, 1) of two models
    double it; mergekit and peft take 1.

    ``outer_weights`` replace ``weights`` in the ``lowest`` layers with the embeddings, and in the ``highest``
    layers: with weights (1, 0) and outer_weights (0, 1) of a model of the task and one of the language, these
    layers are swapped (Bandarkar et al. 2025). ``transition`` layers next to these have the mean of both.

    ConfigError where an origin is required, ModelError where the models differ in parameters or labels.

    Device: as the first model. Cost: the memory of one more model; with ``density`` also the memory
    of one vector of changes.

    >>> import torch, isogloss
    >>> first, second = torch.nn.Linear(2, 1), torch.nn.Linear(2, 1)
    >>> mean = isogloss.average([first, second])
    >>> bool(torch.allclose(mean.bias, (first.bias + second.bias) / 2))
    True
    """
    models = list(models)
    weights = None if weights is None else tuple(weights)
    outer_weights = None if outer_weights is None else tuple(outer_weights)
    for name, numbers in (("weights", weights), ("outer_weights", outer_weights)):
        if not models or (numbers is not None and len(numbers) != len(models)):
            raise ConfigError(
                f"average: found {len(models)} models and {'no' if numbers is None else len(numbers)} "
                f"{name}. Give one model or more, and as many weights or none."
            )
    models = [unwrap_torch(model) for model in models]
    check_labels("average", {f"model {index}": model for index, model in enumerate(models)})
    method = Average(
        weights=weights,
        density=density,
        scale=scale,
        dropped=dropped,
        outer_weights=outer_weights,
        lowest=lowest,
        highest=highest,
        transition=transition,
    )
    trimming = Trimming(density=density, dropped=dropped, scale=scale)
    shares = method.weights_of(len(models))
    parts = [_part(f"model {n}", *pair) for n, pair in enumerate(zip(models, shares, strict=True))]
    if method.needs_origin(len(models)):
        if origin is None:
            sums = [f"{fsum(numbers):g}" for numbers in (shares, outer_weights) if numbers]
            raise ConfigError(
                f"average: the weights sum to {' and '.join(sums)}, density is {density}, dropped {dropped}. "
                f"Give the pretrained model as origin, or weights that sum to 1 and neither of the others."
            )
        parts.append(_origin(unwrap_torch(origin), models[0], 1 - fsum(shares)))
    outer = {}
    if outer_weights:
        outer = OuterWeights(outer_weights, lowest, highest, transition).list_weights(models[0], shares)
    result = deepcopy(models[0])
    with torch.no_grad():
        combine(result.state_dict(), parts, len(models), trimming, outer, seed=seed)
    return result


def _origin(origin: nn.Module, model: nn.Module, weight: float) -> WeightedModel:
    """Return the part of an origin: a model like the others, or the encoder of such a model."""
    if not is_encoder_of(origin, model):
        return _part("origin", origin, weight)
    prefix = f"{model.base_model_prefix}."
    tensors = {f"{prefix}{key}": tensor.detach() for key, tensor in origin.state_dict().items()}
    return WeightedModel(
        "origin", weight, has_head=False, shapes=shapes_of(tensors), read=tensors.__getitem__
    )


def _part(name: str, model: nn.Module, weight: float) -> WeightedModel:
    tensors = {key: tensor.detach() for key, tensor in model.state_dict().items()}
    return WeightedModel(name, weight, has_head=True, shapes=shapes_of(tensors), read=tensors.__getitem__)
