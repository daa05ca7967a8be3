"""The inputs of a word aligner."""

from dataclasses import dataclass

from isogloss.core.progress import OnProgress, no_progress
from isogloss.data.examples import Translation


@dataclass(frozen=True, kw_only=True)
class AlignSetting:
    """Sentence pairs (words: ``word_links.pair_words``), and an encoder if needed."""

    pairs: list[Translation]
    languages: tuple[str, str] = ("", "")
    """Of the first and the second sides; required by an encoder with language modules or maps."""

    encoder: str = ""
    """Folder or name of an encoder; empty for an aligner that needs none."""

    precision: str = "auto"
    """Precision of the encoder: auto, float32 or bfloat16."""

    on_progress: OnProgress = no_progress
