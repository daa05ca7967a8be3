"""Split text into sentences. Their ends are found only by punctuation."""

import re
from itertools import pairwise

from isogloss.data.projection.words import is_abbreviation

_CLOSERS = "\"'”’»)\\]」』】）"
_WITH_SPACE = re.compile(rf"[.!?…؟۔।॥።][.!?…]*[{_CLOSERS}]*(?=\s)")
_NOT_SPACE = re.compile(r"\S")
_WITHOUT = re.compile(rf"[。！？｡][。！？｡]*[{_CLOSERS}]*")


def sentences_in(text: str) -> list[str]:
    """Split text into sentences, stripped of white space.

    Text without a sentence end is one sentence, and empty sentences are dropped.
    """
    ends = {match.end() for match in _WITH_SPACE.finditer(text) if _is_end(text, match)}
    ends |= {match.end() for match in _WITHOUT.finditer(text)}
    indices = [0, *sorted(ends), len(text)]
    parts = [text[start:end].strip() for start, end in pairwise(indices)]
    return [part for part in parts if part]


def _is_end(text: str, match: re.Match[str]) -> bool:
    next_character = _NOT_SPACE.search(text, match.end())
    if next_character and next_character[0].islower():
        return False
    return match[0] != "." or not is_abbreviation(text, 0, match.end())
