"""Continual learning: keep pulling translated words together while the task is learned.

"The Impact of Cross-Lingual Adjustment of Contextual Word Representations on Zero-Shot Transfer", Section 3,
Eq. 2: L = L_task + α·L_align. Both methods here are others with that auxiliary loss
(``training.alignment_loss``): with α = 0 they are source-only and few-shot, to the bit.
"""

from dataclasses import dataclass
from itertools import product
from typing import ClassVar, Literal

from isogloss.core.runs import Count, Positive, Weight, Whole
from isogloss.data.examples import Per
from isogloss.nn.closeness import Form
from isogloss.training.aligned_batches import CacheType
from isogloss.training.aligned_pairs import Aligned, PairEncoding, Word
from isogloss.training.alignment_loss import AlignmentLoss, Weighs
from isogloss.training.fine_tuning import Trained, few_examples, fine_tune
from isogloss.training.setting import Reads, Setting


@dataclass(frozen=True, kw_only=True)
class Continual:
    """Train on the source languages, and on aligned sentence pairs beside it (Eq. 2)."""

    name: ClassVar[str] = "continual"
    uses: ClassVar[tuple[str, ...]] = ("source", "target")
    needs_start: ClassVar[bool] = False

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

    pulled: Aligned = "all"
    """What is pulled together: all (linked words, [CLS] and [SEP]), words, special, opening, sentences."""

    drop_identical: bool = False
    """Whether words that are spelled alike in both languages are left alone."""

    longest: Positive = 64
    """Words of the longest sentence; pairs with a longer one are left out."""

    kept: CacheType = "float16"
    """In what f⁰, the encoder's states before the first step, is kept on disk."""

    def reads(self, source: tuple[str, ...], target: tuple[str, ...]) -> Reads:
        """Read labels of the source alone; the target is seen in bitext only."""
        pairs = tuple(f"{one}-{other}" for one, other in product(source, target))
        return Reads(train=source, dev=source, bitext=self.bitext, pairs=pairs)

    def train(self, setting: Setting) -> Trained:
        """Fine-tune on the source languages with Eq. 1 beside; their dev sets choose the epoch."""
        encoding = PairEncoding(
            word=self.word,
            aligned=self.pulled,
            drop_identical=self.drop_identical,
            longest=self.longest,
            layer=self.layer,
        )
        loss = AlignmentLoss(
            alpha=self.alpha,
            weighs=self.weighs,
            form=self.form,
            pairs=self.pairs,
            encoding=encoding,
            kept=self.kept,
        )
        return fine_tune(setting, self.reads(setting.source, setting.target), auxiliary=loss)


@dataclass(frozen=True, kw_only=True)
class ContinualFewShot:
    """Go on from a model with a few target examples, and aligned sentence pairs beside them."""

    name: ClassVar[str] = "continual-few-shot"
    uses: ClassVar[tuple[str, ...]] = ("source", "target")
    needs_start: ClassVar[bool] = True

    shots: Count = 10
    """Examples of each target language."""

    per: Per = "all"
    """What shots are counted for: all examples, or each label (tasks with one label an example)."""

    draw: Whole = 0
    """Seed of the choice of shots; with one draw, fewer shots are the first of more."""

    dev: Literal["target", "source"] = "target"
    """Whose dev set chooses the epoch: the training language's, or one without target labels."""

    bitext: str = ""
    """Corpus of translations the sentence pairs are drawn from."""

    alpha: Weight = 0.01
    """Weight of Eq. 1 beside the task's loss; 0 is plain few-shot."""

    pairs: Positive = 16
    """Sentence pairs a step."""

    def reads(self, source: tuple[str, ...], target: tuple[str, ...]) -> Reads:
        """Read the targets; the dev sets of one side choose the epoch."""
        return Reads(train=target, dev=target if self.dev == "target" else source)

    def train(self, setting: Setting) -> Trained:
        """Train on the chosen examples, with Eq. 1 beside; what stays in place is the model's own encoder."""
        few = few_examples(setting, self.shots, draw=self.draw, per=self.per)
        loss = AlignmentLoss(alpha=self.alpha, pairs=self.pairs)
        return fine_tune(few, self.reads(setting.source, setting.target), auxiliary=loss)
