"""Rows of choices without labels."""

from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True, slots=True, kw_only=True)
class NearestSourceRow:
    """Share of a candidate's words (or texts) among the nearest neighbours of a target's, in one layer."""

    frame: ClassVar[str] = "nearest-sources"
    model: str
    language: str
    """The target."""
    candidate: str
    layer: int
    neighbours: int
    centred: bool
    items: int
    """Words or texts of the target."""
    share: float
    behind: float
    """Share of the target's first candidate less this one."""
    chosen: bool
    """Whether it is the first, and more than chance puts it before the others."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelConsistencyRow:
    """Share of texts, or of linked words, to which a model gives the label of their translation."""

    frame: ClassVar[str] = "label-consistency"
    model: str
    language: str
    split: str
    share: float
    low: float
    """Lower end of the 80 % interval. Sentences are independent, words of one are not."""
    high: float
    chance: float
    """Share of equal labels if both sides drew theirs from their own frequencies."""
    pairs: int
    """Pairs of texts or sentences."""
    links: int | None
    """Linked words. None for labels of texts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelFreeRow:
    """Estimates of a model's score in a language, computed from its predictions without labels."""

    frame: ClassVar[str] = "label-free"
    model: str
    language: str
    split: str
    signal: str
    """confidence, entropy or steadiness. Also score in the source, and atc and doc in other languages."""
    value: float
    examples: int


LABEL_FREE = (LabelFreeRow,)
LABEL_CONSISTENCY = (LabelConsistencyRow,)
NEAREST_SOURCES = (NearestSourceRow,)
"""Classes of rows by diagnostic."""
