"""Translate-train: train on the source and on its translations into the target languages.

The strongest plain baseline of X-Mixup and of XTREME (Hu et al., 2020). Translations come as examples of a
pair: en-sw is what was written in en and translated into sw, labels carried over. Without a target it is
source-only, to the bit.
"""

from dataclasses import dataclass, field
from itertools import product
from typing import ClassVar

from isogloss.training.drawn_conflict import WATCHES, Conflict
from isogloss.training.setting import Reads, Setting
from isogloss.training.supervised import Trained, fine_tune


@dataclass(frozen=True, kw_only=True)
class TranslateTrain:
    """Train on the source languages and their translations together."""

    name: ClassVar[str] = "translate-train"
    sides: ClassVar[tuple[str, ...]] = ("source", "target")
    goes_on: ClassVar[bool] = False

    with_source: bool = True
    """Whether the source examples themselves are trained on too."""

    conflict: Conflict | None = field(default=None, metadata=WATCHES)
    """Gradient conflict between the languages, watched on the way: every, batch and layers; else none is."""

    def reads(self, source: tuple[str, ...], target: tuple[str, ...]) -> Reads:
        """Read the source and its translations; target labels choose nothing: they are thought unknown."""
        translated = tuple(f"{one}-{other}" for one, other in product(source, target))
        return Reads(train=(*(source if self.with_source else ()), *translated), dev=source)

    def train(self, setting: Setting) -> Trained:
        """Fine-tune on all of them, one language a batch."""
        reads = self.reads(setting.source, setting.target)
        return fine_tune(setting, reads, conflict=self.conflict)
