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
NEAREST_SOURCES = (NearestSourceRow,)
"""Classes of rows by diagnostic."""
