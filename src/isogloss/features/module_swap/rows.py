"""Rows of module swaps."""

from dataclasses import dataclass
from typing import ClassVar, Literal

Change = Literal["swap", "strip", "random"]
"""The change of a part."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PartRow:
    """Score of a model in a language after a change of one of its parts."""

    frame: ClassVar[str] = "module-swap"
    subjects: ClassVar[tuple[str, ...]] = ("end", "start")
    start: str
    """Model that gains parts of the end."""
    end: str
    """Model that gets parts of the start."""
    changed: str
    """"start" or "end"."""
    part: str
    layer: int | None
    """Layer of the part. None for parts of several layers or none."""
    module: str
    """attention, feed-forward, norms …, or "all" for a whole layer."""
    change: str
    """swap, strip or random."""
    draw: int
    """Number of the random direction."""
    parameters: int
    norm: float
    """Length of the change."""
    language: str
    role: str
    """"source" or "target"."""
    split: str
    metric: str
    before: float
    """Score of the model without the change."""
    score: float


MODULE_SWAP = (PartRow,)
"""Classes of rows by diagnostic."""
