"""Scoring models on data that was encoded once."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import torch
from torch import Tensor

from isogloss.core.runs import Optimization
from isogloss.data.examples import Example
from isogloss.encoders.speaking import of_language
from isogloss.tasks import Task
from isogloss.tasks.batch import Batch, EncodedRow, collate
from isogloss.training.batching import by_length
from isogloss.training.memory import give_back
from isogloss.training.precision import scoring

BUDGET = 8192
"""Subwords of one batch, padding included: large enough that arithmetic, not calls, takes the time."""

CALL = 64
"""Subwords a CPU computes in about the time one more batch costs: more padding than that is not worth it."""


@runtime_checkable
class Scorer(Protocol):
    """Examples of one language, ready to score any model of their task."""

    @property
    def task(self) -> Task:
        """The task."""
        ...

    @property
    def gold(self) -> list[Any]:
        """What is right, example by example."""
        ...

    @property
    def examples(self) -> Sequence[Example]:
        """The examples."""
        ...

    @property
    def rows(self) -> Sequence[EncodedRow]:
        """Their rows."""
        ...

    @property
    def metric(self) -> str:
        """Name of the task's metric."""
        ...

    @property
    def baseline(self) -> float | None:
        """Score of always saying the commonest label of the training data."""
        ...

    def score(self, model: Any) -> float:
        """Return the task's metric for a model."""
        ...

    def measures(self, model: Any) -> dict[str, float]:
        """Return the task's metric, first, and what the field reports beside it."""
        ...

    def predict(self, model: Any) -> list[Any]:
        """Return what a model predicts for each example, in their order."""
        ...

    def scores(self, model: Any) -> list[Tensor]:
        """Return the raw scores [label class] of each row, in their order, in float32 on the CPU."""
        ...


@dataclass(frozen=True, kw_only=True)
class Evaluation:
    """Examples of one language, encoded and batched once, that score any model of the task."""

    task: Task
    examples: Sequence[Example]
    rows: Sequence[EncodedRow]
    batches: Sequence[tuple[list[int], Batch]]
    """Row numbers and their batch."""
    gold: list[Any]
    precision: str = "auto"
    baseline: float | None = None
    """Score of always saying the commonest label of the training data."""
    language: str = ""
    """The language (or pair, as in en-sw); a model with language modules or maps must know it."""

    @property
    def metric(self) -> str:
        """Name of the task's metric."""
        return self.task.metric

    def score(self, model: Any) -> float:
        """Return the task's metric for a model."""
        return self.task.score(self.gold, self.predict(model))

    def measures(self, model: Any) -> dict[str, float]:
        """Return the task's metric, first, and what the field reports beside it."""
        return self.task.measures(self.gold, self.predict(model))

    def predict(self, model: Any) -> list[Any]:
        """Return what a model predicts for each example, in their order."""
        return self.task.decode(self.examples, self.rows, self.scores(model))

    def scores(self, model: Any) -> list[Tensor]:
        """Return the raw scores [label class] of each row, in their order, in float32 on the CPU."""
        found: list[Tensor] = [torch.empty(0)] * len(self.rows)
        model.eval()
        with of_language(model, self.language), scoring(model, self.precision) as device:
            for numbers, batch in self.batches:
                scores = self.task.scores(model, batch.to(device)).float().cpu()
                counts = torch.bincount(batch.rows, minlength=len(numbers)).tolist()
                for number, part in zip(numbers, torch.split(scores, counts), strict=True):
                    found[number] = part
        give_back()
        return found


def evaluation(
    task: Task,
    examples: Sequence[Example],
    tokenizer: Any,
    optimization: Optimization,
    *,
    baseline: float | None = None,
    language: str = "",
) -> Evaluation:
    """Encode and batch examples for scoring."""
    limit = tokenizer.model_max_length if task.scored_whole else optimization.limit
    rows = task.encode(examples, tokenizer, limit=limit, overlap=optimization.overlap)
    groups = in_batches([len(row.subwords) for row in rows])
    batches = [
        (group, collate([rows[row] for row in group], padding=tokenizer.pad_token_id)) for group in groups
    ]
    return Evaluation(
        task=task,
        examples=examples,
        rows=rows,
        batches=batches,
        gold=task.gold(examples),
        precision=optimization.precision,
        baseline=baseline,
        language=language,
    )


def in_batches(lengths: Sequence[int]) -> list[list[int]]:
    """Batch rows: many small batches with little padding on a CPU, few large ones on a GPU."""
    return by_length(lengths, BUDGET, padding=None if torch.cuda.is_available() else CALL)
