"""Which characters of a text each subword stands for, and how a tokenizer frames two texts.

The map is the tokenizer's own, seen from the text as it was given: what a normaliser changed or dropped is
mapped back.
"""

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from isogloss.core.errors import ModelError

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast


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
    encoded = tokenizer(
        list(texts),
        add_special_tokens=False,
        truncation=False,
        padding=False,
        return_attention_mask=False,
        return_token_type_ids=False,
        return_offsets_mapping=True,
        verbose=False,
    )
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
