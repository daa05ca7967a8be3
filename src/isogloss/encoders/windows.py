"""Overlapping windows over a text longer than an encoder takes.

Every position is scored in the one window that shows most of its surroundings. With an overlap of 2k
positions each position that is scored has k neighbours on either side, as far as the text has them.
"""

from dataclasses import dataclass
from itertools import pairwise


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
