"""isogloss: cross-lingual transfer, measured and improved.

``import isogloss`` is cheap: torch and transformers are imported when something that needs them is used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from isogloss.core.version import VERSION as __version__

if TYPE_CHECKING:
    from isogloss.api import Result, Study, compare, compare_outputs, corpus, read, run, search
    from isogloss.core.errors import IsoglossError
    from isogloss.recipes.recipe import Recipe
    from isogloss.using import Model, load_model

_HOMES = {
    "IsoglossError": "isogloss.core.errors",
    "Model": "isogloss.using",
    "Recipe": "isogloss.recipes.recipe",
    "Result": "isogloss.api",
    "Study": "isogloss.api",
    "compare": "isogloss.api",
    "compare_outputs": "isogloss.api",
    "corpus": "isogloss.api",
    "load_model": "isogloss.using",
    "read": "isogloss.api",
    "run": "isogloss.api",
    "search": "isogloss.api",
}

__all__ = [
    "IsoglossError",
    "Model",
    "Recipe",
    "Result",
    "Study",
    "__version__",
    "compare",
    "compare_outputs",
    "corpus",
    "load_model",
    "read",
    "run",
    "search",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'isogloss' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
