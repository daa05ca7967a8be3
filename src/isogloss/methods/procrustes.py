"""Procrustes: turn each target language's states onto the source's, by the rotation that brings them nearest.

Schönemann (1966) has the orthogonal map in closed form; Artetxe et al. (2016) and Wang et al. (2019,
"Cross-Lingual BERT Transformation") align words and contextual states of two languages so. Both languages
are centred first, as in Artetxe et al.: the map is x ↦ (x - t̄)R + s̄. The encoder itself stays as it is.
"""

from dataclasses import dataclass
from typing import ClassVar, Literal

from isogloss.core.run_parts import Positive
from isogloss.training.adjustment import Adjusted, adjust_by_map
from isogloss.training.aligned_pairs import PairEncoding, Word
from isogloss.training.setting import AdjustSetting


@dataclass(frozen=True, kw_only=True)
class Procrustes:
    """Rotate the last states of each target language onto the source's."""

    name: ClassVar[str] = "procrustes"
    maps: ClassVar[bool] = True

    level: Literal["word", "sentence"] = "word"
    """What is matched: linked words, or the means of whole sentences."""

    word: Word = "average"
    """What represents a word: average, first, last, or subwords (each for itself)."""

    drop_identical: bool = False
    """Whether words that are spelled alike in both languages are left out."""

    longest: Positive = 64
    """Words of the longest sentence; pairs with a longer one are left out."""

    precision: Literal["auto", "float32", "bfloat16"] = "auto"
    """auto (measured once per machine), float32 or bfloat16."""

    def train(self, setting: AdjustSetting) -> Adjusted:
        """Find the rotations; the encoder stays as it is, to the bit."""
        encoding = PairEncoding(
            word=self.word,
            aligned="words" if self.level == "word" else "sentences",
            drop_identical=self.drop_identical,
            longest=self.longest,
        )
        return adjust_by_map(setting, "rotation", encoding=encoding, precision=self.precision)
