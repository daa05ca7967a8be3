"""Rows of translations and of the training of translators."""

from dataclasses import dataclass
from typing import ClassVar

from isogloss.core.rows.models import TrainingStepRow


@dataclass(frozen=True, slots=True, kw_only=True)
class TranslatedSplitRow:
    """One translated split: what was lost, and, of bitext, chrF and BLEU against its own translations.

    ``tagged`` is the share of words that have a tag, where tags were projected.
    """

    frame: ClassVar[str] = "translations"
    examples: int
    translated: int
    lost: int
    cuts: int
    metric: str | None = None
    score: float | None = None
    bleu: float | None = None
    signature: str | None = None
    tagged: float | None = None


TRANSLATE = (TranslatedSplitRow,)
"""Classes of rows of a run that translates."""

TRAIN_TRANSLATOR = (TrainingStepRow,)
"""Classes of rows of a run that trains a translator."""
