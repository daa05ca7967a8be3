"""Parts of models: swap them between models, remove them, perturb them, and score each change.

Any ``torch.nn.Module`` will do for ``swap_parts`` and ``score_parts``. ``parts`` has the names of parts.
"""

from collections.abc import Iterable, Mapping
from copy import deepcopy
from typing import TypeVar, get_args

import pandas as pd
import torch
from torch import Tensor, nn

from isogloss.core.arguments import checks_arguments
from isogloss.core.errors import ConfigError, check_named
from isogloss.core.progress import OnProgress, Progress
from isogloss.core.run_parts import Positive, Whole
from isogloss.encoders.shared_weights import evaluation_copy
from isogloss.features.module_swap.changes import (
    list_changes,
    perturbed_weights,
    stripped_weights,
    swapped_weights,
    visit_changes,
)
from isogloss.features.module_swap.part_names import ENCODER
from isogloss.features.module_swap.parts import ModelParts
from isogloss.features.module_swap.rows import Change
from isogloss.functional.beginning import showing_progress
from isogloss.functional.comparable_models import check_buffers, check_labels
from isogloss.functional.model_scores import Score, read_scores
from isogloss.functional.preparing import unwrap_module

AnyModel = TypeVar("AnyModel", bound=nn.Module)

MODELS = ("start", "end")
"""The models of ``score_parts``, whose parts are changed."""


@checks_arguments
def list_parts(model: nn.Module) -> dict[str, list[str]]:
    """Return the parts of a model by name, each with the names of its parameters.

    Each parameter is in exactly one part: ``embeddings``, ``layer 1 attention``, ``layer 1 feed-forward``,
    ``layer 1 norms`` …, ``rest`` (such as a last norm) and ``head`` (with a pooler). Language modules are
    ``layer 1 modules of qab``, adapters of a task ``layer 1 task adapter``, and LoRA or IA3 that is not
    merged ``layer 1 adapters``. Families whose layers are not described have ``layer 1 other`` instead of
    attention and feed-forward. Other modules of torch have a part for each child.

    Where functions take names of parts, they also take unions: ``layer 1``, ``layers 1-3``, ``attention`` (of
    all layers), ``encoder`` (all but the head) and ``all``; and names of modules, such as
    ``bert.encoder.layer.0.attention.self.query``.

    ModelError for a model of peft with virtual subwords.

    Device: any. Cost: one pass over the names.

    >>> import torch, isogloss
    >>> model = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Linear(2, 1))
    >>> isogloss.list_parts(model)
    {'0': ['0.weight', '0.bias'], '1': ['1.weight', '1.bias']}
    """
    return ModelParts.of(unwrap_module(model, "list_parts")).names()


@checks_arguments
def swap_parts(model: AnyModel, other: nn.Module, parts: Iterable[str] | Mapping[str, str]) -> AnyModel:
    """Return a copy of a model in which parts have the weights of another model.

    ``parts`` Names of ``list_parts`` or unions. A mapping names the part of ``other`` for each part of
    ``model``: ``swap_parts(model, model, {"modules of qab": "modules of qad"})`` reads qab with the modules
    of qad. ``other`` may be an encoder without a head, such as the encoder before fine-tuning, if no part is
    in the head. Only parameters are swapped.

    ConfigError for an unknown part. ModelError where parts differ in parameters or shapes, heads in labels,
    or models in buffers (such as the statistics of BatchNorm).

    Device: as ``model``. Cost: the memory of one more model.

    >>> import torch, isogloss
    >>> model, other = (torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Linear(2, 1)) for _ in range(2))
    >>> swapped = isogloss.swap_parts(model, other, ["1"])
    >>> bool((swapped[0].weight == model[0].weight).all() and (swapped[1].weight == other[1].weight).all())
    True
    """
    network = unwrap_module(model, "swap_parts")
    other_network = unwrap_module(other, "swap_parts")
    names = _name_parts(parts, "swap_parts")
    weights = swapped_weights(network, other_network, names, "swap_parts")
    _check_fit("swap_parts", {"model": network, "other": other_network}, weights)
    return _copy_with(model, weights)


@checks_arguments
def strip_parts(model: AnyModel, parts: Iterable[str]) -> AnyModel:
    """Return a copy of a model without the contribution of parts.

    ``parts`` Names of ``list_parts`` or unions. Their weights are 0, so that adapters, LoRA, attention and
    feed-forward add nothing to their inputs. Norms normalise only (weight 1, bias 0), and IA3 scales by 1.
    Without embeddings all subwords are equal; without a head all labels are.

    ConfigError for an unknown part. ModelError for adapters of DoRA, whose magnitudes have no neutral value.

    Device: as ``model``. Cost: the memory of one more model.

    >>> isogloss.strip_parts(model, ["layer 1 attention"])                   # doctest: +SKIP
    """
    network = unwrap_module(model, "strip_parts")
    names = _name_parts(parts, "strip_parts")
    return _copy_with(model, stripped_weights(network, list(names), "strip_parts"))


@checks_arguments
def perturb_parts(model: AnyModel, other: nn.Module, parts: Iterable[str], *, seed: Whole = 0) -> AnyModel:
    """Return a copy of a model in which parts move as far as to another model, in a random direction.

    It is the control of ``swap_parts``: each row of a matrix, and each vector, moves by as much as it differs
    in ``other``, and rows that do not differ stay. ``parts`` Names of ``list_parts`` or unions. The direction
    depends on ``seed`` and the parameter's name.

    ConfigError for an unknown part. ModelError where the models differ in parameters, shapes or buffers.

    Device: as ``model``; numbers are drawn on the CPU. Cost: the memory of one more model.

    >>> isogloss.perturb_parts(model, fine_tuned, ["layer 1"], seed=1)       # doctest: +SKIP
    """
    network = unwrap_module(model, "perturb_parts")
    other_network = unwrap_module(other, "perturb_parts")
    names = _name_parts(parts, "perturb_parts")
    weights = swapped_weights(network, other_network, names, "perturb_parts")
    _check_fit("perturb_parts", {"model": network, "other": other_network}, {})
    return _copy_with(model, perturbed_weights(network, weights, seed=seed))


@checks_arguments
def score_parts(
    start: nn.Module,
    end: nn.Module,
    score: Score,
    parts: Iterable[str] | None = None,
    *,
    changes: Iterable[Change] = ("swap",),
    draws: Positive = 1,
    seed: Whole = 0,
    on_progress: OnProgress | None = None,
) -> pd.DataFrame:
    """Return the scores of two models with each part swapped between them, in a row for each change.

    Columns: ``model``, which is changed: "start" with a part of ``end``, or "end" with a part of ``start``;
    ``part``; ``change``; ``draw``; ``parameters`` in the part; ``norm``, the length of the change; and a
    column for each name that ``score`` returns, or ``score``. The first row of each model has the part
    "none". What a part of ``end`` adds to ``start`` and what ``end`` loses without it are different
    questions; gains of single parts do not sum to the whole gain.

    ``parts`` Names of ``list_parts`` or unions. Default: all parts, layers and kinds of parts.
    ``changes``: "swap"; "strip" removes a part, as ``strip_parts``; "random" moves it as far as the swap, in
    ``draws`` random directions, as ``perturb_parts``. ``score`` is called with a copy in evaluation mode; the
    models stay as they are.

    ConfigError for an unknown part, ModelError where the models differ in parameters, buffers or labels, and
    DataError for a score that is no number.

    Device: as the models. Cost: a call of ``score`` for each row.

    >>> import torch, isogloss
    >>> start, end = (torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Linear(2, 1)) for _ in range(2))
    >>> rows = isogloss.score_parts(start, end, lambda model: model[1].bias.item())
    >>> rows["part"].tolist()
    ['none', '0', '1', 'encoder', 'all', 'none', '0', '1', 'encoder', 'all']
    """
    changes = tuple(changes)
    check_named("score_parts: changes", "change", get_args(Change), *changes)
    copies = [evaluation_copy(unwrap_module(model, "score_parts")) for model in (start, end)]
    names = None if parts is None else tuple(_name_parts(parts, "score_parts"))
    _check_fit("score_parts", dict(zip(MODELS, copies, strict=True)), {})
    planned = list_changes(copies, names, changes, draws=draws, function="score_parts")
    rows = []
    with showing_progress(on_progress) as progress:
        visits = visit_changes(copies, planned, seed=seed, function="score_parts")
        for count, changed in enumerate(visits, start=1):
            change = changed.change
            with torch.no_grad():
                scores = read_scores(score(changed.network))
            rows.append(
                {
                    "model": MODELS[change.model],
                    "part": change.part,
                    "change": change.change,
                    "draw": change.draw,
                    "parameters": changed.parameters,
                    "norm": changed.norm,
                    **scores,
                }
            )
            progress(Progress("parts", count, len(planned)))
    return pd.DataFrame(rows)


def _name_parts(parts: Iterable[str] | Mapping[str, str], function: str) -> dict[str, str]:
    """Return the part of the other model by the part of the model. Raises ConfigError without any part."""
    if isinstance(parts, str):
        raise ConfigError(f"{function}: parts: found the text {parts!r}; expected a list. Give [{parts!r}].")
    names = dict(parts) if isinstance(parts, Mapping) else {part: part for part in parts}
    if not names:
        raise ConfigError(f'{function}: parts: found none. Name one or more, such as "layer 1".')
    return names


def _check_fit(function: str, models: Mapping[str, nn.Module], weights: Mapping[str, Tensor]) -> None:
    """Raise ModelError where buffers differ, or where a swapped head has other labels."""
    first_model, second_model = models.values()
    if type(first_model) is type(second_model):
        check_buffers(function, models)
    if not weights or not set(weights) <= set(ModelParts.of(first_model).select(ENCODER)):
        check_labels(function, models)


def _copy_with(model: AnyModel, weights: Mapping[str, Tensor]) -> AnyModel:
    result = deepcopy(model)
    parameters = dict(unwrap_module(result, "swap_parts").named_parameters())
    with torch.no_grad():
        for name, weight in weights.items():
            parameters[name].copy_(weight)
    return result
