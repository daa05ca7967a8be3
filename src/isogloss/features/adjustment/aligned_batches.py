"""Batches of sentence pairs, and the terms of cross-lingual adjustment on them.

"The Impact of Cross-Lingual Adjustment of Contextual Word Representations on Zero-Shot Transfer", Section 3,
Eq. 1. The sentences of both sides run through the encoder together, in as few passes as their lengths allow
with little padding. Source sentences also run through f⁰, the encoder before training.
"""

from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.nn.functional import cross_entropy, embedding_bag, normalize

from isogloss.encoders.family import Model
from isogloss.tasks.batch import forward, row_ranges, to_device
from isogloss.training.bitext import AlignedBitext, Form
from isogloss.training.distributed import is_sharded
from isogloss.training.length_batches import by_length
from isogloss.training.precision import device

CPU_PASS_COST = 128
"""Subwords a CPU trains on in the time of another pass: a pass with more padding is split."""


@dataclass(frozen=True, slots=True)
class Pass:
    """Sentences of one forward pass, padded to the longest."""

    subwords: Tensor
    """[sentence subword], integer."""
    mask: Tensor | None
    """[sentence subword], 1 at real subwords. None without padding."""
    languages: tuple[str, ...]
    """[sentence]: the language of each."""

    def inputs(self) -> dict[str, Tensor]:
        """Return the keyword arguments of an encoder's forward function."""
        mask = {} if self.mask is None else {"attention_mask": self.mask}
        return {"input_ids": self.subwords, **mask}


@dataclass(frozen=True, slots=True)
class Items:
    """Items, each represented by the mean of the states at ``indices[starts[i]:starts[i + 1]]``."""

    indices: Tensor
    """[state], integer: positions in the concatenated states of all passes."""
    starts: Tensor
    """[item], integer."""

    def of(self, states: Float[Tensor, "state dim"]) -> Float[Tensor, "item dim"]:
        """Return the mean state of each item."""
        return embedding_bag(self.indices, states, self.starts, mode="mean")


class AlignedShares(NamedTuple):
    """Shares of a partial batch in all aligned items and in all anchored items of the full batch."""

    aligned: float
    anchored: float


ALL_ITEMS = AlignedShares(1.0, 1.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class AlignedBatch:
    """Sentence pairs with their aligned and anchored items."""

    passes: tuple[Pass, ...]
    """Sentences of both sides."""
    source: Items
    """Aligned items of the source."""
    target: Items
    """Aligned items of the target, in the order of ``source``."""
    anchored: Items
    """Anchored items of the source."""
    source_passes: tuple[Pass, ...]
    """Source sentences, for f⁰."""
    originals: Items
    """Anchored items in the states of ``source_passes``."""
    texts: Tensor
    """[item 2], integer: source and target text of each aligned item. Equal numbers mean equal texts."""
    count: int
    """Sentence pairs."""
    part: "Callable[[Sequence[int]], AlignedBatch]"
    """Collates the sentence pairs at some indices."""
    shares: AlignedShares = ALL_ITEMS
    is_whole: bool = False
    """Whether each process computes the full batch, because its parts would have a different loss."""

    def parts(self, count: int) -> "list[tuple[AlignedBatch, float]]":
        """Split into at most ``count`` batches of similar numbers of pairs, with their shares of the loss."""
        parts = [self.part(rows) for rows in row_ranges(self.count, count)]
        passes = max(len(part.passes) for part in parts) if is_sharded() else 0
        return [(part._as_part_of(self, passes=passes), 1.0) for part in parts]

    def _as_part_of(self, full_batch: "AlignedBatch", *, passes: int) -> "AlignedBatch":
        """Set the shares in a full batch, and repeat the last pass, unread, until there are ``passes``."""
        shares = AlignedShares(
            len(self.source.starts) / max(1, len(full_batch.source.starts)),
            len(self.anchored.starts) / max(1, len(full_batch.anchored.starts)),
        )
        all_passes = self.passes + self.passes[-1:] * (passes - len(self.passes))
        return replace(self, passes=all_passes, shares=shares)

    def same(self) -> Bool[Tensor, "item item"]:
        """Return whether two aligned items have equal texts in either language."""
        return (self.texts.unsqueeze(1) == self.texts.unsqueeze(0)).any(dim=2)

    def to(self, device: torch.device) -> "AlignedBatch":
        """Return the batch on a device."""
        return replace(
            to_device(self, device),
            passes=tuple(to_device(sentences, device) for sentences in self.passes),
            source_passes=tuple(to_device(sentences, device) for sentences in self.source_passes),
            source=to_device(self.source, device),
            target=to_device(self.target, device),
            anchored=to_device(self.anchored, device),
            originals=to_device(self.originals, device),
        )


def aligned_batch(bitext: AlignedBitext, rows: Sequence[int]) -> AlignedBatch:
    """Collate the sentence pairs at some rows."""
    pairs = [bitext[row] for row in rows]
    count = len(rows)
    sources, targets = zip(*(bitext.languages(row) for row in rows), strict=True)
    sentences = [*(pair.source for pair in pairs), *(pair.target for pair in pairs)]
    passes, begins = _passes(sentences, [*sources, *targets], bitext.padding)
    source_passes, source_begins = _passes(sentences[:count], sources, bitext.padding)
    anchored_spans = [pair.anchored for pair in pairs]
    return AlignedBatch(
        passes=passes,
        source=_items([pair.aligned[:, :2] for pair in pairs], begins[:count]),
        target=_items([pair.aligned[:, 2:] for pair in pairs], begins[count:]),
        anchored=_items(anchored_spans, begins[:count]),
        source_passes=source_passes,
        originals=_items(anchored_spans, source_begins),
        texts=torch.from_numpy(np.concatenate([pair.texts for pair in pairs]).astype(np.int64)),
        count=count,
        part=lambda indices: aligned_batch(bitext, [rows[index] for index in indices]),
    )


def _passes(
    sentences: Sequence[np.ndarray], languages: Sequence[str], padding: int
) -> tuple[tuple[Pass, ...], np.ndarray]:
    """Return the passes, and the index of each sentence's first subword among all states."""
    lengths = np.array([len(sentence) for sentence in sentences])
    # A GPU takes everything at once; a CPU pays for padding more than for another pass.
    max_padding = None if torch.cuda.is_available() else CPU_PASS_COST
    passes: list[Pass] = []
    begins = np.empty(len(sentences), dtype=np.int64)
    states = 0
    for group in by_length(lengths.tolist(), int(len(lengths) * lengths.max()), padding=max_padding):
        width = int(lengths[group[-1]])
        begins[group] = states + width * np.arange(len(group))
        states += width * len(group)
        subwords = np.full((len(group), width), padding, dtype=np.int64)
        is_subword = np.arange(width) < lengths[group, None]
        subwords[is_subword] = np.concatenate([sentences[row] for row in group])
        mask = None if is_subword.all() else torch.from_numpy(is_subword.astype(np.int64))
        passes.append(Pass(torch.from_numpy(subwords), mask, tuple(languages[row] for row in group)))
    return tuple(passes), begins


def _items(spans: Sequence[np.ndarray], begins: np.ndarray) -> Items:
    """Convert each sentence's spans [item 2] to indices among all states."""
    state_spans = np.concatenate([span + begin for span, begin in zip(spans, begins, strict=True)])
    sizes = state_spans[:, 1] - state_spans[:, 0]
    starts = np.cumsum(sizes) - sizes
    offsets = np.arange(int(sizes.sum())) - np.repeat(starts, sizes)
    indices = np.repeat(state_spans[:, 0], sizes) + offsets
    return Items(torch.from_numpy(indices), torch.from_numpy(starts))


def frozen_copy(model: Model) -> Model:
    """Return f⁰, a frozen copy of a model's encoder without dropout."""
    return deepcopy(model.base_model).to(device()).eval().requires_grad_(False)


def states_of(model: Model, passes: Sequence[Pass], *, layer: int) -> Float[Tensor, "state dim"]:
    """Return the states of all passes in one layer, padding included, in float32 or higher precision.

    Layer 0 is the embeddings, -1 the last.
    """
    outputs = (forward(model.base_model, batch, output_hidden_states=True) for batch in passes)
    states = torch.cat([output.hidden_states[layer].flatten(0, 1) for output in outputs])
    return states.to(torch.promote_types(states.dtype, torch.float32))


class AlignmentTerms(NamedTuple):
    """The two terms of Eq. 1: the alignment term over linked words and the anchor term over source words."""

    aligned: Tensor
    anchored: Tensor


def alignment_terms(
    model: Model, original: Model | None, batch: AlignedBatch, *, layer: int, form: Form
) -> AlignmentTerms:
    """Return the alignment term Σ‖f(s)−f(t)‖² and the anchor term Σ‖f(s)−f⁰(s)‖² of a batch (Eq. 1).

    The alignment term sums over aligned pairs, the anchor term over all source words. ``original`` is the
    model f⁰. Without it, the anchor term is 0.
    """
    f = states_of(model, batch.passes, layer=layer)
    shares = batch.shares if form == "mean" else ALL_ITEMS
    alignment = squared_distance(batch.source.of(f), batch.target.of(f), form)
    anchor = distance_moved(f, original, batch, layer=layer, form=form)
    return AlignmentTerms(alignment * shares.aligned, anchor * shares.anchored)


def distance_moved(
    f: Float[Tensor, "state dim"], original: Model | None, batch: AlignedBatch, *, layer: int, form: Form
) -> Float[Tensor, ""]:
    """Return the anchor term Σ‖f(s)−f⁰(s)‖² over all source words (Eq. 1), or 0 without an ``original``."""
    if original is None:
        return f.new_zeros(())
    with torch.no_grad():
        f0 = batch.originals.of(states_of(original, batch.source_passes, layer=layer))
    return squared_distance(batch.anchored.of(f), f0, form)


def squared_distance(
    x: Float[Tensor, "item dim"], y: Float[Tensor, "item dim"], form: Form
) -> Float[Tensor, ""]:
    """Return Σ‖xᵢ−yᵢ‖² over matching rows, or its mean over rows and dimensions. Without rows, it is 0."""
    squares = (x - y).square()
    return squares.sum() if form == "sum" else squares.sum() / max(1, squares.numel())


def bidirectional_contrast(
    x: Float[Tensor, "item dim"],
    y: Float[Tensor, "item dim"],
    are_equal: Bool[Tensor, "item item"],
    *,
    temperature: float,
) -> Float[Tensor, ""]:
    """Return the mean cross entropy of finding yᵢ from xᵢ and xᵢ from yᵢ, or 0 without items.

    ``are_equal`` marks pairs of items with equal texts in either language, which are not used as negatives.
    """
    if not len(x):
        return (x.sum() + y.sum()) * 0.0
    similarities = normalize(x, dim=1) @ normalize(y, dim=1).T / temperature
    diagonal = torch.eye(len(x), dtype=torch.bool, device=x.device)
    similarities = similarities.masked_fill(are_equal & ~diagonal, -torch.inf)
    targets = torch.arange(len(x), device=x.device)
    return (cross_entropy(similarities, targets) + cross_entropy(similarities.T, targets)) / 2
