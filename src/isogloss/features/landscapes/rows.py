"""Rows of paths, planes and differences between models."""

from dataclasses import dataclass
from typing import ClassVar

CORNERS = ("origin", "first", "second")
"""Columns of ids of three models."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PathPointRow:
    """One point of a straight path between two models (Eqs 1 and 2 of Wu 2022)."""

    frame: ClassVar[str] = "interpolation"
    subjects: ClassVar[tuple[str, ...]] = ("end", "start")
    start: str
    """Model at α = 0."""
    end: str
    """Model at α = 1."""
    part: str
    alpha: float
    language: str
    role: str
    """"source" or "target"."""
    split: str
    metric: str
    score: float


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanePointRow:
    """One point of the plane through three models (Eq. 3 of Wu 2022)."""

    frame: ClassVar[str] = "plane"
    subjects: ClassVar[tuple[str, ...]] = CORNERS
    origin: str
    first: str
    """Model at α₁ = 1."""
    second: str
    """Model at α₂ = 1."""
    part: str
    alpha_first: float
    alpha_second: float
    language: str
    role: str
    split: str
    metric: str
    score: float


@dataclass(frozen=True, slots=True, kw_only=True)
class DeltaRow:
    """The ways from one model to two others: lengths and the angle between, in degrees."""

    frame: ClassVar[str] = "deltas"
    subjects: ClassVar[tuple[str, ...]] = CORNERS
    origin: str
    first: str
    second: str
    part: str
    norm_first: float
    norm_second: float
    ratio: float | None
    angle: float | None


INTERPOLATION = (PathPointRow,)
PLANE = (PlanePointRow,)
DELTAS = (DeltaRow,)
"""Classes of rows by diagnostic."""
