"""Rows of the adjustment of encoders."""

from isogloss.core.rows.models import BitextReadRow, TrainingStepRow

ADJUST = (TrainingStepRow, BitextReadRow)
"""Classes of rows of a run that adjusts."""
