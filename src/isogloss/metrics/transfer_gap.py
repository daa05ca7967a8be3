"""Cross-lingual transfer gap: how much is lost on the way to languages without labels.

Hu et al. (2020), "XTREME", Section 5: source score minus the mean over the targets.
"""

import math
from collections.abc import Sequence

from isogloss.core.errors import InputError


def transfer_gap(source_score: float, target_scores: Sequence[float]) -> float:
    """Return the source score minus the mean target score; 0 is perfect transfer."""
    if not target_scores:
        raise InputError("transfer_gap: no target scores. Give the score of at least one target language.")
    return source_score - math.fsum(target_scores) / len(target_scores)
