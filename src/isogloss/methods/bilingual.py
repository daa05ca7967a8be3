"""Bilingual: train on source and target labels together (paper 1's θ_ST), one language a batch.

With the seed of a source-only or target-only run it starts from the very same head.
"""

from dataclasses import dataclass, field
from typing import ClassVar

from isogloss.training.drawn_conflict import WATCHES, Conflict
from isogloss.training.setting import Reads, Setting
from isogloss.training.supervised import Trained, fine_tune


@dataclass(frozen=True, kw_only=True)
class Bilingual:
    """Train on the source and target languages together."""

    name: ClassVar[str] = "bilingual"
    sides: ClassVar[tuple[str, ...]] = ("source", "target")
    goes_on: ClassVar[bool] = False

    conflict: Conflict | None = field(default=None, metadata=WATCHES)
    """Gradient conflict between the languages, watched on the way: every, batch and layers; else none is."""

    def reads(self, source: tuple[str, ...], target: tuple[str, ...]) -> Reads:
        """Read both; the mean of their dev scores chooses the epoch."""
        return Reads(train=(*source, *target), dev=(*source, *target))

    def train(self, setting: Setting) -> Trained:
        """Fine-tune on both; the mean of their dev scores chooses the epoch."""
        reads = self.reads(setting.source, setting.target)
        return fine_tune(setting, reads, conflict=self.conflict)
