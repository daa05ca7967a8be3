"""A language's loss over a large batch, computed part by part, as gradients are accumulated."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from torch import Tensor

from isogloss.core.seeds import derive
from isogloss.encoders.speaking import of_language
from isogloss.tasks import Task
from isogloss.tasks.batch import EncodedRow, collate
from isogloss.tasks.masked_lm import MaskedBatch, Masking, masked_lm_loss
from isogloss.training.batching import by_length
from isogloss.training.precision import autocast

ROWS = 32
"""Labelled rows computed together."""


def masked_parts(
    rows: Sequence[np.ndarray], masking: Masking, *, seed: int, budget: int, language: str = ""
) -> list[MaskedBatch]:
    """Cut rows of text into batches of at most ``budget`` subwords; the seed alone says what is hidden."""
    groups = by_length([len(row) + 2 for row in rows], budget)
    return [
        masking.batch([[rows[row]] for row in group], seed=derive(seed, "part", number), language=language)
        for number, group in enumerate(groups)
    ]


def text_losses(
    model: Any, language: str, batches: Sequence[MaskedBatch], *, precision: str
) -> Iterator[Tensor]:
    """Give the mean cross entropy at the hidden places of all batches, in a part for each.

    A part is computed when it is asked for.
    """
    device = next(model.parameters()).device
    hidden = sum(len(batch.gold) for batch in batches)
    with of_language(model, language):
        for batch in batches:
            with autocast(device, precision):
                loss = masked_lm_loss(model, batch)
            yield loss * (len(batch.gold) / hidden)


def task_losses(
    model: Any,
    language: str,
    rows: Sequence[EncodedRow],
    task: Task,
    *,
    padding: int,
    precision: str,
) -> Iterator[Tensor]:
    """Give a task's loss over labelled rows, the mean over batches as training sees it, batch by batch."""
    device = next(model.parameters()).device
    with of_language(model, language):
        for start in range(0, len(rows), ROWS):
            part = rows[start : start + ROWS]
            batch = collate(part, padding=padding).to(device)
            with autocast(device, precision):
                loss = task.loss(model, batch)
            yield loss * (len(part) / len(rows))
