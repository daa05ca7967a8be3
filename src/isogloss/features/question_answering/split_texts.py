"""Texts split into subwords, with the place of each in its text."""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from isogloss.encoders.family import Tokenizer

from isogloss.encoders.subwords import SUBWORDS_ONLY, tokenize


@dataclass(frozen=True, slots=True)
class SplitText:
    """A text's subwords, without special ones, and their character offsets.

    Surrounding white space is not part of a subword; characters that a normaliser drops, such as marks,
    belong to the preceding subword.
    """

    subwords: "array[int]"

    span_subwords: Sequence[int]
    """Indices of the subwords that a span can start or end with, as a range if all can.

    Excluded are subwords of white space only, and those that start where the next one does: XLM-R's lone ▁,
    the first bytes of a character.
    """

    characters: "array[int]"
    """Start and end offset of each of these, two numbers each."""

    def between(self, begin: int, end: int) -> range:
        """Return the range of ``span_subwords`` that overlap characters ``begin`` to ``end`` (excluded)."""
        indices = range(len(self.span_subwords))
        start = bisect_right(indices, begin, key=lambda index: self.characters[2 * index + 1])
        return range(start, bisect_left(indices, end, key=lambda index: self.characters[2 * index]))


def split_texts(texts: Sequence[str], tokenizer: Tokenizer) -> list[SplitText]:
    """Split texts into subwords with character offsets."""
    if not texts:
        return []
    encoding = tokenize(tokenizer, list(texts), return_offsets_mapping=True, **SUBWORDS_ONLY)
    return [
        _split(text, subwords, offsets)
        for text, subwords, offsets in zip(
            texts, encoding["input_ids"], encoding["offset_mapping"], strict=True
        )
    ]


def _split(text: str, subwords: list[int], offsets: list[tuple[int, int]]) -> SplitText:
    span_subwords = array("I")
    characters = array("I")
    following = [*(begin for begin, _ in offsets), len(text)][1:]
    for index, (offset, next_begin) in enumerate(zip(offsets, following, strict=True)):
        begin, end = _strip_span(text, *offset, next_begin)
        if begin < end and (begin < next_begin or index + 1 == len(offsets)):
            span_subwords.append(index)
            characters.extend((begin, end))
    if len(span_subwords) == len(subwords):
        return SplitText(array("I", subwords), range(len(subwords)), characters)
    return SplitText(array("I", subwords), span_subwords, characters)


def _strip_span(text: str, begin: int, end: int, next_begin: int) -> tuple[int, int]:
    """Strip white space from a span, and extend it over characters dropped before ``next_begin``."""
    while begin < end and text[begin].isspace():
        begin += 1
    while begin < end and text[end - 1].isspace():
        end -= 1
    while begin < end < next_begin and not text[end].isspace():
        end += 1
    return begin, end
