"""Rows of word alignments."""

from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True, slots=True, kw_only=True)
class AlignmentRow:
    """A word alignment of bitext: the number of links and, with gold links, how many are right."""

    frame: ClassVar[str] = "alignment"
    pairs: int
    links: int
    gold_pairs: int = 0
    precision: float | None = None
    recall: float | None = None
    f1: float | None = None
    aer: float | None = None


ALIGN = (AlignmentRow,)
"""Classes of rows of a run that aligns."""
