"""Gradient conflict: do two languages pull a model's weights the same way?

The measure is that of ``training.gradient_conflict``: the cosine of two languages' gradients, beside that of
two batches of one language. Here it is taken of finished encoders, by masked language modelling on raw text,
and of fine-tuned models, by their task's own loss on labelled examples.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations, islice
from typing import Any, ClassVar

import numpy as np
from torch import Tensor

from isogloss.core.errors import DataError
from isogloss.core.progress import Progress
from isogloss.core.records import Row
from isogloss.core.runs import Positive, Share, Whole
from isogloss.core.seeds import derive
from isogloss.diagnostics.look import Look
from isogloss.encoders import family_of
from isogloss.tasks.batch import EncodedRow
from isogloss.tasks.masked_lm import Masking, Vocabulary
from isogloss.tasks.text_stream import subwords_of
from isogloss.training.batch_losses import drawn_apart, masked_parts, task_losses, text_losses
from isogloss.training.gradient_conflict import conflict_rows, parts_of

Losses = Callable[[str, Sequence[int], int], Iterable[Tensor]]
"""From a language, the numbers of the sentences or examples of a batch, and a seed, to its loss in parts."""


@dataclass(frozen=True, kw_only=True)
class GradientConflict:
    """Cosine between languages' gradients of masked language modelling, beside that within each language."""

    name: ClassVar[str] = "gradient-conflict"
    over: ClassVar[str] = "text"

    batch: Positive = 4096
    """Sentences each gradient is accumulated over; half of the text where it has fewer than twice as many."""

    draws: Positive = 3
    """Times that batches and masks are drawn."""

    masked: Share = 0.15
    """Share of the subwords that are predicted."""

    limit: Positive = 128
    """Longest sentence in subwords; what is longer is cut."""

    batch_subwords: Positive = 4096
    """Subwords computed together, padding included."""

    seed: Whole = 0
    """Seed of the batches and masks."""

    def measure(self, look: Look) -> list[Row]:
        """Return a row for each draw, pair of languages (each with itself too) and part of the model."""
        model, tokenizer = look.masked_lm(look.subjects[0])
        most = 2 * self.batch * self.draws
        text = {language: self._read(look, language, tokenizer, most) for language in look.languages}
        masking = Masking(
            vocabulary=Vocabulary.of(tokenizer),
            share=self.masked,
            first_position=family_of(model).first_position,
        )

        def losses(language: str, numbers: Sequence[int], seed: int) -> Iterable[Tensor]:
            rows = [text[language][number] for number in numbers]
            batches = masked_parts(rows, masking, seed=seed, budget=self.batch_subwords)
            return text_losses(model, language, batches, precision=look.precision)

        counts = {language: len(rows) for language, rows in text.items()}
        overlaps = {
            frozenset(pair): overlap(*(text[code] for code in pair)) for pair in combinations(text, 2)
        }
        rows = conflict_over_draws(look, model, counts, losses, _Drawing(self.batch, self.draws, self.seed))
        return [
            {**row, "overlap": overlaps.get(frozenset((str(row["first"]), str(row["second"]))))}
            for row in rows
        ]

    def _read(self, look: Look, language: str, tokenizer: Any, most: int) -> list[np.ndarray]:
        read = subwords_of(islice(look.text(language), most), tokenizer)
        return [np.array(ids[: self.limit - 2], dtype=np.int32) for ids in read if ids]


@dataclass(frozen=True, kw_only=True)
class TaskGradientConflict:
    """Cosine between languages' gradients of a fine-tuned model's own loss, beside that within each."""

    name: ClassVar[str] = "task-gradient-conflict"
    over: ClassVar[str] = "model"

    batch: Positive = 256
    """Examples each gradient is accumulated over; half of them where there are fewer than twice as many."""

    draws: Positive = 3
    """Times that batches are drawn."""

    seed: Whole = 0
    """Seed of the batches."""

    def measure(self, look: Look) -> list[Row]:
        """Return a row for each draw, pair of languages (each with itself too) and part of the model."""
        model = look.load(look.subjects[0])
        examples = {language: look.evaluation(language) for language in look.languages}
        rows = {language: _by_example(one.rows) for language, one in examples.items()}
        task = examples[look.languages[0]].task
        padding = int(model.config.pad_token_id or 0)

        def losses(language: str, numbers: Sequence[int], _: int) -> Iterable[Tensor]:
            drawn = [row for number in numbers for row in rows[language][number]]
            return task_losses(model, language, drawn, task, padding=padding, precision=look.precision)

        counts = {language: len(own) for language, own in rows.items()}
        return conflict_over_draws(look, model, counts, losses, _Drawing(self.batch, self.draws, self.seed))


@dataclass(frozen=True)
class _Drawing:
    """How batches are drawn."""

    batch: int
    draws: int
    seed: int


def conflict_over_draws(
    look: Look, model: Any, counts: dict[str, int], losses: Losses, how: _Drawing
) -> list[Row]:
    """Measure conflict in every draw; batches are of one size in all languages, so that noise is alike."""
    size = min(how.batch, *(count // 2 for count in counts.values()))
    if not size:
        least = min(counts, key=counts.__getitem__)
        raise DataError(
            f"gradient conflict: {counts[least]} of {least} ({look.split}); two or more are needed, and "
            f"thousands are better. Choose another split or corpus."
        )
    drawn = {
        language: drawn_apart(count, size, how.draws, seed=derive(how.seed, language))
        for language, count in counts.items()
    }
    parts, rows = parts_of(model), list[Row]()
    for draw in range(how.draws):

        def of_draw(language: str, number: int, draw: int = draw) -> Iterable[Tensor]:
            look.tell(Progress("gradients", draw, how.draws, language))
            seed = derive(how.seed, language, draw, number)
            return losses(language, drawn[language][draw][number].tolist(), seed)

        found = conflict_rows(model, look.languages, of_draw, parts)
        rows += [{**look.columns, "draw": draw, "batch": size, **row} for row in found]
    look.tell(Progress("gradients", how.draws, how.draws))
    return rows


def overlap(one: Sequence[np.ndarray], other: Sequence[np.ndarray]) -> float:
    """Return the share of their subwords that two texts have in common: Σ min(p, q), from 0 to 1."""
    first, second = (Counter(np.concatenate(text).tolist()) for text in (one, other))
    n, m = first.total(), second.total()
    return sum(min(first[subword] / n, second[subword] / m) for subword in first.keys() & second.keys())


def _by_example(rows: Sequence[EncodedRow]) -> list[list[EncodedRow]]:
    """Return the rows of each example together: windows of one text are not independent."""
    found: dict[int, list[EncodedRow]] = {}
    for row in rows:
        found.setdefault(row.example, []).append(row)
    return list(found.values())
