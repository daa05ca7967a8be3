"""Weighted sums of models: means, points of paths, sums of task and language vectors.

    θ = θ₀ + Σᵢ wᵢ τᵢ,  τᵢ = θᵢ - θ₀                                                         (1)

Where Σ wᵢ = 1 the origin θ₀ falls out: a mean of models (model soups, Wortsman et al. 2022, Section 2) or a
point of the path between two (Wu et al. 2022, Eq. 1). Otherwise θ₀ is the pretrained encoder: task arithmetic
(Ilharco et al. 2023, Section 2). If θᵢ is an encoder trained on text from θ₀, τᵢ is a language vector. TIES
(Yadav et al. 2023, Algorithm 1) merges vectors with different signs:

    τ̂ᵢ = τᵢ where |τᵢ| is among the k largest, else 0                                         (2)
    γ = sgn(Σᵢ wᵢ τ̂ᵢ)                                                                        (3)
    θ = θ₀ + λ · Σ_A wᵢ τ̂ᵢ / Σ_A wᵢ,  A = {i : sgn τ̂ᵢ = γ}, for each weight by itself           (4)

λ is Σ wᵢ by default, so that halves of all weights give half the change; mergekit and peft take 1.

Layer swapping (Bandarkar et al. 2025, "Layer Swapping for Zero-Shot Cross-Lingual Transfer in Large Language
Models", Section 3) has other weights in the b lowest and the t highest of L layers:

    θ_l = θ₀_l + Σᵢ vᵢ τᵢ_l  for l ≤ b and l > L - t,  θ_l = θ₀_l + Σᵢ wᵢ τᵢ_l  between them        (5)

With w = (1, 0) and v = (0, 1) of a model and a language vector the middle layers are trained on the task and
the outer layers on the language. Between them may be layers of transition with (w + v) / 2. Embeddings belong
to the lowest layers and the last norm to the highest, which is our choice.

DARE (Yu et al. 2024) drops a share p of each τᵢ at random and divides the rest by 1 - p. The head has no
origin in the encoder: it is the mean of the models' heads, weighted by wᵢ.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import chain
from math import fsum
from pathlib import Path
from tempfile import TemporaryDirectory

import torch
from safetensors import safe_open
from safetensors.torch import save_file
from torch import Tensor

from isogloss.core.atomic_files import make_folder
from isogloss.core.errors import ModelError
from isogloss.core.identity import derive
from isogloss.core.progress import Progress
from isogloss.core.records import Value
from isogloss.core.rows import as_row
from isogloss.core.rows.models import AveragedModelRow
from isogloss.encoders.computation import fastest_attention
from isogloss.encoders.family import Model, Tokenizer, check_outer_layers, encoder_prefix
from isogloss.encoders.folders import load_encoder_config
from isogloss.encoders.loading import load_model
from isogloss.encoders.parameter_groups import ParameterGroup, parts_of
from isogloss.encoders.tokenizers import load_tokenizer
from isogloss.training.evaluation import evaluation
from isogloss.training.precision import device
from isogloss.training.setting import Averaged, Setting, Trained

MAX_LOSS = 0.01
"""Warn if an average scores lower than its worst model by more than this."""

HALF = 0.5
"""Share of the outer weights in a transition between layers."""

POOLER = ".pooler."
"""Part of the names of weights that a model for tagging lacks."""


@dataclass(frozen=True, kw_only=True)
class Trimming:
    """How each vector is trimmed before the sum, by TIES and DARE. The fields are those of ``Average``."""

    density: float | None = None
    dropped: float = 0.0
    scale: float | None = None

    @property
    def is_sparse(self) -> bool:
        """Whether a part of each vector is dropped."""
        return self.density is not None or self.dropped > 0


@dataclass(frozen=True)
class OuterWeights:
    """Weights of the parts in the lowest and highest layers (Eq. 5)."""

    weights: Sequence[float]
    """The weight of each part, without the origin."""
    lowest: int
    highest: int
    transition: int = 0
    """Layers next to these that have the mean of both weights."""

    def list_weights(self, model: Model, middle: Sequence[float]) -> dict[str, list[float]]:
        """Return the weights, with the origin's, of a model's parameters outside the middle layers, by name.

        ``middle`` are the weights in the middle layers. Raises ModelError for a model whose layers are not
        known, and ConfigError if no layer is left in the middle.
        """
        if not hasattr(model, "config"):
            raise ModelError(
                f"outer_weights: {type(model).__name__} has no layers that are known. Give models of "
                f"transformers, or remove outer_weights."
            )
        layers: int = model.config.num_hidden_layers
        check_outer_layers("average", layers, self.lowest, self.highest, self.transition)
        groups = parts_of(model)
        if not {group.layer for group in groups.values()} >= set(range(1, layers + 1)):
            raise ModelError(
                f"outer_weights: the layers of {type(model).__name__} are not known. Give models without "
                f"wrappers, or remove outer_weights."
            )
        shares = {name: self._share(group, layers) for name, group in groups.items()}
        weights = {
            share: [
                (1 - share) * inner + share * outer for inner, outer in zip(middle, self.weights, strict=True)
            ]
            for share in set(shares.values())
        }
        return {name: [*weights[share], 1 - fsum(weights[share])] for name, share in shares.items() if share}

    def _share(self, group: ParameterGroup, layers: int) -> float:
        """Return the share of the outer weights in a part of the model: 0, 1 or, in a transition, 1/2."""
        if group.layer is None:
            return float(self.highest > 0 and group.module != "head")
        depths = [
            depth - count
            for depth, count in ((group.layer, self.lowest), (layers + 1 - group.layer, self.highest))
            if count
        ]
        nearest = min(depths, default=layers)
        return float(nearest <= 0) or HALF * (nearest <= self.transition)


def average_models(
    setting: Setting,
    languages: Sequence[str],
    weights: Sequence[float],
    trimming: Trimming,
    *,
    with_origin: bool,
    outer: OuterWeights | None = None,
) -> Trained:
    """Read one model after the other, score each on dev data, and combine all tensor by tensor.

    ``languages`` are those of the dev data. ``with_origin``: the pretrained encoder is a part of the sum.
    ``outer``: weights in the lowest and highest layers.
    """
    first = next(part.folder for part in setting.parts if part.has_head)
    tokenizer = load_tokenizer(first)
    rows: list[dict[str, Value]] = []
    score = _scorer(setting, tokenizer, languages)
    of_parts = list(zip(setting.parts, weights, strict=True))
    if with_origin:
        of_parts.append((Averaged(id="", folder=setting.start, has_head=False), 1 - fsum(weights)))
    make_folder(setting.folder)
    with TemporaryDirectory(dir=setting.folder) as folder, ExitStack() as files:
        parts = []
        for number, (part, weight) in enumerate(of_parts):
            model = _load_part(setting, part, tokenizer)
            path = Path(folder) / f"{number}.safetensors"
            rows += score(model, part.id, weight) if part.has_head else []
            tensors = _list_tensors(model)
            save_file(tensors, path)
            read = files.enter_context(safe_open(path, framework="pt")).get_tensor
            parts.append(WeightedModel(str(part.folder), weight, part.has_head, shapes_of(tensors), read))
            setting.on_progress(Progress("reading models", number + 1, len(of_parts)))
        model = setting.task.head(first, seed=0, attention=fastest_attention())
        outer_weights = outer.list_weights(model, weights) if outer else {}
        combine(_list_tensors(model), parts, len(weights), trimming, outer_weights, seed=setting.seed)
    averaged = score(model, "", None)
    return Trained(model, tokenizer, [*rows, *averaged], _warnings(rows, averaged))


def combine(
    tensors: Mapping[str, Tensor],
    parts: Sequence["WeightedModel"],
    count: int,
    trimming: Trimming,
    outer_weights: Mapping[str, Sequence[float]] | None = None,
    *,
    seed: int,
) -> None:
    """Overwrite the tensors of a model; the origin, if any, is the part after the first ``count``.

    ``outer_weights`` are the weights of all parts for the tensors that it names. ModelError where the parts
    have other tensors.
    """
    shared = _find_shared(tensors, parts)
    models = [part for part in parts if part.has_head]
    inner_weights = [part.weight for part in parts]

    def vector(number: int, name: str) -> Tensor:
        change = widen_tensor(parts[number].read(name)) - widen_tensor(parts[-1].read(name))
        return drop_changes(change, trimming.dropped, seed=derive(seed, "dropped", number, name))

    largest = [
        LargestChanges.of([vector(number, name) for name in shared], trimming.density)
        for number in range(count)
        if trimming.density is not None
    ]
    for name, tensor in tensors.items():
        part_weights = (outer_weights or {}).get(name, inner_weights)
        if name in shared and trimming.is_sparse:
            weights = part_weights[:count]
            scale = fsum(weights) if trimming.scale is None else trimming.scale
            vectors = [vector(number, name) for number in range(count)]
            if largest:
                trimmed = [changes.keep(vector) for changes, vector in zip(largest, vectors, strict=True)]
                added = elect_signs(weights, trimmed, scale)
            else:
                added = sum_weighted(weights, vectors)
            tensor.copy_(widen_tensor(parts[-1].read(name)) + added)
        elif name in shared:
            tensor.copy_(mean(part_weights[: len(parts)], [part.read(name) for part in parts]))
        else:
            tensor.copy_(mean([part.weight for part in models], [part.read(name) for part in models]))


def mean(weights: Sequence[float], tensors: Sequence[Tensor]) -> Tensor:
    """Return Σ wᵢ θᵢ / Σ wᵢ in float32 or float64.

    The mean of one tensor, or of equal ones, is exact to the bit. ModelError for different whole numbers.
    """
    if not tensors[0].is_floating_point():
        if any(not torch.equal(tensors[0], tensor) for tensor in tensors[1:]):
            raise ModelError("these models cannot be averaged: they hold different whole numbers.")
        return tensors[0]
    # Weights of the opposite sign to their sum come last: then no partial sum is 0.
    sign = fsum(weights)
    weighted_tensors = sorted(zip(weights, tensors, strict=True), key=lambda pair: pair[0] * sign < 0)
    (total, average), *remaining = [
        (weight, widen_tensor(tensor)) for weight, tensor in weighted_tensors if weight
    ]
    for weight, tensor in remaining:
        total += weight
        average = torch.lerp(average, tensor, weight / total)
    return average


def sum_weighted(weights: Sequence[float], changes: Sequence[Tensor]) -> Tensor:
    """Return Σ wᵢ τᵢ."""
    return torch.stack([weight * change for weight, change in zip(weights, changes, strict=True)]).sum(dim=0)


def drop_changes(change: Tensor, share: float, *, seed: int) -> Tensor:
    """Return DARE's vector: a share of its numbers set to 0 at random, the others divided by 1 - share."""
    if not share:
        return change
    draws = torch.rand(change.shape, generator=torch.Generator().manual_seed(seed)).to(change.device)
    return torch.where(draws >= share, change / (1 - share), 0.0)


@dataclass
class LargestChanges:
    """The k largest changes of one vector, which tensors keep one after the other (Eq. 2).

    Differences of bfloat16 weights have few distinct sizes. Of changes that are all as large as the smallest
    kept one, the first in the order of the tensors are kept.
    """

    limit: float
    """Size of the smallest kept change."""
    equal: int
    """Changes of exactly this size that are still to be kept."""

    @classmethod
    def of(cls, changes: Sequence[Tensor], density: float) -> "LargestChanges":
        """Find the largest changes of a vector, ``density`` of them all."""
        sizes = torch.cat([change.abs().flatten() for change in changes])
        count = max(1, round(density * len(sizes)))
        limit = float(sizes.kthvalue(len(sizes) - count + 1).values)
        return cls(limit, count - int((sizes > limit).sum()))

    def keep(self, change: Tensor) -> Tensor:
        """Return the next tensor of the vector with 0 for changes that are not kept."""
        sizes = change.abs()
        equal = sizes == self.limit
        rank = equal.flatten().cumsum(dim=0).view_as(equal)
        is_large = (sizes > self.limit) | (equal & (rank <= self.equal))
        self.equal = max(0, self.equal - int(equal.sum()))
        return torch.where(is_large, change, 0.0)


def elect_signs(weights: Sequence[float], changes: Sequence[Tensor], scale: float) -> Tensor:
    """Return the change of the origin by TIES (Eqs 3 and 4) from the kept changes of each vector."""
    sign = sum_weighted(weights, changes).sign()
    agreeing = [(change.sign() == sign) & (sign != 0) for change in changes]
    votes = sum_weighted(weights, [agrees.to(sign) for agrees in agreeing])
    total = sum_weighted(
        weights, [torch.where(agrees, change, 0.0) for agrees, change in zip(agreeing, changes, strict=True)]
    )
    return torch.where(votes > 0, scale * total / votes, 0.0)


def widen_tensor(tensor: Tensor) -> Tensor:
    """Return a tensor in float32, or in float64 if it is that."""
    return tensor if tensor.dtype == torch.float64 else tensor.float()


@dataclass(frozen=True)
class WeightedModel:
    """A model or encoder with its weight, and its tensors by their names in a model."""

    name: str
    """Its folder, or what a message calls it."""
    weight: float
    has_head: bool
    """Whether the part has all tensors of the model, not only its encoder."""
    shapes: Mapping[str, tuple[int, ...]]
    read: Callable[[str], Tensor]
    """Return a tensor by name."""


def shapes_of(tensors: Mapping[str, Tensor]) -> dict[str, tuple[int, ...]]:
    """Return the shapes of tensors by their names."""
    return {name: tuple(tensor.shape) for name, tensor in tensors.items()}


def _find_shared(tensors: Mapping[str, Tensor], parts: Sequence[WeightedModel]) -> list[str]:
    """Return the names of tensors that all encoders have; ModelError for parts of other shapes."""
    shapes = shapes_of(tensors)
    for part in parts:
        names = part.shapes.keys()
        for name in sorted(shapes.keys() | names if part.has_head else {n for n in names if POOLER not in n}):
            if part.shapes.get(name) != shapes.get(name):
                raise ModelError(
                    f"{part.name}: this cannot be averaged with the others: {name} has the shape "
                    f"{part.shapes.get(name)} here, and {shapes.get(name)} there. All must come from one "
                    f"encoder, with heads for one task."
                )
    encoders = [part.shapes for part in parts if not part.has_head]
    return [
        name
        for name, tensor in tensors.items()
        if tensor.is_floating_point() and all(name in names for names in encoders)
    ]


def _load_part(setting: Setting, part: Averaged, tokenizer: Tokenizer) -> Model:
    """Load a part.

    Raises ModelError if its tokenizer differs.
    """
    config, start_config = (load_encoder_config(folder) for folder in (part.folder, setting.start))
    if (config.model_type, config.num_hidden_layers) != (
        start_config.model_type,
        start_config.num_hidden_layers,
    ):
        raise ModelError(
            f"{part.folder}: this cannot be averaged: it is a {config.model_type} of "
            f"{config.num_hidden_layers} layers, and the encoder of the others a {start_config.model_type} "
            f"of {start_config.num_hidden_layers}. Average models of one encoder."
        )
    if load_tokenizer(part.folder).get_vocab() != tokenizer.get_vocab():
        raise ModelError(
            f"{part.folder}: this cannot be averaged with the others: its tokenizer has other subwords, so "
            f"its embeddings are those of others. Average models of one encoder."
        )
    if part.has_head:
        return setting.task.head(part.folder, seed=None, attention=fastest_attention())
    return load_model(part.folder)


def _list_tensors(model: Model) -> dict[str, Tensor]:
    """Return parameters and saved buffers of a model, each once, by their names in one with a head."""
    inside = "" if encoder_prefix(model) else f"{model.base_model_prefix}."
    names = {name for name, _ in chain(model.named_parameters(), model.named_buffers())}
    return {f"{inside}{name}": t.detach() for name, t in model.state_dict().items() if name in names}


Scorer = Callable[[Model, str, float | None], list[dict[str, Value]]]
"""From a model, its id ("" for the average) and its weight to rows."""


def _scorer(setting: Setting, tokenizer: Tokenizer, languages: Sequence[str]) -> Scorer:
    evaluations = {
        code: evaluation(setting.task, setting.dev(code), tokenizer, setting.optimization, language=code)
        for code in languages
    }

    def score(model: Model, part: str, weight: float | None) -> list[dict[str, Value]]:
        model.to(device())
        rows = [
            AveragedModelRow(
                part=part,
                weight=weight,
                language=code,
                split="dev",
                metric=dev.metric,
                score=dev.score(model),
            )
            for code, dev in evaluations.items()
        ]
        model.to("cpu")
        return [dict(as_row(row)) for row in rows]

    return score


def _warnings(parts: Sequence[dict[str, Value]], averaged: Sequence[dict[str, Value]]) -> tuple[str, ...]:
    warnings = []
    for row in averaged:
        scores = [float(part["score"] or 0) for part in parts if part["language"] == row["language"]]
        if float(row["score"] or 0) < min(scores) - MAX_LOSS:
            warnings.append(
                f"the average's {row['metric']} on {row['language']} dev is {row['score']:.3f}, and that of "
                f"the worst model in it {min(scores):.3f}: they lie in different basins, or the weights are "
                f"too large. Measure the path between them (interpolation)."
            )
    return tuple(warnings)
