"""Checks of probabilities that a caller gives."""

from typing import Any

import numpy as np
import numpy.typing as npt

from isogloss.core.errors import DataError

TOLERANCE = 0.01
"""Tolerance of the sum of probabilities, which may be in low precision."""


def check_probabilities(values: npt.NDArray[np.floating[Any]], argument: str) -> None:
    """Raise DataError unless each row [item, class] has numbers from 0 to 1 that sum to 1."""
    if not values.size:
        return
    if not np.isfinite(values).all() or values.min() < 0 or abs(values.sum(axis=1) - 1).max() > TOLERANCE:
        raise DataError(
            f"{argument}: expected rows of numbers between 0 and 1 that sum to 1. Apply a softmax to logits "
            f"first."
        )
