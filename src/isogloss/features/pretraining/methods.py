"""Pretraining: masked language modelling in several languages, with translation LM on bitext, and LLM2Vec.

Devlin et al. (2019), Section 3.1; Wang 2020, Section 3.2; translation LM after Conneau & Lample (2019),
Section 3.3. The last weights are saved: perplexity on held-out text is recorded, and selects nothing.

Masked next-token prediction, by which a decoder learns to read on both sides: BehnamGhader et al. (2024),
"LLM2Vec: Large Language Models Are Secretly Powerful Text Encoders", Section 2.1. The mask of a decoder is
lifted, subwords are hidden, and each is predicted from the state of the preceding subword, as the decoder was
trained to. All weights are trained here; the paper trains LoRA's.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import chain, islice
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from isogloss.core.errors import ConfigError, DataError
from isogloss.core.run_parts import (
    NESTED,
    Conflict,
    Modules,
    Share,
    TextTraining,
    Updates,
    nested_fields,
)
from isogloss.encoders import FAMILIES
from isogloss.encoders.added.module_settings import are_shared
from isogloss.encoders.families import is_causal, require
from isogloss.encoders.family import Tokenizer
from isogloss.encoders.folders import load_encoder_config
from isogloss.training.memory import Cost, Load
from isogloss.training.setting import PRETRAINING_UPDATES, Pretraining, TextSetting, Trained

if TYPE_CHECKING:
    from isogloss.training.batching import Parallel
    from isogloss.training.fit import Callback
    from isogloss.training.text_training import PretrainingStart


@dataclass(frozen=True, kw_only=True)
class MaskedLanguageModelling(Pretraining):
    """Predict hidden subwords."""

    name: ClassVar[str] = "masked-language-modelling"
    replays: ClassVar[bool] = True

    training: TextTraining = field(default=TextTraining(), metadata=NESTED)
    """Length, batches of text, and evaluation of the training."""

    mixed: bool = False
    """True: rows of one batch come from all languages. False: one language per batch (Wang 2020)."""

    translation: Share = 0.0
    """Share of the updates that are translation LM."""

    updates: Updates = field(default=PRETRAINING_UPDATES, metadata=NESTED)
    """Optimization of the training."""

    conflict: Conflict | None = None
    """Gradient conflict between the languages, measured during training: every, batch and layers. Default:
    none."""

    _nested = nested_fields()

    def __post_init__(self) -> None:
        """Raise ConfigError for invalid fields."""
        from isogloss.training.text_training import check_fields

        check_fields(
            self,
            {
                "translation": 0 <= self.translation <= 1,
                "accumulation": self.updates.accumulation is None or self.updates.accumulation >= 1,
            },
        )

    def cost(self) -> Cost:
        """Return the cost of batches of text, each run forward and back once."""
        return _cost_of_text(self.training, self.updates)

    def check(self, family: str, modules: Modules | None, languages: tuple[str, ...]) -> None:
        """Raise ModelError or ConfigError for an encoder that it cannot train."""
        from isogloss.training.text_training import check_objective

        del languages
        check_objective(self.name, family, next_token=False)
        if not self.translation:
            return
        if family:
            use = "translation LM counts positions anew in the second text"
            require(FAMILIES[family], "new-positions", use=use)
        if modules is not None and not are_shared(modules):
            raise ConfigError(
                f"{self.name}: translation LM joins two languages in one row, which then is in the modules "
                f"({modules.kind}) of neither. Leave translation and bitext out, or the modules."
            )

    def train(self, setting: TextSetting) -> Trained:
        """Train the encoder with its masked-LM head."""
        from isogloss.encoders.computation import fastest_attention
        from isogloss.training.text_training import begin_pretraining, train_on_text

        self.check(setting.family, setting.modules_trained, setting.languages)
        if self.translation and setting.translations is None:
            raise DataError("translation LM needs bitext: name a corpus in the run's field 'bitext'.")
        start = begin_pretraining(setting, self, attention=fastest_attention())
        block = self.training.block
        translations = _translations(setting, start.tokenizer, block) if self.translation else []
        conflict_callbacks = self._watch_conflict(start, setting)
        return train_on_text(start, setting, self, translations=translations, periodic=conflict_callbacks)

    def _watch_conflict(self, start: PretrainingStart, setting: TextSetting) -> tuple[Callback, ...]:
        """Return the callback that measures gradient conflict on blocks of the training text."""
        from isogloss.features.pretraining.block_pool import block_pool
        from isogloss.training.checkpoints import Checkpoints
        from isogloss.training.fit import precision_of
        from isogloss.training.gradient_conflict import conflict_callback

        if self.conflict is None:
            return ()
        checkpoints = Checkpoints(setting.folder, self.updates.checkpoint_every)
        pool = block_pool(
            start.model,
            start.streams,
            start.masking,
            block=self.training.block,
            budget=self.training.batch_subwords,
            precision=precision_of(self.updates.precision, checkpoints),
        )
        return (conflict_callback(self.conflict, start.model, pool, seed=setting.seed),)


def _translations(setting: TextSetting, tokenizer: Tokenizer, block: int) -> list[Parallel]:
    """Read the first language with each other language.

    Equal first texts make one row of several languages.
    """
    from isogloss.tasks.masked_lm import subwords_of

    read = setting.translations or (lambda *_: iter(()))
    pivot, *partners = setting.languages
    texts: dict[tuple[str, str], dict[str, str]] = {}
    for partner in partners:
        for pair in read(pivot, partner):
            texts.setdefault((pair.id, pair.first), {pivot: pair.first})[partner] = pair.second
    subwords = subwords_of(chain.from_iterable(text.values() for text in texts.values()), tokenizer)
    rows = (np.array(ids[: block - 2], dtype=np.int32) for ids in subwords)
    return [dict(zip(text, islice(rows, len(text)), strict=True)) for text in texts.values()]


@dataclass(frozen=True, kw_only=True)
class MaskedNextToken(Pretraining):
    """Predict hidden subwords from the state before them, in a decoder whose mask is lifted (LLM2Vec)."""

    name: ClassVar[str] = "masked-next-token"
    # In the first, decoders that close texts with their padding did not see the ends.
    version: ClassVar[int] = 2
    replays: ClassVar[bool] = True

    training: TextTraining = field(default=TextTraining(steps=1000, masked=0.2), metadata=NESTED)
    """Length (the paper: 1000 steps), batches of text, and evaluation of the training."""

    mask: str = ""
    """Subword that replaces hidden ones ("_" in the paper). Default: the tokenizer's mask."""

    mixed: bool = False
    """True: rows of one batch come from all languages. False: one language per batch."""

    updates: Updates = field(default=Updates(learning_rate=5e-5, checkpoint_every=500), metadata=NESTED)
    """Optimization of the training."""

    _nested = nested_fields()

    def __post_init__(self) -> None:
        """Raise ConfigError for invalid fields."""
        from isogloss.training.text_training import check_fields

        check_fields(self, {})

    def cost(self) -> Cost:
        """Return the cost of batches of text, each run forward and back once."""
        return _cost_of_text(self.training, self.updates)

    def check(self, family: str, modules: Modules | None, languages: tuple[str, ...]) -> None:
        """Raise ConfigError for an encoder that is not a decoder."""
        from isogloss.training.text_training import check_objective

        del modules, languages
        check_objective(self.name, family, next_token=True)

    def check_mask(self, start: str, *, causal: bool) -> None:
        """Raise ConfigError for a decoder whose mask is not lifted."""
        if causal:
            raise ConfigError(
                f"{self.name}: {start} reads with its mask, so a hidden subword is predicted from one side. "
                f'Name it as a separate encoder with attention = "bidirectional" and a label, and start '
                f"from that label."
            )

    def train(self, setting: TextSetting) -> Trained:
        """Train the decoder with its language-model head.

        Raises ConfigError unless the mask is lifted, or if the mask is not a subword of the vocabulary.
        """
        from isogloss.encoders.computation import fastest_attention
        from isogloss.training.text_training import begin_pretraining, train_on_text

        self.check(setting.family, None, ())
        self.check_mask(setting.start, causal=is_causal(load_encoder_config(setting.start)))
        start = begin_pretraining(setting, self, attention=fastest_attention(), mask=self.mask)
        return train_on_text(start, setting, self)


def _cost_of_text(training: TextTraining, updates: Updates) -> Cost:
    """Return the cost of one forward and backward pass for each batch of text."""
    batch = Load(
        rows=max(1, training.batch_subwords // training.block),
        length=training.block,
        predicted=round(training.masked * training.batch_subwords),
    )
    return Cost(batch=batch, steps=float(training.steps), updates=updates, dropout=bool(training.dropout))
