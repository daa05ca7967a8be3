"""The interfaces that plug-ins implement, and the types and functions that they need.

A plug-in imports only from here. Names here keep their meaning; all other modules may change at any time.
"""

from isogloss.aligners.setting import Aligner, AlignSetting
from isogloss.core.errors import ConfigError, DataError, ModelError
from isogloss.core.identity import derive
from isogloss.core.rows.models import Contributions, total
from isogloss.core.run_parts import (
    NESTED,
    Count,
    Modules,
    Positive,
    Rate,
    Share,
    TextTraining,
    Updates,
    Weight,
    nested_fields,
)
from isogloss.data.corpora.labelled import LabelledCorpus
from isogloss.data.corpus import About, Corpus, CorpusDefaults, Source, Split, locate
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
from isogloss.data.formats.formats import Cells, ExampleColumns, Format
from isogloss.data.formats.word_links import Aligned, pair_words
from isogloss.data.projection.example_texts import Translated
from isogloss.diagnostics.setting import Diagnostic, MeasureSetting
from isogloss.encoders import FAMILIES
from isogloss.encoders.added.sparse_deltas import encoder_weights, write_sparse
from isogloss.encoders.families import family_of
from isogloss.encoders.family import EncoderFamily, freeze, thaw, unfrozen_parameters
from isogloss.encoders.loading import load_whole, load_with_new_head
from isogloss.encoders.subwords import scored_subwords, special_subwords, split_words
from isogloss.encoders.tokenizers import load_tokenizer
from isogloss.engine.engines import Engine, Execution
from isogloss.engine.work import Work
from isogloss.metrics.labels import label_contributions
from isogloss.reports.checks import HELPS, Check, check_of
from isogloss.reports.drawing import Figure
from isogloss.reports.measurements import Measurements
from isogloss.reports.sections import RowsShown
from isogloss.reports.tables import Summary, Table, plain_table
from isogloss.reports.verdicts import Claim
from isogloss.store.store import Store
from isogloss.tasks.batch import Batch, EncodedRow, collate, forward
from isogloss.tasks.classification import TextClassification
from isogloss.tasks.tagging import Tagging, merge_windows
from isogloss.tasks.task import Task
from isogloss.training.fine_tuning import Training, fine_tune, plain_training
from isogloss.training.memory import AddedCost, Cost, Load, Shape
from isogloss.training.setting import (
    Adjustment,
    AdjustSetting,
    AuxiliaryLoss,
    AuxiliaryTerm,
    ExtraWriter,
    Method,
    Peft,
    PeftSetting,
    Prepared,
    Pretraining,
    Reads,
    Setting,
    TextSetting,
    Trained,
    language_pairs,
)
from isogloss.training.text_training import begin_pretraining, train_on_text
from isogloss.translators.setting import TranslateSetting, Translator
from isogloss.using.formats import FileEntry, InputFormat, Prediction

__all__ = [
    "FAMILIES",
    "HELPS",
    "NESTED",
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
    "Cells",
    "Check",
    "Choice",
    "Claim",
    "ComparableText",
    "ConfigError",
    "Contributions",
    "Corpus",
    "CorpusDefaults",
    "Cost",
    "Count",
    "DataError",
    "Diagnostic",
    "DiskFolder",
    "EncodedRow",
    "EncoderFamily",
    "Engine",
    "ExampleColumns",
    "Execution",
    "ExtraWriter",
    "Figure",
    "File",
    "FileEntry",
    "Folder",
    "Format",
    "InputFormat",
    "LabelledCorpus",
    "LabelledText",
    "Load",
    "MeasureSetting",
    "Measurements",
    "Method",
    "ModelError",
    "Modules",
    "ParsedSentence",
    "Peft",
    "PeftSetting",
    "Positive",
    "Prediction",
    "Prepared",
    "Pretraining",
    "Question",
    "Rate",
    "Reads",
    "RowsShown",
    "SentencePair",
    "Setting",
    "Shape",
    "Share",
    "Source",
    "Split",
    "Store",
    "Summary",
    "Table",
    "TaggedSentence",
    "Tagging",
    "Task",
    "TextClassification",
    "TextLine",
    "TextSetting",
    "TextTraining",
    "Trained",
    "Training",
    "TranslateSetting",
    "Translated",
    "Translation",
    "Translator",
    "Updates",
    "Weight",
    "Work",
    "begin_pretraining",
    "check_of",
    "collate",
    "derive",
    "encoder_weights",
    "family_of",
    "fine_tune",
    "forward",
    "freeze",
    "label_contributions",
    "language_pairs",
    "load_tokenizer",
    "load_whole",
    "load_with_new_head",
    "locate",
    "merge_windows",
    "nested_fields",
    "pair_words",
    "plain_table",
    "plain_training",
    "scored_subwords",
    "special_subwords",
    "split_words",
    "thaw",
    "total",
    "train_on_text",
    "unfrozen_parameters",
    "write_sparse",
]
