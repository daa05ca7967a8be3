"""The interfaces that plug-ins implement, and the types and functions that they need.

A plug-in imports from here alone. Names here keep their meaning; all other modules may change at any time.
"""

from isogloss.aligners.setting import Aligner, AlignSetting
from isogloss.core.rows.models import Contributions
from isogloss.core.run_parts import Modules, Positive, Share
from isogloss.data.corpora.labelled import LabelledCorpus
from isogloss.data.corpus import About, Corpus, Source
from isogloss.data.examples import (
    Choice,
    ComparableText,
    LabelledText,
    ParsedSentence,
    Question,
    SentencePair,
    TaggedSentence,
    TextLine,
    Translation,
)
from isogloss.data.files import DiskFolder, File, Folder
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
from isogloss.tasks.batch import Batch, EncodedRow
from isogloss.tasks.classification import TextClassification
from isogloss.tasks.tagging import Tagging
from isogloss.tasks.task import Task
from isogloss.training.fine_tuning import Training, fine_tune, plain_training
from isogloss.training.memory import AddedCost, Cost, Load, Shape
from isogloss.training.setting import (
    Adjustment,
    AdjustSetting,
    AuxiliaryLoss,
    AuxiliaryTerm,
    Method,
    Peft,
    PeftSetting,
    Prepared,
    Pretraining,
    Reads,
    Setting,
    TextSetting,
    Trained,
)
from isogloss.translators.setting import TranslateSetting, Translator

__all__ = [
    "HELPS",
    "About",
    "AddedCost",
    "AdjustSetting",
    "Adjustment",
    "AlignSetting",
    "Aligned",
    "Aligner",
    "AuxiliaryLoss",
    "AuxiliaryTerm",
    "Batch",
    "Check",
    "Choice",
    "Claim",
    "ComparableText",
    "Contributions",
    "Corpus",
    "Cost",
    "Diagnostic",
    "DiskFolder",
    "EncodedRow",
    "EncoderFamily",
    "Engine",
    "Execution",
    "Figure",
    "File",
    "Folder",
    "LabelledCorpus",
    "LabelledText",
    "Load",
    "MeasureSetting",
    "Measurements",
    "Method",
    "Modules",
    "ParsedSentence",
    "Peft",
    "PeftSetting",
    "Positive",
    "Prepared",
    "Pretraining",
    "Question",
    "Reads",
    "RowsShown",
    "SentencePair",
    "Setting",
    "Shape",
    "Share",
    "Source",
    "Summary",
    "Table",
    "TaggedSentence",
    "Tagging",
    "Task",
    "TextClassification",
    "TextLine",
    "TextSetting",
    "Trained",
    "Training",
    "TranslateSetting",
    "Translated",
    "Translation",
    "Translator",
    "Work",
    "check_of",
    "fine_tune",
    "pair_words",
    "plain_table",
    "plain_training",
]
