"""Alignment loss: translated words stay aligned while a task is learned (continual learning).

"The Impact of Cross-Lingual Adjustment of Contextual Word Representations on Zero-Shot Transfer", Section 3,
Eq. 2: L = L_task + α·L_align. Aligned sentence pairs are drawn at random at each step. Any fine-tuning method
can use this auxiliary loss; the paper adds it to source-only.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np

from isogloss.core.errors import ConfigError, DataError
from isogloss.core.identity import derive
from isogloss.core.run_parts import NESTED, Positive, Weight, nested_fields
from isogloss.encoders.family import Model, Tokenizer, check_layers
from isogloss.training.bitext import AlignedBitext, Form, PairEncoding, read_bitext
from isogloss.training.memory import AddedCost, Load, subwords_of
from isogloss.training.setting import AuxiliaryLoss, AuxiliaryTerm, Reads, Setting, language_pairs

if TYPE_CHECKING:
    from torch import Tensor

    from isogloss.features.adjustment.aligned_batches import AlignedBatch


@dataclass(frozen=True, kw_only=True)
class AlignmentTerm(AuxiliaryLoss):
    """Add α times the loss of cross-lingual adjustment (Eq. 1), on aligned sentence pairs, at each step."""

    name: ClassVar[str] = "alignment-loss"
    version: ClassVar[int] = 2  # In the first, f⁰ was stored in float16.
    uses: ClassVar[tuple[str, ...]] = ("source", "target")

    bitext: str = ""
    """Corpus of translations the sentence pairs are drawn from."""

    alpha: Weight = 0.01
    """Weight α of Eq. 1 in the sum with the task's loss. 0 is the method without it."""

    weighs: Literal["both", "pull"] = "both"
    """Terms of Eq. 1 that alpha multiplies: both, as printed, or only the first, as in the released code. The
    second term, which anchors source words, then has weight 1, even with alpha = 0."""

    stay: Weight | None = None
    """Weight of the second term of Eq. 1, which anchors source words at f⁰, independent of alpha. 0 disables
    it. Default: as set by ``weighs``."""

    form: Form = "mean"
    """mean: the terms of Eq. 1 are means over words and dimensions, as in the released code, for which the
    paper's alpha was tuned. sum: as printed, thousands of times larger than a task's loss."""

    pairs: Positive = 16
    """Sentence pairs a step."""

    encoding: PairEncoding = field(default=PairEncoding(), metadata=NESTED)
    """Aligned units and the states that represent them."""

    reference: Literal["original"] | None = None
    """Encoder that computes f⁰. original: the encoder before any adjustment, as in the released code.
    Default: the encoder at the start of this training, adjusted or not."""

    _nested = nested_fields()

    def __post_init__(self) -> None:
        """Refuse two weights of the second term."""
        if self.stay is not None and self.weighs == "pull":
            raise ConfigError(
                f'{self.name}: weighs = "pull" gives the second term the weight 1, and stay {self.stay:g}. '
                f"Remove weighs."
            )

    @property
    def anchor(self) -> float:
        """Weight of the second term of Eq. 1."""
        if self.stay is not None:
            return self.stay
        return self.alpha if self.weighs == "both" else 1.0

    def reads(self, source: tuple[str, ...], target: tuple[str, ...]) -> Reads:
        """Read bitext of each source language with each target language."""
        original = self.reference == "original"
        return Reads(bitext=self.bitext, pairs=language_pairs(source, target), original=original)

    def cost(self, batch: Load) -> AddedCost:
        """Return the cost of both sides of its sentence pairs, and of f⁰."""
        subwords = 2 * self.pairs * subwords_of(self.encoding.longest)
        return AddedCost(rows=-(-subwords // batch.length), copies=1.0 if self.anchor else 0.0)

    def prepare(
        self, setting: Setting, model: Model, tokenizer: Tokenizer, steps: int
    ) -> AuxiliaryTerm | None:
        """Read the setting's bitext and copy f⁰. None if the weight is 0."""
        from isogloss.encoders.added.active_language import check_languages
        from isogloss.training.batching import BatchesByStep

        if not self.alpha and not self.anchor:
            return None
        check_layers(model.config.num_hidden_layers, [self.encoding.layer])
        check_languages(model, chain.from_iterable(pair.split("-") for pair in setting.bitext))
        bitext = read_bitext(setting.bitext, tokenizer, self.encoding)
        if not len(bitext):
            raise DataError(
                f"{self.name}: there are no sentence pairs to draw from (none given, or all were left out). "
                f"Name bitext of the source and a target language in the field bitext of auxiliary."
            )
        return AuxiliaryTerm(
            batches=BatchesByStep(steps, self.draws(bitext, setting.seed)),
            loss=partial(self.loss, model, self._original(setting, model) if self.anchor else None),
            rows=tuple(bitext.rows),
            warnings=bitext.warnings(),
        )

    def draws(self, bitext: AlignedBitext, seed: int) -> Callable[[int], AlignedBatch]:
        """Return the batch of each step as a function of its number."""
        from isogloss.features.adjustment.aligned_batches import aligned_batch

        def draw(step: int) -> AlignedBatch:
            rows = sampled_rows(len(bitext), self.pairs, step=step, seed=derive(seed, "replay"))
            return aligned_batch(bitext, rows)

        return draw

    def _original(self, setting: Setting, model: Model) -> Model:
        """Return f⁰: the encoder as this training starts, or as it was before it was adjusted."""
        from isogloss.encoders.computation import fastest_attention
        from isogloss.encoders.loading import load_model
        from isogloss.features.adjustment.aligned_batches import frozen_copy

        if self.reference is None:
            return frozen_copy(model)
        if not setting.original:
            raise ConfigError(
                f"{self.name}: reference: the original encoder is unspecified. Give its folder or name "
                f"(Setting.original), or remove reference: f⁰ is then the model as it starts."
            )
        return frozen_copy(load_model(setting.original, attention=fastest_attention()))

    def loss(self, model: Model, original: Model | None, batch: AlignedBatch) -> Tensor:
        """Return the second term of Eq. 2, α·L_align."""
        from isogloss.features.adjustment.aligned_batches import alignment_terms

        terms = alignment_terms(model, original, batch, layer=self.encoding.layer, form=self.form)
        return self.alpha * terms.aligned + self.anchor * terms.anchored


def sampled_rows(count: int, size: int, *, step: int, seed: int) -> list[int]:
    """Draw the rows of a step's batch by (seed, step), without repetition within a step."""
    rng = np.random.Generator(np.random.PCG64(derive(seed, "draw", step)))
    return [int(row) for row in rng.choice(count, size=min(size, count), replace=False)]
