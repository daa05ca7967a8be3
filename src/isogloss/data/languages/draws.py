"""Random choices that are the same on every machine and Python version.

Only ``random.Random(int).random()`` is used, whose sequence Python guarantees; weights are whole numbers,
so no rounding of a machine's arithmetic decides a choice.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from itertools import accumulate
from random import Random
from typing import Generic, TypeVar

Item = TypeVar("Item")

ZIPF_EXPONENT = 0.8
"""How fast frequency falls with rank; about that of running text."""

TOP_WEIGHT = 1_000_000
"""Weight of the most frequent item."""


class Weighted(Generic[Item]):
    """Items with whole-number weights, ready to draw from."""

    __slots__ = ("cumulative", "items", "total")

    def __init__(self, weights: Iterable[tuple[Item, int]]) -> None:
        pairs = list(weights)
        self.items = [item for item, _ in pairs]
        self.cumulative = list(accumulate(weight for _, weight in pairs))
        self.total = self.cumulative[-1]


def zipf(items: Sequence[Item]) -> Weighted[Item]:
    """Weigh items by rank: the first is the most frequent."""
    return Weighted(
        (item, round(TOP_WEIGHT / (rank + 1) ** ZIPF_EXPONENT)) for rank, item in enumerate(items)
    )


class Draws:
    """A stream of random choices from one seed."""

    __slots__ = ("random",)

    random: Callable[[], float]
    """The next number in [0, 1)."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed).random

    def below(self, count: int) -> int:
        """Return a whole number from 0 to count - 1."""
        return int(self.random() * count)

    def chance(self, rate: float) -> bool:
        """Return True with this probability."""
        return self.random() < rate

    def choice(self, items: Sequence[Item]) -> Item:
        """Return one of the items, all equally likely."""
        return items[int(self.random() * len(items))]

    def weighted(self, table: Weighted[Item]) -> Item:
        """Return one of the items, as likely as it weighs."""
        return table.items[bisect_right(table.cumulative, int(self.random() * table.total))]

    def shuffled(self, items: Iterable[Item]) -> list[Item]:
        """Return the items in random order."""
        order = list(items)
        for last in range(len(order) - 1, 0, -1):
            other = int(self.random() * (last + 1))
            order[last], order[other] = order[other], order[last]
        return order
