"""Source-only: train on the source languages, test anywhere (zero-shot transfer; paper 1's θ_S)."""

from dataclasses import dataclass
from typing import ClassVar

from isogloss.training.setting import Reads, Setting
from isogloss.training.supervised import Trained, fine_tune


@dataclass(frozen=True, kw_only=True)
class SourceOnly:
    """Train on the source languages alone."""

    name: ClassVar[str] = "source-only"
    sides: ClassVar[tuple[str, ...]] = ("source",)
    goes_on: ClassVar[bool] = False

    def reads(self, source: tuple[str, ...], target: tuple[str, ...]) -> Reads:  # noqa: ARG002
        """Read the source languages alone."""
        return Reads(train=source, dev=source)

    def train(self, setting: Setting) -> Trained:
        """Fine-tune on the source languages; their dev sets choose the epoch."""
        return fine_tune(setting, self.reads(setting.source, setting.target))
