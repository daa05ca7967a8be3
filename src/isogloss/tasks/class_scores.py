"""Scores of the classes of labelled units, in one form for all tasks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jaxtyping import Float

from isogloss.tasks.batch import Batch
from isogloss.tasks.task import Task

if TYPE_CHECKING:
    from torch import Tensor

IMPOSSIBLE = -1e4
"""Score of a position where no answer can start or end: its probability is 0, its logarithm finite."""


def in_classes(task: Task, scores: Tensor, batch: Batch) -> Float[Tensor, "label class"]:
    """Return raw scores of the classes of labelled units. The classes of a span are positions of its ends."""
    scores = scores.float()
    if task.labels_are != "span":
        return scores
    positions = scores.new_full((*batch.subwords.shape, 2), IMPOSSIBLE)
    return positions.index_put((batch.rows, batch.columns), scores).transpose(1, 2).flatten(0, 1)
