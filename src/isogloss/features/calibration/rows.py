"""Rows of calibration."""

from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True, slots=True, kw_only=True)
class CalibrationRow:
    """Confidence and accuracy of a model in a language, their expected distance, and that after scaling."""

    frame: ClassVar[str] = "calibration"
    model: str
    language: str
    split: str
    items: int
    """Words or texts."""
    accuracy: float
    confidence: float
    """Mean highest probability."""
    error: float
    """Expected calibration error."""
    temperature: float | None
    """Fitted on the dev set of the source. None without a source."""
    scaled_error: float | None
    """The error after logits were divided by the temperature."""


CALIBRATION = (CalibrationRow,)
"""Classes of rows by diagnostic."""
