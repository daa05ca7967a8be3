"""Alignment loss: keep translated words together while a task is learned (continual learning).

"The Impact of Cross-Lingual Adjustment of Contextual Word Representations on Zero-Shot Transfer", Section 3,
Eq. 2: L = L_task + α·L_align, with aligned sentence pairs drawn at random at each step. It is an auxiliary
loss that any fine-tuning method can carry; the paper's is source-only with it.
"""

from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import ClassVar, Literal

import numpy as np
from torch import Tensor

from isogloss.core.errors import ConfigError, DataError
from isogloss.core.run_parts import Positive, Weight, Whole
from isogloss.core.seeds import derive
from isogloss.encoders import fastest_attention, load_model
from isogloss.encoders.added.language_context import check_languages
from isogloss.encoders.annotations import Tokenizer
from isogloss.nn.distance import Form
from isogloss.tasks.task import Model
from isogloss.training.aligned_batches import (
    AlignedBatch,
    CachedStates,
    CacheType,
    Caching,
    alignment_terms,
    collate_pairs,
    reference_states,
)
from isogloss.training.aligned_pairs import Aligned, AlignedPairs, PairEncoding, Word, encode_pairs
from isogloss.training.memory import AddedCost, Load, subwords_of
from isogloss.training.setting import AuxiliaryLoss, AuxiliaryTerm, Reads, Setting, language_pairs
from isogloss.training.states import check_layers


@dataclass(frozen=True, kw_only=True)
class AlignmentLoss(AuxiliaryLoss):
    """Add α times the loss of cross-lingual adjustment (Eq. 1), on aligned sentence pairs, at each step."""

    name: ClassVar[str] = "alignment-loss"
    uses: ClassVar[tuple[str, ...]] = ("source", "target")

    bitext: str = ""
    """Corpus of translations the sentence pairs are drawn from."""

    alpha: Weight = 0.01
    """Weight α of Eq. 1 in the sum with the task's loss; 0 is the method without it."""

    weighs: Literal["both", "pull"] = "both"
    """What alpha multiplies: both terms of Eq. 1, as printed, or the first alone (released code: the term
    that anchors source words then has weight 1, also with alpha = 0)."""

    form: Form = "mean"
    """mean: the terms of Eq. 1 are means over words and dimensions, as in the released code, for which the
    paper's alpha was tuned; sum: as printed, thousands of times larger than a task's loss."""

    pairs: Positive = 16
    """Sentence pairs a step."""

    layer: Whole = -1
    """Layer whose states are aligned; -1 is the last, 0 the embeddings."""

    word: Word = "average"
    """What represents a word: average, first, last, subwords (each for itself), or aligned-subwords: links
    are of subwords."""

    pulled: Aligned = "all"
    """What is aligned: all (linked words, [CLS] and [SEP]), words, special, opening, sentences."""

    drop_identical: bool = False
    """Whether words that are spelled alike in both languages are left out."""

    longest: Positive = 64
    """Words of the longest sentence; pairs with a longer one are left out."""

    kept: CacheType = "float16"
    """Data type in which f⁰, the encoder's states before the first step, is cached on disk."""

    reference: Literal["original"] | None = None
    """Whose states f⁰ are: original, the encoder's before any adjustment, as in the released code; those of
    what this training starts from, adjusted or not, when left out."""

    def reads(self, source: tuple[str, ...], target: tuple[str, ...]) -> Reads:
        """Read bitext of each source language with each target language."""
        original = self.reference == "original"
        return Reads(bitext=self.bitext, pairs=language_pairs(source, target), original=original)

    def cost(self, batch: Load) -> AddedCost:
        """Return the cost of both sides of its sentence pairs."""
        return AddedCost(rows=-(-2 * self.pairs * subwords_of(self.longest) // batch.length))

    def prepare(
        self, setting: Setting, model: Model, tokenizer: Tokenizer, steps: int
    ) -> AuxiliaryTerm | None:
        """Encode the setting's bitext, cache f⁰ of the pairs that some step draws; None without weight."""
        if not self.alpha and self.weighs == "both":
            return None
        check_layers(model.config.num_hidden_layers, [self.layer])
        check_languages(model, chain.from_iterable(pair.split("-") for pair in setting.bitext))
        encoding = PairEncoding(
            word=self.word,
            aligned=self.pulled,
            drop_identical=self.drop_identical,
            longest=self.longest,
            layer=self.layer,
        )
        pairs = encode_pairs(setting.bitext, tokenizer, encoding)
        if not len(pairs):
            raise DataError(
                f"{self.name}: there are no sentence pairs to draw from (none given, or all were left out). "
                f"Name bitext of the source and a target language in the field bitext of auxiliary."
            )
        sampling = PairSampling(len(pairs), self.pairs, steps, derive(setting.seed, "replay"))
        caching = Caching(
            folder=setting.folder,
            kept=self.kept,
            precision=setting.optimization.updates.precision,
            on_progress=setting.on_progress,
        )
        before = reference_states(self._reference(setting, model), pairs, sampling.ever(), caching)
        return AuxiliaryTerm(
            batches=_SampledBatches(pairs, sampling, before),
            loss=partial(self._loss, model),
            rows=tuple(pairs.rows),
            warnings=pairs.warnings(),
        )

    def _reference(self, setting: Setting, model: Model) -> Model:
        """Return the model whose states f⁰ are."""
        if self.reference is None:
            return model
        if not setting.original:
            raise ConfigError(
                f"{self.name}: reference: it is not said which encoder is the original. Give its folder or "
                f"name (Setting.original), or leave reference out: f⁰ is then the model as it starts."
            )
        return load_model(setting.original, attention=fastest_attention())

    def _loss(self, model: Model, batch: AlignedBatch) -> Tensor:
        """Return what Eq. 2 adds to the task's loss: α·L_align."""
        terms = alignment_terms(model, batch, layer=self.layer, form=self.form)
        return self.alpha * terms.aligned + (self.alpha if self.weighs == "both" else 1.0) * terms.anchored


@dataclass(frozen=True)
class PairSampling:
    """The rows each step draws: a function of (seed, step), without repetition within a step."""

    pairs: int
    size: int
    steps: int
    seed: int

    def of(self, step: int) -> np.ndarray:
        """Return the rows of a step."""
        rng = np.random.Generator(np.random.PCG64(derive(self.seed, "draw", step)))
        return rng.choice(self.pairs, size=min(self.size, self.pairs), replace=False)

    def ever(self) -> list[int]:
        """Return every row that some step draws, in order."""
        drawn = np.zeros(self.pairs, dtype=bool)
        for step in range(self.steps):
            drawn[self.of(step)] = True
        return [int(row) for row in np.flatnonzero(drawn)]


@dataclass(frozen=True)
class _SampledBatches:
    pairs: AlignedPairs
    sampling: PairSampling
    before: CachedStates

    def __len__(self) -> int:
        return self.sampling.steps

    def __getitem__(self, step: int) -> AlignedBatch:
        rows = [self.pairs[int(row)] for row in self.sampling.of(step)]
        return collate_pairs(rows, self.before, padding=self.pairs.padding)
