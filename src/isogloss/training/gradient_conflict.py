"""Gradient conflict: do two languages update the weights in the same direction?

"On Negative Interference in Multilingual Models", Sections 3.2 and 3.4 (Fig. 3), after Yu et al. (2020): the
cosine between the gradients of two batches, one of each language, and of two batches of one language as the
control, each accumulated over many rows. Also measured by layer and by kind of module.

A gradient over a batch is the true one plus noise in random directions: even two batches of one language
have a cosine below 1, and the cosine of two languages is too small by the same factor. Measured is
cos(ĝ_a, ĝ_b) ≈ cos(g_a, g_b)·√(cos(ĝ_a, ĝ_a')·cos(ĝ_b, ĝ_b')): a language pair's cosine divided by the
geometric mean of its two controls is free of it (Spearman's correction for attenuation, 1904); each row of a
pair has that geometric mean as ``within``.

Dropout is off: its noise would lower every cosine. No more than two gradients are in memory at a time.
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
from isogloss.encoders.added.added_weights import shared_parameters
from isogloss.encoders.computation import transformer_layers
from isogloss.encoders.families import family_of, has_known_layers
from isogloss.encoders.family import Model, encoder_prefix
from isogloss.tasks.batch import EncodedRow, collate, group_by_example
from isogloss.tasks.masked_lm import MaskedBatch, Masking, TextStream, masked_lm_loss
from isogloss.tasks.task import Task
from isogloss.training.batching import Movable
from isogloss.training.distributed import refuse_sharding
from isogloss.training.fit import Callback, Loss
from isogloss.training.length_batches import by_length
from isogloss.training.precision import autocast

CHUNK = 1 << 22
"""Numbers turned into float64 at a time: 32 MB, whatever the size of an embedding table."""

FIRST, SECOND = 0, 1
"""Numbers of the two batches of a language; a language is compared with others by its first."""

ROWS = 32
"""Labelled rows computed together."""

Gradient = dict[str, Tensor]
"""By the parameter's name, without parameters that a loss does not depend on."""

Losses = Callable[[str, int], Iterable[Tensor]]
"""From a language and the number of its batch to its loss in parts; the gradient is that of their sum."""


@dataclass(frozen=True)
class ParameterGroup:
    """A subset of a model's parameters."""

    layer: int | None
    """Counted from 1, 0 is the embeddings; None is no single layer."""

    module: str
    """attention, feed-forward, embeddings, head, other; "all" for everything in the layer, or the model."""


ALL = ParameterGroup(None, "all")


@dataclass(frozen=True)
class Similarity:
    """The terms of the cosine of two gradients: their product and their squared norms."""

    product: float = 0.0
    first: float = 0.0
    second: float = 0.0

    def __add__(self, other: "Similarity") -> "Similarity":
        """Sum over two sets of parameters."""
        return Similarity(self.product + other.product, self.first + other.first, self.second + other.second)

    @property
    def cosine(self) -> float | None:
        """The cosine, in [-1, 1]; None where a gradient is 0."""
        if self.first <= 0 or self.second <= 0:
            return None
        return max(-1.0, min(1.0, self.product / sqrt(self.first) / sqrt(self.second)))


Comparison = tuple[str, str, dict[ParameterGroup, Similarity]]
"""First language, second language, similarity of their gradients in each part."""


def conflict_rows(
    model: nn.Module,
    languages: Sequence[str],
    losses: Losses,
    parts: Mapping[str, ParameterGroup],
    *,
    layers: bool = True,
) -> list[dict[str, Value]]:
    """Return a row for each pair of languages, each language with itself (the control), and each part.

    The model is left without gradients. Without ``layers`` single layers are left out.
    """
    order = {language: number for number, language in enumerate(languages)}
    compared_pairs = sorted(
        compare_languages(model, languages, losses, parts), key=lambda pair: (order[pair[0]], order[pair[1]])
    )
    controls = {first: by_part for first, second, by_part in compared_pairs if first == second}
    return [
        {
            "first": first,
            "second": second,
            "layer": part.layer,
            "module": part.module,
            "cosine": similarity.cosine,
            "within": None if first == second else _within(controls[first], controls[second], part),
            "norm_first": sqrt(similarity.first),
            "norm_second": sqrt(similarity.second),
        }
        for first, second, by_part in compared_pairs
        for part, similarity in by_part.items()
        if layers or part.layer is None
    ]


def _within(
    first: Mapping[ParameterGroup, Similarity],
    second: Mapping[ParameterGroup, Similarity],
    part: ParameterGroup,
) -> float | None:
    """Return the geometric mean of two controls; None where noise alone was measured."""
    x, y = (control[part].cosine if part in control else None for control in (first, second))
    return sqrt(x * y) if x is not None and y is not None and x > 0 and y > 0 else None


def compare_languages(
    model: nn.Module, languages: Sequence[str], losses: Losses, parts: Mapping[str, ParameterGroup]
) -> Iterator[Comparison]:
    """Compare each language with itself and all others, with two gradients in memory at most.

    One language's gradient is held while the others are computed in turn; the last of these is held next. Two
    languages take four gradients, the fewest possible; n languages take (n² + n) / 2 + 1.
    """
    order = {language: number for number, language in enumerate(languages)}
    remaining = list(languages)
    current = gradient(model, losses(remaining[0], FIRST))
    while remaining:
        language, *remaining = remaining
        new: Gradient = {}
        for other in (language, *reversed(remaining)):
            new.clear()  # Before the next gradient is computed.
            new = gradient(model, losses(other, SECOND if other == language else FIRST))
            first, second = sorted((language, other), key=order.__getitem__)
            yield first, second, compared(*((current, new) if first == language else (new, current)), parts)
        current = new


def gradient(model: nn.Module, losses: Iterable[Tensor]) -> Gradient:
    """Return the gradient of a sum of losses, accumulated one by one; the model's is cleared."""
    model.zero_grad(set_to_none=True)
    for loss in losses:
        loss.backward()  # type: ignore[no-untyped-call]
    gradients = {name: weight.grad for name, weight in model.named_parameters() if weight.grad is not None}
    model.zero_grad(set_to_none=True)
    return gradients


def compared(
    first: Gradient, second: Gradient, parts: Mapping[str, ParameterGroup]
) -> dict[ParameterGroup, Similarity]:
    """Return the similarity of two gradients in each part, each layer, and all.

    Parameters that are in no part, or that only one of the two depends on (modules of one language), are
    left out.
    """
    names = [name for name in parts if name in first and name in second]
    if not names:
        return {}
    sums = torch.stack([_sums(first[name], second[name]) for name in names]).tolist()
    by_part: dict[ParameterGroup, Similarity] = {}
    for name, terms in zip(names, sums, strict=True):
        for part in _containing(parts[name]):
            by_part[part] = by_part.get(part, Similarity()) + Similarity(*terms)
    return by_part


def _sums(x: Float[Tensor, "..."], y: Float[Tensor, "..."]) -> Float[Tensor, "3"]:
    """Return x·y, x·x and y·y in float64."""
    total = torch.zeros(3, dtype=torch.float64, device=x.device)
    for chunks in zip(torch.split(x.flatten(), CHUNK), torch.split(y.flatten(), CHUNK), strict=True):
        a, b = (chunk.double() for chunk in chunks)
        total += torch.stack([a @ b, a @ a, b @ b])
    return total


def _containing(part: ParameterGroup) -> tuple[ParameterGroup, ...]:
    """Return the part and the larger ones it belongs to, the largest first."""
    if not part.layer:  # Embeddings, head and other are directly below the model.
        return ALL, ParameterGroup(None, part.module)
    return ALL, ParameterGroup(None, part.module), ParameterGroup(part.layer, "all"), part


def parts_of(model: Model) -> dict[str, ParameterGroup]:
    """Return for each parameter that languages share the smallest part of the model it belongs to.

    Modules of single languages are left out. An output layer tied to the embeddings belongs to them.
    """
    if not has_known_layers(model):
        return _parts_of_other(model)
    family, inside = family_of(model), encoder_prefix(model)
    embeddings = {id(weight) for weight in family.embeddings(model).parameters()}
    sites: dict[str, ParameterGroup] = {}
    for site in family.sites(model):
        sites |= {name: ParameterGroup(site.layer, "other") for name, _ in site.parameters(model, "block")}
        sites |= {
            name: ParameterGroup(site.layer, "attention") for name, _ in site.parameters(model, "attention")
        }
        inner = site.parameters(model, "feed_forward")
        sites |= {name: ParameterGroup(site.layer, "feed-forward") for name, _ in inner}
    return {
        name: ParameterGroup(0, "embeddings")
        if id(weight) in embeddings
        else sites.get(name, ParameterGroup(None, "other" if name.startswith(inside) else "head"))
        for name, weight in shared_parameters(model).items()
    }


def _parts_of_other(model: Model) -> dict[str, ParameterGroup]:
    """Return the same of a family whose layers are not described: a layer is not divided."""
    layers = [*transformer_layers(model)]
    if len(layers) != model.config.num_hidden_layers:  # Such as those of an encoder and of a decoder.
        layers = []
    inside = encoder_prefix(model)
    embeddings = {id(weight) for weight in model.get_input_embeddings().parameters()}
    parts = {}
    for name, weight in model.named_parameters():
        of_layer = [number for number, layer in enumerate(layers, 1) if name.startswith(f"{layer}.")]
        if id(weight) in embeddings:
            parts[name] = ParameterGroup(0, "embeddings")
        elif of_layer:
            parts[name] = ParameterGroup(of_layer[0], "other")
        else:
            parts[name] = ParameterGroup(None, "other" if name.startswith(inside) else "head")
    return parts


WATCHES = {"watches": True}
"""Metadata of a method's field that does not affect the training, and so is not in its label."""


@dataclass(frozen=True)
class Pool:
    """The rows that batches of each language are drawn from."""

    counts: Mapping[str, int]
    """Rows of each language."""
    losses: Callable[[str, Sequence[int], int], Iterable[Tensor]]
    """From a language, the numbers of the rows in a batch, and a seed, to the batch's loss in parts."""

    def size(self, requested: int) -> int:
        """Return the size of all batches, the same in each language, so that noise is; DataError for 0."""
        size = min(requested, *(count // 2 for count in self.counts.values()))
        if not size:
            least = min(self.counts, key=self.counts.__getitem__)
            raise DataError(
                f"gradient conflict: {least} has {self.counts[least]} blocks of text or examples, and a "
                f"gradient is compared with another one; two or more are needed, and thousands are better. "
                f"Choose another split or corpus."
            )
        return size


@dataclass(frozen=True, kw_only=True)
class ConflictSampling:
    """The number and size of the batches that are drawn, and their seed."""

    batch: int
    count: int = 1
    seed: int
    layers: bool = True


def sampled_conflict(
    model: Model, pool: Pool, sampling: ConflictSampling, *, on_progress: OnProgress = no_progress
) -> list[dict[str, Value]]:
    """Return the rows of ``conflict_rows`` for each draw, with its number and the size of its batches."""
    size, languages, parts = pool.size(sampling.batch), tuple(pool.counts), parts_of(model)
    drawn = {
        language: sample_apart(count, size, sampling.count, seed=derive(sampling.seed, language))
        for language, count in pool.counts.items()
    }
    rows: list[dict[str, Value]] = []
    for draw in range(sampling.count):

        def losses(language: str, number: int, draw: int = draw) -> Iterable[Tensor]:
            on_progress(Progress("gradients", draw, sampling.count, language))
            numbers = drawn[language][draw][number].tolist()
            return pool.losses(language, numbers, derive(sampling.seed, language, draw, number))

        of_draw = conflict_rows(model, languages, losses, parts, layers=sampling.layers)
        rows += [{"draw": draw, "batch": size, **row} for row in of_draw]
    on_progress(Progress("gradients", sampling.count, sampling.count))
    return rows


def conflict_callback(conflict: Conflict, model: Model, pool: Pool, *, seed: int) -> Callback:
    """Return a callback that measures conflict; batches follow from the seed and the step alone."""
    refuse_sharding("conflict: single gradients are not measured", "leave conflict out")

    def rows(step: int) -> list[dict[str, Value]]:
        sampling = ConflictSampling(
            batch=conflict.batch, seed=derive(seed, "conflict", step), layers=conflict.layers
        )
        return [{"step": step, **row} for row in sampled_conflict(model, pool, sampling)]

    return Callback(rows=rows, every=conflict.every)


def block_pool(
    model: Model,
    streams: Mapping[str, TextStream],
    masking: Masking,
    *,
    block: int,
    budget: int,
    precision: str,
) -> Pool:
    """Draw masked blocks of each language's text.

    Blocks begin at different lines; where lines are short, they may overlap.
    """

    def losses(language: str, numbers: Sequence[int], seed: int) -> Iterable[Tensor]:
        rows = [streams[language].block(number, block - 2) for number in numbers]
        parts = masked_parts(rows, masking, seed=seed, budget=budget, language=language)
        return text_losses(model, parts, precision=precision)

    return Pool({language: len(stream.starts) for language, stream in streams.items()}, losses)


def example_pool(
    model: Model, rows: Mapping[str, Sequence[EncodedRow]], task: Task, *, padding: int, precision: str
) -> Pool:
    """Draw labelled examples of each language, with all rows of each."""
    examples = {language: list(group_by_example(encoded).values()) for language, encoded in rows.items()}

    def losses(language: str, numbers: Sequence[int], _: int) -> Iterator[Tensor]:
        drawn = [row for number in numbers for row in examples[language][number]]
        parts = [drawn[start : start + ROWS] for start in range(0, len(drawn), ROWS)]
        batches = [collate(part, padding=padding, languages=(language,)) for part in parts]
        return _loss_shares(model, task.loss, [(batch, batch.terms) for batch in batches], precision)

    return Pool({language: len(group) for language, group in examples.items()}, losses)


def sample_apart(count: int, size: int, draws: int, *, seed: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """Draw, several times, the numbers below ``count`` of two disjoint batches of a size.

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
    """Cut rows of text into batches of at most ``budget`` subwords, masked by the seed alone."""
    groups = by_length([len(row) + 2 for row in rows], budget)
    return [
        masking.batch(
            [[rows[row]] for row in group], seed=derive(seed, "part", number), languages=(language,)
        )
        for number, group in enumerate(groups)
    ]


def text_losses(model: Model, batches: Sequence[MaskedBatch], *, precision: str) -> Iterator[Tensor]:
    """Yield each batch's share of the mean cross entropy at the hidden subwords of all batches."""
    return _loss_shares(model, masked_lm_loss, [(batch, len(batch.gold)) for batch in batches], precision)


def _loss_shares(
    model: Model, loss: Loss, batches: Sequence[tuple[Movable, int]], precision: str
) -> Iterator[Tensor]:
    """Yield each batch's share of the mean loss over the terms of all batches."""
    device, total = next(model.parameters()).device, sum(terms for _, terms in batches)
    for batch, terms in batches:
        with autocast(device, precision):
            mean = loss(model, batch.to(device))
        yield mean * (terms / max(1, total))
