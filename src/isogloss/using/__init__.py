"""A fine-tuned model as Python uses it: predicting, evaluating, exporting, pushing, loading.

Importing it is cheap: torch is imported when a model of torch is loaded.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from isogloss.using.models import Model, ensemble, load_model
    from isogloss.using.predicting import PredictOptions, predict_file
    from isogloss.using.scoring import EvaluateOptions, evaluate

_HOMES = {
    "EvaluateOptions": "scoring",
    "Model": "models",
    "PredictOptions": "predicting",
    "ensemble": "models",
    "evaluate": "scoring",
    "load_model": "models",
    "predict_file": "predicting",
}
"""The module of each public name."""


def __getattr__(name: str) -> Any:
    if name == "export":
        from isogloss.using.extensions import find_action

        return find_action(name)
    if name not in _HOMES:
        raise AttributeError(f"module 'isogloss.using' has no attribute {name!r}")
    return getattr(import_module(f"isogloss.using.{_HOMES[name]}"), name)


__all__ = [
    "EvaluateOptions",
    "Model",
    "PredictOptions",
    "ensemble",
    "evaluate",
    "export",
    "load_model",
    "predict_file",
]
