"""Rows about models: training, scores, predictions without labels, and mixing.

Every measure of a task is a sum of parts over a sum of wholes: the contributions of its examples. Accuracy
has parts of 0 or 1 and wholes of 1, and the part of a question is its F1. F1 over spans has twice the number
of right spans as part, and the number of gold and predicted spans as whole. So these numbers suffice to
compute the measure of any selection of examples, or of two systems' mixed predictions.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingStepRow:
    """The loss at one step of any training. Language "" stands for all languages."""

    frame: ClassVar[str] = "training-steps"
    step: int
    loss: float
    rate: float
    language: str = ""
    subwords: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class EpochRow:
    """A model in training on one dev set after one epoch."""

    frame: ClassVar[str] = "epochs"
    epoch: int
    step: int
    language: str
    split: str
    metric: str
    score: float
    chosen: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainedParametersRow:
    """Parameters that a fine-tuning trained, the head included, and parameters of the model."""

    frame: ClassVar[str] = "trained-parameters"
    trained: int
    parameters: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SilverLabelsRow:
    """Texts (or words) of a language without labels, and how many got one from a confident teacher."""

    frame: ClassVar[str] = "silver-labels"
    language: str
    threshold: float
    items: int
    kept: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FurtherTaskScoreRow:
    """A model's score in a further task that it learned, on one dev set of a source language."""

    frame: ClassVar[str] = "further-tasks"
    further_task: str
    further_corpus: str
    language: str
    split: str
    metric: str
    score: float
    baseline: float
    examples: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AveragedModelRow:
    """A model in an average on one dev set, with its weight. ``part`` "" is the average itself."""

    frame: ClassVar[str] = "averaged"
    part: str
    weight: float | None
    language: str
    split: str
    metric: str
    score: float


@dataclass(frozen=True, slots=True, kw_only=True)
class StoppingRow:
    """Updates done and planned by a fine-tuning with patience, its last epoch and the chosen epoch."""

    frame: ClassVar[str] = "stopping"
    updates: int
    planned: int
    last_epoch: int
    chosen_epoch: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ConflictStepRow:
    """Cosine of gradients while a model trains, after one step."""

    frame: ClassVar[str] = "training-conflict"
    step: int
    draw: int
    batch: int
    first: str
    second: str
    layer: int | None
    module: str
    cosine: float | None
    within: float | None = None
    norm_first: float
    norm_second: float


@dataclass(frozen=True, slots=True, kw_only=True)
class BitextReadRow:
    """Bitext of one pair of languages that a training read."""

    frame: ClassVar[str] = "bitext-read"
    pair: str
    translations: int
    left_out: int
    pulled: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreRow:
    """One model on one language and split by one measure. The task's own metric is its main one."""

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
class SeedSpreadRow:
    """Mean and unbiased standard deviation of models that differ only in their seed, on one language."""

    frame: ClassVar[str] = "run-variance"
    models: str
    """Their ids, separated by spaces."""
    language: str
    role: str
    """"source" or "target". Empty if the models have no source."""
    split: str
    metric: str
    seeds: int
    mean: float
    std: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class GapRow:
    """Source score minus the mean target score of one model."""

    frame: ClassVar[str] = "transfer-gap"
    model: str
    split: str
    metric: str
    source_score: float
    target_mean: float
    gap: float


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
