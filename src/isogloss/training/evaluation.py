"""Scoring models on data that was encoded once."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from jaxtyping import Float
from torch import Tensor

from isogloss.core.errors import ConfigError
from isogloss.core.runs import Optimization
from isogloss.data.examples import Example
from isogloss.encoders import family_of
from isogloss.tasks import Task
from isogloss.tasks.batch import Batch, EncodedRow, collate
from isogloss.training.batching import by_length
from isogloss.training.memory import give_back
from isogloss.training.precision import scoring

BUDGET = 8192
"""Subwords of one batch, padding included: large enough that arithmetic, not calls, takes the time."""

CALL = 64
"""Subwords a CPU computes in about the time one more batch costs: more padding than that is not worth it."""


class Scorer(Protocol):
    """Examples of one language, ready to score any model of their task."""

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
        with scoring(model, self.precision) as device:
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
) -> Evaluation:
    """Encode and batch examples for scoring."""
    limit = tokenizer.model_max_length if task.scored_whole else optimization.limit
    rows = task.encode(examples, tokenizer, limit=limit, overlap=optimization.overlap)
    groups = _groups([len(row.subwords) for row in rows])
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
    )


def sentence_states(
    model: Any,
    tokenizer: Any,
    texts: Sequence[str],
    *,
    layer: int = -1,
    limit: int = 128,
    precision: str = "auto",
) -> Float[Tensor, "sentence dim"]:
    """Return the mean of each text's states in one layer, special subwords left out.

    Layer 0 is the embeddings, -1 the last. A text is cut after ``limit`` subwords, or where the encoder has
    no more positions; one without subwords is all zeros.
    """
    _check_layer(model, layer)
    limit = min(limit, family_of(model).longest_text(model.config))
    ids = tokenizer(list(texts), truncation=True, max_length=limit, return_special_tokens_mask=True)
    found: list[Tensor] = [torch.empty(0)] * len(texts)
    model.eval()
    encoder: Any = model.base_model
    with scoring(encoder, precision) as device:
        for group in _groups([len(row) for row in ids["input_ids"]]):
            padded = tokenizer.pad(
                {name: [ids[name][row] for row in group] for name in ids}, return_tensors="pt"
            ).to(device)
            given = {name: padded[name] for name in ("input_ids", "attention_mask")}
            states = encoder(**given, output_hidden_states=True).hidden_states[layer].float()
            real = (given["attention_mask"] * (1 - padded["special_tokens_mask"])).unsqueeze(2)
            pooled = (states * real).sum(dim=1) / real.sum(dim=1).clamp(min=1)
            for row, vector in zip(group, pooled.cpu(), strict=True):
                found[row] = vector
    return torch.stack(found)


def _groups(lengths: Sequence[int]) -> list[list[int]]:
    """Batch rows: many small batches with little padding on a CPU, few large ones on a GPU."""
    return by_length(lengths, BUDGET, padding=None if torch.cuda.is_available() else CALL)


def _check_layer(model: Any, layer: int) -> None:
    last = model.config.num_hidden_layers
    if not -last - 1 <= layer <= last:
        raise ConfigError(
            f"no layer {layer}: this encoder has {last} layers: use 0 (the embeddings) to {last}, "
            f"or -1 (the last)."
        )
