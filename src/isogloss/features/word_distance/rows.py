"""Rows of word distances."""

from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True, slots=True, kw_only=True)
class WordDistanceRow:
    """Distances of related and of unrelated words in one layer: means, and AUC of the separation."""

    frame: ClassVar[str] = "word-distance"
    model: str
    first: str
    second: str
    layer: int
    distance: str
    related_mean: float
    unrelated_mean: float
    auc: float
    auc_within: float
    related_pairs: int
    unrelated_pairs: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DistanceBinRow:
    """One bin of the histograms of word distances: its edges, and the share of each group in it."""

    frame: ClassVar[str] = "word-distance-bins"
    model: str
    first: str
    second: str
    layer: int
    distance: str
    low: float
    high: float
    related: float
    unrelated: float


@dataclass(frozen=True, slots=True, kw_only=True)
class DimensionShareRow:
    """Share of the squared L2 distances of words in the dimensions where these are largest, in one layer."""

    frame: ClassVar[str] = "word-distance-shares"
    model: str
    first: str
    second: str
    layer: int
    dimensions: int
    width: int
    """Dimensions of a state."""
    related_share: float
    unrelated_share: float


WORD_DISTANCE = (
    WordDistanceRow,
    DistanceBinRow,
    DimensionShareRow,
)
"""Classes of rows by diagnostic."""
