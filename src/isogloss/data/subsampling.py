"""A random choice of a text's lines, made in one pass with the chosen lines alone in memory."""

import heapq
import random
from collections.abc import Iterable


def subsample(lines: Iterable[str], count: int, *, seed: int) -> list[str]:
    """Return ``count`` (1 or more) lines at random (all where there are fewer), in their order.

    Every line is given a random number, and the smallest are taken: of one seed, a smaller choice is part of
    a larger one.
    """
    draw = random.Random(seed)
    kept: list[tuple[float, int, str]] = []
    for number, line in enumerate(lines):
        one = (-draw.random(), number, line)
        if len(kept) < count:
            heapq.heappush(kept, one)
        elif one > kept[0]:
            heapq.heapreplace(kept, one)
    return [line for _, _, line in sorted(kept, key=lambda one: one[1])]
