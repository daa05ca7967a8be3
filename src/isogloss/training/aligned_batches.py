"""Batches of sentence pairs, and the states of what is aligned and anchored in them.

The sentences of both sides go through the encoder together, in as few passes as their lengths allow with
little padding.

What is anchored has a reference state f⁰ from before the training: computed once for each pair and cached on
disk. Files are read in pieces and not mapped, so that what was read does not count as the process's memory.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.nn.functional import embedding_bag

from isogloss.core.progress import OnProgress, Progress, no_progress
from isogloss.core.records import open_atomically, writing
from isogloss.nn.distance import Form, squared_distance
from isogloss.tasks.batch import forward, row_ranges
from isogloss.tasks.task import Model
from isogloss.training.aligned_pairs import AlignedPairs, AlignedRow
from isogloss.training.batching import by_length
from isogloss.training.distributed import is_sharded, main_process_first
from isogloss.training.evaluation import BUDGET
from isogloss.training.precision import device, scoring

CALL = 128
"""Subwords a CPU trains on in about the time one more pass costs: more padding than that is not worth it."""


CacheType = Literal["float16", "float32"]
"""Data type of cached states: float16 takes half the disk and changes the fourth digit."""


@dataclass(frozen=True)
class CachedStates:
    """States of some rows, in a file."""

    path: Path
    dim: int
    dtype: np.dtype[np.generic]
    starts: np.ndarray
    """[row]: the number of its first state."""
    counts: np.ndarray
    """[row]: how many states it has."""

    def of(self, rows: Sequence[int]) -> Tensor:
        """Return [item dim] the states of rows, one row after the other, in float32."""
        width = self.dim * self.dtype.itemsize
        parts = []
        with self.path.open("rb") as file:
            for row in rows:
                file.seek(int(self.starts[row]) * width)
                parts.append(file.read(int(self.counts[row]) * width))
        states = np.frombuffer(b"".join(parts), dtype=self.dtype).astype(np.float32)
        return torch.from_numpy(states.reshape(-1, self.dim))


@dataclass(frozen=True, slots=True)
class Pass:
    """Sentences of one forward pass, padded to the longest."""

    subwords: Tensor
    """[sentence subword], integer."""
    mask: Tensor | None
    """[sentence subword], 1 at real subwords; None without padding."""
    languages: tuple[str, ...]
    """Of each sentence."""

    def inputs(self) -> dict[str, Tensor]:
        """Return what the forward function of an encoder is called with."""
        mask = {} if self.mask is None else {"attention_mask": self.mask}
        return {"input_ids": self.subwords, **mask}

    def to(self, device: torch.device) -> "Pass":
        """Return it on a device."""
        mask = None if self.mask is None else self.mask.to(device, non_blocking=True)
        return Pass(self.subwords.to(device, non_blocking=True), mask, self.languages)


@dataclass(frozen=True, slots=True)
class Items:
    """Items, each the mean of the states at some places: item i has those from ``starts[i]`` on."""

    places: Tensor
    """[place], integer: which of the states of all passes, one after the other."""
    starts: Tensor
    """[item], integer."""

    def of(self, states: Float[Tensor, "place dim"]) -> Float[Tensor, "item dim"]:
        """Return the items' states."""
        return embedding_bag(self.places, states, self.starts, mode="mean")

    def to(self, device: torch.device) -> "Items":
        """Return them on a device."""
        return Items(self.places.to(device), self.starts.to(device))


class AlignmentShares(NamedTuple):
    """The shares of a part of a batch in all aligned items, and in all that are anchored."""

    aligned: float
    anchored: float


@dataclass(frozen=True, slots=True, kw_only=True)
class AlignedBatch:
    """Sentence pairs with what is aligned and what is anchored in them."""

    passes: tuple[Pass, ...]
    source: Items
    """Aligned items of the source …"""
    target: Items
    """… and of the target, in the same order."""
    anchored: Items
    """Anchored items of the source."""
    before: Tensor
    """[item dim]: f⁰, the anchored items' states before the training; no rows where they are not cached."""
    kinds: Tensor
    """[item 2], integer: the texts of what is aligned; equal numbers are equal texts."""
    count: int
    """Sentence pairs."""
    part: "Callable[[Sequence[int]], AlignedBatch]"
    """Collates some of the sentence pairs alone."""
    shares: "AlignmentShares | None" = None
    """Of a part in the batch; None for the whole."""
    is_whole: bool = False
    """Whether each of several processes computes all of it, as its parts would have another loss."""

    def parts(self, count: int) -> "list[tuple[AlignedBatch, float]]":
        """Split into at most ``count`` batches of nearly equal pairs; each knows its shares of the loss."""
        found = []
        for rows in row_ranges(self.count, count):
            part = self.part(rows)
            shares = AlignmentShares(
                aligned=len(part.source.starts) / max(1, len(self.source.starts)),
                anchored=len(part.anchored.starts) / max(1, len(self.anchored.starts)),
            )
            found.append((replace(part, shares=shares), 1.0))
        most = max(len(part.passes) for part, _ in found) if is_sharded() else 0
        return [(part._with_passes(most), share) for part, share in found]

    def _with_passes(self, count: int) -> "AlignedBatch":
        """Return the batch with at least so many passes: the last over again, from which nothing is read."""
        return replace(self, passes=self.passes + self.passes[-1:] * (count - len(self.passes)))

    def same(self) -> Bool[Tensor, "item item"]:
        """Return which aligned items are equal texts in either language."""
        each = self.kinds.unsqueeze(1) == self.kinds.unsqueeze(0)
        return each.any(dim=2)

    def to(self, device: torch.device) -> "AlignedBatch":
        """Return the batch on a device."""
        return replace(
            self,
            passes=tuple(one.to(device) for one in self.passes),
            source=self.source.to(device),
            target=self.target.to(device),
            anchored=self.anchored.to(device),
            before=self.before.to(device),
            kinds=self.kinds.to(device),
        )


def collate_pairs(rows: Sequence[AlignedRow], kept: CachedStates | None, *, padding: int) -> AlignedBatch:
    """Collate sentence pairs; ``padding`` is the number of the padding subword."""
    sentences = [*(row.source for row in rows), *(row.target for row in rows)]
    languages = [row.languages[side] for side in (0, 1) for row in rows]
    passes, begins = _passes(sentences, languages, padding=padding)
    count = len(rows)
    return AlignedBatch(
        passes=passes,
        source=_items([row.aligned[:, :2] for row in rows], begins[:count]),
        target=_items([row.aligned[:, 2:] for row in rows], begins[count:]),
        anchored=_items([row.anchored for row in rows], begins[:count]),
        before=kept.of([row.number for row in rows]) if kept else torch.empty(0, 0),
        kinds=torch.from_numpy(np.concatenate([row.kinds for row in rows]).astype(np.int64)),
        count=count,
        part=lambda chosen: collate_pairs([rows[row] for row in chosen], kept, padding=padding),
    )


def states_of(model: Model, passes: Sequence[Pass], *, layer: int) -> Float[Tensor, "place dim"]:
    """Return the states of all passes in one layer, padding included; at least in float32.

    Layer 0 is the embeddings, -1 the last.
    """
    found = []
    for one in passes:
        states = forward(model.base_model, one, output_hidden_states=True).hidden_states[layer]
        found.append(states.flatten(0, 1))
    joined = torch.cat(found)
    return joined.to(torch.promote_types(joined.dtype, torch.float32))


class AlignmentTerms(NamedTuple):
    """The two terms of Eq. 1: how far apart aligned words are, and how far source words have moved."""

    aligned: Tensor
    anchored: Tensor


def alignment_terms(model: Model, batch: AlignedBatch, *, layer: int, form: Form) -> AlignmentTerms:
    """Return Σ‖f(s)−f(t)‖² over aligned pairs and Σ‖f(s)−f⁰(s)‖² over all source words (Eq. 1)."""
    f = states_of(model, batch.passes, layer=layer)
    terms = AlignmentTerms(
        aligned=squared_distance(batch.source.of(f), batch.target.of(f), form),
        anchored=squared_distance(batch.anchored.of(f), batch.before.to(f.dtype), form),
    )
    if batch.shares is None or form == "sum":
        return terms
    return AlignmentTerms(*(term * share for term, share in zip(terms, batch.shares, strict=True)))


def _passes(
    sentences: Sequence[np.ndarray], languages: Sequence[str], *, padding: int
) -> tuple[tuple[Pass, ...], np.ndarray]:
    """Return the passes, and the index of each sentence's first subword among all states."""
    lengths = [len(sentence) for sentence in sentences]
    # A GPU takes everything at once; a CPU pays for padding more than for another pass.
    wasted = None if torch.cuda.is_available() else CALL
    found, begins, place = [], np.empty(len(sentences), dtype=np.int64), 0
    for group in by_length(lengths, len(lengths) * max(lengths), padding=wasted):
        widest = lengths[group[-1]]
        subwords = np.full((len(group), widest), padding, dtype=np.int64)
        mask = np.zeros((len(group), widest), dtype=np.int64)
        for row, number in enumerate(group):
            subwords[row, : lengths[number]] = sentences[number]
            mask[row, : lengths[number]] = 1
            begins[number] = place + row * widest
        found.append(
            Pass(
                torch.from_numpy(subwords),
                None if mask.all() else torch.from_numpy(mask),
                tuple(languages[number] for number in group),
            )
        )
        place += subwords.size
    return tuple(found), begins


def _items(spans: Sequence[np.ndarray], begins: np.ndarray) -> Items:
    """Turn each sentence's spans [item 2] into indices of all states."""
    moved = np.concatenate([one + begin for one, begin in zip(spans, begins, strict=True)])
    sizes = moved[:, 1] - moved[:, 0]
    starts = np.cumsum(sizes) - sizes
    within = np.arange(int(sizes.sum())) - np.repeat(starts, sizes)
    places = np.repeat(moved[:, 0], sizes) + within
    return Items(torch.from_numpy(places), torch.from_numpy(starts))


def cache_states(
    path: Path,
    groups: Sequence[Sequence[int]],
    counts: np.ndarray,
    compute: Callable[[Sequence[int]], Tensor],
    *,
    dim: int,
    kept: CacheType,
) -> CachedStates:
    """Cache the states [item dim] of each group of rows in a file.

    ``counts`` is the number of states of every row, cached or not. The file is written whole or not at all;
    one from before an interruption is used as it is.
    """
    order = np.array([row for group in groups for row in group], dtype=np.int64)
    ends = np.cumsum(counts[order])
    starts = np.zeros(len(counts), dtype=np.int64)
    starts[order] = ends - counts[order]
    dtype = np.dtype(kept)
    with main_process_first():
        if not path.exists():
            with open_atomically(path, "wb") as file:
                for group in groups:
                    found = compute(group).float().cpu().numpy().astype(dtype).tobytes()
                    with writing(path):
                        file.write(found)
    return CachedStates(path, dim, dtype, starts, counts)


STATES = "states.bin"
"""The file of cached states in a run's folder."""


@dataclass(frozen=True, kw_only=True)
class Caching:
    """Where and in which type states are cached, and the precision they are computed in."""

    folder: Path
    kept: CacheType
    precision: str
    on_progress: OnProgress = no_progress


def reference_states(model: Model, pairs: AlignedPairs, rows: Sequence[int], how: Caching) -> CachedStates:
    """Cache the states of the anchored items of some rows, without dropout; moves the model to its device."""
    lengths = [pairs.source.size(row) for row in rows]
    groups = [[rows[place] for place in group] for group in by_length(lengths, BUDGET)]
    done = 0

    def compute(group: Sequence[int]) -> Tensor:
        nonlocal done
        done += len(group)
        how.on_progress(Progress("states before", done, len(rows)))
        some = [pairs[row] for row in group]
        sentences, languages = [one.source for one in some], [one.languages[0] for one in some]
        passes, begins = _passes(sentences, languages, padding=pairs.padding)
        states = states_of(model, [one.to(where) for one in passes], layer=pairs.layer)
        return _items([one.anchored for one in some], begins).to(where).of(states)

    where = device()
    model.to(where).eval()
    with scoring(model.base_model, how.precision):
        path, dim = how.folder / STATES, model.config.hidden_size
        return cache_states(path, groups, pairs.anchored_counts(), compute, dim=dim, kept=how.kept)
