"""The interfaces that plug-ins implement, and the types and functions that they need.

A plug-in imports from here alone. Names here keep their meaning; all other modules may change at any time.
"""

from isogloss.aligners.setting import Aligner, AlignSetting
from isogloss.core.run_parts import Positive, Share
from isogloss.data.corpora.labelled import LabelledCorpus
from isogloss.data.corpus import About, Corpus
from isogloss.data.formats.word_links import Aligned, pair_words
from isogloss.data.projection.label_projection import Translated
from isogloss.diagnostics.setting import Diagnostic, MeasureSetting
from isogloss.encoders.family import EncoderFamily
from isogloss.engine.engines import Engine, Execution
from isogloss.engine.work import Work
from isogloss.reports.checks import HELPS, Check, check_of
from isogloss.reports.drawing import Figure
from isogloss.reports.measurements import Measurements
from isogloss.reports.sections import RowsShown
from isogloss.reports.tables import Summary, Table, plain_table
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
from isogloss.translators.setting import TranslateSetting, Translator

__all__ = [
    "HELPS",
    "About",
    "Adjustment",
    "AlignSetting",
    "Aligned",
    "Aligner",
    "AuxiliaryLoss",
    "Check",
    "Claim",
    "Corpus",
    "Diagnostic",
    "EncoderFamily",
    "Engine",
    "Execution",
    "Figure",
    "LabelledCorpus",
    "MeasureSetting",
    "Measurements",
    "Method",
    "Peft",
    "Positive",
    "Pretraining",
    "Reads",
    "RowsShown",
    "Setting",
    "Share",
    "Summary",
    "Table",
    "Tagging",
    "Task",
    "TextClassification",
    "Trained",
    "Training",
    "TranslateSetting",
    "Translated",
    "Translator",
    "Work",
    "check_of",
    "fine_tune",
    "pair_words",
    "plain_table",
    "plain_training",
]
