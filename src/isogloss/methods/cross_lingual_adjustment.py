"""Cross-lingual adjustment: bring translated words together, anchor the source's words.

"The Impact of Cross-Lingual Adjustment of Contextual Word Representations on Zero-Shot Transfer", Section 3,
Eq. 1, after Cao et al. (2020). The paper leaves the optimisation to Cao et al.; their code, and the paper's
own, is where rates, lengths and dropout come from. One thing differs: after the warm-up their rate stays
where it is (``rate_schedule = "constant"``), and ours falls to 0, as it does in every training here.
"""

from dataclasses import dataclass, field
from typing import ClassVar

from torch import Tensor

from isogloss.core.run_parts import NESTED, Count, Positive, Updates, Weight, Whole, nested_fields
from isogloss.nn.distance import Form
from isogloss.tasks.task import Model
from isogloss.training.adjustment import PairTraining, adjust
from isogloss.training.aligned_batches import AlignedBatch, CacheType, alignment_terms
from isogloss.training.aligned_pairs import WITH_WORDS, Aligned, PairEncoding, Word
from isogloss.training.memory import Cost, Load, subwords_of
from isogloss.training.setting import Adjustment, AdjustSetting, Trained


@dataclass(frozen=True, kw_only=True)
class CrossLingualAdjustment(Adjustment):
    """Bring the states of aligned words together (Eq. 1)."""

    name: ClassVar[str] = "cross-lingual-adjustment"

    form: Form = "sum"
    """sum: Eq. 1 as printed, every pair and every source word counts alike; mean: each term is a mean over
    its words and dimensions, as in the released code, so that a pair weighs more than a source word. Both
    train at the same rate: Adam is invariant to the scale of the loss."""

    stay: Weight = 1.0
    """Weight of the second term, which anchors source words at their states before the training."""

    layer: Whole = -1
    """Layer whose states are adjusted; -1 is the last, 0 the embeddings. Those above it stay as they are."""

    word: Word = "average"
    """What represents a word: the average of its subwords, its first, its last, or subwords: each subword of
    a word is aligned with each of its translation's. Or aligned-subwords: the aligner links subwords in place
    of words (Table 6's subword alignment)."""

    pulled: Aligned = "all"
    """What is aligned: all (linked words, [CLS] and [SEP]), words, special ([CLS] and [SEP]), opening
    ([CLS]), or sentences (the means of both sentences). The first four are Table 7's."""

    drop_identical: bool = False
    """Whether words that are spelled alike in both languages are left out (the released code does)."""

    longest: Positive = 64
    """Words of the longest sentence; pairs with a longer one are left out."""

    epochs: Count = 1
    """Passes over the sentence pairs; 0 leaves the encoder as it is."""

    batch_size: Positive = 32
    """Sentence pairs a step, all of one pair of languages."""

    updates: Updates = field(
        default=Updates(learning_rate=5e-5, weight_decay=0.0, beta2=0.98, epsilon=1e-9, clip=0.0),
        metadata=NESTED,
    )
    """How weights are updated: Adam as in Cao et al. (2020), after Vaswani et al. (2017), Section 5.3, and
    without clipping, which makes the sum of Eq. 1 depend on how many words a batch has."""

    dropout: bool = True
    """Whether dropout is on while the encoder is adjusted, as in the released code; never for f⁰."""

    kept: CacheType = "float16"
    """Data type in which f⁰ is cached on disk: float16 or float32."""

    _nested = nested_fields()

    @property
    def needs_links(self) -> bool:
        """Whether it reads which words are linked."""
        return self.pulled in WITH_WORDS

    def cost(self, pairs: int) -> Cost | None:
        """Return the cost of both sides of its batches."""
        return Cost(
            batch=Load(rows=2 * self.batch_size, length=subwords_of(self.longest)),
            steps=pairs * self.epochs / self.batch_size,
            updates=self.updates,
            dropout=self.dropout,
        )

    def train(self, setting: AdjustSetting) -> Trained:
        """Adjust the encoder on aligned bitext; without pairs or steps it stays as it is, to the bit."""
        encoding = PairEncoding(
            word=self.word,
            aligned=self.pulled,
            drop_identical=self.drop_identical,
            longest=self.longest,
            layer=self.layer,
        )
        training = PairTraining(
            epochs=self.epochs, batch_size=self.batch_size, updates=self.updates, dropout=self.dropout
        )
        return adjust(setting, self._loss, encoding=encoding, training=training, kept=self.kept)

    def _loss(self, model: Model, batch: AlignedBatch) -> Tensor:
        """Return Eq. 1: Σ‖f(s)−f(t)‖² over aligned pairs + Σ‖f(s)−f⁰(s)‖² over all source words."""
        terms = alignment_terms(model, batch, layer=self.layer, form=self.form)
        return terms.aligned + self.stay * terms.anchored
