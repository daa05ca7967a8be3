"""Word links as text, and their symmetrization (Och & Ney 2003; Koehn et al. 2003, 2005).

Links are written ``0-0 1-2 2p1``: Pharaoh's format, counted from 0, with ``p`` for a merely possible link. A
file in Pharaoh's format has the links of a sentence pair on each line, optionally with scores (0-0:0.93
1-2:0.5). The line of a pair without links is empty.

A word aligner links each second word to at most one first word (forward), or each first word to at most one
second word (backward). Both are sets of (first, second); their intersection is one-to-one.
"""

import operator
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
"""Cell of a pair without links in a table of gold alignments. An empty cell has no gold alignment."""

_WORD = re.compile("[^ \t]+")
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


def add_gold_links(
    pair: Translation, text: str, file: File, line_number: int, first_is: int = 0
) -> Translation:
    """Return the pair with gold links, which count words separated by spaces.

    ``first_is`` (0 or 1) is the index of a sentence's first word in the format. Raises DataError, with the
    line, for links that do not fit the words.
    """
    words = tuple(_WORD.findall(pair.first)), tuple(_WORD.findall(pair.second))
    sure_links, possible_links = _links(text, words, file, line_number, first_is)
    return replace(pair, links=sure_links, possible=possible_links, words=words)


def _links(
    text: str, words: tuple[Words, Words], file: File, line_number: int, first_is: int = 0
) -> tuple[Links, Links]:
    """Read the sure and the possible links of a line."""
    sizes = len(words[0]), len(words[1])
    sure_links: list[tuple[int, int]] = []
    possible_links: list[tuple[int, int]] = []
    for link in _WORD.findall(text):
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


def flip_languages(pair: Translation) -> Translation:
    """Return the pair with its languages exchanged."""
    return Translation(
        id=pair.id,
        first=pair.second,
        second=pair.first,
        links=None if pair.links is None else tuple((j, i) for i, j in pair.links),
        possible=tuple((j, i) for i, j in pair.possible),
        words=None if pair.words is None else pair.words[::-1],
    )


def format_links(pair: Translation, corpus: str) -> str:
    """Format gold links, counted from 0.

    Raises DataError for links outside of the words.
    """
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
    """Yield a line for each pair, with scores (six significant digits) if the pair has them."""
    for alignment in alignments:
        links = [f"{i}-{j}" for i, j in alignment.links]
        if alignment.scores:
            links = [f"{link}:{score:.6g}" for link, score in zip(links, alignment.scores, strict=True)]
        yield " ".join(links)


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
    for part in _WORD.findall(text):
        link, colon, score = part.partition(":")
        sure_links, _ = _links(link, words, file, line_number)
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

_NEIGHBOURS = ((-1, 0), (0, -1), (1, 0), (0, 1), (-1, -1), (-1, 1), (1, -1), (1, 1))


def symmetrize(
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
    links = forward & backward
    union = forward | backward
    rows = {i for i, _ in links}
    columns = {j for _, j in links}
    is_growing = True
    while is_growing:
        is_growing = False
        points = sorted(links)
        for index, (i, j) in enumerate(points):  # Points inserted below are visited in the same round.
            for row_step, column_step in _NEIGHBOURS:
                link = (i + row_step, j + column_step)
                if link in union and link not in links and not (link[0] in rows and link[1] in columns):
                    _add(link, links, rows, columns)
                    is_growing = True
                    if link > (i, j):
                        insort(points, link, lo=index + 1)
    return links


def grow_diag_final_and(forward: set[Link], backward: set[Link]) -> set[Link]:
    """Grow the intersection, then add links of each direction between two words that still have none.

    Links of ``forward`` are added first, as in Moses with the languages in this order.
    """
    links = grow_diag(forward, backward)
    rows = {i for i, _ in links}
    columns = {j for _, j in links}
    for link in (*sorted(forward), *sorted(backward)):
        if link[0] not in rows and link[1] not in columns:
            _add(link, links, rows, columns)
    return links


def _add(link: Link, links: set[Link], rows: set[int], columns: set[int]) -> None:
    links.add(link)
    rows.add(link[0])
    columns.add(link[1])


def _keep_forward(forward: set[Link], _: set[Link]) -> set[Link]:
    return forward


def _keep_backward(_: set[Link], backward: set[Link]) -> set[Link]:
    return backward


_SYMMETRIZERS: dict[Symmetrization, Callable[[set[Link], set[Link]], set[Link]]] = {
    "intersection": operator.and_,
    "union": operator.or_,
    "grow-diag": grow_diag,
    "grow-diag-final-and": grow_diag_final_and,
    "forward": _keep_forward,
    "backward": _keep_backward,
}
