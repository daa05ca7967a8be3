"""What each example adds to a measure: every measure of a task is a sum of parts over a sum of wholes.

Accuracy has parts of 0 or 1 and wholes of 1, a question's F1 is its part; F1 over spans has twice the right
spans for part and the gold and predicted ones together for whole. So a measure of any choice of examples, or
of two systems' predictions mixed, follows from these numbers alone.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple


class Contributions(NamedTuple):
    """Two numbers for each example."""

    part: Sequence[float]
    whole: Sequence[float]


ByMeasure = Mapping[str, Contributions]
"""The contributions to each measure, by its name."""


def total(contributions: Contributions) -> float:
    """Return the measure: the sum of parts over the sum of wholes, 0 where that is 0.

    Numbers are added from first to last, so that equal examples give equal bits.
    """
    numerator = denominator = 0.0
    for part, whole in zip(contributions.part, contributions.whole, strict=True):
        numerator += part
        denominator += whole
    return numerator / denominator if denominator else 0.0
