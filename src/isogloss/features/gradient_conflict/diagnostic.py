"""Gradient conflict: do two languages' gradients point the same way?

Measures the cosine of two languages' gradients, and as a control of two batches of one language
(``training.gradient_conflict``). Finished encoders use masked language modelling on raw text. Fine-tuned
models use the loss of their task on labelled examples.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import chain, combinations, islice
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from isogloss.core.errors import ConfigError
from isogloss.core.run_parts import Positive, Share, Whole
from isogloss.diagnostics.setting import Diagnostic, MeasureSetting
from isogloss.encoders.families import family_of
from isogloss.encoders.family import Tokenizer
from isogloss.features.gradient_conflict.rows import ConflictRow

if TYPE_CHECKING:
    from torch import Tensor, nn

    from isogloss.training.gradient_conflict import ConflictSampling, Pool


@dataclass(frozen=True, kw_only=True)
class GradientConflict(Diagnostic):
    """Cosine between languages' gradients of masked language modelling, and that within each language."""

    name: ClassVar[str] = "gradient-conflict"
    subject: ClassVar[str] = "text"
    computes_gradients: ClassVar[bool] = True
    version: ClassVar[int] = 2

    batch: Positive = 4096
    """Sentences per gradient, or half of the text if it has fewer than twice as many."""

    draws: Positive = 3
    """Number of draws of batches and masks."""

    masked: Share = 0.15
    """Share of the subwords that are predicted."""

    limit: Positive = 128
    """Maximum sentence length in subwords. Longer ones are truncated."""

    batch_subwords: Positive = 4096
    """Subwords per forward pass, padding included."""

    seed: Whole = 0
    """Seed of the batches and masks."""

    def __post_init__(self) -> None:
        """Refuse a length without room for text."""
        if self.limit < 3:
            raise ConfigError(
                f"{self.name}: limit is {self.limit}, but 3 or more is needed: two of them are "
                f"special subwords."
            )

    def measure(self, setting: MeasureSetting) -> list[ConflictRow]:
        """Return a row for each draw, part of the model and pair of languages, including equal ones."""
        from isogloss.tasks.masked_lm import Masking, Vocabulary
        from isogloss.training.gradient_conflict import ConflictSampling, Pool, masked_parts, text_losses

        model, tokenizer = setting.masked_lm(setting.subjects[0])
        max_lines = 2 * self.batch * self.draws
        text = {
            language: self._read(setting, language, tokenizer, max_lines) for language in setting.languages
        }
        longest = max((len(row) for rows in text.values() for row in rows), default=0) + 2
        setting.warn_of_length(self.name, "limit", longest)
        masking = Masking(
            vocabulary=Vocabulary.from_tokenizer(tokenizer),
            share=self.masked,
            first_position=family_of(model).first_position,
        )

        def losses(language: str, indices: Sequence[int], seed: int) -> Iterable[Tensor]:
            rows = [text[language][index] for index in indices]
            batches = masked_parts(rows, masking, seed=seed, budget=self.batch_subwords, language=language)
            return text_losses(model, batches, precision=setting.precision)

        pool = Pool({language: len(rows) for language, rows in text.items()}, losses)
        sampling = ConflictSampling(batch=self.batch, count=self.draws, seed=self.seed)
        common = {
            frozenset(pair): overlap(text[pair[0]], text[pair[1]], special=masking.vocabulary.special)
            for pair in combinations(text, 2)
        }
        return [
            replace(row, overlap=common.get(frozenset((row.first, row.second))))
            for row in _conflicts(setting, model, pool, sampling)
        ]

    def _read(
        self, setting: MeasureSetting, language: str, tokenizer: Tokenizer, max_lines: int
    ) -> list[np.ndarray]:
        from isogloss.tasks.masked_lm import subwords_of

        sentences = subwords_of(islice(setting.text(language), max_lines), tokenizer)
        return [np.array(ids[: self.limit - 2], dtype=np.int32) for ids in sentences if ids]


@dataclass(frozen=True, kw_only=True)
class TaskGradientConflict(Diagnostic):
    """Cosine between languages' gradients of a fine-tuned model's own loss, and that within each language."""

    name: ClassVar[str] = "task-gradient-conflict"
    subject: ClassVar[str] = "model"
    computes_gradients: ClassVar[bool] = True
    version: ClassVar[int] = 3

    batch: Positive = 256
    """Examples per gradient, or half of the examples of a language with fewer than twice as many."""

    draws: Positive = 3
    """Number of draws of batches."""

    seed: Whole = 0
    """Seed of the batches."""

    def measure(self, setting: MeasureSetting) -> list[ConflictRow]:
        """Return a row for each draw, part of the model and pair of languages, including equal ones."""
        from isogloss.training.gradient_conflict import ConflictSampling, example_pool

        model = setting.load(setting.subjects[0])
        examples = {language: setting.evaluation(language) for language in setting.languages}
        pool = example_pool(
            model,
            {language: evaluation.rows for language, evaluation in examples.items()},
            examples[setting.languages[0]].task,
            padding=int(model.config.pad_token_id or 0),
            precision=setting.precision,
        )
        sampling = ConflictSampling(batch=self.batch, count=self.draws, seed=self.seed)
        return _conflicts(setting, model, pool, sampling)


def _conflicts(
    setting: MeasureSetting, model: nn.Module, pool: Pool, sampling: ConflictSampling
) -> list[ConflictRow]:
    from isogloss.training.gradient_conflict import sampled_conflict

    rows: list[dict[str, Any]] = list(
        sampled_conflict(model, pool, sampling, on_progress=setting.on_progress)
    )
    return [ConflictRow(model=setting.subjects[0].id, **row) for row in rows]


def overlap(x: Sequence[np.ndarray], y: Sequence[np.ndarray], *, special: Sequence[int] = ()) -> float:
    """Return the overlap of two texts' subword distributions: Σ min(p, q), from 0 to 1.

    Special subwords, such as the unknown one, do not count.
    """
    counts_x, counts_y = (Counter(chain.from_iterable(row.tolist() for row in text)) for text in (x, y))
    for subword in special:
        counts_x.pop(subword, None)
        counts_y.pop(subword, None)
    total_x, total_y = max(1, counts_x.total()), max(1, counts_y.total())
    shared = counts_x.keys() & counts_y.keys()
    return math.fsum(min(counts_x[subword] / total_x, counts_y[subword] / total_y) for subword in shared)
