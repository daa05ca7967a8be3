"""The rows about models that mix an example with its translation (X-Mixup)."""

from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True, slots=True, kw_only=True)
class MixupRatio:
    """How much of the source a model mixes into one language's examples, over examples."""

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
class SweepPoint:
    """One model that mixes, with another largest ratio or in another layer, on one language."""

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
class LinkAttention:
    """What of a layer's attention of X-Mixup lies on the words that words translate, over subwords."""

    frame: ClassVar[str] = "link-attention"
    model: str
    first: str
    """The language that is attended to."""
    second: str
    layer: int
    look: str
    """attention or cosine."""
    subwords: int
    """Of the second language, with a link."""
    mass: float
    """Mean weight on the linked word."""
    hits: float
    """How often the largest weight lies there."""
    chance: float
    """The weight there if all subwords of a sentence had the same."""
