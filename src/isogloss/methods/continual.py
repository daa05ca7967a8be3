"""Continual learning: keep pulling translated words together while the task is learned.

"The Impact of Cross-Lingual Adjustment of Contextual Word Representations on Zero-Shot Transfer", Section 3,
Eq. 2: L = L_task + α·L_align, where L_align is Eq. 1 on sentence pairs that are drawn at random at each
step. With α = 0 it is source-only, to the bit.
"""

from dataclasses import dataclass
from itertools import product
from typing import Any, ClassVar

from torch import Tensor

from isogloss.core.runs import Positive, Weight
from isogloss.nn.closeness import Form
from isogloss.training.adjustment_terms import Weighs, adjustment_terms, beside_a_task
from isogloss.training.aligned_batches import AlignedBatch
from isogloss.training.aligned_pairs import Pulled, Reading, Word
from isogloss.training.kept_states import Kept
from isogloss.training.replay import Replay
from isogloss.training.setting import Reads, Setting
from isogloss.training.supervised import Trained, fine_tune


@dataclass(frozen=True, kw_only=True)
class Continual:
    """Train on the source languages, and on aligned sentence pairs beside it (Eq. 2)."""

    name: ClassVar[str] = "continual"
    sides: ClassVar[tuple[str, ...]] = ("source", "target")
    goes_on: ClassVar[bool] = False

    bitext: str = ""
    """Corpus of translations the sentence pairs are drawn from."""

    alpha: Weight = 0.01
    """Weight of Eq. 1 beside the task's loss; 0 is plain fine-tuning."""

    weighs: Weighs = "both"
    """What alpha multiplies: both terms of Eq. 1, as printed, or the pull alone (released code: the term
    that keeps source words in place then has weight 1, also with alpha = 0)."""

    form: Form = "mean"
    """mean: the terms of Eq. 1 are means over words and dimensions, as in the released code, for which the
    paper's alpha was tuned; sum: as printed, thousands of times larger than a task's loss."""

    pairs: Positive = 16
    """Sentence pairs a step."""

    layer: int = -1
    """Layer whose states are pulled; -1 is the last, 0 the embeddings."""

    word: Word = "average"
    """What represents a word: average, first, last, or subwords (each for itself)."""

    pulled: Pulled = "all"
    """What is pulled together: all (linked words, [CLS] and [SEP]), words, special, opening, sentences."""

    drop_identical: bool = False
    """Whether words that are spelled alike in both languages are left alone."""

    longest: Positive = 64
    """Words of the longest sentence; pairs with a longer one are left out."""

    kept: Kept = "float16"
    """In what f⁰, the encoder's states before the first step, is kept on disk."""

    def reads(self, source: tuple[str, ...], target: tuple[str, ...]) -> Reads:
        """Read labels of the source alone; the target is seen in bitext only."""
        pairs = tuple(f"{one}-{other}" for one, other in product(source, target))
        return Reads(train=source, dev=source, bitext=self.bitext, pairs=pairs)

    def train(self, setting: Setting) -> Trained:
        """Fine-tune on the source languages with Eq. 1 beside; their dev sets choose the epoch."""
        reads = self.reads(setting.source, setting.target)
        if not self.alpha and self.weighs == "both":
            return fine_tune(setting, reads)  # No second term, not even one of weight 0: the same to the bit.
        reading = Reading(
            word=self.word,
            pulled=self.pulled,
            drop_identical=self.drop_identical,
            longest=self.longest,
            layer=self.layer,
        )
        replay = Replay(reading=reading, size=self.pairs, kept=self.kept, loss=self._weighted)
        return fine_tune(setting, reads, beside=replay)

    def _weighted(self, model: Any, batch: AlignedBatch) -> Tensor:
        """Return α·L_align (Eq. 2)."""
        terms = adjustment_terms(model, batch, layer=self.layer, form=self.form)
        return beside_a_task(terms, alpha=self.alpha, weighs=self.weighs)
