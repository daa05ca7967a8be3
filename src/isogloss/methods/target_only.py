"""Target-only: train on the target language's own labels (paper 1's θ_T)."""

from dataclasses import dataclass
from typing import ClassVar

from isogloss.training.setting import Setting
from isogloss.training.supervised import Trained, fine_tune


@dataclass(frozen=True, kw_only=True)
class TargetOnly:
    """Train on the target languages alone."""

    name: ClassVar[str] = "target-only"
    sides: ClassVar[tuple[str, ...]] = ("target",)

    def train(self, setting: Setting) -> Trained:
        """Fine-tune on the target languages; their dev sets choose the epoch."""
        return fine_tune(setting, setting.target)
