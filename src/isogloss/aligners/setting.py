"""What a word aligner is given: sentence pairs, an encoder if it needs one, and a folder of its own."""

from dataclasses import dataclass
from pathlib import Path

from isogloss.core.progress import OnProgress, no_progress
from isogloss.data.examples import Translation


@dataclass(frozen=True, kw_only=True)
class AlignSetting:
    """What a word aligner is given; the words of a pair are those of ``word_links.pair_words``."""

    pairs: list[Translation]
    languages: tuple[str, str] = ("", "")
    """Of the first sides and of the second; an encoder with language modules or maps must know them."""

    encoder: str = ""
    """Folder or name of an encoder; empty for an aligner that needs none."""

    precision: str = "auto"
    """Precision the encoder computes in: auto, float32 or bfloat16."""

    folder: Path
    """A folder of its own, in which it keeps what it learns from the pairs."""

    seed: int = 0
    on_progress: OnProgress = no_progress
