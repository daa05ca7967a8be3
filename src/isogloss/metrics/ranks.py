"""Rank statistics: Spearman's correlation, and the separation of two groups (AUC).

The correlation has a p-value, an interval and the influence of each pair of values.

Separation needs one pass over the numbers. It counts them in fine bins given by their leading bits,
``2**BITS`` between a power of two and the next. So the range need not be known beforehand, memory does not
grow with the numbers, and counts of parts can be added in any order.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import permutations

import numpy as np
import numpy.typing as npt

from isogloss.core.errors import InputError
from isogloss.core.rows.models import ByMeasure, Contributions
from isogloss.metrics.estimates import t_p_value

MAX_ENUMERATED_PAIRS = 7
"""Maximum pairs for which the p-value enumerates all orders (7! = 5040). For more, Student's t is accurate.
"""

INTERVAL_Z = 1.959963984540054
"""Normal quantile of the two-sided 95 % interval."""

CORRELATION_TOLERANCE = 1e-12
"""Correlations closer than this count as equal, so that rounding does not split ties."""

Array = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Correlation:
    """A correlation, its two-sided p-value and 95 % interval. All are nan if one side is constant."""

    rho: float
    p_value: float
    low: float
    high: float


def spearman(x: Sequence[float], y: Sequence[float]) -> Correlation:
    """Correlate the ranks of x and y, with an interval by Fisher's z.

    The p-value is exact for few pairs, and by Student's t for more.
    """
    if len(x) != len(y) or len(x) < 2:
        raise InputError(f"spearman: {len(x)} and {len(y)} values. Give two equally long lists of 2 or more.")
    ranks_x, ranks_y = ranks(x), ranks(y)
    rho = _pearson(ranks_x, ranks_y)
    if math.isnan(rho):
        return Correlation(rho, rho, rho, rho)
    exact = len(ranks_x) <= MAX_ENUMERATED_PAIRS
    p_value = _exact_p_value(ranks_x, ranks_y, rho) if exact else _t_p_value(rho, len(ranks_x))
    return Correlation(rho, p_value, *_fisher_interval(rho, len(ranks_x)))


@dataclass(frozen=True, slots=True)
class GroupedCorrelation:
    """Spearman's ρ within groups of related items, such as languages of one family."""

    rho: float
    """Correlation of ranks after subtracting the mean rank of each group. nan for constant values."""
    items: int
    """Number of items in groups of two or more. Other items do not count."""
    groups: int

    @property
    def freedom(self) -> int:
        """Degrees of freedom: the number of items, minus one for each group, minus one."""
        return self.items - self.groups - 1

    @property
    def error(self) -> float:
        """Standard error of Fisher's z. With one group of n items, 1 / √(n - 3)."""
        return 1 / math.sqrt(self.freedom - 1) if self.freedom > 1 else math.inf

    @property
    def p_value(self) -> float:
        """Two-sided p of no correlation within groups, by Student's t."""
        if abs(self.rho) == 1:
            return 0.0
        return t_p_value(self.rho * math.sqrt(self.freedom / (1 - self.rho**2)), self.freedom)


def spearman_within(x: Sequence[float], y: Sequence[float], groups: Sequence[str]) -> GroupedCorrelation:
    """Correlate ranks within groups, so that differences between groups do not count.

    Items of one group are not independent draws: five languages of each of two families are hardly more than
    two languages, if families differ in both x and y. For one group the result is Spearman's ρ.
    """
    if not len(x) == len(y) == len(groups) >= 2:
        raise InputError(
            f"spearman_within: {len(x)} and {len(y)} values, {len(groups)} groups. Give three equally long "
            f"lists of 2 or more."
        )
    members: dict[str, list[int]] = {}
    for index, group in enumerate(groups):
        members.setdefault(group, []).append(index)
    several = [indices for indices in members.values() if len(indices) > 1]
    members_of_groups = [index for indices in several for index in indices]
    group_indices = np.repeat(np.arange(len(several)), [len(indices) for indices in several])
    sides = [
        _subtract_group_means(ranks([side[index] for index in members_of_groups]), group_indices)
        for side in (x, y)
    ]
    rho = _pearson(*sides) if several else math.nan
    return GroupedCorrelation(rho, items=len(members_of_groups), groups=len(several))


def _subtract_group_means(values: Array, group: npt.NDArray[np.int64]) -> Array:
    """Subtract from each value the mean of its group."""
    return values - (np.bincount(group, values) / np.bincount(group))[group] if len(values) else values


def trend_p_value(conditions: int, units: int) -> float:
    """Return the two-sided p-value of Page's trend test (1963) if all units rank the conditions equally.

    Without a trend, a unit ranks n conditions this way with probability 1 / n!. A t-test cannot be used here:
    equal rank correlations have no variance.
    """
    return min(1.0, 2 * math.exp(-units * math.lgamma(conditions + 1)))


def correlation_contributions(x: Sequence[float], y: Sequence[float]) -> ByMeasure:
    """Compute the contribution of each pair of values to Spearman's and to Pearson's correlation.

    A correlation is not a sum over pairs, so a pair contributes its influence (Hampel 1974; Efron &
    Tibshirani 1993, Chapter 21). The mean over pairs is the correlation, and their spread its standard
    error. All contributions are 0 if one side is constant.
    """
    if len(x) != len(y):
        raise ValueError(f"{len(x)} gold numbers, but {len(y)} predicted ones.")
    n, unit_weights = len(x), [1.0] * len(x)
    values_x, values_y = (np.asarray(side, dtype=np.float64) for side in (x, y))
    # The share of values below each, half of equal ones included.
    shares_x, shares_y = ((ranks(side) - 0.5) / max(1, n) for side in (x, y))
    influences = [
        _later(values_x, shares_y) + _later(values_y, shares_x),
        2 * _later(values_x, shares_x),
        2 * _later(values_y, shares_y),
    ]
    no_influences = [np.zeros(n)] * 3
    return {
        "spearman": Contributions(_influences(shares_x, shares_y, influences).tolist(), unit_weights),
        "pearson": Contributions(_influences(values_x, values_y, no_influences).tolist(), unit_weights),
    }


def _influences(x: Array, y: Array, shifts: Sequence[Array]) -> Array:
    """Return the correlation plus each pair's influence on it.

    ``shifts`` are what a pair changes of the products xy, xx and yy by moving the ranks of all others.
    """
    if len(x) < 2 or np.ptp(x) == 0 or np.ptp(y) == 0:
        return np.zeros(len(x))
    x, y = x - x.mean(), y - y.mean()
    products, squares_x, squares_y = (
        product + shift - shift.mean() for product, shift in zip((x * y, x * x, y * y), shifts, strict=True)
    )
    return normalized_influences(products, squares_x, squares_y)


def normalized_influences(products: Array, variances_x: Array, variances_y: Array) -> Array:
    """Return influences on a covariance over the root of two variances, from what is averaged to each.

    Their mean is the ratio; all are 0 where a variance is.
    """
    scale = math.sqrt(float(variances_x.mean()) * float(variances_y.mean())) if len(variances_x) else 0.0
    if not scale:  # One side is constant, or differences are too small to be squared.
        return np.zeros(len(variances_x))
    rho = float(products.mean()) / scale
    return np.asarray(
        products / scale
        + rho
        - rho / 2 * (variances_x / variances_x.mean() + variances_y / variances_y.mean()),
        dtype=np.float64,
    )


def _later(values: Array, weights: Array) -> Array:
    """Return for each value the mean over all of the weights of greater ones, half of equal ones included."""
    _, group = np.unique(values, return_inverse=True)
    centred_weights = weights - weights.mean() if len(weights) else weights
    sums = np.bincount(group, weights=centred_weights)
    greater = sums[::-1].cumsum()[::-1] - sums / 2
    return np.asarray(greater[group] / max(1, len(values)), dtype=np.float64)


def ranks(values: Sequence[float]) -> Array:
    """Return the ranks from 1. Equal values share the mean of their ranks."""
    array = np.asarray(values, dtype=np.float64)
    _, group, count = np.unique(array, return_inverse=True, return_counts=True)
    last_ranks: npt.NDArray[np.int64] = np.cumsum(count)
    return np.asarray((last_ranks - (count - 1) / 2)[group], dtype=np.float64)


def _pearson(x: Array, y: Array) -> float:
    x, y = x - x.mean(), y - y.mean()
    norm = math.sqrt(float(x @ x) * float(y @ y))
    return max(-1.0, min(1.0, float(x @ y) / norm)) if norm else math.nan


def _exact_p_value(x: Array, y: Array, rho: float) -> float:
    """Return the share of all permutations of y that correlate at least as strongly."""
    x, y = x - x.mean(), y - y.mean()
    orders = y[np.array(list(permutations(range(len(y)))))]
    norm = math.sqrt(float(x @ x) * float(y @ y))
    return float(np.mean(np.abs(orders @ x / norm) >= abs(rho) - CORRELATION_TOLERANCE))


def _t_p_value(rho: float, n: int) -> float:
    return 0.0 if abs(rho) == 1 else t_p_value(rho * math.sqrt((n - 2) / (1 - rho**2)), n - 2)


def _fisher_interval(rho: float, n: int) -> tuple[float, float]:
    """Return the interval. It is [-1, 1] for three pairs or fewer."""
    if n <= 3:
        return -1.0, 1.0
    if abs(rho) == 1:
        return rho, rho
    margin = INTERVAL_Z / math.sqrt(n - 3)
    return math.tanh(math.atanh(rho) - margin), math.tanh(math.atanh(rho) + margin)
