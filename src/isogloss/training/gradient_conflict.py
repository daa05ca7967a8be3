"""Gradient conflict: do two languages update the weights in the same direction?

"On Negative Interference in Multilingual Models", Sections 3.2 and 3.4 (Fig. 3), after Yu et al. (2020): the
cosine between the gradients of two batches, one of each language, and of two batches of one language as the
control. Each gradient is accumulated over many rows. Cosines are also measured by layer and by kind of
module.

A gradient over a batch is the true gradient plus noise in random directions: even two batches of one language
have a cosine below 1, and the cosine of two languages is too small by the same factor. The measured value is
cos(ĝ_a, ĝ_b) ≈ cos(g_a, g_b)·√(cos(ĝ_a, ĝ_a')·cos(ĝ_b, ĝ_b')). A language pair's cosine divided by the
geometric mean of its two controls is free of this noise (Spearman's correction for attenuation, 1904). Each
row of a pair has that geometric mean as ``within``.

Dropout is off, because its noise would lower every cosine. At most two gradients are in memory at a time.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import sqrt

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn

from isogloss.core.errors import DataError
from isogloss.core.identity import derive
from isogloss.core.progress import OnProgress, Progress, no_progress
from isogloss.core.records import Value
from isogloss.core.run_parts import Conflict
from isogloss.encoders.family import Model
from isogloss.encoders.parameter_groups import ParameterGroup, parts_of
from isogloss.tasks.batch import EncodedRow, collate, group_by_example
from isogloss.tasks.masked_lm import MaskedBatch, Masking, masked_lm_loss
from isogloss.tasks.task import Task
from isogloss.training.batching import Movable
from isogloss.training.distributed import refuse_sharding
from isogloss.training.fit import Callback, Loss
from isogloss.training.length_batches import by_length
from isogloss.training.precision import autocast, tf32_products

CHUNK = 1 << 22
"""Numbers converted to float64 at a time: 32 MB, regardless of the size of an embedding table."""

FIRST = 0
"""Number of the batch by which a language is compared with itself and with others."""

SECOND = 1
"""Number of the batch that a language's first batch is compared with."""

ROWS = 32
"""Labelled rows computed together."""

Gradient = dict[str, Tensor]
"""Gradients by parameter name, without parameters that a loss does not depend on."""

Losses = Callable[[str, int], Iterable[Tensor]]
"""From a language and the number of its batch to its loss in parts, whose gradients are summed."""


ALL = ParameterGroup(None, "all")


@dataclass(frozen=True)
class Similarity:
    """The terms of the cosine of two gradients: their product and their squared norms."""

    product: float = 0.0
    first: float = 0.0
    second: float = 0.0

    def __add__(self, other: "Similarity") -> "Similarity":
        """Add the terms of two disjoint sets of parameters."""
        return Similarity(self.product + other.product, self.first + other.first, self.second + other.second)

    @property
    def cosine(self) -> float | None:
        """The cosine, in [-1, 1], or None if a gradient is 0."""
        if self.first <= 0 or self.second <= 0:
            return None
        return max(-1.0, min(1.0, self.product / sqrt(self.first) / sqrt(self.second)))


Comparison = tuple[str, str, dict[ParameterGroup, Similarity]]
"""First language, second language, and the similarity of their gradients in each part."""


def conflict_rows(
    model: nn.Module,
    languages: Sequence[str],
    losses: Losses,
    parts: Mapping[str, ParameterGroup],
    *,
    layers: bool = True,
) -> list[dict[str, Value]]:
    """Return a row for each language pair and each part, including each language with itself (the control).

    The model's gradients are cleared. Without ``layers``, rows of single layers are omitted.
    """
    order = {language: index for index, language in enumerate(languages)}
    comparisons = sorted(
        compare_languages(model, languages, losses, parts), key=lambda pair: (order[pair[0]], order[pair[1]])
    )
    controls = {
        language: similarities for language, partner, similarities in comparisons if language == partner
    }
    return [
        {
            "first": language,
            "second": partner,
            "layer": part.layer,
            "module": part.module,
            "cosine": similarity.cosine,
            "within": None
            if language == partner
            else _control_mean(controls[language], controls[partner], part),
            "norm_first": sqrt(similarity.first),
            "norm_second": sqrt(similarity.second),
        }
        for language, partner, similarities in comparisons
        for part, similarity in similarities.items()
        if layers or part.layer is None
    ]


def _control_mean(
    control: Mapping[ParameterGroup, Similarity],
    partner_control: Mapping[ParameterGroup, Similarity],
    part: ParameterGroup,
) -> float | None:
    """Return the geometric mean of two controls, or None if a control is not positive."""
    x, y = (row[part].cosine if part in row else None for row in (control, partner_control))
    return sqrt(x * y) if x is not None and y is not None and x > 0 and y > 0 else None


def compare_languages(
    model: nn.Module, languages: Sequence[str], losses: Losses, parts: Mapping[str, ParameterGroup]
) -> Iterator[Comparison]:
    """Compare each language with itself and all others, with at most two gradients in memory.

    One language's gradient stays in memory while the others are computed in turn, and the last of these stays
    next. Two languages take four gradients, the fewest possible. n languages take (n² + n) / 2 + 1.
    """
    order = {language: index for index, language in enumerate(languages)}
    remaining = list(languages)
    current = gradient(model, losses(remaining[0], FIRST))
    while remaining:
        language, *remaining = remaining
        following: Gradient = {}
        for partner in (language, *reversed(remaining)):
            following.clear()  # Frees its memory before the next gradient is computed.
            following = gradient(model, losses(partner, SECOND if partner == language else FIRST))
            if order[language] <= order[partner]:
                yield language, partner, compare_gradients(current, following, parts)
            else:
                yield partner, language, compare_gradients(following, current, parts)
        current = following


def gradient(model: nn.Module, losses: Iterable[Tensor]) -> Gradient:
    """Return the gradient of a sum of losses, accumulated one by one, and clear the model's gradients."""
    model.zero_grad(set_to_none=True)
    for loss in losses:
        loss.backward()  # type: ignore[no-untyped-call]
    gradients = {name: weight.grad for name, weight in model.named_parameters() if weight.grad is not None}
    model.zero_grad(set_to_none=True)
    return gradients


def compare_gradients(
    x: Gradient, y: Gradient, parts: Mapping[str, ParameterGroup]
) -> dict[ParameterGroup, Similarity]:
    """Return the similarity of two gradients in each part, each layer, and the whole model.

    Parameters without a part, or on which only one gradient depends (modules of one language), are skipped.
    """
    names = [name for name in parts if name in x and name in y]
    if not names:
        return {}
    sums = torch.stack([_sums(x[name], y[name]) for name in names]).tolist()
    similarities: dict[ParameterGroup, Similarity] = {}
    for name, terms in zip(names, sums, strict=True):
        for part in _enclosing_parts(parts[name]):
            similarities[part] = similarities.get(part, Similarity()) + Similarity(*terms)
    return similarities


def _sums(x: Float[Tensor, "..."], y: Float[Tensor, "..."]) -> Float[Tensor, "3"]:
    """Return x·y, x·x and y·y in float64."""
    total = torch.zeros(3, dtype=torch.float64, device=x.device)
    for chunks in zip(torch.split(x.flatten(), CHUNK), torch.split(y.flatten(), CHUNK), strict=True):
        a, b = (chunk.double() for chunk in chunks)
        total += torch.stack([a @ b, a @ a, b @ b])
    return total


def _enclosing_parts(part: ParameterGroup) -> tuple[ParameterGroup, ...]:
    """Return the part and the larger parts that contain it, the largest first."""
    if not part.layer:  # Embeddings, head and other are directly below the model.
        return ALL, ParameterGroup(None, part.module)
    return ALL, ParameterGroup(None, part.module), ParameterGroup(part.layer, "all"), part


@dataclass(frozen=True)
class Pool:
    """The rows from which each language's batches are drawn."""

    counts: Mapping[str, int]
    """Rows of each language."""
    losses: Callable[[str, Sequence[int], int], Iterable[Tensor]]
    """From a language, the row indices of a batch, and a seed to the batch's loss in parts."""

    def size(self, max_size: int) -> int:
        """Return the batch size, which is equal in all languages so that noise is, too.

        Raises DataError if it is 0.
        """
        size = min(max_size, *(count // 2 for count in self.counts.values()))
        if not size:
            language = min(self.counts, key=self.counts.__getitem__)
            raise DataError(
                f"gradient conflict: {language} has {self.counts[language]} blocks of text or examples, but "
                f"two gradients need 2 or more, and thousands are better. Choose a larger split or corpus."
            )
        return size


@dataclass(frozen=True, kw_only=True)
class ConflictSampling:
    """Number, size and seed of the batches that are drawn."""

    batch: int
    count: int = 1
    seed: int
    layers: bool = True


def sampled_conflict(
    model: Model, pool: Pool, sampling: ConflictSampling, *, on_progress: OnProgress = no_progress
) -> list[dict[str, Value]]:
    """Return the rows of ``conflict_rows`` for each draw, with the draw's number and the batch size."""
    size = pool.size(sampling.batch)
    languages = tuple(pool.counts)
    parts = parts_of(model)
    samples = {
        language: sample_apart(count, size, sampling.count, seed=derive(sampling.seed, language))
        for language, count in pool.counts.items()
    }
    rows: list[dict[str, Value]] = []
    for draw in range(sampling.count):

        def losses(language: str, batch: int, draw: int = draw) -> Iterable[Tensor]:
            on_progress(Progress("gradients", draw, sampling.count, language))
            indices = samples[language][draw][batch].tolist()
            return pool.losses(language, indices, derive(sampling.seed, language, draw, batch))

        draw_rows = conflict_rows(model, languages, losses, parts, layers=sampling.layers)
        rows += [{"draw": draw, "batch": size, **row} for row in draw_rows]
    on_progress(Progress("gradients", sampling.count, sampling.count))
    return rows


def conflict_callback(conflict: Conflict, model: Model, pool: Pool, *, seed: int) -> Callback:
    """Return a callback that measures conflict. Its batches depend only on the seed and the step."""
    refuse_sharding("conflict: single gradients cannot be measured", "remove conflict")

    def rows(step: int) -> list[dict[str, Value]]:
        sampling = ConflictSampling(
            batch=conflict.batch, seed=derive(seed, "conflict", step), layers=conflict.layers
        )
        return [{"step": step, **row} for row in sampled_conflict(model, pool, sampling)]

    return Callback(rows=rows, every=conflict.every)


def example_pool(
    model: Model, rows: Mapping[str, Sequence[EncodedRow]], task: Task, *, padding: int, precision: str
) -> Pool:
    """Return a pool of each language's labelled examples, with all rows of each."""
    examples = {
        language: list(group_by_example(language_rows).values()) for language, language_rows in rows.items()
    }

    def losses(language: str, numbers: Sequence[int], _: int) -> Iterator[Tensor]:
        sample = [row for index in numbers for row in examples[language][index]]
        parts = [sample[start : start + ROWS] for start in range(0, len(sample), ROWS)]
        batches = [collate(part, padding=padding, languages=(language,)) for part in parts]
        return _loss_shares(model, task.loss, [(batch, batch.terms) for batch in batches], precision)

    return Pool({language: len(group) for language, group in examples.items()}, losses)


def sample_apart(count: int, size: int, draws: int, *, seed: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """Draw indices below ``count`` for pairs of disjoint batches, several times.

    All draws are disjoint if ``count`` suffices.
    """
    rng = np.random.Generator(np.random.PCG64(derive(seed, "apart")))
    orders = (
        rng.choice(count, size=2 * size * draws, replace=False).reshape(draws, 2 * size)
        if 2 * size * draws <= count
        else [rng.choice(count, size=2 * size, replace=False) for _ in range(draws)]
    )
    return [(order[:size], order[size:]) for order in orders]


def masked_parts(
    rows: Sequence[np.ndarray], masking: Masking, *, seed: int, budget: int, language: str
) -> list[MaskedBatch]:
    """Split rows of text into batches of at most ``budget`` subwords, masked only by the seed."""
    groups = by_length([len(row) + 2 for row in rows], budget)
    return [
        masking.batch([[rows[row]] for row in group], seed=derive(seed, "part", index), languages=(language,))
        for index, group in enumerate(groups)
    ]


def text_losses(model: Model, batches: Sequence[MaskedBatch], *, precision: str) -> Iterator[Tensor]:
    """Yield each batch's share of the mean cross entropy at the hidden subwords of all batches."""
    return _loss_shares(model, masked_lm_loss, [(batch, len(batch.gold)) for batch in batches], precision)


def _loss_shares(
    model: Model, loss: Loss, batches: Sequence[tuple[Movable, int]], precision: str
) -> Iterator[Tensor]:
    """Yield each batch's share of the mean loss over the terms of all batches."""
    device = next(model.parameters()).device
    total = sum(terms for _, terms in batches)
    for batch, terms in batches:
        # TF32 is a setting of the process, so it must not last beyond the yield: gradients are in float32.
        with tf32_products(device, precision), autocast(device, precision):
            mean = loss(model, batch.to(device))
        yield mean * (terms / max(1, total))
