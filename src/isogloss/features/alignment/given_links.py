"""Gold alignments of the bitext itself, or none at all."""

from dataclasses import dataclass
from typing import ClassVar

from isogloss.aligners.setting import AlignSetting
from isogloss.core.errors import DataError
from isogloss.data.formats.word_links import Aligned


@dataclass(frozen=True, kw_only=True)
class GivenLinks:
    """Use the links of the bitext itself, without those that are only possible."""

    name: ClassVar[str] = "given"
    needs_encoder: ClassVar[bool] = False

    def align(self, setting: AlignSetting) -> list[Aligned]:
        """Return the links of every pair. Raises DataError at a pair without links."""
        alignments = []
        for pair in setting.pairs:
            if pair.links is None:
                raise DataError(
                    f"aligner given: translation {pair.id!r} has no links. Choose another aligner."
                )
            alignments.append(Aligned(links=tuple(sorted(pair.links))))
        return alignments


@dataclass(frozen=True, kw_only=True)
class Unlinked:
    """Link no words: for methods that read whole sentences, whatever aligner a recipe names."""

    name: ClassVar[str] = "unlinked"
    needs_encoder: ClassVar[bool] = False

    def align(self, setting: AlignSetting) -> list[Aligned]:
        """Return no links for every pair."""
        return [Aligned(links=()) for _ in setting.pairs]
