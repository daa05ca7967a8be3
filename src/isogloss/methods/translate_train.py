"""Translate-train: train on the source and on its translations into the target languages.

The strongest plain baseline of X-Mixup and of XTREME (Hu et al., 2020). Translations come as examples of a
pair: en-sw is what was written in en and translated into sw, labels carried over. Labels of words (tagging)
do not outlive translation; there a source-only model may label the translations, as it does for X-Mixup: a
baseline that knows no more than X-Mixup. Without a target it is source-only, to the bit.
"""

from dataclasses import dataclass, field
from itertools import product
from typing import ClassVar, Literal

from isogloss.core.errors import ConfigError
from isogloss.tasks import TASKS
from isogloss.training.drawn_conflict import WATCHES, Conflict
from isogloss.training.setting import Reads, Setting
from isogloss.training.supervised import Trained, fine_tune
from isogloss.training.taught import fine_tune_taught, is_tagging


@dataclass(frozen=True, kw_only=True)
class TranslateTrain:
    """Train on the source languages and their translations together."""

    name: ClassVar[str] = "translate-train"
    sides: ClassVar[tuple[str, ...]] = ("source", "target")
    goes_on: ClassVar[bool] = False

    with_source: bool = True
    """Whether the source examples themselves are trained on too."""

    labels: Literal["teacher"] | None = None
    """teacher: in tagging a source-only model labels the translations, and tags they come with are not looked
    at; none said: translations carry their labels, in tagging those of files that have some."""
    conflict: Conflict | None = field(default=None, metadata=WATCHES)
    """Gradient conflict between the languages, watched on the way: every, batch and layers; else none is."""

    def __post_init__(self) -> None:
        """Refuse to watch gradients of labels that are a teacher's."""
        if self.labels and self.conflict:
            raise ConfigError(
                f"{self.name}: conflict is watched on labelled examples, and labels = {self.labels!r} has "
                f"translations without. Leave one of the two out."
            )

    def reads(self, source: tuple[str, ...], target: tuple[str, ...]) -> Reads:
        """Read the source and its translations; target labels choose nothing: they are thought unknown."""
        translated = tuple(f"{one}-{other}" for one, other in product(source, target))
        return Reads(train=(*(source if self.with_source else ()), *translated), dev=source)

    def needs_teacher(self, task: str) -> bool:
        """Tell whether translations of a task are labelled by a source-only model."""
        return self.labels == "teacher" and is_tagging(TASKS[task])

    def train(self, setting: Setting) -> Trained:
        """Fine-tune on all of them, one language a batch."""
        if self.needs_teacher(setting.task.name):
            return fine_tune_taught(setting, self.reads(setting.source, setting.target), self.name)
        reads = self.reads(setting.source, setting.target)
        return fine_tune(setting, reads, conflict=self.conflict)
