"""isogloss: cross-lingual transfer, measured and improved.

``import isogloss`` is cheap: torch and transformers are imported when something that needs them is used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from isogloss.core import VERSION as __version__
from isogloss.core.errors import explaining_missing_models

if TYPE_CHECKING:
    from isogloss.api import compare_outputs, compare_runs, corpus, run, search
    from isogloss.core.errors import (
        ConfigError,
        DataError,
        InputError,
        IsoglossError,
        ModelError,
        RunError,
        StorageError,
    )
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
    from isogloss.functional.adjusting import AlignmentLoss, adjust
    from isogloss.functional.alignment import WordLinks, align, project_labels
    from isogloss.functional.gradients import MetaLearner, gradient_conflict, language_gates
    from isogloss.functional.mixup import MixupLoss, mixing
    from isogloss.functional.models import load_corpus, load_encoder
    from isogloss.functional.predictions import Comparison, compare
    from isogloss.functional.similarity import anisotropy, cka, mine, representation_map, retrieval
    from isogloss.functional.states import States, states
    from isogloss.functional.weights import average, deltas, move, path, plane, random_direction
    from isogloss.functional.word_order import reorder_questions
    from isogloss.functional.word_pairs import word_distances
    from isogloss.metrics.source_choice import SourceCandidate, rank_sources
    from isogloss.recipes.recipe import Recipe
    from isogloss.reports.comparison import Compared
    from isogloss.study import Result, Study, read
    from isogloss.using import Model, load_model
    from isogloss.using.formats import Prediction

_NAMES = {
    "api": "compare_outputs compare_runs corpus run search",
    "core.errors": "ConfigError DataError InputError IsoglossError ModelError RunError StorageError",
    "data.examples": (
        "Choice ComparableText LabelledText ParsedSentence Question "
        "SentencePair TaggedSentence TextLine Translation"
    ),
    "functional.adjusting": "AlignmentLoss adjust",
    "functional.alignment": "WordLinks align project_labels",
    "functional.gradients": "MetaLearner gradient_conflict language_gates",
    "functional.mixup": "MixupLoss mixing",
    "functional.models": "load_corpus load_encoder",
    "functional.predictions": "Comparison compare",
    "functional.similarity": "anisotropy cka mine representation_map retrieval",
    "functional.states": "States states",
    "functional.weights": "average deltas move path plane random_direction",
    "functional.word_order": "reorder_questions",
    "functional.word_pairs": "word_distances",
    "metrics.source_choice": "SourceCandidate rank_sources",
    "recipes.recipe": "Recipe",
    "reports.comparison": "Compared",
    "study": "Result Study read",
    "using": "Model load_model",
    "using.formats": "Prediction",
}
"""The public names, by the module that they are imported from when they are used."""

_HOMES = {name: f"isogloss.{module}" for module, names in _NAMES.items() for name in names.split()}

__all__ = [
    "AlignmentLoss",
    "Choice",
    "ComparableText",
    "Compared",
    "Comparison",
    "ConfigError",
    "DataError",
    "InputError",
    "IsoglossError",
    "LabelledText",
    "MetaLearner",
    "MixupLoss",
    "Model",
    "ModelError",
    "ParsedSentence",
    "Prediction",
    "Question",
    "Recipe",
    "Result",
    "RunError",
    "SentencePair",
    "SourceCandidate",
    "States",
    "StorageError",
    "Study",
    "TaggedSentence",
    "TextLine",
    "Translation",
    "WordLinks",
    "__version__",
    "adjust",
    "align",
    "anisotropy",
    "average",
    "cka",
    "compare",
    "compare_outputs",
    "compare_runs",
    "corpus",
    "deltas",
    "gradient_conflict",
    "language_gates",
    "load_corpus",
    "load_encoder",
    "load_model",
    "mine",
    "mixing",
    "move",
    "path",
    "plane",
    "project_labels",
    "random_direction",
    "rank_sources",
    "read",
    "reorder_questions",
    "representation_map",
    "retrieval",
    "run",
    "search",
    "states",
    "word_distances",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'isogloss' has no attribute {name!r}")
    with explaining_missing_models():
        return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
