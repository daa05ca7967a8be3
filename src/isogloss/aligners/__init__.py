"""Floor 5: one word aligner per file."""

from typing import ClassVar, Protocol

from isogloss.aligners.eflomal import Eflomal
from isogloss.aligners.encoder_similarity import EncoderSimilarity
from isogloss.aligners.fast_align import FastAlign
from isogloss.aligners.given import Given
from isogloss.aligners.setting import AlignSetting
from isogloss.core.run_parts import Named
from isogloss.data.formats.word_links import Aligned


class Aligner(Named, Protocol):
    """A word aligner; its fields are its hyper-parameters."""

    needs_encoder: ClassVar[bool]
    """Whether it uses the states of an encoder (otherwise the statistics of the bitext alone)."""

    def align(self, setting: AlignSetting) -> list[Aligned]:
        """Align every pair, in order."""
        ...


_ALL: tuple[type[Aligner], ...] = (FastAlign, Eflomal, EncoderSimilarity, Given)
ALIGNERS: dict[str, type[Aligner]] = {aligner.name: aligner for aligner in _ALL}

__all__ = ["ALIGNERS", "AlignSetting", "Aligned", "Aligner"]
