"""The rows of scores, of what stands for scores without labels, and of their spread and gap."""

from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """One model on one language and split by one measure; the task's own metric is its main one."""

    frame: ClassVar[str] = "scores"
    model: str
    language: str
    split: str
    metric: str
    score: float
    main: bool
    baseline: float | None = None
    """The score of always saying the commonest label, by the main metric."""
    examples: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelFree:
    """What a model's answers in a language say of its score there, where its labels are not looked at."""

    frame: ClassVar[str] = "label-free"
    model: str
    language: str
    split: str
    signal: str
    """confidence, entropy, steadiness; in the source score, in other languages atc and doc."""
    value: float
    examples: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SeedSpread:
    """Mean and unbiased standard deviation of models that differ in their seed alone, on one language."""

    frame: ClassVar[str] = "run-variance"
    models: str
    """Their ids, separated by spaces."""
    language: str
    role: str
    split: str
    metric: str
    seeds: int
    mean: float
    std: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Gap:
    """Source score minus the mean target score of one model."""

    frame: ClassVar[str] = "transfer-gap"
    model: str
    split: str
    metric: str
    source_score: float
    target_mean: float
    gap: float
