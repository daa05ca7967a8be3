"""Word links as text.

Links are written ``0-0 1-2 2p1``: Pharaoh's format, counted from 0, with ``p`` for a merely possible link. A
file in Pharaoh's format has the links of a sentence pair on each line, optionally with scores (0-0:0.93
1-2:0.5). The line of a pair without links is empty.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import zip_longest
from math import isfinite
from typing import Literal, get_args

from isogloss.core.errors import DataError
from isogloss.data.examples import Translation
from isogloss.data.files import File
from isogloss.data.projection.words import tokenize

SPACED_WORD = re.compile("[^ \t]+")
"""A word of text with gold links. Only spaces (U+0020) and tabs separate words."""

Words = tuple[str, ...]
Links = tuple[tuple[int, int], ...]

_LINK = re.compile(r"([0-9]{1,6})([-p])([0-9]{1,6})")


@dataclass(frozen=True, slots=True, kw_only=True)
class Aligned:
    """Word links of one pair as (first, second), 0-based and sorted, with optional scores."""

    links: tuple[tuple[int, int], ...]
    scores: tuple[float, ...] = ()


def pair_words(pair: Translation) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the words of both texts: the stated ones, or otherwise the tokenizer's."""
    return pair.words or (tokenize(pair.first), tokenize(pair.second))


def parse_links(
    text: str, words: tuple[Words, Words], file: File, line_number: int, first_is: int = 0
) -> tuple[Links, Links]:
    """Return the sure and the possible links of a line.

    Raises DataError for links that do not fit the words.
    """
    sizes = len(words[0]), len(words[1])
    sure_links: list[tuple[int, int]] = []
    possible_links: list[tuple[int, int]] = []
    for link in SPACED_WORD.findall(text):
        match = _LINK.fullmatch(link)
        i, j = (int(match[1]) - first_is, int(match[3]) - first_is) if match else (-1, -1)
        if not match or not (0 <= i < sizes[0] and 0 <= j < sizes[1]):
            raise file.broken(
                line_number,
                f"link {link!r}",
                f"i-j (or ipj, only possible) from {first_is} for {sizes[0]} and {sizes[1]} words",
            )
        (sure_links if match[2] == "-" else possible_links).append((i, j))
    return tuple(sure_links), tuple(possible_links)


def read_pharaoh(file: File, pairs: Iterable[Translation]) -> Iterator[Aligned]:
    """Yield the sorted links of these pairs from a file with a line for each.

    Raises DataError for a link outside of the words, and for fewer or more lines than pairs.
    """
    pair_iterator = iter(pairs)
    lines = file.lines()
    line_number = 0
    for pair, line in zip_longest(pair_iterator, lines):
        if pair is None or line is None:
            line_count = line_number + (line is not None) + sum(1 for _ in lines)
            pair_count = line_number + (pair is not None) + sum(1 for _ in pair_iterator)
            raise DataError(
                f"{file.name}: {line_count} lines of links for {pair_count} pairs; expected a line for each "
                f"pair, empty for one without links. Align this bitext again, or give the one it belongs to."
            )
        line_number, text = line
        yield _parse_links(text, pair, file, line_number)


def _parse_links(text: str, pair: Translation, file: File, line_number: int) -> Aligned:
    links = list[Link]()
    scores = list[float]()
    words = pair_words(pair)
    for part in SPACED_WORD.findall(text):
        link, colon, score = part.partition(":")
        sure_links, _ = parse_links(link, words, file, line_number)
        if not sure_links:
            raise file.broken(line_number, f"link {part!r}", "i-j; only gold alignments have possible links")
        links += sure_links
        if colon:
            scores.append(_score(score, part, file, line_number))
    if scores and len(scores) < len(links):
        raise file.broken(
            line_number, f"{len(scores)} scores for {len(links)} links", "a score for each, or none"
        )
    if len(set(links)) < len(links):
        i, j = next(link for link in links if links.count(link) > 1)
        raise file.broken(line_number, f"link {i}-{j} a second time", "each link once")
    order = sorted(range(len(links)), key=links.__getitem__)
    return Aligned(
        links=tuple(links[index] for index in order),
        scores=tuple(scores[index] for index in order) if scores else (),
    )


def _score(text: str, part: str, file: File, line_number: int) -> float:
    try:
        score = float(text)
    except ValueError:
        score = float("nan")
    if not isfinite(score):
        raise file.broken(line_number, f"link {part!r}", "i-j:score, as in 0-0:0.93")
    return score


Link = tuple[int, int]
Symmetrization = Literal["intersection", "union", "grow-diag", "grow-diag-final-and", "forward", "backward"]

SYMMETRIZATIONS: tuple[Symmetrization, ...] = get_args(Symmetrization)
