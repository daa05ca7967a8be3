"""Symmetrisation: word links of two directions made into one set (Och & Ney 2003; Koehn et al. 2003, 2005).

An aligner of words gives each second word at most one first word (forward), or each first word at most one
second word (backward). Both are sets of (first, second). Intersection is one-to-one.
"""

from bisect import insort
from collections.abc import Callable, Collection, Iterable
from typing import Literal, get_args

Link = tuple[int, int]
Symmetrization = Literal["intersection", "union", "grow-diag", "grow-diag-final-and", "forward", "backward"]

SYMMETRIZATIONS: tuple[Symmetrization, ...] = get_args(Symmetrization)

_NEIGHBOURS = ((-1, 0), (0, -1), (1, 0), (0, 1), (-1, -1), (-1, 1), (1, -1), (1, 1))


def symmetrized(
    forward: Collection[Link], backward: Collection[Link], how: Symmetrization
) -> tuple[Link, ...]:
    """Return the links, sorted, that two directions come to."""
    return tuple(sorted(_WAYS[how](set(forward), set(backward))))


def grow_diag(forward: set[Link], backward: set[Link]) -> set[Link]:
    """Grow the intersection by neighbours from the union that have a word without a link.

    Points are visited first word by first word, as often as one is added; straight neighbours come before
    diagonal ones (Koehn et al. 2005). The result depends on this order, so that exchanging the languages may
    give other links.
    """
    links, union = forward & backward, forward | backward
    rows, columns = {i for i, _ in links}, {j for _, j in links}
    grown = True
    while grown:
        grown = False
        points = sorted(links)
        for place, (i, j) in enumerate(points):  # Points put in further on are visited in the same round.
            for down, right in _NEIGHBOURS:
                new = (i + down, j + right)
                if new in union and new not in links and not (new[0] in rows and new[1] in columns):
                    _add(new, links, rows, columns)
                    grown = True
                    if new > (i, j):
                        insort(points, new, lo=place + 1)
    return links


def grow_diag_final_and(forward: set[Link], backward: set[Link]) -> set[Link]:
    """Grow the intersection, then add each direction's links between two words that still have none."""
    links = grow_diag(forward, backward)
    rows, columns = {i for i, _ in links}, {j for _, j in links}
    for direction in (forward, backward):
        _add_lone(direction, links, rows, columns)
    return links


def _add_lone(direction: Iterable[Link], links: set[Link], rows: set[int], columns: set[int]) -> None:
    for new in sorted(direction):
        if new[0] not in rows and new[1] not in columns:
            _add(new, links, rows, columns)


def _add(new: Link, links: set[Link], rows: set[int], columns: set[int]) -> None:
    links.add(new)
    rows.add(new[0])
    columns.add(new[1])


_WAYS: dict[Symmetrization, Callable[[set[Link], set[Link]], set[Link]]] = {
    "intersection": lambda forward, backward: forward & backward,
    "union": lambda forward, backward: forward | backward,
    "grow-diag": grow_diag,
    "grow-diag-final-and": grow_diag_final_and,
    "forward": lambda forward, _: forward,
    "backward": lambda _, backward: backward,
}
