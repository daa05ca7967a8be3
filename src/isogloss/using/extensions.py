"""Tables of what features add to fine-tuned models: actions of a model, and further engines that predict."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Protocol

from isogloss.core.errors import missing_feature
from isogloss.core.registry import Registry
from isogloss.using.predictor import Predictor


class FindPredictor(Protocol):
    """A function that loads the predictor of a further engine from the folders of models."""

    def __call__(
        self, folders: Sequence[Path], *, onnx: bool | None, int8: bool, say: Callable[[str], None]
    ) -> Predictor | None:
        """Return the predictor, or None if torch is to be used.

        ``isogloss predict`` has the same options. ``say`` receives which file is used, or why a file is
        not used.
        """


ACTIONS: Registry[Callable[..., Any]] = Registry({}, features="model-actions")
"""Functions of a fine-tuned model: export and push."""

PREDICTORS: Registry[FindPredictor] = Registry({}, features="predictors")
"""Engines that predict besides torch, by the option that demands them."""


def find_action(name: str) -> Callable[..., Any]:
    """Return an action of a model by name.

    Raises ConfigError if the feature that adds it is missing.
    """
    if name not in ACTIONS:
        raise missing_feature(f"{name}: this", "Install isogloss again.")
    return ACTIONS[name]
