"""The interfaces that plug-ins implement, and the types and functions that they need.

A plug-in imports from here alone. Names here keep their meaning; all other modules may change at any time.
"""

from isogloss.core.run_parts import Positive, Share
from isogloss.data.corpora.labelled import LabelledCorpus
from isogloss.data.corpus import About, Corpus
from isogloss.diagnostics.setting import Diagnostic, MeasureSetting
from isogloss.reports.checks import HELPS, Check, check_of
from isogloss.reports.measurements import Measurements
from isogloss.reports.verdicts import Claim
from isogloss.tasks.classification import TextClassification
from isogloss.tasks.tagging import Tagging
from isogloss.tasks.task import Task
from isogloss.training.fine_tuning import Training, fine_tune, plain_training
from isogloss.training.setting import (
    Adjustment,
    AuxiliaryLoss,
    Method,
    Peft,
    Pretraining,
    Reads,
    Setting,
    Trained,
)

__all__ = [
    "HELPS",
    "About",
    "Adjustment",
    "AuxiliaryLoss",
    "Check",
    "Claim",
    "Corpus",
    "Diagnostic",
    "LabelledCorpus",
    "MeasureSetting",
    "Measurements",
    "Method",
    "Peft",
    "Positive",
    "Pretraining",
    "Reads",
    "Setting",
    "Share",
    "Tagging",
    "Task",
    "TextClassification",
    "Trained",
    "Training",
    "check_of",
    "fine_tune",
    "plain_training",
]
