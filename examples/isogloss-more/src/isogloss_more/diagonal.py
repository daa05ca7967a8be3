"""The simplest word aligner: words at the same relative place are linked."""

from dataclasses import dataclass
from typing import ClassVar

from isogloss.plugins import Aligned, Aligner, AlignSetting, pair_words


@dataclass(frozen=True, kw_only=True)
class Diagonal(Aligner):
    """Link word i of n with word i · m / n of m."""

    name: ClassVar[str] = "diagonal"
    needs_encoder: ClassVar[bool] = False

    def align(self, setting: AlignSetting) -> list[Aligned]:
        """Link every pair."""
        lengths = [tuple(map(len, pair_words(pair))) for pair in setting.pairs]
        return [
            Aligned(
                links=tuple(
                    (place, place * target_count // source_count)
                    for place in range(source_count if target_count else 0)
                )
            )
            for source_count, target_count in lengths
        ]
