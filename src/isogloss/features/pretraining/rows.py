"""Rows of the pretraining of encoders."""

from dataclasses import dataclass
from typing import ClassVar

from isogloss.core.rows.models import ConflictStepRow, TrainingStepRow


@dataclass(frozen=True, slots=True, kw_only=True)
class PerplexityRow:
    """Perplexity of an encoder on held-out text of one language after one epoch of pretraining."""

    frame: ClassVar[str] = "perplexity"
    step: int
    epoch: int
    language: str
    split: str
    metric: str
    score: float


@dataclass(frozen=True, slots=True, kw_only=True)
class SubwordsAddedRow:
    """Subwords that an encoder gained, and how many start from translations, parts or random numbers."""

    frame: ClassVar[str] = "new-subwords"
    added: int
    from_translations: int
    from_averages: int
    at_random: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ParametersRow:
    """Parameters of an encoder for each language. Language "" has the parameters shared by all."""

    frame: ClassVar[str] = "parameters"
    language: str
    parameters: int


PRETRAIN = (TrainingStepRow, PerplexityRow, SubwordsAddedRow, ParametersRow, ConflictStepRow)
"""Classes of rows of a run that pretrains."""
