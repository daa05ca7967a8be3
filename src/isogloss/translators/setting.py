"""The inputs of a translator."""

from dataclasses import dataclass
from pathlib import Path

from isogloss.core.progress import OnProgress, Progress, no_progress


@dataclass(frozen=True, kw_only=True)
class TranslateSetting:
    """Languages, a model if needed, and a work folder."""

    source: str
    """Language of the texts."""
    target: str
    """Language to translate into."""
    model: str = ""
    """Folder or hub name of a model; empty for a translator that needs none."""
    folder: Path
    """A work folder, in which translations are stored."""
    precision: str = "auto"
    """Precision of the model: auto, float32 or bfloat16."""
    total: int = 0
    """Number of texts, for progress; 0 if unknown."""
    on_progress: OnProgress = no_progress

    def report(self, done: int) -> None:
        """Report progress: how many texts are translated."""
        what = f"translating {self.source} into {self.target}"
        self.on_progress(Progress(what, done, max(done, self.total)))
