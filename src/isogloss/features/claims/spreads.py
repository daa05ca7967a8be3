"""Comparison of how much two numbers vary over the same seeds, without assuming that they are normal.

The spread of a number is its mean distance from its median, as in Bonett and Seier (2003), "Confidence
intervals for mean absolute deviations". If two numbers vary equally, the two distances of a seed may be
swapped, which flips the sign of their difference. The p-value is the share of all flips with a difference at
least as large (Fisher 1935). Six seeds are needed for a p-value below 5 %. Tests of variances such as
Pitman's and Morgan's reject far too often where one seed in ten is far from the others.
"""

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from isogloss.core.errors import InputError
from isogloss.metrics.estimates import LEVEL

MAX_ENUMERATED_SEEDS = 12
"""Maximum seeds for which all combinations of signs are tried (2^12 = 4096). For more seeds, as many are
drawn."""

SUM_TOLERANCE = 1e-12
"""Sums closer than this share of the largest count as equal, so that rounding does not split ties."""

STEPS = 60
"""Steps of bisection for an end of the interval. Each step halves the error."""

FARTHEST = 2.0**20
"""The largest factor by which an end of the interval can differ from the ratio."""

Array = npt.NDArray[np.float64]


@dataclass(frozen=True)
class SpreadRatio:
    """The ratio of the spreads of two numbers over the same seeds."""

    distances: tuple[Array, Array]
    """Distance from the median with each seed [seed], of both numbers."""

    @property
    def ratio(self) -> float:
        """The first spread divided by the second. Infinite if the second is 0."""
        spread, baseline_spread = (float(side.mean()) for side in self.distances)
        return spread / baseline_spread if baseline_spread else math.inf

    def p_value(self, bound: float) -> float:
        """Test whether the ratio of the spreads differs from ``bound``, and return the two-sided p-value."""
        distances, baseline_distances = self.distances
        return sign_turning_p_value(distances - bound * baseline_distances)

    def interval(self) -> tuple[float, float]:
        """Return the 95 % interval: all bounds that are not rejected. An end may be 0 or infinity."""
        return self._end(1 / FARTHEST), self._end(FARTHEST)

    def _end(self, factor: float) -> float:
        """Search for an end of the interval between the ratio and ``factor`` times the ratio."""
        inside, outside = self.ratio, self.ratio * factor
        if not math.isfinite(outside) or self.p_value(outside) >= LEVEL:
            return 0.0 if factor < 1 else math.inf
        for _ in range(STEPS):
            midpoint = math.sqrt(inside * outside)
            inside, outside = (inside, midpoint) if self.p_value(midpoint) < LEVEL else (midpoint, outside)
        return inside


def compare_spreads(first: npt.ArrayLike, second: npt.ArrayLike) -> SpreadRatio:
    """Compare the spreads of two tables [seed column]. Distances are averaged over columns."""
    tables = [np.asarray(table, dtype=np.float64) for table in (first, second)]
    if any(table.ndim != 2 or not table.size for table in tables) or len(tables[0]) != len(tables[1]):
        raise InputError(
            f"compare_spreads: {tables[0].shape} and {tables[1].shape} values. Give two tables [seed column] "
            f"with the same seeds."
        )
    distances = [np.abs(table - np.median(table, axis=0)).mean(axis=1) for table in tables]
    return SpreadRatio((distances[0], distances[1]))


def sign_turning_p_value(values: Array) -> float:
    """Return the share of sign combinations whose sum is at least as far from 0 as the sum of the values."""
    sums = np.abs(_list_sign_turns(len(values)) @ values)
    threshold = abs(float(values.sum())) - SUM_TOLERANCE * float(np.abs(values).sum())
    return float(np.mean(sums >= threshold))


@lru_cache(maxsize=8)
def _list_sign_turns(count: int) -> Array:
    """Return combinations of signs [combination value]. In the first, all are positive."""
    if count <= MAX_ENUMERATED_SEEDS:
        bits = (np.arange(2**count)[:, None] >> np.arange(count)) & 1
    else:
        rng = np.random.Generator(np.random.PCG64(0))
        bits = rng.integers(0, 2, (2**MAX_ENUMERATED_SEEDS, count))
        bits[0] = 0
    return np.asarray(1.0 - 2.0 * bits, dtype=np.float64)


def logits(scores: npt.ArrayLike) -> Array:
    """Return the logits of scores. They are infinite for 0 and 1, and nan outside."""
    values = np.asarray(scores, dtype=np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.log(values / (1 - values)))
