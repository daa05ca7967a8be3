"""The inputs of a word aligner."""

from dataclasses import dataclass
from pathlib import Path

from isogloss.core.progress import OnProgress, no_progress
from isogloss.data.examples import Translation


@dataclass(frozen=True, kw_only=True)
class AlignSetting:
    """Sentence pairs (words: ``word_links.pair_words``), an encoder if needed, and a work folder."""

    pairs: list[Translation]
    languages: tuple[str, str] = ("", "")
    """Of the first and the second sides; required by an encoder with language modules or maps."""

    encoder: str = ""
    """Folder or name of an encoder; empty for an aligner that needs none."""

    precision: str = "auto"
    """Precision of the encoder: auto, float32 or bfloat16."""

    folder: Path
    """A work folder, in which what is learned from the pairs is stored."""

    seed: int = 0
    on_progress: OnProgress = no_progress
