"""Interface of translators, and their inputs."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Protocol

from isogloss.core.progress import OnProgress, Progress, no_progress
from isogloss.core.run_parts import Named

if TYPE_CHECKING:
    from isogloss.data.projection.example_texts import Translated


@dataclass(frozen=True, kw_only=True)
class TranslateSetting:
    """Languages, a model if needed, and a work folder."""

    source: str
    """Language of the texts."""
    target: str
    """Language to translate into."""
    model: str = ""
    """Folder or hub name of a model. Empty for a translator that needs none."""
    folder: Path
    """A work folder, in which translations are stored."""
    precision: str = "auto"
    """Precision of the model: auto, float32, tf32 or bfloat16."""
    total: int = 0
    """Number of texts, for progress. 0 if unknown."""
    on_progress: OnProgress = no_progress

    def report(self, count: int) -> None:
        """Report progress: how many texts are translated."""
        activity = f"translating {self.source} into {self.target}"
        self.on_progress(Progress(activity, count, max(count, self.total)))


class Translator(Named, Protocol):
    """A translator. Its fields are its hyper-parameters."""

    needs_model: ClassVar[bool]
    """Whether the setting must name a model's folder."""
    knows_links: ClassVar[bool]
    """Whether it returns word alignments."""

    def check(self, source: str, target: str) -> None:
        """Raise ConfigError, before any run starts, if it cannot translate between these languages."""
        ...

    def translate(self, texts: Iterable[str], setting: TranslateSetting) -> "Iterator[Translated]":
        """Yield a translation, of one line, for each text, in order. Empty texts have empty translations.

        Translations stored in the setting's folder are reused.
        """
        ...
