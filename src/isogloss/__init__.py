"""isogloss: cross-lingual transfer, measured and improved.

``import isogloss`` is cheap: torch and transformers are imported when something that needs them is used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from isogloss.core import VERSION as __version__
from isogloss.core.errors import explaining_missing_models

if TYPE_CHECKING:
    from isogloss.api import corpus, run
    from isogloss.core.errors import (
        ConfigError,
        DataError,
        DivergedError,
        InputError,
        IsoglossError,
        MissingPackageError,
        ModelError,
        RunError,
        StorageError,
    )
    from isogloss.core.progress import Progress
    from isogloss.core.records import Record
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
    from isogloss.encoders.mixup import MixingTrace
    from isogloss.features.adjustment.functions import AlignmentLoss, adjust
    from isogloss.features.advising.advice import Advice, AdvisedOption, advise
    from isogloss.features.advising.evidence import Gain, read_gains
    from isogloss.features.advising.measured_gains import measured_gains
    from isogloss.features.advising.regret import Regret, held_out_regret
    from isogloss.features.alignment.functions import WordLinks, align, project_labels
    from isogloss.features.averaging.functions import average
    from isogloss.features.calibration.functions import calibration_error, fit_temperature
    from isogloss.features.choosing.expected_score import (
        ExpectedScore,
        LabelConsistency,
        consistency,
        expected_score,
        score_bound,
    )
    from isogloss.features.choosing.nearest_sources import NearestSource, rank_sources_by_states
    from isogloss.features.choosing.source_choice import SourceCandidate, rank_sources
    from isogloss.features.comparing.functions import compare_outputs, compare_runs
    from isogloss.features.comparing.predictions import Comparison, compare
    from isogloss.features.ensembled_projection.functions import ensemble_projection
    from isogloss.features.gradient_conflict.functions import gradient_conflict
    from isogloss.features.landscapes.functions import deltas, move, path, plane, random_direction
    from isogloss.features.language_arithmetic.functions import mix_language_adapters, shift_adapter
    from isogloss.features.language_fusion.functions import fusing
    from isogloss.features.language_gates.functions import language_gates
    from isogloss.features.meta_learning.learner import MetaLearner
    from isogloss.features.mining.functions import mine
    from isogloss.features.module_swap.functions import (
        list_parts,
        perturb_parts,
        score_parts,
        strip_parts,
        swap_parts,
    )
    from isogloss.features.representations.functions import anisotropy, cka, representation_map, retrieval
    from isogloss.features.searching.functions import search
    from isogloss.features.searching.search import Search, Trial
    from isogloss.features.self_training.functions import silver_labels
    from isogloss.features.word_distance.functions import word_distances
    from isogloss.features.word_order.functions import reorder_questions
    from isogloss.features.x_mixup.functions import MixupLoss, mixing
    from isogloss.functional.given_models import TextModel, TextTokenizer
    from isogloss.functional.models import load_corpus, load_encoder
    from isogloss.functional.states import States, states
    from isogloss.recipes.recipe import (
        AdjustTable,
        EncoderTable,
        GridTable,
        MeasureTable,
        MethodTable,
        PretrainTable,
        Recipe,
    )
    from isogloss.reports.comparison import Compared
    from isogloss.reports.measurements import PlannedRun
    from isogloss.reports.report import Report
    from isogloss.store.store import Outcome
    from isogloss.study import Result, Study, read
    from isogloss.using.formats import Prediction
    from isogloss.using.models import Model, load_model

_NAMES = {
    "api": "corpus run",
    "core.errors": (
        "ConfigError DataError DivergedError InputError IsoglossError MissingPackageError ModelError "
        "RunError StorageError"
    ),
    "core.progress": "Progress",
    "core.records": "Record",
    "data.examples": (
        "Choice ComparableText LabelledText ParsedSentence Question "
        "SentencePair TaggedSentence TextLine Translation"
    ),
    "encoders.mixup": "MixingTrace",
    "functional.given_models": "TextModel TextTokenizer",
    "functional.models": "load_corpus load_encoder",
    "functional.states": "States states",
    "recipes.recipe": "AdjustTable EncoderTable GridTable MeasureTable MethodTable PretrainTable Recipe",
    "reports.comparison": "Compared",
    "reports.measurements": "PlannedRun",
    "reports.report": "Report",
    "store.store": "Outcome",
    "study": "Result Study read",
    "using": "Model load_model",
    "using.formats": "Prediction",
}
"""The public names, by the module that they are imported from when they are used."""

_HOMES = {name: f"isogloss.{module}" for module, names in _NAMES.items() for name in names.split()}

__all__ = [
    "AdjustTable",
    "Advice",
    "AdvisedOption",
    "AlignmentLoss",
    "Choice",
    "ComparableText",
    "Compared",
    "Comparison",
    "ConfigError",
    "DataError",
    "DivergedError",
    "EncoderTable",
    "ExpectedScore",
    "Gain",
    "GridTable",
    "InputError",
    "IsoglossError",
    "LabelConsistency",
    "LabelledText",
    "MeasureTable",
    "MetaLearner",
    "MethodTable",
    "MissingPackageError",
    "MixingTrace",
    "MixupLoss",
    "Model",
    "ModelError",
    "NearestSource",
    "Outcome",
    "ParsedSentence",
    "PlannedRun",
    "Prediction",
    "PretrainTable",
    "Progress",
    "Question",
    "Recipe",
    "Record",
    "Regret",
    "Report",
    "Result",
    "RunError",
    "Search",
    "SentencePair",
    "SourceCandidate",
    "States",
    "StorageError",
    "Study",
    "TaggedSentence",
    "TextLine",
    "TextModel",
    "TextTokenizer",
    "Translation",
    "Trial",
    "WordLinks",
    "__version__",
    "adjust",
    "advise",
    "align",
    "anisotropy",
    "average",
    "calibration_error",
    "cka",
    "compare",
    "compare_outputs",
    "compare_runs",
    "consistency",
    "corpus",
    "deltas",
    "ensemble_projection",
    "expected_score",
    "fit_temperature",
    "fusing",
    "gradient_conflict",
    "held_out_regret",
    "language_gates",
    "list_parts",
    "load_corpus",
    "load_encoder",
    "load_model",
    "measured_gains",
    "mine",
    "mix_language_adapters",
    "mixing",
    "move",
    "path",
    "perturb_parts",
    "plane",
    "project_labels",
    "random_direction",
    "rank_sources",
    "rank_sources_by_states",
    "read",
    "read_gains",
    "reorder_questions",
    "representation_map",
    "retrieval",
    "run",
    "score_bound",
    "score_parts",
    "search",
    "shift_adapter",
    "silver_labels",
    "states",
    "strip_parts",
    "swap_parts",
    "word_distances",
]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'isogloss' has no attribute {name!r}")
    from isogloss.core.processes import collector_paused

    with explaining_missing_models(), collector_paused():
        if name in _HOMES:
            return getattr(import_module(_HOMES[name]), name)
        return _import_from_feature(name)


def _import_from_feature(name: str) -> Any:
    """Import a public name that a feature declares."""
    from isogloss.core.registry import FUNCTIONS

    if name not in FUNCTIONS:
        raise AttributeError(
            f"isogloss.{name} belongs to a feature whose folder in isogloss/features is missing"
        )
    return FUNCTIONS[name]


def __dir__() -> list[str]:
    return sorted(__all__)
