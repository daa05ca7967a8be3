"""Centring: what is the same in all states of a language is taken off, and the source's put in its place.

Libovický et al. (2020), "On the Language Neutrality of Pre-trained Multilingual Representations",
subtract each language's mean; Zhao et al. (2021), "Inducing Language-Agnostic Multilingual Representations",
divide by the standard deviation too. Here the source keeps its own mean and scale and the
others are given them, so that a model of the source reads its own language as before.
"""

from dataclasses import dataclass
from typing import ClassVar, Literal

from isogloss.core.run_parts import Positive
from isogloss.nn.language_map import Kind
from isogloss.training.adjustment import Adjusted, adjust_by_map
from isogloss.training.aligned_pairs import PairEncoding, Word
from isogloss.training.setting import AdjustSetting


@dataclass(frozen=True, kw_only=True)
class Centring:
    """Give the last states of each target language the source's mean, and its scale where asked."""

    name: ClassVar[str] = "centring"
    maps: ClassVar[bool] = True

    scale: bool = False
    """Whether the standard deviation of each dimension becomes the source's too (z-normalisation)."""

    level: Literal["word", "sentence"] = "word"
    """Whose means are taken: those of linked words, or of whole sentences."""

    word: Word = "average"
    """What represents a word: average, first, last, or subwords (each for itself)."""

    longest: Positive = 64
    """Words of the longest sentence; pairs with a longer one are left out."""

    precision: Literal["auto", "float32", "bfloat16"] = "auto"
    """auto (measured once per machine), float32 or bfloat16."""

    def train(self, setting: AdjustSetting) -> Adjusted:
        """Find the shifts; the encoder stays as it is, to the bit."""
        encoding = PairEncoding(
            word=self.word,
            aligned="words" if self.level == "word" else "sentences",
            longest=self.longest,
        )
        kind: Kind = "normalisation" if self.scale else "centring"
        return adjust_by_map(setting, kind, encoding=encoding, precision=self.precision)
