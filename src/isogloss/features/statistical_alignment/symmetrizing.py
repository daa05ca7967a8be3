"""Symmetrization of word links (Och & Ney 2003; Koehn et al. 2003, 2005).

A word aligner links each second word to at most one first word (forward), or each first word to at most one
second word (backward). Both are sets of (first, second); their intersection is one-to-one.
"""

import operator
from bisect import insort
from collections.abc import Callable, Collection

from isogloss.data.formats.word_links import Link, Symmetrization

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
