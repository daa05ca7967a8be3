"""Rows of mixing."""

from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True, slots=True, kw_only=True)
class MixupRatioRow:
    """Mixup ratio of a model on one language, summarised over examples."""

    frame: ClassVar[str] = "mixup-ratio"
    model: str
    language: str
    split: str
    examples: int
    mean: float
    std: float | None
    lowest: float
    q05: float
    q25: float
    median: float
    q75: float
    q95: float
    highest: float


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepPointRow:
    """Result of a mixup model with a different largest ratio or layer, on one language."""

    frame: ClassVar[str] = "mixup-sweep"
    model: str
    language: str
    split: str
    layer: int
    ratio: float
    trained: bool
    mean: float | None
    metric: str
    score: float
    baseline: float | None
    examples: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkAttentionRow:
    """Attention of X-Mixup's layer to the words that translate a word, averaged over subwords."""

    frame: ClassVar[str] = "link-attention"
    model: str
    first: str
    """The language that is attended to."""
    second: str
    layer: int
    look: str
    """attention or cosine."""
    subwords: int
    """Subwords of the second language with a link."""
    mass: float
    """Mean weight on the linked word."""
    hits: float
    """Share of subwords with their largest weight on a linked word."""
    chance: float
    """The mean weight on the linked word if all subwords of a sentence had equal weights."""


MIXUP_RATIO = (MixupRatioRow,)
MIXUP_SWEEP = (SweepPointRow,)
LINK_ATTENTION = (LinkAttentionRow,)
"""Classes of rows by diagnostic."""
