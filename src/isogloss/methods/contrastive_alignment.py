"""Contrastive alignment: a word, or sentence, must be nearest to its translation in the batch, both ways.

InfoNCE in both directions at temperature 0.1, as Wu & Dredze (2020) align words. What is
spelled alike in either language is no negative: function words and full stops are in every sentence.
"""

from dataclasses import dataclass, field
from typing import ClassVar, Literal

from torch import Tensor

from isogloss.core.errors import ConfigError
from isogloss.core.run_parts import NESTED, Count, Positive, Rate, Updates, Weight, Whole, nested_fields
from isogloss.nn.distance import bidirectional_contrast, squared_distance
from isogloss.tasks.task import Model
from isogloss.training.adjustment import PairTraining, adjust
from isogloss.training.aligned_batches import AlignedBatch, CacheType, states_of
from isogloss.training.aligned_pairs import PairEncoding, Word
from isogloss.training.memory import Cost, Load, subwords_of
from isogloss.training.setting import Adjustment, AdjustSetting, Trained


@dataclass(frozen=True, kw_only=True)
class ContrastiveAlignment(Adjustment):
    """Train by contrast: a word must be nearer to its translation than to all others of the batch."""

    name: ClassVar[str] = "contrastive-alignment"

    level: Literal["word", "sentence"] = "word"
    """What is contrasted: linked words, or the means of whole sentences."""

    temperature: Rate = 0.1
    """Divisor of the cosines: the lower, the more the nearest negatives count."""

    stay: Weight = 0.0
    """Weight of anchoring the source (the second term of cross-lingual adjustment, a mean)."""

    layer: Whole = -1
    """Layer whose states are aligned; -1 is the last, 0 the embeddings."""

    word: Word = "average"
    """What represents a word: average, first, last, subwords (each for itself), or aligned-subwords: links
    are of subwords."""

    longest: Positive = 64
    """Words of the longest sentence; pairs with a longer one are left out."""

    epochs: Count = 1
    """Passes over the sentence pairs; 0 leaves the encoder as it is."""

    batch_size: Positive = 32
    """Sentence pairs a step, all of one pair of languages; the others are the negatives."""

    updates: Updates = field(default=Updates(learning_rate=2e-5, weight_decay=0.0), metadata=NESTED)
    """How weights are updated."""

    dropout: bool = True
    """Whether dropout is on while the encoder is aligned."""

    kept: CacheType = "float16"
    """Data type in which f⁰ is cached on disk, where stay is not 0."""

    _nested = nested_fields()

    def __post_init__(self) -> None:
        """Refuse parts: the negatives of an item are all others of its batch."""
        if self.updates.accumulation not in (None, 1):
            raise ConfigError(
                f"{self.name}: accumulation cannot be {self.updates.accumulation}: each item is told from "
                f"all others of its batch, and a part has fewer. Leave it out; gradient_checkpointing takes "
                f"less memory, too."
            )

    @property
    def needs_links(self) -> bool:
        """Whether it reads which words are linked."""
        return self.level == "word"

    def cost(self, pairs: int) -> Cost | None:
        """Return the cost of both sides of its batches."""
        return Cost(
            batch=Load(rows=2 * self.batch_size, length=subwords_of(self.longest)),
            steps=pairs * self.epochs / self.batch_size,
            updates=self.updates,
            dropout=self.dropout,
        )

    def train(self, setting: AdjustSetting) -> Trained:
        """Align the encoder on bitext; without pairs or steps it stays as it is, to the bit."""
        encoding = PairEncoding(
            word=self.word,
            aligned="words" if self.level == "word" else "sentences",
            longest=self.longest,
            layer=self.layer,
        )
        training = PairTraining(
            epochs=self.epochs,
            batch_size=self.batch_size,
            updates=self.updates,
            dropout=self.dropout,
            whole=True,
        )
        return adjust(
            setting, self._loss, encoding=encoding, training=training, kept=self.kept if self.stay else None
        )

    def _loss(self, model: Model, batch: AlignedBatch) -> Tensor:
        states = states_of(model, batch.passes, layer=self.layer)
        source, target = batch.source.of(states), batch.target.of(states)
        contrast = bidirectional_contrast(source, target, batch.same(), temperature=self.temperature)
        if not self.stay:
            return contrast
        return contrast + self.stay * squared_distance(batch.anchored.of(states), batch.before, "mean")
