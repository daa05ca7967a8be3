"""Rows of ensembled projection."""

from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectionRow:
    """Score of a model in a language together with a second model's labels of translations."""

    frame: ClassVar[str] = "ensembled-projection"
    model: str
    """The model that reads the language."""
    translated_model: str
    """The model that reads translations into the source."""
    language: str
    split: str
    share: float
    """Weight of the translations."""
    metric: str
    score: float
    linked: float
    """Share of the words with a link to a word of the translation."""
    examples: int


ENSEMBLED_PROJECTION = (ProjectionRow,)
"""Classes of rows by diagnostic."""
