"""Aligned sentence pairs drawn at random beside another training (cross-lingual adjustment, Section 3)."""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
from torch import Tensor

from isogloss.core.errors import DataError
from isogloss.core.seeds import derive
from isogloss.encoders.speaking import check_languages
from isogloss.training.aligned_batches import AlignedBatch, collate_pairs
from isogloss.training.aligned_pairs import AlignedPairs, Reading, encode_pairs
from isogloss.training.beside import Beside
from isogloss.training.encoder_states import check_layers
from isogloss.training.kept_states import Kept, KeptStates
from isogloss.training.setting import Setting
from isogloss.training.states_before import Keeping, states_before


@dataclass(frozen=True)
class Draws:
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
class _Replayed:
    """Batches of the pairs that are drawn."""

    pairs: AlignedPairs
    draws: Draws
    before: KeptStates

    def __len__(self) -> int:
        return self.draws.steps

    def __getitem__(self, step: int) -> AlignedBatch:
        rows = [self.pairs[int(row)] for row in self.draws.of(step)]
        return collate_pairs(rows, self.before, padding=self.pairs.padding)


@dataclass(frozen=True, kw_only=True)
class Replay:
    """A term over ``size`` aligned pairs a step; called by ``fine_tune`` before the first step.

    f⁰ is the model's encoder at that moment, kept for the pairs that will be drawn.
    """

    reading: Reading
    size: int
    kept: Kept
    loss: Callable[[Any, AlignedBatch], Tensor]

    def __call__(self, setting: Setting, model: Any, tokenizer: Any, steps: int) -> Beside:
        """Encode the setting's bitext and draw from it."""
        check_layers(model, [self.reading.layer])
        check_languages(model, chain.from_iterable(pair.split("-") for pair in setting.bitext))
        pairs = encode_pairs(setting.bitext, tokenizer, self.reading)
        if not len(pairs):
            raise DataError(
                "continual learning: there are no sentence pairs to draw from (none given, or all were left "
                "out). Name bitext of the source and a target language in the method's field bitext."
            )
        draws = Draws(len(pairs), self.size, steps, derive(setting.seed, "replay"))
        keeping = Keeping(
            folder=setting.folder,
            kept=self.kept,
            precision=setting.optimization.precision,
            tell=setting.tell,
        )
        before = states_before(model, pairs, draws.ever(), keeping)
        return Beside(
            batches=_Replayed(pairs, draws, before),
            loss=self._placed,
            rows=tuple(pairs.rows),
            warnings=pairs.warnings(),
        )

    def _placed(self, model: Any, batch: AlignedBatch) -> Tensor:
        return self.loss(model, batch.to(next(model.parameters()).device))
