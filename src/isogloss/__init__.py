"""isogloss: cross-lingual transfer, measured and improved.

``import isogloss`` is cheap: torch and transformers are imported when something that needs them is used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from isogloss.core import VERSION as __version__
from isogloss.core.errors import explaining_missing_models

if TYPE_CHECKING:
    from isogloss.api import compare_outputs, compare_runs, corpus, run, search
    from isogloss.core.errors import IsoglossError
    from isogloss.functional.adjusting import AlignmentLoss, adjust
    from isogloss.functional.gradients import MetaLearner, gradient_conflict, language_gates
    from isogloss.functional.mixup import MixupLoss, mixing
    from isogloss.functional.models import load_corpus, load_encoder
    from isogloss.functional.predictions import compare
    from isogloss.functional.sentences import align, cka, project_labels, retrieval, word_distances
    from isogloss.functional.weights import average, deltas, path, plane
    from isogloss.metrics.source_choice import rank_sources
    from isogloss.recipes.recipe import Recipe
    from isogloss.study import Result, Study, read
    from isogloss.using import Model, load_model

_HOMES = {
    "AlignmentLoss": "isogloss.functional.adjusting",
    "IsoglossError": "isogloss.core.errors",
    "MetaLearner": "isogloss.functional.gradients",
    "MixupLoss": "isogloss.functional.mixup",
    "Model": "isogloss.using",
    "Recipe": "isogloss.recipes.recipe",
    "Result": "isogloss.study",
    "Study": "isogloss.study",
    "adjust": "isogloss.functional.adjusting",
    "align": "isogloss.functional.sentences",
    "average": "isogloss.functional.weights",
    "cka": "isogloss.functional.sentences",
    "compare": "isogloss.functional.predictions",
    "compare_outputs": "isogloss.api",
    "compare_runs": "isogloss.api",
    "corpus": "isogloss.api",
    "deltas": "isogloss.functional.weights",
    "gradient_conflict": "isogloss.functional.gradients",
    "language_gates": "isogloss.functional.gradients",
    "load_corpus": "isogloss.functional.models",
    "load_encoder": "isogloss.functional.models",
    "load_model": "isogloss.using",
    "mixing": "isogloss.functional.mixup",
    "path": "isogloss.functional.weights",
    "plane": "isogloss.functional.weights",
    "project_labels": "isogloss.functional.sentences",
    "rank_sources": "isogloss.metrics.source_choice",
    "read": "isogloss.study",
    "retrieval": "isogloss.functional.sentences",
    "run": "isogloss.api",
    "search": "isogloss.api",
    "word_distances": "isogloss.functional.sentences",
}

__all__ = [
    "AlignmentLoss",
    "IsoglossError",
    "MetaLearner",
    "MixupLoss",
    "Model",
    "Recipe",
    "Result",
    "Study",
    "__version__",
    "adjust",
    "align",
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
    "mixing",
    "path",
    "plane",
    "project_labels",
    "rank_sources",
    "read",
    "retrieval",
    "run",
    "search",
    "word_distances",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'isogloss' has no attribute {name!r}")
    with explaining_missing_models():
        return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
