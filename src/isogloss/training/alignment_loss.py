"""The loss of cross-lingual adjustment (Eq. 1), alone and as an auxiliary loss of any fine-tuning (Eq. 2).

"The Impact of Cross-Lingual Adjustment of Contextual Word Representations on Zero-Shot Transfer", Section 3:
L = L_task + α·L_align, with aligned sentence pairs drawn at random at each step. f⁰ is the model's encoder
before the first step, kept for the pairs that will be drawn.
"""

from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from typing import Any, Literal, NamedTuple

import numpy as np
from torch import Tensor

from isogloss.core.errors import DataError
from isogloss.core.seeds import derive
from isogloss.encoders.language_context import check_languages
from isogloss.nn.closeness import Form, squared_distance
from isogloss.training.aligned_batches import (
    AlignedBatch,
    CachedStates,
    CacheType,
    Caching,
    collate_pairs,
    reference_states,
    states_of,
)
from isogloss.training.aligned_pairs import AlignedPairs, PairEncoding, encode_pairs
from isogloss.training.fine_tuning import AuxiliaryLoss
from isogloss.training.setting import Setting
from isogloss.training.states import check_layers

Weighs = Literal["both", "pull"]
"""What α multiplies in Eq. 2: both terms of Eq. 1, as printed, or the first alone (released code)."""


class AlignmentTerms(NamedTuple):
    """How far apart aligned words are, and how far source words have moved."""

    aligned: Tensor
    anchored: Tensor


def alignment_terms(model: Any, batch: AlignedBatch, *, layer: int, form: Form) -> AlignmentTerms:
    """Return Σ‖f(s)−f(t)‖² over aligned pairs and Σ‖f(s)−f⁰(s)‖² over all source words (Eq. 1)."""
    f = states_of(model, batch.passes, layer=layer)
    return AlignmentTerms(
        aligned=squared_distance(batch.source.of(f), batch.target.of(f), form),
        anchored=squared_distance(batch.anchored.of(f), batch.before.to(f.dtype), form),
    )


@dataclass(frozen=True, kw_only=True)
class AlignmentLoss:
    """α·L_align (Eq. 2) over ``pairs`` sentence pairs a step, as an auxiliary loss."""

    alpha: float
    weighs: Weighs = "both"
    form: Form = "mean"
    pairs: int = 16
    encoding: PairEncoding = field(default_factory=PairEncoding)
    kept: CacheType = "float16"

    def __call__(self, setting: Setting, model: Any, tokenizer: Any, steps: int) -> AuxiliaryLoss | None:
        """Encode the setting's bitext and draw from it; None without weight: the same to the bit."""
        if not self.alpha and self.weighs == "both":
            return None
        check_layers(model, [self.encoding.layer])
        check_languages(model, chain.from_iterable(pair.split("-") for pair in setting.bitext))
        pairs = encode_pairs(setting.bitext, tokenizer, self.encoding)
        if not len(pairs):
            raise DataError(
                "continual learning: there are no sentence pairs to draw from (none given, or all were left "
                "out). Name bitext of the source and a target language in the method's field bitext."
            )
        draws = PairSampling(len(pairs), self.pairs, steps, derive(setting.seed, "replay"))
        keeping = Caching(
            folder=setting.folder,
            kept=self.kept,
            precision=setting.optimization.precision,
            on_progress=setting.on_progress,
        )
        before = reference_states(model, pairs, draws.ever(), keeping)
        return AuxiliaryLoss(
            batches=_Drawn(pairs, draws, before),
            loss=partial(self.of, model),
            rows=tuple(pairs.rows),
            warnings=pairs.warnings(),
        )

    def of(self, model: Any, batch: AlignedBatch) -> Tensor:
        """Return what Eq. 2 adds to the task's loss: α·L_align."""
        terms = alignment_terms(model, batch, layer=self.encoding.layer, form=self.form)
        return self.alpha * terms.aligned + (self.alpha if self.weighs == "both" else 1.0) * terms.anchored


@dataclass(frozen=True)
class PairSampling:
    """Which pairs each step draws: a function of (seed, step), no pair twice in a step."""

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
class _Drawn:
    """Batches of the pairs that are drawn."""

    pairs: AlignedPairs
    draws: PairSampling
    before: CachedStates

    def __len__(self) -> int:
        return self.draws.steps

    def __getitem__(self, step: int) -> AlignedBatch:
        rows = [self.pairs[int(row)] for row in self.draws.of(step)]
        return collate_pairs(rows, self.before, padding=self.pairs.padding)
