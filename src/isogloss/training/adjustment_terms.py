"""The two terms of cross-lingual adjustment, shared by adjusting alone (Eq. 1) and beside a task (Eq. 2)."""

from typing import Any, Literal, NamedTuple

from torch import Tensor

from isogloss.nn.closeness import Form, squared_distance
from isogloss.training.aligned_batches import AlignedBatch, states_of

Weighs = Literal["both", "pull"]
"""What α multiplies in Eq. 2: both terms of Eq. 1, as printed, or the pull alone, as in the released code."""


class Terms(NamedTuple):
    """How far apart aligned words are, and how far source words have moved."""

    pull: Tensor
    stay: Tensor


def adjustment_terms(model: Any, batch: AlignedBatch, *, layer: int, form: Form) -> Terms:
    """Return Σ‖f(s)−f(t)‖² over aligned pairs and Σ‖f(s)−f⁰(s)‖² over all source words (Eq. 1)."""
    f = states_of(model, batch.passes, layer=layer)
    return Terms(
        pull=squared_distance(batch.source.of(f), batch.target.of(f), form),
        stay=squared_distance(batch.held.of(f), batch.before.to(f.dtype), form),
    )


def beside_a_task(terms: Terms, *, alpha: float, weighs: Weighs) -> Tensor:
    """Return what Eq. 2 adds to the task's loss: α·L_align."""
    return alpha * terms.pull + (alpha if weighs == "both" else 1.0) * terms.stay
