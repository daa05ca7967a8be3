"""Masked language modelling, on one text or on a text beside its translation.

Devlin et al. (2019), Section 3.1: 15 % of the subwords are predicted; of these 80 % are replaced by the
mask, 10 % by a random subword, 10 % stay. Conneau & Lample (2019), Section 3.3: translation LM joins a
sentence and its translation, positions counted anew for the second, so that a masked word can be found by
looking at the other language.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor, nn

from isogloss.core.errors import DataError
from isogloss.core.seeds import derive
from isogloss.encoders import family_of
from isogloss.tasks.batch import forward

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

KEPT, RANDOM = 0.1, 0.1
"""Shares of the predicted subwords that stay or become a random one."""


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """The numbers of a tokenizer's special subwords."""

    size: int
    first: int
    last: int
    padding: int
    mask: int
    special: tuple[int, ...]

    @classmethod
    def of(cls, tokenizer: "PreTrainedTokenizerFast") -> "Vocabulary":
        """Read them from a tokenizer."""
        return cls(
            size=len(tokenizer),
            first=tokenizer.cls_token_id,
            last=tokenizer.sep_token_id,
            padding=tokenizer.pad_token_id,
            mask=tokenizer.mask_token_id,
            special=tuple(tokenizer.all_special_ids),
        )


@dataclass(frozen=True, slots=True)
class MaskedBatch:
    """Text with some subwords hidden; ``places`` are their flat positions, ``gold`` what stood there."""

    subwords: Tensor
    mask: Tensor | None
    positions: Tensor | None
    places: Tensor
    gold: Tensor
    languages: tuple[str, ...] = ()
    """The language of the whole batch, or of each row ("en+de" is a row in both); none said: any."""

    def to(self, device: torch.device) -> "MaskedBatch":
        """Move to a device."""
        return MaskedBatch(
            subwords=self.subwords.to(device),
            mask=None if self.mask is None else self.mask.to(device),
            positions=None if self.positions is None else self.positions.to(device),
            places=self.places.to(device),
            gold=self.gold.to(device),
            languages=self.languages,
        )

    def inputs(self) -> dict[str, Tensor]:
        """Return what the forward function of an encoder is called with."""
        named = {"input_ids": self.subwords, "attention_mask": self.mask, "position_ids": self.positions}
        return {name: value for name, value in named.items() if value is not None}

    def parts(self, count: int) -> list[tuple["MaskedBatch", float]]:
        """Cut into batches of about as many rows each, at most ``count``; a share is that of the places."""
        rows = len(self.subwords)
        count = min(count, rows)
        ends = [rows * number // count for number in range(count + 1)]
        found = [self._rows(first, last) for first, last in pairwise(ends)]
        return [(part, len(part.places) / len(self.places)) for part in found]

    def _rows(self, first: int, last: int) -> "MaskedBatch":
        width = self.subwords.size(1)
        here = (self.places >= first * width) & (self.places < last * width)
        return MaskedBatch(
            subwords=self.subwords[first:last],
            mask=None if self.mask is None else self.mask[first:last],
            positions=None if self.positions is None else self.positions[first:last],
            places=self.places[here] - first * width,
            gold=self.gold[here],
            languages=self.languages[first:last] if len(self.languages) > 1 else self.languages,
        )


def masked_lm_loss(model: nn.Module, batch: MaskedBatch) -> Tensor:
    """Return the mean cross entropy at the hidden places; the head runs on these alone.

    Without a hidden place it is 0.
    """
    states = forward(model.base_model, batch).last_hidden_state
    hidden = states.flatten(0, 1)[batch.places]
    scores = family_of(model).masked_lm_scores(model, hidden).float()
    return nn.functional.cross_entropy(scores, batch.gold) if len(batch.gold) else scores.sum()


@dataclass(frozen=True, kw_only=True)
class Masking:
    """From rows of subwords to batches with hidden places."""

    vocabulary: Vocabulary
    share: float = 0.15
    first_position: int = 0
    """Number of the first position: 0 for BERT, 2 for XLM-R."""

    def batch(
        self, rows: Sequence[Sequence[np.ndarray]], *, seed: int, languages: tuple[str, ...] = ()
    ) -> MaskedBatch:
        """Join each row's texts (as [CLS] a [SEP] b [SEP]), pad, and hide a share of the subwords."""
        joined = [self._join(texts) for texts in rows]
        longest = max(len(subwords) for subwords, _ in joined)
        ids = np.full((len(joined), longest), self.vocabulary.padding, dtype=np.int64)
        positions = np.zeros_like(ids)
        for row, (subwords, places) in enumerate(joined):
            ids[row, : len(subwords)] = subwords
            positions[row, : len(places)] = places
        padded = ids == self.vocabulary.padding
        hidden, places_hidden, gold = self._hide(ids, seed)
        two = any(len(texts) > 1 for texts in rows)
        return MaskedBatch(
            subwords=torch.from_numpy(hidden),
            mask=torch.from_numpy((~padded).astype(np.int64)) if padded.any() else None,
            positions=torch.from_numpy(positions) if two else None,
            places=torch.from_numpy(places_hidden),
            gold=torch.from_numpy(gold),
            languages=languages,
        )

    def _join(self, texts: Sequence[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
        parts, places = [], []
        for number, text in enumerate(texts):
            start = [self.vocabulary.first] if number == 0 else []
            part = np.concatenate([start, text, [self.vocabulary.last]]).astype(np.int64)
            parts.append(part)
            places.append(np.arange(len(part)) + self.first_position)
        return np.concatenate(parts), np.concatenate(places)

    def _hide(self, ids: np.ndarray, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        rng = np.random.Generator(np.random.PCG64(derive(seed, "masks")))
        flat = ids.ravel().copy()
        open_places = np.flatnonzero(~np.isin(flat, self.vocabulary.special))
        if not len(open_places):
            raise DataError(
                "masked LM: a batch has no subword that can be hidden, all are unknown or special. Is the "
                "text in the script the vocabulary was trained on?"
            )
        count = max(1, round(self.share * len(open_places)))
        places = np.sort(rng.choice(open_places, size=count, replace=False))
        gold = flat[places].copy()
        draw = rng.random(count)
        replaced = rng.integers(self.vocabulary.size - len(self.vocabulary.special), size=count)
        for special in sorted(self.vocabulary.special):
            replaced += replaced >= special  # Count on past each: no special subword stands in for a word.
        flat[places[draw >= KEPT]] = self.vocabulary.mask
        chosen = (draw >= KEPT) & (draw < KEPT + RANDOM)
        flat[places[chosen]] = replaced[chosen]
        return flat.reshape(ids.shape), places, gold
