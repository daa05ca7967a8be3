"""Subwords of words, of texts and of pairs, and windows over rows of them that are too long.

Text arrives in words or as it is, encoders see subwords. Both maps are the tokenizer's own, so they are
right for WordPiece (##s), Unigram (▁) and bytes (Ġ) alike, for words with a space inside, as Vietnamese
treebanks have them, and for what a normaliser changed or dropped.
"""

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from isogloss.core.errors import ModelError

if TYPE_CHECKING:
    from tokenizers import Encoding
    from transformers import PreTrainedTokenizerFast


PROBE = "a a"
"""Two words that every vocabulary has in some form."""

_BARE: dict[str, bool] = {
    "add_special_tokens": False,
    "truncation": False,
    "padding": False,
    "return_attention_mask": False,
    "return_token_type_ids": False,
    "verbose": False,
}
"""How a tokenizer is asked for subwords alone."""


@dataclass(frozen=True, slots=True)
class SplitWords:
    """A sentence's subwords, without special ones, and for each the number of its word, counted from 0.

    Every word has at least one subword, and words are in order.
    """

    subwords: tuple[int, ...]
    words: tuple[int, ...]

    def first(self) -> list[int]:
        """Return for each word the place of its first subword."""
        return [
            place
            for place, (before, word) in enumerate(zip((-1, *self.words), self.words, strict=False))
            if before != word
        ]


def split_words(sentences: Sequence[Sequence[str]], tokenizer: "PreTrainedTokenizerFast") -> list[SplitWords]:
    """Split the words of sentences into subwords; a word the tokenizer drops becomes the unknown one.

    Each word is split as one that follows a space in running text.
    """
    full = [list(words) for words in sentences if words]
    parts = iter(_encodings(full, tokenizer))
    return [
        _complete(next(parts), len(words), tokenizer.unk_token_id) if words else SplitWords((), ())
        for words in sentences
    ]


def special_subwords(tokenizer: "PreTrainedTokenizerFast") -> tuple[int, int]:
    """Return the subwords that open and close a text; ModelError for a tokenizer without them."""
    first, last = tokenizer.cls_token_id, tokenizer.sep_token_id
    if first is None or last is None:
        raise ModelError(
            f"{tokenizer.name_or_path or 'tokenizer'}: this tokenizer has no subwords that open and close a "
            f"text. Set cls_token and sep_token in its tokenizer_config.json."
        )
    return first, last


def _encodings(sentences: list[list[str]], tokenizer: "PreTrainedTokenizerFast") -> Sequence["Encoding"]:
    if not sentences:
        return []
    if needs_spaces(tokenizer):
        sentences = [[word and f" {word}" for word in words] for words in sentences]
    encodings: Sequence[Encoding] = tokenizer(sentences, is_split_into_words=True, **_BARE).encodings
    return encodings


def needs_spaces(tokenizer: "PreTrainedTokenizerFast") -> bool:
    """Tell whether a word given alone lacks the space that in running text belongs to it.

    So it is where bytes or ▁ are not put before a text (ModernBERT, mmBERT, RoBERTa): "Ġthe" became "the",
    the end of some other word.
    """
    backend = tokenizer.backend_tokenizer
    running = backend.encode(PROBE, add_special_tokens=False).ids
    alone = backend.encode(PROBE.split()[1:], is_pretokenized=True, add_special_tokens=False).ids
    return bool(running[-len(alone) :] != alone)


def _complete(encoding: "Encoding", count: int, unknown: int) -> SplitWords:
    """Give each of ``count`` words its subwords, and those that have none the unknown one."""
    subwords = encoding.ids
    words = [word for word in encoding.word_ids if word is not None]  # Only special subwords have None.
    if len(set(words)) == count:
        return SplitWords(tuple(subwords), tuple(words))
    dropped = set(range(count)) - set(words)
    pairs = [*zip(words, subwords, strict=True), *((word, unknown) for word in dropped)]
    pairs.sort(key=lambda pair: pair[0])  # Stable, so the subwords of one word keep their order.
    return SplitWords(tuple(subword for _, subword in pairs), tuple(word for word, _ in pairs))


@dataclass(frozen=True, slots=True)
class SplitText:
    """A text's subwords, without special ones, and the characters they stand for.

    White space at either side is no part of a subword; marks and other characters that a normaliser dropped
    belong to the subword before them.
    """

    subwords: "array[int]"

    places: Sequence[int]
    """The subwords that a piece of the text can begin or end with, by number; a range where all can.

    Not one that stands for white space alone, nor one that begins where the next one does: XLM-R's lone ▁,
    the first bytes of a character.
    """

    characters: "array[int]"
    """Where each of these begins and ends in the text, two numbers each."""

    def between(self, begin: int, end: int) -> range:
        """Return which of the places have a character from ``begin`` to before ``end``."""
        places = range(len(self.places))
        first = bisect_right(places, begin, key=lambda place: self.characters[2 * place + 1])
        return range(first, bisect_left(places, end, key=lambda place: self.characters[2 * place]))


@dataclass(frozen=True, slots=True)
class PairFrame:
    """The special subwords around and between two texts, and the segment number of each part."""

    opening: tuple[int, ...]
    between: tuple[int, ...]
    closing: tuple[int, ...]
    segments: tuple[int, int, int, int, int] | None
    """Of opening, first text, between, second text, closing; None where the encoder has no segments."""

    @property
    def special(self) -> int:
        """Number of special subwords."""
        return len(self.opening) + len(self.between) + len(self.closing)

    def subwords(self, first: Sequence[int], second: Sequence[int]) -> "array[int]":
        """Return the subwords of a pair."""
        return array("I", (*self.opening, *first, *self.between, *second, *self.closing))

    def segments_of(self, first: int, second: int) -> bytes | None:
        """Return the segment of each subword of a pair, from the lengths of its texts."""
        if self.segments is None:
            return None
        lengths = (len(self.opening), first, len(self.between), second, len(self.closing))
        parts = zip(self.segments, lengths, strict=True)
        return b"".join(bytes((segment,)) * length for segment, length in parts)


def split_texts(texts: Sequence[str], tokenizer: "PreTrainedTokenizerFast") -> list[SplitText]:
    """Split texts into subwords that know their characters."""
    if not texts:
        return []
    encoded = tokenizer(list(texts), return_offsets_mapping=True, **_BARE)
    return [
        _split(text, subwords, offsets)
        for text, subwords, offsets in zip(
            texts, encoded["input_ids"], encoded["offset_mapping"], strict=True
        )
    ]


def pair_frame(tokenizer: "PreTrainedTokenizerFast") -> PairFrame:
    """Find out how a tokenizer frames two texts, by letting it frame two."""
    (encoding,) = tokenizer(["a"], ["a"], verbose=False).encodings
    first, second = (
        [place for place, of in enumerate(encoding.sequence_ids) if of == text] for text in (0, 1)
    )
    if not first or not second:
        raise ModelError(
            f"{tokenizer.name_or_path or 'tokenizer'}: this tokenizer drops the letter a and has no unknown "
            f"subword for it. Use a tokenizer that keeps every letter."
        )
    parts = (slice(0, first[0]), slice(first[-1] + 1, second[0]), slice(second[-1] + 1, None))
    opening, between, closing = (tuple(encoding.ids[part]) for part in parts)
    kinds = encoding.type_ids
    segments = (kinds[0], kinds[first[0]], kinds[second[0] - 1], kinds[second[0]], kinds[-1])
    used = "token_type_ids" in tokenizer.model_input_names and any(segments)
    return PairFrame(opening, between, closing, segments if used else None)


def _split(text: str, subwords: list[int], offsets: list[tuple[int, int]]) -> SplitText:
    places, characters = array("I"), array("I")
    following = [*(begin for begin, _ in offsets), len(text)][1:]
    for place, (offset, after) in enumerate(zip(offsets, following, strict=True)):
        begin, end = _trimmed(text, *offset, after)
        if begin < end and (begin < after or place + 1 == len(offsets)):
            places.append(place)
            characters.extend((begin, end))
    every = range(len(subwords))
    return SplitText(array("I", subwords), every if len(places) == len(every) else places, characters)


def _trimmed(text: str, begin: int, end: int, after: int) -> tuple[int, int]:
    """Leave out white space at either side, and take in what was dropped between here and ``after``."""
    while begin < end and text[begin].isspace():
        begin += 1
    while begin < end and text[end - 1].isspace():
        end -= 1
    while begin < end < after and not text[end].isspace():
        end += 1
    return begin, end


@dataclass(frozen=True, slots=True)
class Window:
    """Positions ``start`` to ``stop`` are shown, ``own_start`` to ``own_stop`` scored; stops are excluded."""

    start: int
    stop: int
    own_start: int
    own_stop: int


def windows(length: int, *, limit: int, overlap: int) -> list[Window]:
    """Cover ``length`` positions with windows of at most ``limit``, neighbours sharing at least ``overlap``.

    Each position is owned by exactly one window: that in which it is farthest from an edge (the ends of the
    text are no edges), the earlier one of two. Windows are full; the last is shifted left to fit.
    """
    if not 0 <= overlap < limit:
        raise ValueError(f"windows of {limit} positions cannot overlap by {overlap}: use 0 to {limit - 1}.")
    starts = [*range(0, max(length - limit, 0), limit - overlap), max(length - limit, 0)]
    stops = [min(start + limit, length) for start in starts]
    # Between neighbours, distance to the left one's last position and to the right one's first are compared.
    borders = [(stop + start + 1) // 2 for stop, start in zip(stops, starts[1:], strict=False)]
    owned = pairwise([0, *borders, length])
    return [Window(start, stop, *own) for start, stop, own in zip(starts, stops, owned, strict=True)]
