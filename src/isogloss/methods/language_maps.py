"""Adjustments that leave an encoder as it is and map each target language's last states onto the source's.

Procrustes: Schönemann (1966) has the orthogonal map in closed form; Artetxe et al. (2016) and Wang et al.
(2019, "Cross-Lingual BERT Transformation") align words and contextual states by it. Both languages are
centred first, as in Artetxe et al.: the map is x ↦ (x - t̄)R + s̄.

Centring: Libovický et al. (2020), "On the Language Neutrality of Pre-trained Multilingual Representations",
subtract each language's mean; Zhao et al. (2021), "Inducing Language-Agnostic Multilingual Representations",
divide by the standard deviation too. Here the source keeps its own mean and scale and the others are given
them, so that a model of the source reads its own language as before.
"""

from dataclasses import dataclass
from typing import ClassVar, Literal

from isogloss.core.run_parts import Positive
from isogloss.nn.language_modules import Kind
from isogloss.training.adjustment import adjust_by_map
from isogloss.training.aligned_pairs import PairEncoding, Word
from isogloss.training.setting import Adjustment, AdjustSetting, Trained


@dataclass(frozen=True, kw_only=True)
class Procrustes(Adjustment):
    """Rotate the last states of each target language onto the source's."""

    name: ClassVar[str] = "procrustes"
    maps: ClassVar[bool] = True

    level: Literal["word", "sentence"] = "word"
    """What is matched: linked words, or the means of whole sentences."""

    word: Word = "average"
    """What represents a word: average, first, last, subwords (each for itself), or aligned-subwords: links
    are of subwords."""

    drop_identical: bool = False
    """Whether words that are spelled alike in both languages are left out."""

    longest: Positive = 64
    """Words of the longest sentence; pairs with a longer one are left out."""

    precision: Literal["auto", "float32", "bfloat16"] = "auto"
    """auto (measured once per machine), float32 or bfloat16."""

    @property
    def needs_links(self) -> bool:
        """Whether it reads which words are linked."""
        return self.level == "word"

    def train(self, setting: AdjustSetting) -> Trained:
        """Find the rotations; the encoder stays as it is, to the bit."""
        encoding = PairEncoding(
            word=self.word,
            aligned="words" if self.level == "word" else "sentences",
            drop_identical=self.drop_identical,
            longest=self.longest,
        )
        return adjust_by_map(setting, "rotation", encoding=encoding, precision=self.precision)


@dataclass(frozen=True, kw_only=True)
class Centring(Adjustment):
    """Give the last states of each target language the source's mean, and its scale where asked."""

    name: ClassVar[str] = "centring"
    maps: ClassVar[bool] = True

    scale: bool = False
    """Whether the standard deviation of each dimension becomes the source's too (z-normalisation)."""

    level: Literal["word", "sentence"] = "word"
    """Whose means are taken: those of linked words, or of whole sentences."""

    word: Word = "average"
    """What represents a word: average, first, last, subwords (each for itself), or aligned-subwords: links
    are of subwords."""

    longest: Positive = 64
    """Words of the longest sentence; pairs with a longer one are left out."""

    precision: Literal["auto", "float32", "bfloat16"] = "auto"
    """auto (measured once per machine), float32 or bfloat16."""

    @property
    def needs_links(self) -> bool:
        """Whether it reads which words are linked."""
        return self.level == "word"

    def train(self, setting: AdjustSetting) -> Trained:
        """Find the shifts; the encoder stays as it is, to the bit."""
        encoding = PairEncoding(
            word=self.word,
            aligned="words" if self.level == "word" else "sentences",
            longest=self.longest,
        )
        kind: Kind = "normalisation" if self.scale else "centring"
        return adjust_by_map(setting, kind, encoding=encoding, precision=self.precision)
