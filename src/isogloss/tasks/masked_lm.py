"""Masked language modelling, on single texts (MLM) or on text pairs (TLM).

Devlin et al. (2019), Section 3.1: 15 % of the subwords are predicted. Of these 80 % are replaced by the mask
subword, 10 % by a random one, and 10 % are kept. Conneau & Lample (2019), Section 3.3: translation language
modelling concatenates a sentence and its translation and resets positions for the second, so that a masked
word can be predicted from the other language.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, islice

import numpy as np
import torch
from torch import Tensor, nn

from isogloss.core.errors import ConfigError, DataError
from isogloss.core.identity import derive
from isogloss.encoders.added.active_language import active_language
from isogloss.encoders.added.language_modules import modules_of
from isogloss.encoders.families import family_of
from isogloss.encoders.family import Model, Tokenizer
from isogloss.encoders.subwords import padding_mask
from isogloss.tasks.batch import IGNORED, LABELS_ROUNDED_TO, forward, row_ranges, to_device

KEPT_SHARE = 0.1
"""Share of the predicted subwords that are kept."""

RANDOM_SHARE = 0.1
"""Share of the predicted subwords that are replaced by random ones."""


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """Size and special subword ids of a tokenizer."""

    size: int
    first: int
    last: int
    padding: int
    mask: int
    special: tuple[int, ...]

    @classmethod
    def from_tokenizer(cls, tokenizer: Tokenizer, *, mask: str = "") -> "Vocabulary":
        """Read the vocabulary of a tokenizer.

        ``mask`` names a subword to use as the mask. Default: the tokenizer's mask. Raises ConfigError for a
        tokenizer without a mask.
        """
        mask_id = tokenizer.get_vocab().get(mask) if mask else tokenizer.mask_token_id
        if mask_id is None:
            missing = f"has no subword {mask!r}" if mask else "has no mask_token"
            raise ConfigError(
                f"{tokenizer.name_or_path or 'tokenizer'}: its tokenizer {missing} to replace hidden "
                f"subwords. Choose a rare subword of its vocabulary, if the method has a field for it "
                f'(mask = "_"), or an encoder with a mask.'
            )
        return cls(
            size=len(tokenizer),
            first=tokenizer.cls_token_id,
            last=tokenizer.sep_token_id,
            padding=tokenizer.pad_token_id,
            mask=mask_id,
            special=tuple(tokenizer.all_special_ids),
        )


@dataclass(frozen=True, slots=True)
class MaskedBatch:
    """Masked text [batch subword], with the predicted subwords' flat indices and original ids."""

    subwords: Tensor
    """[batch subword], integer, after masking."""
    mask: Tensor | None
    """[batch subword], 1 at subwords of the text, or None without padding."""
    positions: Tensor | None
    """[batch subword], position ids of text pairs, or None for single texts."""
    masked: Tensor
    """[label], indices in the flattened batch of the states that predict, ascending."""
    gold: Tensor
    """[label], original ids of the predicted subwords."""
    languages: tuple[str, ...] = ()
    """Language of the whole batch, or of each row ("en+de" is a row in both). Empty if unspecified."""
    is_rounded: bool = False
    """Whether its shape is one of few (see ``rounded``)."""

    def rounded(self) -> "MaskedBatch":
        """Return the batch with a multiple of ``LABELS_ROUNDED_TO`` labels.

        Added labels are ignored. Batches of text pairs, or of several languages, are not changed.
        """
        if self.positions is not None or len(self.languages) > 1:
            return self
        labels = -len(self.gold) % LABELS_ROUNDED_TO
        gold = nn.functional.pad(self.gold, (0, labels), value=IGNORED)
        indices = nn.functional.pad(self.masked, (0, labels))
        return replace(self, masked=indices, gold=gold, is_rounded=True)

    def to(self, device: torch.device) -> "MaskedBatch":
        """Return the batch on a device."""
        return to_device(self, device)

    def inputs(self) -> dict[str, Tensor]:
        """Return the keyword arguments of an encoder's forward function."""
        arguments = {"input_ids": self.subwords, "attention_mask": self.mask, "position_ids": self.positions}
        return {name: value for name, value in arguments.items() if value is not None}

    def languages_of_labels(self) -> tuple[str, ...]:
        """Return the language of the whole batch, or of each predicted subword."""
        if len(self.languages) < 2:
            return self.languages
        rows = (self.masked // self.subwords.size(1)).tolist()
        return tuple(self.languages[row] for row in rows)

    def parts(self, count: int) -> list[tuple["MaskedBatch", float]]:
        """Split into at most ``count`` batches of nearly equal rows, each with its share of predictions."""
        parts = [self._rows(rows.start, rows.stop) for rows in row_ranges(len(self.subwords), count)]
        return [(part, len(part.masked) / len(self.masked)) for part in parts]

    def _rows(self, start: int, stop: int) -> "MaskedBatch":
        width = self.subwords.size(1)
        inside = (self.masked >= start * width) & (self.masked < stop * width)
        return replace(
            self,
            subwords=self.subwords[start:stop],
            mask=None if self.mask is None else self.mask[start:stop],
            positions=None if self.positions is None else self.positions[start:stop],
            masked=self.masked[inside] - start * width,
            gold=self.gold[inside],
            languages=self.languages[start:stop] if len(self.languages) > 1 else self.languages,
        )


def masked_lm_loss(model: Model, batch: MaskedBatch) -> Tensor:
    """Return the mean cross entropy at the predicted subwords, or 0 without any.

    The head is computed only at these subwords.
    """
    states = forward(model.base_model, batch).last_hidden_state
    scores = _scores(model, states.flatten(0, 1)[batch.masked], batch).float()
    return nn.functional.cross_entropy(scores, batch.gold) if len(batch.gold) else scores.sum()


def _scores(model: Model, states: Tensor, batch: MaskedBatch) -> Tensor:
    """Apply the masked-LM head to [label dim], through the invertible adapters of each language, if any."""
    modules = modules_of(model)
    head = family_of(model).masked_lm_scores
    if modules is None or not modules.modules.invertible or not batch.languages:
        return head(model, states)
    with active_language(model, batch.languages_of_labels()):
        return head(model, states.unsqueeze(1)).squeeze(1)  # Language switches expect three dimensions.


@dataclass(frozen=True, kw_only=True)
class Masking:
    """The masking of rows of subwords."""

    vocabulary: Vocabulary
    share: float = 0.15
    """Share of the ordinary subwords that is predicted."""
    first_position: int = 0
    """First position id: 0 for BERT, 2 for XLM-R."""
    next_token: bool = False
    """Whether a hidden subword is predicted from the state before it, as in decoders."""

    def batch(
        self, rows: Sequence[Sequence[np.ndarray]], *, seed: int, languages: tuple[str, ...] = ()
    ) -> MaskedBatch:
        """Concatenate each row's texts (as [CLS] a [SEP] b [SEP]), pad, and mask."""
        row_ids = [self._join(texts) for texts in rows]
        lengths = [len(subwords) for subwords, _ in row_ids]
        ids = np.full((len(row_ids), max(lengths)), self.vocabulary.padding, dtype=np.int64)
        positions = np.zeros_like(ids)
        for row, (subwords, numbers) in enumerate(row_ids):
            ids[row, : len(subwords)] = subwords
            positions[row, : len(numbers)] = numbers
        masked_ids, indices, gold = self._mask(ids, seed)
        pairs = any(len(texts) > 1 for texts in rows)
        return MaskedBatch(
            subwords=torch.from_numpy(masked_ids),
            mask=padding_mask(lengths) if min(lengths) < max(lengths) else None,
            positions=torch.from_numpy(positions) if pairs else None,
            masked=torch.from_numpy(indices - 1 if self.next_token else indices),
            gold=torch.from_numpy(gold),
            languages=languages,
        )

    def _join(self, texts: Sequence[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
        """Return the subword ids of a row and their position ids."""
        closed_texts = [np.concatenate([text, [self.vocabulary.last]]) for text in texts]
        closed_texts[0] = np.concatenate([[self.vocabulary.first], closed_texts[0]])
        positions = [np.arange(len(text)) + self.first_position for text in closed_texts]
        return np.concatenate(closed_texts).astype(np.int64), np.concatenate(positions)

    def _mask(self, ids: np.ndarray, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the masked ids [batch subword], the flat indices of predicted subwords, and their ids."""
        rng = np.random.Generator(np.random.PCG64(derive(seed, "masks")))
        flat = ids.ravel().copy()
        ordinary = np.flatnonzero(~np.isin(flat, self.vocabulary.special))
        if not len(ordinary):
            raise DataError(
                "masked LM: all subwords of a batch are unknown or special, so none can be masked. Check "
                "that the text is in the script that the vocabulary was trained on."
            )
        count = max(1, round(self.share * len(ordinary)))
        indices = np.sort(rng.choice(ordinary, size=count, replace=False))
        gold = flat[indices].copy()
        draw = rng.random(count)
        random_ids = rng.integers(self.vocabulary.size - len(self.vocabulary.special), size=count)
        for special in sorted(self.vocabulary.special):
            random_ids += random_ids >= special  # Skip special ids, which never replace an ordinary subword.
        flat[indices[draw >= KEPT_SHARE]] = self.vocabulary.mask
        is_random = (draw >= KEPT_SHARE) & (draw < KEPT_SHARE + RANDOM_SHARE)
        flat[indices[is_random]] = random_ids[is_random]
        return flat.reshape(ids.shape), indices, gold


LINES_PER_CALL = 2000
"""Lines per call of the tokenizer: enough to keep its threads busy, with little memory."""


@dataclass(frozen=True)
class TextStream:
    """Subword ids of a text, with a separator after each line, and the offsets at which a block may start."""

    subwords: np.ndarray
    starts: np.ndarray

    def __len__(self) -> int:
        return len(self.subwords)

    def block(self, index: int, length: int) -> np.ndarray:
        """Return ``length`` subwords from start ``index``, or the last ones near the end of the text."""
        start = min(int(self.starts[index]), max(0, len(self.subwords) - length))
        return np.asarray(self.subwords[start : start + length])


def subwords_of(lines: Iterable[str], tokenizer: Tokenizer) -> Iterator[list[int]]:
    """Yield the subword ids of each line, without special subwords, tokenizing lines in groups."""
    return chain.from_iterable(tokenize_groups(lines, tokenizer))


def tokenize_groups(lines: Iterable[str], tokenizer: Tokenizer) -> Iterator[list[list[int]]]:
    """Yield the subword ids of groups of lines, without special subwords."""
    line_iterator = iter(lines)
    backend = tokenizer.backend_tokenizer
    while group := list(islice(line_iterator, LINES_PER_CALL)):
        yield [encoding.ids for encoding in backend.encode_batch_fast(group, add_special_tokens=False)]
