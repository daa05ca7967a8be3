"""Separation of two groups of distances in one pass: AUC and histograms from fine counts.

Numbers are counted in fine bins given by their leading bits, ``2**BITS`` between a power of two and the next.
So no range has to be known beforehand, memory does not grow with the numbers, and counts of parts can be
added in any order.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from isogloss.core.errors import InputError

BITS = 13
"""Bits of the mantissa: a bin's width is at most 1/8192 of the numbers in it."""

SMALLEST, LARGEST = -24, 24
"""Powers of two that bound the bins; smaller numbers count as 0, larger ones as the largest."""

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
        """Count numbers; InputError where one is negative or not finite."""
        values = np.ascontiguousarray(numbers, np.float32)
        if not np.isfinite(values).all() or (values < 0).any():
            raise InputError("fine counts: a number is negative or not finite. Count distances.")
        self._sums[0] += float(values.sum(dtype=np.float64))
        indices = (values.view(np.int32) >> (_MANTISSA - BITS)) - _FIRST + 1
        np.add.at(self.counts, np.clip(indices, 0, _BINS - 1), 1)

    @property
    def number(self) -> int:
        """How many numbers were counted."""
        return int(self.counts.sum())

    @property
    def mean(self) -> float:
        """Their mean; nan for none."""
        return self._sums[0] / self.number if self.number else float("nan")


@dataclass(frozen=True, slots=True)
class Separation:
    """The probability that a number of the one group is below one of the other, and its largest error."""

    auc: float
    within: float


def separation(lower: FineCounts, upper: FineCounts) -> Separation:
    """Return P(lower < upper) + P(lower = upper) / 2; 1 where all of ``lower`` lie below all of ``upper``.

    It is exact but for pairs that fall into one bin, which count half: ``within`` is half their share.
    """
    pairs = lower.number * upper.number
    if not pairs:
        raise InputError("separation: a group is empty. Give two groups with a number or more.")
    # As fractions: counts of many millions would overflow when multiplied.
    below, above = lower.counts / lower.number, upper.counts / upper.number
    together = below * above
    auc = float(above @ (np.cumsum(below) - below)) + float(together.sum()) / 2
    return Separation(min(1.0, auc), float(together[1:].sum()) / 2)


def histogram(groups: Sequence[FineCounts], bins: int) -> Iterator[tuple[float, float, list[float]]]:
    """Yield the lower and upper edge of equally wide bins, and the share of each group in it.

    They reach from the smallest to the largest number of all groups. Edges are rounded up to fine ones, so
    that shares are exact; fewer bins are yielded where the numbers hardly differ.
    """
    together = np.sum([group.counts for group in groups], axis=0)
    (filled,) = together.nonzero()
    if not len(filled):
        return
    edges = _edges()
    targets = np.linspace(edges[filled[0]], edges[filled[-1] + 1], bins + 1)
    positions = np.unique(np.searchsorted(edges, targets, side="left"))
    below = [np.concatenate(([0], np.cumsum(group.counts)))[positions] for group in groups]
    for number, (low, high) in enumerate(pairwise(positions)):
        shares = [
            float(cumulated[number + 1] - cumulated[number]) / max(1, group.number)
            for cumulated, group in zip(below, groups, strict=True)
        ]
        yield float(edges[low]), float(edges[high]), shares


def _edges() -> npt.NDArray[np.float64]:
    """Return where the fine bins begin and the last one ends."""
    bits = (np.arange(_BINS, dtype=np.int32) + _FIRST) << (_MANTISSA - BITS)
    return np.concatenate(([0.0], bits.view(np.float32).astype(np.float64)))
