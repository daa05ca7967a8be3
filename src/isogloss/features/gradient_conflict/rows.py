"""Rows of gradients of two languages."""

from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True, slots=True, kw_only=True)
class ConflictRow:
    """Cosine of the gradients of two batches, of two languages or of one, in a part of a model."""

    frame: ClassVar[str] = "gradient-conflict"
    model: str
    """A model, or an encoder (also in all rows below)."""
    draw: int
    batch: int
    first: str
    second: str
    layer: int | None
    """Layer counted from 1. 0 stands for the embeddings, None for all layers together."""
    module: str
    cosine: float | None
    within: float | None = None
    norm_first: float
    norm_second: float
    overlap: float | None = None
    """Share of subwords that the two texts have in common."""


GRADIENT_CONFLICT = (ConflictRow,)
TASK_GRADIENT_CONFLICT = (ConflictRow,)
"""Classes of rows by diagnostic."""
