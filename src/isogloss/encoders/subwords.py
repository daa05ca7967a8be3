"""The subwords of words, texts and pairs, windows over long sequences, and padding.

The maps from words or characters to subwords are the tokenizer's own, hence correct for WordPiece (##s),
Unigram (▁) and byte-level BPE (Ġ), for words with inner spaces, as in Vietnamese treebanks, and for
characters that a normaliser changes or drops.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from operator import itemgetter
from threading import Lock
from typing import TYPE_CHECKING, Any, NamedTuple

from isogloss.core.errors import ModelError

if TYPE_CHECKING:
    from tokenizers import Encoding
    from torch import Tensor
    from transformers import BatchEncoding

    from isogloss.encoders.family import Tokenizer


PROBE = "a a"
"""Two words that any vocabulary covers."""

SUBWORDS_ONLY: dict[str, bool] = {
    "add_special_tokens": False,
    "truncation": False,
    "padding": False,
    "return_attention_mask": False,
    "return_token_type_ids": False,
    "verbose": False,
}
"""Options of a tokenizer for subwords without special ones."""


_CAUSAL = "isogloss_causal"
"""Attribute of a tokenizer whose encoder is causal."""

_OWN_FRAME = "isogloss_own_frame"
"""Attribute of a tokenizer that frames texts as in the training of an external head."""


@dataclass(frozen=True, slots=True)
class SplitWords:
    """A sentence's subwords, without special ones, and the index of each one's word.

    Words are in order, and each has at least one subword.
    """

    subwords: tuple[int, ...]
    words: tuple[int, ...]

    def first(self) -> list[int]:
        """Return the index of each word's first subword."""
        preceding = (-1, *self.words)
        return [index for index, word in enumerate(self.words) if preceding[index] != word]

    def last(self) -> list[int]:
        """Return the index of each word's last subword."""
        following = (*self.words[1:], -1)
        return [index for index, word in enumerate(self.words) if following[index] != word]


_TOKENIZING = Lock()


def tokenize(tokenizer: Tokenizer, *texts: Any, **options: Any) -> "BatchEncoding":
    """Call a tokenizer, one thread after the other.

    A tokenizer keeps the truncation and padding of a call for all threads, and fails where it is in use.
    """
    with _TOKENIZING:
        return tokenizer(*texts, **options)


def split_words(sentences: Sequence[Sequence[str]], tokenizer: Tokenizer) -> list[SplitWords]:
    """Split the words of sentences into subwords.

    Each word is split as after a space in running text. A word that the tokenizer drops becomes the unknown
    subword.
    """
    space = " " if needs_spaces(tokenizer) else ""
    spaced_sentences = [[word and f"{space}{word}" for word in words] for words in sentences if words]
    encodings = (
        tokenize(tokenizer, spaced_sentences, is_split_into_words=True, **SUBWORDS_ONLY).encodings
        if spaced_sentences
        else ()
    )
    parts: Iterator[Encoding] = iter(encodings)
    # A tokenizer of bytes has no unknown subword, and drops invalid characters.
    unknown_id = padding_of(tokenizer) if tokenizer.unk_token_id is None else tokenizer.unk_token_id
    return [
        _complete(next(parts), len(words), unknown_id) if words else SplitWords((), ()) for words in sentences
    ]


def set_causal(tokenizer: Tokenizer, *, causal: bool) -> None:
    """Record in a tokenizer whether its encoder is causal (see ``for_causal``)."""
    setattr(tokenizer, _CAUSAL, causal)


def for_causal(tokenizer: Tokenizer) -> bool:
    """Return whether a tokenizer's encoder is causal: no subword attends to following ones.

    Then the last subword represents a word or text, otherwise the first.
    """
    return bool(getattr(tokenizer, _CAUSAL, False))


def scored_subwords(split: SplitWords, tokenizer: Tokenizer) -> list[int]:
    """Return the index of the subword of each word whose state represents the word."""
    return split.last() if for_causal(tokenizer) else split.first()


def set_own_frame(tokenizer: Tokenizer) -> None:
    """Record in a tokenizer that its own template frames texts (see ``text_frame``)."""
    setattr(tokenizer, _OWN_FRAME, True)


def text_frame(tokenizer: Tokenizer) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the ids before and after a text.

    These are the subwords that open and close it, or what the tokenizer itself adds, if it lacks one of them
    or is set to (``set_own_frame``).
    """
    opening_id = tokenizer.cls_token_id
    closing_id = tokenizer.sep_token_id
    if None not in (opening_id, closing_id) and not getattr(tokenizer, _OWN_FRAME, False):
        return (opening_id,), (closing_id,)
    (encoding,) = tokenize(tokenizer, ["a"], verbose=False).encodings
    letters = [index for index, text in enumerate(encoding.sequence_ids) if text == 0]
    if not letters:
        raise _letterless(tokenizer)
    return tuple(encoding.ids[: letters[0]]), tuple(encoding.ids[letters[-1] + 1 :])


def special_subwords(tokenizer: Tokenizer) -> tuple[int, int]:
    """Return the ids that open and close a text.

    Raises ModelError for a tokenizer without them.
    """
    opening = tokenizer.cls_token_id
    closing = tokenizer.sep_token_id
    if opening is None or closing is None:
        raise ModelError(
            f"{tokenizer.name_or_path or 'tokenizer'}: this tokenizer has no subwords that open and close a "
            f"text. Set cls_token and sep_token in its tokenizer_config.json."
        )
    return opening, closing


def padding_of(tokenizer: Tokenizer) -> int:
    """Return the id that fills up a batch.

    It is 0 for a tokenizer without a padding id, because padding is masked.
    """
    return 0 if tokenizer.pad_token_id is None else tokenizer.pad_token_id


def needs_spaces(tokenizer: Tokenizer) -> bool:
    """Return whether single words need a leading space to be split as in running text.

    True if no Ġ or ▁ is prefixed to a text (ModernBERT, mmBERT, RoBERTa): a single "the" would be the end of
    a longer word, not "Ġthe".
    """
    running_text = tokenize(tokenizer, PROBE, **SUBWORDS_ONLY)["input_ids"]
    single = tokenize(tokenizer, PROBE.split()[1:], is_split_into_words=True, **SUBWORDS_ONLY)["input_ids"]
    return bool(running_text[-len(single) :] != single)


def _complete(encoding: "Encoding", count: int, unknown_id: int) -> SplitWords:
    """Return the subwords of ``count`` words, with unknown subwords for words that have none."""
    subwords = encoding.ids
    words = [word for word in encoding.word_ids if word is not None]  # None for special subwords.
    if len(set(words)) == count:
        return SplitWords(tuple(subwords), tuple(words))
    missing_words = set(range(count)) - set(words)
    pairs = [*zip(words, subwords, strict=True), *((word, unknown_id) for word in missing_words)]
    pairs.sort(key=itemgetter(0))  # Stable: the subwords of a word keep their order.
    return SplitWords(tuple(subword for _, subword in pairs), tuple(word for word, _ in pairs))


@dataclass(frozen=True, slots=True)
class PairFrame:
    """The special subwords around and between two texts, and the segment ids of all parts."""

    opening: tuple[int, ...]
    between: tuple[int, ...]
    closing: tuple[int, ...]
    segments: tuple[int, int, int, int, int] | None
    """Ids for opening, first text, between, second text and closing, or None for encoders without
    segments."""

    @property
    def special(self) -> int:
        """Number of special subwords."""
        return len(self.opening) + len(self.between) + len(self.closing)

    def subwords(self, left: Sequence[int], right: Sequence[int]) -> "array[int]":
        """Return the subwords of a pair."""
        return array("I", (*self.opening, *left, *self.between, *right, *self.closing))

    def segments_of(self, left_length: int, right_length: int) -> bytes | None:
        """Return the segment ids of a pair, from the lengths of its texts."""
        if self.segments is None:
            return None
        lengths = (len(self.opening), left_length, len(self.between), right_length, len(self.closing))
        parts = zip(self.segments, lengths, strict=True)
        return b"".join(bytes((segment,)) * length for segment, length in parts)


def pair_frame(tokenizer: Tokenizer) -> PairFrame:
    """Return a tokenizer's frame of pairs, read off an example."""
    (encoding,) = tokenize(tokenizer, ["a"], ["a"], verbose=False).encodings
    first_indices, second_indices = (
        [index for index, side in enumerate(encoding.sequence_ids) if side == text] for text in (0, 1)
    )
    if not first_indices or not second_indices:
        raise _letterless(tokenizer)
    parts = (
        slice(0, first_indices[0]),
        slice(first_indices[-1] + 1, second_indices[0]),
        slice(second_indices[-1] + 1, None),
    )
    opening, between, closing = (tuple(encoding.ids[part]) for part in parts)
    kinds = encoding.type_ids
    segments = (
        kinds[0],
        kinds[first_indices[0]],
        kinds[second_indices[0] - 1],
        kinds[second_indices[0]],
        kinds[-1],
    )
    has_segments = "token_type_ids" in tokenizer.model_input_names and any(segments)
    return PairFrame(opening, between, closing, segments if has_segments else None)


def _letterless(tokenizer: Tokenizer) -> ModelError:
    return ModelError(
        f"{tokenizer.name_or_path or 'tokenizer'}: this tokenizer drops the letter a and has no unknown "
        f"subword for it. Use a tokenizer that keeps every letter."
    )


@dataclass(frozen=True, slots=True)
class Window:
    """A range of visible positions and the range that is scored within it, stops excluded."""

    start: int
    stop: int
    own_start: int
    own_stop: int


def windows(length: int, *, limit: int, overlap: int) -> list[Window]:
    """Cover ``length`` positions with windows of ``limit`` that overlap by at least ``overlap``.

    Each position is scored in the window where it is farthest from an inner edge; ties go to the earlier one.
    The last window is shifted left to be full.
    """
    if not 0 <= overlap < limit:
        raise ValueError(f"windows of {limit} positions cannot overlap by {overlap}: use 0 to {limit - 1}.")
    starts = [*range(0, max(length - limit, 0), limit - overlap), max(length - limit, 0)]
    stops = [min(start + limit, length) for start in starts]
    # The border between neighbours is the middle of their overlap.
    borders = [(stop + start + 1) // 2 for stop, start in zip(stops, starts[1:], strict=False)]
    own_ranges = pairwise([0, *borders, length])
    return [
        Window(start, stop, *own_range)
        for start, stop, own_range in zip(starts, stops, own_ranges, strict=True)
    ]


class EncodedText(NamedTuple):
    """A text, or a pair of them, as an encoder reads it."""

    subwords: Sequence[int]
    """Special ones included."""
    segments: Sequence[int]
    """The segment of each subword, empty if the encoder has no segments or all subwords are in the first."""


def encode_texts(texts: Sequence[tuple[str, ...]], tokenizer: Tokenizer, *, limit: int) -> list[EncodedText]:
    """Encode texts, or pairs of them, the longer text cut until both fit into ``limit`` subwords."""
    if not texts:
        return []
    options = {"padding": False, "return_attention_mask": False, "verbose": False}
    sides = [list(side) for side in zip(*texts, strict=True)]
    encodings = tokenize(tokenizer, *sides, truncation="longest_first", max_length=limit, **options)
    segments = encodings.get("token_type_ids") or [()] * len(texts)
    nothing = (tokenizer.pad_token_id,)  # An empty text that no subword frames.
    return [
        EncodedText(tuple(subwords) or nothing, tuple(kinds) if any(kinds) else ())
        for subwords, kinds in zip(encodings["input_ids"], segments, strict=True)
    ]


def pad_rows(rows: Sequence[Sequence[int]], padding: int) -> Tensor:
    """Return rows of ids as one tensor [row subword], padded to the longest."""
    import torch

    longest = max(len(row) for row in rows)
    return torch.tensor([[*row, *[padding] * (longest - len(row))] for row in rows])


def padding_mask(lengths: Sequence[int]) -> Tensor:
    """Return [row subword]: 1 at real subwords, 0 at padding up to the longest row."""
    import torch

    return (torch.arange(max(lengths)) < torch.tensor(lengths).unsqueeze(1)).long()
