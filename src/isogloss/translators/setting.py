"""What a translator is given: languages, a model if it needs one, and a folder of its own."""

from dataclasses import dataclass
from pathlib import Path

from isogloss.core.progress import OnProgress, Progress, no_progress


@dataclass(frozen=True, kw_only=True)
class TranslateSetting:
    """What a translator is given."""

    source: str
    """Language of the texts."""
    target: str
    """Language to translate into."""
    model: str = ""
    """Folder or hub name of a model; empty for a translator that needs none."""
    folder: Path
    """A folder of its own, in which it keeps what is translated already."""
    precision: str = "auto"
    """Precision a model computes in: auto, float32 or bfloat16."""
    total: int = 0
    """Texts there will be, for those who are told of the progress; 0 when nobody knows."""
    on_progress: OnProgress = no_progress

    def told(self, done: int) -> None:
        """Tell how many texts are translated."""
        what = f"translating {self.source} into {self.target}"
        self.on_progress(Progress(what, done, max(done, self.total)))
