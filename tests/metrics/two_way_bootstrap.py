"""The interval that decided before: by drawing examples AND seeds anew.

Efron & Tibshirani (1993), Chapter 13 (percentile interval). Examples and seeds are crossed: every seed saw
every example, so each is drawn with replacement on its own. With few seeds the interval is somewhat too
narrow, and with one it speaks about that one model.
"""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from isogloss.core.errors import InputError
from isogloss.metrics.paired import Array, Pair, System, ratio

Counts = npt.NDArray[np.uint16]

ROUNDS = 1000
"""Draws."""

LEVEL = 0.95
"""Coverage of the interval."""

TOGETHER = 128
"""Draws computed at a time."""


@dataclass(frozen=True, slots=True)
class Interval:
    """From ``low`` to ``high``."""

    low: float
    high: float


def bootstrap(pair: Pair, *, rounds: int = ROUNDS, level: float = LEVEL, seed: int = 0) -> Interval:
    """Return the percentile interval of the difference: the mean over seeds of system minus baseline."""
    if rounds < 1 or not 0 < level < 1:
        raise InputError(
            f"bootstrap: {rounds} rounds, level {level}. Use 1 or more, and a level inside 0 … 1."
        )
    of_examples, of_seeds = _draws(pair.examples, rounds, seed), _draws(pair.seeds, rounds, seed + 1)
    found = np.concatenate(
        [
            _scores(pair.system, some) - _scores(pair.baseline, some)
            for some in (of_examples[first : first + TOGETHER] for first in range(0, rounds, TOGETHER))
        ]
    )
    found = (found * of_seeds).sum(axis=1) / pair.seeds
    low, high = np.quantile(found, [(1 - level) / 2, (1 + level) / 2])
    return Interval(float(low), float(high))


def _scores(system: System, counts: Counts) -> Array:
    """Return the measure with each seed on each draw [round seed]."""
    weights = counts.astype(np.float64)
    return ratio(weights @ system.part.T, weights @ system.whole.T)


@lru_cache(maxsize=4)
def _draws(n: int, rounds: int, seed: int) -> Counts:
    """Return how often each of n things is drawn in each round [round n]; the same for every pair."""
    rng = np.random.Generator(np.random.PCG64(seed))
    counts = np.empty((rounds, n), dtype=np.uint16)
    for row in range(rounds):
        counts[row] = np.bincount(rng.integers(n, size=n), minlength=n)
    return counts
