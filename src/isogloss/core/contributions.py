"""Contributions of examples to measures: every measure of a task is a sum of parts over a sum of wholes.

Accuracy has parts of 0 or 1 and wholes of 1, and the part of a question is its F1. F1 over spans has twice
the number of right spans as part, and that of gold and predicted spans as whole. So a measure of any
selection of examples, or of two systems' predictions mixed, follows from these numbers alone.
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
    for example_part, example_whole in zip(*contributions, strict=True):
        numerator += example_part
        denominator += example_whole
    return numerator / denominator if denominator else 0.0
