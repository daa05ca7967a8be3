"""Rows of language fusion."""

from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True, slots=True, kw_only=True)
class FusedScoreRow:
    """Score of a model in a language, where its adapters also read translations into the source."""

    frame: ClassVar[str] = "language-fusion"
    model: str
    language: str
    split: str
    metric: str
    alone: float
    """Score without translations."""
    fused: float
    """Score with translations."""
    shuffled: float | None
    """Score with the translations of other examples, the control."""
    translated: float
    """Share of the examples with a translation."""
    examples: int


LANGUAGE_FUSION = (FusedScoreRow,)
"""Classes of rows by diagnostic."""
