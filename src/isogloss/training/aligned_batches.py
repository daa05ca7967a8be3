"""Batches of sentence pairs, and the states of what is pulled and held in them.

The sentences of both sides go through the encoder together, in as few passes as their lengths allow with
little padding.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.nn.functional import embedding_bag

from isogloss.encoders.speaking import of_language
from isogloss.training.aligned_pairs import AlignedRow
from isogloss.training.batching import by_length
from isogloss.training.kept_states import KeptStates

CALL = 128
"""Subwords a CPU trains on in about the time one more pass costs: more padding than that is not worth it."""


@dataclass(frozen=True, slots=True)
class Pass:
    """Sentences that go through the encoder together, padded to the longest."""

    subwords: Tensor
    """[sentence subword], integer."""
    mask: Tensor | None
    """[sentence subword], 1 at real subwords; None without padding."""
    languages: tuple[str, ...]
    """Of each sentence."""

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


@dataclass(frozen=True, slots=True, kw_only=True)
class AlignedBatch:
    """Sentence pairs with what is pulled together and what is held in them."""

    passes: tuple[Pass, ...]
    source: Items
    """What is pulled, in the source …"""
    target: Items
    """… and in the target, in the same order."""
    held: Items
    """What is held, in the source."""
    before: Tensor
    """[item dim]: the states of what is held, as they were; no rows where they are not kept."""
    kinds: Tensor
    """[item 2], integer: the texts of what is pulled; equal numbers are equal texts."""

    def same(self) -> Bool[Tensor, "item item"]:
        """Tell which of the items that are pulled are equal texts in either language."""
        each = self.kinds.unsqueeze(1) == self.kinds.unsqueeze(0)
        return each.any(dim=2)

    def to(self, device: torch.device) -> "AlignedBatch":
        """Return the batch on a device."""
        return AlignedBatch(
            passes=tuple(one.to(device) for one in self.passes),
            source=self.source.to(device),
            target=self.target.to(device),
            held=self.held.to(device),
            before=self.before.to(device),
            kinds=self.kinds.to(device),
        )


def collate_pairs(rows: Sequence[AlignedRow], kept: KeptStates | None, *, padding: int) -> AlignedBatch:
    """Put sentence pairs together; ``padding`` is the subword sentences are padded with."""
    sentences = [*(row.source for row in rows), *(row.target for row in rows)]
    languages = [row.languages[side] for side in (0, 1) for row in rows]
    passes, begins = _passes(sentences, languages, padding=padding)
    count = len(rows)
    return AlignedBatch(
        passes=passes,
        source=_items([row.pulled[:, :2] for row in rows], begins[:count]),
        target=_items([row.pulled[:, 2:] for row in rows], begins[count:]),
        held=_items([row.held for row in rows], begins[:count]),
        before=kept.of([row.number for row in rows]) if kept else torch.empty(0, 0),
        kinds=torch.from_numpy(np.concatenate([row.kinds for row in rows]).astype(np.int64)),
    )


def states_of(model: Any, passes: Sequence[Pass], *, layer: int) -> Float[Tensor, "place dim"]:
    """Return the states of all passes in one layer, padding included; at least in float32.

    Layer 0 is the embeddings, -1 the last.
    """
    found = []
    for one in passes:
        mask = {} if one.mask is None else {"attention_mask": one.mask}
        with of_language(model, one.languages):
            states = model.base_model(input_ids=one.subwords, output_hidden_states=True, **mask).hidden_states
        found.append(states[layer].flatten(0, 1))
    joined = torch.cat(found)
    return joined.to(torch.promote_types(joined.dtype, torch.float32))


def held_states(model: Any, rows: Sequence[AlignedRow], *, layer: int, padding: int) -> Tensor:
    """Return [item dim] the states of what is held in some rows, by the model as it is."""
    device = next(model.parameters()).device
    sentences, languages = [row.source for row in rows], [row.languages[0] for row in rows]
    passes, begins = _passes(sentences, languages, padding=padding)
    states = states_of(model, [one.to(device) for one in passes], layer=layer)
    return _items([row.held for row in rows], begins).to(device).of(states)


def _passes(
    sentences: Sequence[np.ndarray], languages: Sequence[str], *, padding: int
) -> tuple[tuple[Pass, ...], np.ndarray]:
    """Return the passes, and for each sentence the place of its first subword among all states."""
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
    """Turn each sentence's spans [item 2] into places among all states."""
    moved = np.concatenate([one + begin for one, begin in zip(spans, begins, strict=True)])
    sizes = moved[:, 1] - moved[:, 0]
    starts = np.cumsum(sizes) - sizes
    within = np.arange(int(sizes.sum())) - np.repeat(starts, sizes)
    places = np.repeat(moved[:, 0], sizes) + within
    return Items(torch.from_numpy(places), torch.from_numpy(starts))
