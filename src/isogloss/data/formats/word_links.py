"""Word links as text, and their symmetrization (Och & Ney 2003; Koehn et al. 2003, 2005).

Links read ``0-0 1-2 2p1``: Pharaoh's format, counted from 0, with ``p`` for a link that is only possible. A
file of Pharaoh's format has the links of a sentence pair on each line, also with scores (0-0:0.93 1-2:0.5);
the line of a pair without links is empty.

A word aligner links each second word to at most one first word (forward), or each first word to at most one
second word (backward). Both are sets of (first, second); their intersection is one-to-one.
"""

import re
from bisect import insort
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import zip_longest
from math import isfinite
from typing import Literal, get_args

from isogloss.core.errors import DataError
from isogloss.data.corpus import cannot_write
from isogloss.data.examples import Translation
from isogloss.data.files import File
from isogloss.data.projection.words import tokenize

NO_LINKS = "-"
"""The cell of a pair without links in a table of gold alignments; an empty cell has no gold alignment."""

_WORD = re.compile("[^ \t]+")
"""A word of text with gold links: spaces (U+0020) and tabs separate words, and no other white space does."""

Words = tuple[str, ...]
Links = tuple[tuple[int, int], ...]

_LINK = re.compile(r"([0-9]{1,6})([-p])([0-9]{1,6})")


@dataclass(frozen=True, slots=True, kw_only=True)
class Aligned:
    """The word links of one pair: (first, second), 0-based and sorted; a score each where there are any."""

    links: tuple[tuple[int, int], ...]
    scores: tuple[float, ...] = ()


def pair_words(pair: Translation) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the words of both texts: the given ones, else the tokenizer's."""
    return pair.words or (tokenize(pair.first), tokenize(pair.second))


def linked(pair: Translation, text: str, file: File, number: int, first_is: int = 0) -> Translation:
    """Return the pair with gold links, which count the words that spaces separate.

    ``first_is`` (0 or 1) is the number of a sentence's first word in the format.
    """
    words = tuple(_WORD.findall(pair.first)), tuple(_WORD.findall(pair.second))
    sure, possible = _links(text, words, file, number, first_is)
    return replace(pair, links=sure, possible=possible, words=words)


def _links(
    text: str, words: tuple[Words, Words], file: File, number: int, first_is: int = 0
) -> tuple[Links, Links]:
    """Read the sure and the possible links of a line."""
    sizes = len(words[0]), len(words[1])
    sure: list[tuple[int, int]] = []
    possible: list[tuple[int, int]] = []
    for link in _WORD.findall(text):
        match = _LINK.fullmatch(link)
        i, j = (int(match[1]) - first_is, int(match[3]) - first_is) if match else (-1, -1)
        if not match or not (0 <= i < sizes[0] and 0 <= j < sizes[1]):
            raise file.broken(
                number,
                f"link {link!r}",
                f"i-j (or ipj, only possible) from {first_is} for {sizes[0]} and {sizes[1]} words",
            )
        (sure if match[2] == "-" else possible).append((i, j))
    return tuple(sure), tuple(possible)


def flipped(pair: Translation) -> Translation:
    """Exchange the two languages."""
    return Translation(
        id=pair.id,
        first=pair.second,
        second=pair.first,
        links=None if pair.links is None else tuple((j, i) for i, j in pair.links),
        possible=tuple((j, i) for i, j in pair.possible),
        words=None if pair.words is None else pair.words[::-1],
    )


def format_links(pair: Translation, corpus: str) -> str:
    """Format gold links, counted from 0."""
    sizes = len(_WORD.findall(pair.first)), len(_WORD.findall(pair.second))
    for i, j in (*(pair.links or ()), *pair.possible):
        if pair.links is None or not (0 <= i < sizes[0] and 0 <= j < sizes[1]):
            sides = f"{sizes[0]} and {sizes[1]} words" if pair.links is not None else "a pair without links"
            raise cannot_write(corpus, repr(pair.id), f"link {i}-{j} in {sides}")
    if pair.links is None:
        return ""
    links = [*(f"{i}-{j}" for i, j in pair.links), *(f"{i}p{j}" for i, j in pair.possible)]
    return " ".join(links) or NO_LINKS


def write_pharaoh(alignments: Iterable[Aligned]) -> Iterator[str]:
    """Yield a line for each pair, with scores (six digits) where there are any."""
    for aligned in alignments:
        links = [f"{i}-{j}" for i, j in aligned.links]
        if aligned.scores:
            links = [f"{link}:{score:.6g}" for link, score in zip(links, aligned.scores, strict=True)]
        yield " ".join(links)


def read_pharaoh(file: File, pairs: Iterable[Translation]) -> Iterator[Aligned]:
    """Read the links of these pairs, a line for each; they come sorted.

    DataError for a link that no two words have, and for lines that are fewer or more than the pairs.
    """
    remaining, lines = iter(pairs), file.lines()
    done = 0
    for pair, numbered in zip_longest(remaining, lines):
        if pair is None or numbered is None:
            line_count = done + (numbered is not None) + sum(1 for _ in lines)
            pair_count = done + (pair is not None) + sum(1 for _ in remaining)
            raise DataError(
                f"{file.name}: {line_count} lines of links for {pair_count} pairs; expected a line for each "
                f"pair, empty for one without links. Align this bitext again, or give the one it belongs to."
            )
        done, text = numbered
        yield _aligned(text, pair, file, done)


def _aligned(text: str, pair: Translation, file: File, number: int) -> Aligned:
    links, scores, words = list[Link](), list[float](), pair_words(pair)
    for part in _WORD.findall(text):
        link, colon, score = part.partition(":")
        sure, _ = _links(link, words, file, number)
        if not sure:
            raise file.broken(number, f"link {part!r}", "i-j; only gold alignments have possible links")
        links += sure
        if colon:
            scores.append(_score(score, part, file, number))
    if scores and len(scores) < len(links):
        raise file.broken(number, f"{len(scores)} scores for {len(links)} links", "a score for each, or none")
    if len(set(links)) < len(links):
        i, j = next(link for link in links if links.count(link) > 1)
        raise file.broken(number, f"link {i}-{j} a second time", "each link once")
    order = sorted(range(len(links)), key=links.__getitem__)
    return Aligned(
        links=tuple(links[index] for index in order),
        scores=tuple(scores[index] for index in order) if scores else (),
    )


def _score(text: str, part: str, file: File, number: int) -> float:
    try:
        score = float(text)
    except ValueError:
        score = float("nan")
    if not isfinite(score):
        raise file.broken(number, f"link {part!r}", "i-j:score, as in 0-0:0.93")
    return score


Link = tuple[int, int]
Symmetrization = Literal["intersection", "union", "grow-diag", "grow-diag-final-and", "forward", "backward"]

SYMMETRIZATIONS: tuple[Symmetrization, ...] = get_args(Symmetrization)

_NEIGHBOURS = ((-1, 0), (0, -1), (1, 0), (0, 1), (-1, -1), (-1, 1), (1, -1), (1, 1))


def symmetrized(
    forward: Collection[Link], backward: Collection[Link], method: Symmetrization
) -> tuple[Link, ...]:
    """Return the symmetrized links of two directions, sorted."""
    return tuple(sorted(_SYMMETRIZERS[method](set(forward), set(backward))))


def grow_diag(forward: set[Link], backward: set[Link]) -> set[Link]:
    """Grow the intersection by neighbours from the union that have a word without a link.

    Points are visited first word by first word, as often as one is added; straight neighbours come before
    diagonal ones (Koehn et al. 2005). The result depends on this order. Moses visits points by words of the
    second language: its links are these after exchanging the languages, and differ in about one of a hundred
    sentences.
    """
    links, union = forward & backward, forward | backward
    rows, columns = {i for i, _ in links}, {j for _, j in links}
    grown = True
    while grown:
        grown = False
        points = sorted(links)
        for index, (i, j) in enumerate(points):  # Points put in further on are visited in the same round.
            for down, right in _NEIGHBOURS:
                new = (i + down, j + right)
                if new in union and new not in links and not (new[0] in rows and new[1] in columns):
                    _add(new, links, rows, columns)
                    grown = True
                    if new > (i, j):
                        insort(points, new, lo=index + 1)
    return links


def grow_diag_final_and(forward: set[Link], backward: set[Link]) -> set[Link]:
    """Grow the intersection, then add each direction's links between two words that still have none."""
    links = grow_diag(forward, backward)
    rows, columns = {i for i, _ in links}, {j for _, j in links}
    for new in (*sorted(forward), *sorted(backward)):
        if new[0] not in rows and new[1] not in columns:
            _add(new, links, rows, columns)
    return links


def _add(new: Link, links: set[Link], rows: set[int], columns: set[int]) -> None:
    links.add(new)
    rows.add(new[0])
    columns.add(new[1])


_SYMMETRIZERS: dict[Symmetrization, Callable[[set[Link], set[Link]], set[Link]]] = {
    "intersection": lambda forward, backward: forward & backward,
    "union": lambda forward, backward: forward | backward,
    "grow-diag": grow_diag,
    "grow-diag-final-and": grow_diag_final_and,
    "forward": lambda forward, _: forward,
    "backward": lambda _, backward: backward,
}
