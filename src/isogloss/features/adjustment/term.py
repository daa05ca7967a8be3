"""Alignment loss: translated words stay aligned while a task is learned (continual learning).

"The Impact of Cross-Lingual Adjustment of Contextual Word Representations on Zero-Shot Transfer", Section 3,
Eq. 2: L = L_task + α·L_align. Aligned sentence pairs are drawn at random at each step. Any fine-tuning method
can use this auxiliary loss; the paper adds it to source-only.

With ``form`` "contrast", L_align is a contrastive loss at a middle layer: Liu & Niehues (ACL 2025),
"Middle-Layer Representation Alignment for Cross-Lingual Transfer in Fine-Tuned LLMs", Section 3. h̄ are the
mean states of two sentences that translate each other, τ is the temperature, and n are the pairs of a batch:

    L_align = - 1/n Σ_i log exp(cos(h̄_i, h̄'_i)/τ) / Σ_j exp(cos(h̄_i, h̄'_j)/τ)

Here it is the mean of both directions, as for adjustment by contrast. The paper alternates batches of the
task and of translations; with ``every`` 2, every second step adds the loss.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np

from isogloss.core.errors import ConfigError, DataError
from isogloss.core.identity import derive
from isogloss.core.run_parts import NESTED, Positive, Rate, Weight, nested_fields
from isogloss.encoders.family import Model, Tokenizer, check_layers
from isogloss.training.bitext import AlignedBitext, PairEncoding, read_bitext
from isogloss.training.memory import AddedCost, Load, subwords_of
from isogloss.training.setting import AuxiliaryLoss, AuxiliaryTerm, Reads, Setting, language_pairs

if TYPE_CHECKING:
    from torch import Tensor

    from isogloss.features.adjustment.aligned_batches import AlignedBatch


LossForm = Literal["sum", "mean", "contrast"]
"""sum and mean of squared distances, as for adjustment, or a contrast of cosines."""

CONTRAST = "contrast"
"""The form of the loss that contrasts translations with the other items of a batch."""

TEMPERATURE = 0.1
"""Divisor of the cosines, as in adjustment by contrast."""


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
    it. Default: as set by ``weighs``; 0 with ``form`` contrast."""

    form: LossForm = "mean"
    """mean: the terms of Eq. 1 are means over words and dimensions, as in the released code, for which the
    paper's alpha was tuned. sum: as printed, thousands of times larger than a task's loss. contrast: in place
    of the first term, each item must be nearer to its translation than to all others of the batch; set
    ``pulled`` to sentences, ``layer`` to a middle one, and alpha to about 1."""

    temperature: Rate | None = None
    """Divisor τ of the cosines of ``form`` contrast. Default: 0.1."""

    every: Positive | None = None
    """Steps from one that adds the loss to the next. Default: 1, each step."""

    pairs: Positive = 16
    """Sentence pairs a step."""

    encoding: PairEncoding = field(default=PairEncoding(), metadata=NESTED)
    """Aligned units and the states that represent them."""

    reference: Literal["original"] | None = None
    """Encoder that computes f⁰. original: the encoder before any adjustment, as in the released code.
    Default: the encoder at the start of this training, adjusted or not."""

    _nested = nested_fields()

    def __post_init__(self) -> None:
        """Refuse two weights of the second term, and a temperature that nothing reads."""
        if self.temperature is not None and self.form != CONTRAST:
            raise ConfigError(
                f"{self.name}: temperature: found {self.temperature:g} with form = {self.form!r}, which "
                f'has no cosines. Remove it, or set form = "{CONTRAST}".'
            )
        if self.stay is not None and self.weighs == "pull":
            raise ConfigError(
                f'{self.name}: weighs = "pull" gives the second term the weight 1, and stay {self.stay:g}. '
                f"Remove weighs."
            )

    @property
    def anchor(self) -> float:
        """Weight of the second term of Eq. 1."""
        if self.stay is not None or self.form == CONTRAST:
            return self.stay or 0.0
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
        accumulation = setting.optimization.updates.accumulation
        if self.form == CONTRAST and accumulation not in (None, 1):
            raise ConfigError(
                f"{self.name}: accumulation cannot be {accumulation} with form = {CONTRAST!r}: each item is "
                f"contrasted with all others of its batch, and a part has fewer. Remove it, or lower pairs."
            )
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
            every=self.every or 1,
            warnings=bitext.warnings(),
        )

    def draws(self, bitext: AlignedBitext, seed: int) -> Callable[[int], AlignedBatch]:
        """Return the batch of each step as a function of its number."""
        from isogloss.features.adjustment.aligned_batches import aligned_batch

        def draw(step: int) -> AlignedBatch:
            rows = sampled_rows(len(bitext), self.pairs, step=step, seed=derive(seed, "replay"))
            return replace(aligned_batch(bitext, rows), is_whole=self.form == CONTRAST)

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
        from isogloss.features.adjustment.aligned_batches import alignment_terms, distance_moved, states_of

        if self.form == "contrast":
            states = states_of(model, batch.passes, layer=self.encoding.layer)
            anchored = distance_moved(states, original, batch, layer=self.encoding.layer, form="mean")
            return self.alpha * self._contrast(states, batch) + self.anchor * anchored
        terms = alignment_terms(model, original, batch, layer=self.encoding.layer, form=self.form)
        return self.alpha * terms.aligned + self.anchor * terms.anchored

    def _contrast(self, states: Tensor, batch: AlignedBatch) -> Tensor:
        from isogloss.features.adjustment.aligned_batches import bidirectional_contrast

        temperature = TEMPERATURE if self.temperature is None else self.temperature
        sides = batch.source.of(states), batch.target.of(states)
        return bidirectional_contrast(*sides, batch.same(), temperature=temperature)


def sampled_rows(count: int, size: int, *, step: int, seed: int) -> list[int]:
    """Draw the rows of a step's batch by (seed, step), without repetition within a step."""
    rng = np.random.Generator(np.random.PCG64(derive(seed, "draw", step)))
    return [int(row) for row in rng.choice(count, size=min(size, count), replace=False)]
