"""Separation of two samples of many distances by counts in fine bins."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from isogloss.core.errors import InputError

BITS = 13
"""Bits of the mantissa: a bin's width is at most 1/8192 of the numbers in it."""

_MANTISSA = 23
_BIAS = 127

SMALLEST, LARGEST = -24, 24
"""Powers of two that bound the bins. Smaller numbers count as 0, larger numbers as the largest."""

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
