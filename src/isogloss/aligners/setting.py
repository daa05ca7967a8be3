"""Interface of word aligners, and their inputs."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Protocol

from isogloss.core.progress import OnProgress, no_progress
from isogloss.core.run_parts import Named
from isogloss.data.examples import Translation

if TYPE_CHECKING:
    from isogloss.data.formats.word_links import Aligned


@dataclass(frozen=True, kw_only=True)
class AlignSetting:
    """Sentence pairs (words: ``word_links.pair_words``), and an encoder if needed."""

    pairs: list[Translation]
    languages: tuple[str, str] = ("", "")
    """Languages of the two sides. An encoder with language modules or maps requires them."""

    encoder: str = ""
    """Folder or name of an encoder. Empty for an aligner that needs none."""

    precision: str = "auto"
    """Precision of the encoder: auto, float32, tf32 or bfloat16."""

    on_progress: OnProgress = no_progress


class Aligner(Named, Protocol):
    """A word aligner. Its fields are its hyper-parameters."""

    needs_encoder: ClassVar[bool]
    """Whether it uses the states of an encoder (instead of only the statistics of the bitext)."""

    def align(self, setting: AlignSetting) -> "list[Aligned]":
        """Align every pair, in order."""
        ...
