"""Scores of a model by a function of the caller: what it may return, and how it is read."""

from collections.abc import Callable, Mapping
from typing import Any, SupportsFloat

from isogloss.core.errors import DataError

Score = Callable[[Any], SupportsFloat | Mapping[str, SupportsFloat]]
"""From a model to a number, or to several by name (languages, measures)."""


def read_scores(result: Any) -> dict[str, float]:
    """Return the numbers of a score by name. Raises DataError for anything else."""
    values = dict(result.items()) if hasattr(result, "items") else {"score": result}
    try:
        return {str(name): float(value) for name, value in values.items()}
    except (TypeError, ValueError, RuntimeError) as error:
        raise DataError(
            f"score: returned {result!r:.60}; expected a number, or a mapping from names to numbers. Return "
            f"one number for each, such as a mean."
        ) from error
