"""Target-only: train on the target language's own labels (paper 1's θ_T)."""

from dataclasses import dataclass
from typing import ClassVar

from isogloss.training.setting import Reads, Setting
from isogloss.training.supervised import Trained, fine_tune


@dataclass(frozen=True, kw_only=True)
class TargetOnly:
    """Train on the target languages alone."""

    name: ClassVar[str] = "target-only"
    sides: ClassVar[tuple[str, ...]] = ("target",)
    goes_on: ClassVar[bool] = False

    def reads(self, source: tuple[str, ...], target: tuple[str, ...]) -> Reads:  # noqa: ARG002
        """Read the target languages alone."""
        return Reads(train=target, dev=target)

    def train(self, setting: Setting) -> Trained:
        """Fine-tune on the target languages; their dev sets choose the epoch."""
        return fine_tune(setting, self.reads(setting.source, setting.target))
