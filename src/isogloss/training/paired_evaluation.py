"""Scoring X-Mixup models on inputs that come with their translations into the source language.

X-Mixup, Section 4.3: in classification the probabilities of both sides are averaged; in tagging and span QA
the target side counts, which has taken up the source's in the layer that mixes. An input without a
translation runs alone, unmixed.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from isogloss.core.runs import Optimization
from isogloss.data.examples import Example
from isogloss.encoders.mixup import Mixup, mixing
from isogloss.encoders.speaking import of_language
from isogloss.tasks import Task
from isogloss.tasks.batch import Batch, EncodedRow, collate
from isogloss.training.batching import by_length
from isogloss.training.evaluation import BUDGET, CALL, Evaluation
from isogloss.training.memory import give_back
from isogloss.training.mixup_tasks import mixup_task
from isogloss.training.paired_rows import by_example
from isogloss.training.precision import scoring

Pass = tuple[list[int], Batch, int]
"""Row numbers, their batch, and at how many places the translations before them are scored."""


@dataclass(frozen=True, kw_only=True)
class PairedEvaluation:
    """Examples of one language beside their translations, encoded and batched once.

    It has the verbs of ``Evaluation``, and takes its place wherever models are scored.
    """

    own: Evaluation
    """The examples alone; its batches are those of examples without a translation."""
    mixup: Mixup
    """Where and how much is mixed: that of the model that is scored."""
    paired: Sequence[Pass]
    """Batches of [translations; examples]."""
    averaged: bool
    """Whether both sides answer, or the examples alone."""
    source: str = ""
    """The language of the translations; a model with language modules or maps must know it."""
    warnings: tuple[str, ...] = ()
    """What to tell of examples without a translation."""

    @property
    def task(self) -> Task:
        """Their task."""
        return self.own.task

    @property
    def gold(self) -> list[Any]:
        """What is right, example by example."""
        return self.own.gold

    @property
    def examples(self) -> Sequence[Example]:
        """The examples that are scored."""
        return self.own.examples

    @property
    def rows(self) -> Sequence[EncodedRow]:
        """Their rows."""
        return self.own.rows

    @property
    def baseline(self) -> float | None:
        """Score of always saying the commonest label of the training data."""
        return self.own.baseline

    @property
    def metric(self) -> str:
        """Name of the task's metric."""
        return self.own.metric

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
        """Return the raw scores [label class] of each row, in their order, in float32 on the CPU.

        Where both sides answer they are logarithms of mean probabilities.
        """
        found = self.own.scores(model)
        for numbers, batch, scores, before, _ in self._passes(model):
            mine = scores[before:]
            if self.averaged:
                mine = mean_probabilities(scores[:before], mine).log()
            counts = torch.bincount(batch.rows, minlength=2 * len(numbers))[len(numbers) :].tolist()
            for number, part in zip(numbers, torch.split(mine, counts), strict=True):
                found[number] = part
        return found

    def ratios(self, model: Any) -> Float[Tensor, " example"]:
        """Return λ of each example, the mean over its rows; nan for one without a translation.

        All 0 where nothing is mixed.
        """
        found: list[list[float]] = [[] for _ in self.examples]
        for numbers, _, _, _, ratios in self._passes(model):
            for number, ratio in zip(numbers, ratios, strict=True):
                found[self.rows[number].example].append(ratio)
        return torch.tensor([sum(each) / len(each) if each else float("nan") for each in found])

    def _passes(self, model: Any) -> Iterator[tuple[list[int], Batch, Tensor, int, list[float]]]:
        """Run a model on all pairs; give each pass with its scores and the ratio of each row."""
        model.eval()
        with scoring(model, self.own.precision) as device:
            self.mixup.ratio.to(device)
            for numbers, batch, before in self.paired:
                placed = batch.to(device)
                count = len(numbers)
                languages = (self.source,) * count + (self.own.language,) * count
                with of_language(model, languages), mixing(model, self.mixup, placed.mask) as noted:
                    scores = self.task.scores(model, placed).float().cpu()
                ratios = [0.0] * len(numbers) if noted.ratios is None else noted.ratios.tolist()
                yield numbers, batch, scores, before, ratios
        give_back()


def mean_probabilities(
    one: Float[Tensor, "pair class"], other: Float[Tensor, "pair class"]
) -> Float[Tensor, "pair class"]:
    """Return the mean of the probabilities of two raw outputs."""
    return (one.softmax(dim=-1) + other.softmax(dim=-1)) / 2


def beside_translations(
    own: Evaluation,
    translations: Sequence[Example],
    tokenizer: Any,
    optimization: Optimization,
    *,
    mixup: Mixup,
    source: str = "",
) -> PairedEvaluation:
    """Put examples that are ready to be scored beside their translations into the source language.

    Translations are found by the examples' ids, and their labels are not looked at. A long example has
    several rows; each runs beside the row of the translation at the same point of the text. ``source`` is
    the language of the translations.
    """
    task, rows, padding = own.task, own.rows, tokenizer.pad_token_id
    limit = tokenizer.model_max_length if task.scored_whole else optimization.limit
    numbers = {example.id: number for number, example in enumerate(own.examples)}
    there = [one for one in translations if one.id in numbers]
    encoded = task.encode(there, tokenizer, limit=limit, overlap=optimization.overlap)
    partners = _partners(rows, encoded, [numbers[one.id] for one in there])
    alone = [number for number, partner in enumerate(partners) if partner is None]
    return PairedEvaluation(
        own=replace(own, batches=_alone(rows, alone, padding)),
        mixup=mixup,
        paired=_paired(rows, partners, padding),
        averaged=mixup_task(task.name).one_answer,
        source=source,
        warnings=_warnings(len({rows[number].example for number in alone}), len(own.examples)),
    )


def _partners(
    rows: Sequence[EncodedRow], translations: Sequence[EncodedRow], numbers: Sequence[int]
) -> list[EncodedRow | None]:
    """Find each row's partner: of the translation's rows the one that lies where this row's middle does."""
    of_example: dict[int, list[EncodedRow]] = {}
    for row in translations:
        of_example.setdefault(numbers[row.example], []).append(row)
    found: list[EncodedRow | None] = []
    for example, own in by_example(rows).items():
        others = of_example.get(example)
        for place in range(len(own)):
            found.append(others[(2 * place + 1) * len(others) // (2 * len(own))] if others else None)
    return found


def _alone(rows: Sequence[EncodedRow], numbers: Sequence[int], padding: int) -> list[tuple[list[int], Batch]]:
    groups = _groups([len(rows[number].subwords) for number in numbers], BUDGET)
    chosen = [[numbers[place] for place in group] for group in groups]
    return [(group, collate([rows[number] for number in group], padding=padding)) for group in chosen]


def _paired(rows: Sequence[EncodedRow], partners: Sequence[EncodedRow | None], padding: int) -> list[Pass]:
    pairs = [(number, partner) for number, partner in enumerate(partners) if partner is not None]
    lengths = [max(len(rows[number].subwords), len(partner.subwords)) for number, partner in pairs]
    found: list[Pass] = []
    for group in _groups(lengths, BUDGET // 2):
        numbers = [pairs[place][0] for place in group]
        before = [pairs[place][1] for place in group]
        unlabelled = [replace(row, gold=(), heads=()) for row in (*before, *(rows[one] for one in numbers))]
        batch = collate(unlabelled, padding=padding)
        places = sum(len(row.positions) or 1 for row in before)
        found.append((numbers, batch, places))
    return found


def _groups(lengths: Sequence[int], budget: int) -> list[list[int]]:
    return by_length(lengths, budget, padding=None if torch.cuda.is_available() else CALL)


def _warnings(alone: int, count: int) -> tuple[str, ...]:
    if not alone:
        return ()
    return (
        f"{alone} of {count} examples have no translation into the source language and are predicted "
        f"unmixed. Translate them for what X-Mixup was trained for.",
    )
