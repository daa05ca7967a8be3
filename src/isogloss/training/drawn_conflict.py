"""Gradient conflict on batches that are drawn: often for a finished model, or now and then in training."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from torch import Tensor

from isogloss.core.errors import DataError
from isogloss.core.progress import Progress, Tell, silent
from isogloss.core.records import Value
from isogloss.core.runs import Positive
from isogloss.core.seeds import derive
from isogloss.tasks import Task
from isogloss.tasks.batch import EncodedRow
from isogloss.tasks.masked_lm import Masking
from isogloss.tasks.text_stream import TextStream
from isogloss.training.batch_losses import masked_parts, task_losses, text_losses
from isogloss.training.fit import Observer
from isogloss.training.gradient_conflict import conflict_rows, parts_of

WATCHES = {"watches": True}
"""Metadata of a method's field that changes nothing of what is trained, and so is no part of its label."""


@dataclass(frozen=True, kw_only=True)
class Conflict:
    """How gradient conflict is watched while a model trains; the training stays as it is, to the bit."""

    every: Positive = 10
    """Steps between two measurements; there is one more after the last step."""

    batch: Positive = 4096
    """Rows each gradient is accumulated over: blocks of text, or labelled examples; half of them where there
    are fewer than twice as many. A measurement of two languages takes four gradients: large batches take
    longer than the training."""

    layers: bool = False
    """Whether each layer is kept too, not only the kinds of modules and the whole."""


@dataclass(frozen=True)
class Pool:
    """What batches of each language are drawn from."""

    counts: Mapping[str, int]
    """Rows of each language."""
    losses: Callable[[str, Sequence[int], int], Iterable[Tensor]]
    """From a language, the numbers of the rows in a batch, and a seed, to the batch's loss in parts."""

    def size(self, wanted: int) -> int:
        """Return the size of all batches: the same in each language, so that noise is; DataError if none."""
        size = min(wanted, *(count // 2 for count in self.counts.values()))
        if not size:
            least = min(self.counts, key=self.counts.__getitem__)
            raise DataError(
                f"gradient conflict: the text or examples of {least} come to {self.counts[least]}, and a "
                f"gradient is compared with another one; two or more are needed, and thousands are better. "
                f"Choose another split or corpus."
            )
        return size


@dataclass(frozen=True, kw_only=True)
class Draws:
    """How batches are drawn."""

    batch: int
    count: int = 1
    seed: int
    layers: bool = True


def drawn_conflict(model: Any, pool: Pool, how: Draws, *, tell: Tell = silent) -> list[dict[str, Value]]:
    """Return the rows of ``conflict_rows`` for each draw, with its number and the size of its batches."""
    size, languages, parts = pool.size(how.batch), tuple(pool.counts), parts_of(model)
    drawn = {
        language: drawn_apart(count, size, how.count, seed=derive(how.seed, language))
        for language, count in pool.counts.items()
    }
    rows: list[dict[str, Value]] = []
    for draw in range(how.count):

        def losses(language: str, number: int, draw: int = draw) -> Iterable[Tensor]:
            tell(Progress("gradients", draw, how.count, language))
            numbers = drawn[language][draw][number].tolist()
            return pool.losses(language, numbers, derive(how.seed, language, draw, number))

        found = conflict_rows(model, languages, losses, parts, layers=how.layers)
        rows += [{"draw": draw, "batch": size, **row} for row in found]
    tell(Progress("gradients", how.count, how.count))
    return rows


def observer(conflict: Conflict, model: Any, pool: Pool, *, seed: int) -> Observer:
    """Return who measures conflict now and then; batches follow from the seed and the step alone."""

    def look(step: int) -> list[dict[str, Value]]:
        how = Draws(batch=conflict.batch, seed=derive(seed, "conflict", step), layers=conflict.layers)
        return [{"step": step, **row} for row in drawn_conflict(model, pool, how)]

    return Observer(look=look, every=conflict.every)


def block_pool(
    model: Any,
    streams: Mapping[str, TextStream],
    masking: Masking,
    *,
    block: int,
    budget: int,
    precision: str,
) -> Pool:
    """Draw blocks of each language's text, some subwords of which are hidden.

    Blocks begin at different lines; where lines are short, the end of one may be the beginning of another.
    """

    def losses(language: str, numbers: Sequence[int], seed: int) -> Iterable[Tensor]:
        rows = [streams[language].block(number, block - 2) for number in numbers]
        parts = masked_parts(rows, masking, seed=seed, budget=budget, language=language)
        return text_losses(model, language, parts, precision=precision)

    return Pool({language: len(stream.starts) for language, stream in streams.items()}, losses)


def example_pool(
    model: Any, rows: Mapping[str, Sequence[EncodedRow]], task: Task, *, padding: int, precision: str
) -> Pool:
    """Draw labelled examples of each language; those of several rows are drawn whole."""
    whole = {language: by_example(own) for language, own in rows.items()}

    def losses(language: str, numbers: Sequence[int], _: int) -> Iterable[Tensor]:
        drawn = [row for number in numbers for row in whole[language][number]]
        return task_losses(model, language, drawn, task, padding=padding, precision=precision)

    return Pool({language: len(own) for language, own in whole.items()}, losses)


def by_example(rows: Sequence[EncodedRow]) -> list[list[EncodedRow]]:
    """Return the rows of each example together: windows of one text are not independent."""
    found: dict[int, list[EncodedRow]] = {}
    for row in rows:
        found.setdefault(row.example, []).append(row)
    return list(found.values())


def drawn_apart(count: int, size: int, draws: int, *, seed: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """Draw, several times, the numbers below ``count`` of two batches of a size that share none.

    Where there are enough, no two draws share any either.
    """
    rng = np.random.Generator(np.random.PCG64(derive(seed, "apart")))
    whole = 2 * size * draws <= count
    orders = (
        rng.choice(count, size=2 * size * draws, replace=False).reshape(draws, 2 * size)
        if whole
        else [rng.choice(count, size=2 * size, replace=False) for _ in range(draws)]
    )
    return [(order[:size], order[size:]) for order in orders]
