"""Texts in pieces that a model takes: sentences, and where these are too long, parts of them."""

import re
from collections.abc import Callable, Iterator, Sequence

from isogloss.data.tokenization import sentences_in

Lengths = Callable[[Sequence[str]], list[int]]
"""Lengths of texts, as the model counts."""

UNSPACED = ("ja", "yue", "zh")
"""Languages that put no space between sentences."""

_BREAKS = (re.compile(r"[;:،؛;；：]\s*"), re.compile(r"[,、，]\s*"), re.compile(r"\s+"))
"""Where a sentence is cut that is too long, the best kind first."""

_INNER = 0.25
"""A cut nearer to an end than this share of the text leaves too little on one side."""


def in_pieces(
    texts: Sequence[str], lengths: Lengths, *, longest: int, sentences: bool
) -> list[tuple[list[str], int]]:
    """Return the pieces of each text, none of them longer than ``longest``, and how many cuts that took.

    With ``sentences`` every sentence is a piece, which is no cut. White space becomes single spaces.
    """
    lines = [" ".join(text.split()) for text in texts]
    parts = [sentences_in(line) if sentences else [line] if line else [] for line in lines]
    known = iter(lengths([part for pieces in parts for part in pieces]))
    return [_fitting([(part, next(known)) for part in pieces], lengths, longest) for pieces in parts]


def joined(pieces: Sequence[str], language: str) -> str:
    """Put the translations of a text's pieces together, as the language writes it."""
    return ("" if language in UNSPACED else " ").join(piece for piece in pieces if piece)


def _fitting(parts: list[tuple[str, int]], lengths: Lengths, longest: int) -> tuple[list[str], int]:
    pieces = [
        piece
        for part, length in parts
        for piece in ([part] if length <= longest else _cut(part, lengths, longest))
    ]
    return pieces, len(pieces) - len(parts)


def _cut(text: str, lengths: Lengths, longest: int) -> Iterator[str]:
    """Halve a text until its parts are short enough; a single character always is."""
    if len(text) == 1 or lengths([text])[0] <= longest:
        yield text
        return
    middle = _cut_place(text)
    for part in (text[:middle].strip(), text[middle:].strip()):
        if part:
            yield from _cut(part, lengths, longest)


def _cut_place(text: str) -> int:
    """Return a place to cut: at a sentence's end, else the best kind of break, nearest to the middle."""
    middle = len(text) / 2
    least, most = len(text) * _INNER, len(text) * (1 - _INNER)
    ends = [text.index(part) + len(part) for part in sentences_in(text)[:-1]]
    for places in (ends, *([found.end() for found in kind.finditer(text)] for kind in _BREAKS)):
        inner = [place for place in places if least <= place <= most]
        if inner:
            return min(inner, key=lambda place: abs(place - middle))
    return len(text) // 2
