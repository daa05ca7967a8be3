"""Rank statistics: Spearman's correlation, and the separation of two groups (AUC).

The correlation has a p-value, an interval and the influence of each pair of values.

Separation needs one pass over the numbers. It counts them in fine bins given by their leading bits,
``2**BITS`` between a power of two and the next. So the range need not be known beforehand, memory does not
grow with the numbers, and counts of parts can be added in any order.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise, permutations

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

MIN_DEFINED_SHARE = 0.5
"""Share of bootstrap samples that must have a correlation."""

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


def bootstrap_interval(
    x: Sequence[float], y: Sequence[float], *, rounds: int = 10_000, seed: int = 0
) -> tuple[float, float]:
    """Return the 95 % percentile interval of Spearman's rho over bootstrap samples of pairs.

    Samples in which one side is constant have no rho and do not count; nan where most have none. With few
    pairs the interval is rough: it shows how much single pairs matter.
    """
    if len(x) != len(y) or len(x) < 2:
        raise InputError(
            f"bootstrap_interval: {len(x)} and {len(y)} values. Give two equally long lists of 2 or more."
        )
    n = len(x)
    draws = np.random.Generator(np.random.PCG64(seed)).multinomial(n, np.full(n, 1 / n), size=rounds)
    times = draws.astype(np.float64)
    ranks_x, ranks_y = (_ranks_in_draws(np.asarray(side, dtype=np.float64), times) for side in (x, y))
    mean_rank = (n + 1) / 2  # The mean of n ranks, ties or not.
    ranks_x, ranks_y = ranks_x - mean_rank, ranks_y - mean_rank
    product, square = (times * ranks_x * ranks_y).sum(axis=1), (times * ranks_x**2).sum(axis=1)
    norm = np.sqrt(square * (times * ranks_y**2).sum(axis=1))
    is_defined = norm > CORRELATION_TOLERANCE
    if is_defined.mean() < MIN_DEFINED_SHARE:
        return math.nan, math.nan
    low, high = np.quantile(product[is_defined] / norm[is_defined], [0.025, 0.975])
    return float(low), float(high)


def _ranks_in_draws(values: Array, times: Array) -> Array:
    """Return each value's rank in each sample [draw value], from how often it was drawn."""
    is_smaller = (values[:, None] < values[None, :]).astype(np.float64)
    equal = (values[:, None] == values[None, :]).astype(np.float64)
    return np.asarray(times @ (is_smaller + equal / 2) + 0.5, dtype=np.float64)


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


BITS = 13
"""Bits of the mantissa: a bin's width is at most 1/8192 of the numbers in it."""

SMALLEST, LARGEST = -24, 24
"""Powers of two that bound the bins. Smaller numbers count as 0, larger numbers as the largest."""

_MANTISSA = 23
_BIAS = 127
_FIRST = (SMALLEST + _BIAS) << BITS
_BINS = ((LARGEST - SMALLEST) << BITS) + 1


@dataclass(frozen=True)
class FineCounts:
    """Counts of nonnegative numbers, to which more can be added."""

    counts: npt.NDArray[np.int64] = field(default_factory=lambda: np.zeros(_BINS, np.int64))
    _sums: list[float] = field(default_factory=lambda: [0.0])

    def add(self, numbers: npt.ArrayLike) -> None:
        """Count numbers. Raises InputError if one is negative or not finite."""
        values = np.ascontiguousarray(numbers, np.float32)
        if not np.isfinite(values).all() or (values < 0).any():
            raise InputError("fine counts: a number is negative or not finite. Count distances.")
        self._sums[0] += float(values.sum(dtype=np.float64))
        indices = (values.view(np.int32) >> (_MANTISSA - BITS)) - _FIRST + 1
        np.add.at(self.counts, np.clip(indices, 0, _BINS - 1), 1)

    @property
    def number(self) -> int:
        """Count of the numbers."""
        return int(self.counts.sum())

    @property
    def mean(self) -> float:
        """Their mean. nan without numbers."""
        return self._sums[0] / self.number if self.number else float("nan")


@dataclass(frozen=True, slots=True)
class Separation:
    """Probability that a number of the first group is below a number of the second, and its largest error."""

    auc: float
    within: float


def separation(lower: FineCounts, upper: FineCounts) -> Separation:
    """Return P(lower < upper) + P(lower = upper) / 2. 1 if all of ``lower`` are below all of ``upper``.

    It is exact except for pairs in the same bin, which count half. ``within`` is half their share.
    """
    pairs = lower.number * upper.number
    if not pairs:
        raise InputError("separation: a group is empty. Give two groups with a number or more.")
    # As fractions: counts of many millions would overflow when multiplied.
    lower_shares, upper_shares = lower.counts / lower.number, upper.counts / upper.number
    tie_shares = lower_shares * upper_shares
    auc = float(upper_shares @ (np.cumsum(lower_shares) - lower_shares)) + float(tie_shares.sum()) / 2
    return Separation(min(1.0, auc), float(tie_shares[1:].sum()) / 2)


def histogram(groups: Sequence[FineCounts], bins: int) -> Iterator[tuple[float, float, list[float]]]:
    """Yield the lower and upper edge of equally wide bins, and the share of each group in it.

    They reach from the smallest to the largest number of all groups. Edges are rounded up to fine ones, so
    that shares are exact; fewer bins are yielded where the numbers hardly differ.
    """
    total_counts = np.sum([group.counts for group in groups], axis=0)
    (nonempty_bins,) = total_counts.nonzero()
    if not len(nonempty_bins):
        return
    edges = _edges()
    targets = np.linspace(edges[nonempty_bins[0]], edges[nonempty_bins[-1] + 1], bins + 1)
    positions = np.unique(np.searchsorted(edges, targets, side="left"))
    cumulative_counts = [np.concatenate(([0], np.cumsum(group.counts)))[positions] for group in groups]
    for index, (low, high) in enumerate(pairwise(positions)):
        shares = [
            float(sums[index + 1] - sums[index]) / max(1, group.number)
            for sums, group in zip(cumulative_counts, groups, strict=True)
        ]
        yield float(edges[low]), float(edges[high]), shares


def _edges() -> npt.NDArray[np.float64]:
    """Return the lower edges of the fine bins and the upper edge of the last."""
    bits = (np.arange(_BINS, dtype=np.int32) + _FIRST) << (_MANTISSA - BITS)
    return np.concatenate(([0.0], bits.view(np.float32).astype(np.float64)))
