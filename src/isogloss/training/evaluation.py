"""Scoring models on data that was encoded once, for all kinds of inputs.

Inputs of a target language are original, translated into the source language (translate-test: XTREME,
X-Mixup's baseline), or partly in the source language (cross-lingual adjustment, Section 4). X-Mixup, Section
4.3, reads each input together with its translation into the source language. In classification the
probabilities of both sides are averaged. In tagging and span QA the target side, which was mixed with the
source side, is scored. An input without a translation is predicted unmixed.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from isogloss.core.errors import DataError
from isogloss.core.progress import Progress
from isogloss.core.rows.models import Contributions
from isogloss.core.run_parts import Optimization
from isogloss.data.examples import Example
from isogloss.encoders.family import Model, Tokenizer
from isogloss.encoders.mixup import MixingTrace, Mixup
from isogloss.tasks.batch import EncodedRow
from isogloss.tasks.encoded_examples import EncodedExamples, row_limit
from isogloss.tasks.task import Answer, Task, all_measures
from isogloss.training.length_batches import BUDGET, in_batches
from isogloss.training.precision import release_memory, scoring
from isogloss.training.sides import (
    RowPair,
    Sides,
    check_linked,
    collate_alone,
    collate_pairs,
    reversed_links,
    scoring_partners,
    translation_rows,
    without_labels,
)


class ScoredBatch(NamedTuple):
    """Rows that are scored together, and their indices among all rows."""

    numbers: list[int]
    sides: Sides
    """The rows are the target side."""


@dataclass(frozen=True, kw_only=True)
class Evaluation(EncodedExamples):
    """Examples of one language, encoded and batched once, which score any model of the task."""

    batches: Sequence[ScoredBatch]
    precision: str = "auto"
    baseline: float | None = None
    """Score of always predicting the most frequent label of the training data."""
    mixup: Mixup = field(default_factory=lambda: Mixup(layer=1, ratio=0.0))
    """Mixup of the model that is scored."""
    warnings: tuple[str, ...] = ()
    """A warning about examples without a translation."""

    @property
    def metric(self) -> str:
        """Name of the task's metric."""
        return self.task.metric

    def score(self, model: Model) -> float:
        """Return the task's metric for a model."""
        return self.task.score(self.gold, self.predict(model))

    def score_by_example(self, model: Model) -> tuple[float, Contributions, list[Answer]]:
        """Return the task's metric for a model, each example's contribution to it, and the predictions."""
        answers = self.predict(model)
        contributions = self.task.contributions(self.gold, answers)[self.metric]
        return self.task.score(self.gold, answers), contributions, answers

    def measures(self, model: Model) -> dict[str, float]:
        """Return the task's metric first, then its secondary metrics."""
        return all_measures(self.task, self.gold, self.predict(model))

    def predict(self, model: Model) -> list[Answer]:
        """Return the predicted answer to each example, in order."""
        return self.task.decode(self.examples, self.rows, self.scores(model))

    def scores(self, model: Model) -> list[Tensor]:
        """Return the raw scores [label class] of each row, in order, in float32 on the CPU.

        If both sides predict one answer, these are the mean scores of both sides.
        """
        answer = self.task.one_answer
        row_scores: list[Tensor] = [torch.empty(0)] * len(self.rows)
        for batch, scores, _ in self._passes(model, self.batches):
            source, target = batch.sides.split(scores)
            if batch.sides.paired and answer:
                target = answer.mean(source, target)
            counts = [self.rows[row].scored for row in batch.numbers]
            for row, part in zip(batch.numbers, torch.split(target, counts), strict=True):
                row_scores[row] = part
        return row_scores

    def ratios(self, model: Model) -> Float[Tensor, " example"]:
        """Return λ of each example, the mean over its rows, or nan for an example without a translation.

        λ is 0 for models that do not mix.
        """
        example_ratios: list[list[float]] = [[] for _ in self.examples]
        paired_batches = [batch for batch in self.batches if batch.sides.paired]
        for batch, _, trace in self._passes(model, paired_batches):
            counts = batch.sides.target.rows_of_items
            ratios = torch.zeros(sum(counts)) if trace.ratios is None else trace.ratios.cpu()
            for row, row_ratios in zip(batch.numbers, torch.split(ratios, list(counts)), strict=True):
                example_ratios[self.rows[row].example] += row_ratios.tolist()
        return torch.tensor(
            [sum(ratios) / len(ratios) if ratios else float("nan") for ratios in example_ratios]
        )

    def _passes(
        self, model: Model, batches: Sequence[ScoredBatch]
    ) -> Iterator[tuple[ScoredBatch, Tensor, MixingTrace]]:
        """Run a model on batches, and yield each batch with the scores of both sides and the mixup ratios."""
        model.eval()
        done = 0
        total = sum(len(batch.numbers) for batch in batches)
        with scoring(model, self.precision) as device:
            self.mixup.ratio_module.to(device)
            for batch in batches:
                sides = batch.sides.to(device)
                with sides.mixing(model, self.mixup) as trace:
                    scores = self.task.scores(model, sides.joined).float().cpu()
                yield batch, scores, trace
                done += len(batch.numbers)
                self.on_progress(Progress("scoring", done, total, self.language))
        release_memory()


def evaluation(
    task: Task,
    examples: Sequence[Example],
    tokenizer: Tokenizer,
    optimization: Optimization,
    *,
    baseline: float | None = None,
    language: str = "",
) -> Evaluation:
    """Encode and batch examples for scoring."""
    rows = task.encode(
        examples,
        tokenizer,
        limit=row_limit(task, int(tokenizer.model_max_length), optimization.limit),
        overlap=optimization.overlap,
    )
    return Evaluation(
        task=task,
        examples=examples,
        rows=rows,
        batches=scored_batches(rows, {}, padding=tokenizer.pad_token_id, languages=("", language)),
        gold=task.gold(examples),
        precision=optimization.updates.precision,
        baseline=baseline,
        language=language,
    )


def pair_with_translations(
    evaluation: Evaluation,
    translations: Sequence[Example],
    tokenizer: Tokenizer,
    optimization: Optimization,
    *,
    mixup: Mixup,
    source: str = "",
) -> Evaluation:
    """Pair prepared examples with their translations into the source language.

    Translations are matched by the examples' ids, and their labels are ignored. ``source`` is the language of
    the translations.
    """
    task = evaluation.task
    examples = evaluation.examples
    rows = evaluation.rows
    limit = row_limit(task, int(tokenizer.model_max_length), optimization.limit)

    def encode(matching: Sequence[Example]) -> list[EncodedRow]:
        if mixup.attends == "links" and mixup.ratio:
            check_linked(
                matching, f"{source or 'source'} translations of {evaluation.language or 'the inputs'}"
            )
        return task.encode(matching, tokenizer, limit=limit, overlap=optimization.overlap)

    partners = scoring_partners(rows, translation_rows(examples, translations, encode))
    _check_options(examples, rows, partners)
    unpaired_examples = {row.example for index, row in enumerate(rows) if index not in partners}
    languages = (source, evaluation.language)
    return replace(
        evaluation,
        batches=scored_batches(rows, partners, padding=tokenizer.pad_token_id, languages=languages),
        mixup=mixup,
        warnings=(
            f"{len(unpaired_examples)} of {len(examples)} examples have no translation into the source "
            f"language and are predicted unmixed. Translate them, as X-Mixup was trained with translations.",
        )
        if unpaired_examples
        else (),
    )


def _check_options(
    examples: Sequence[Example], rows: Sequence[EncodedRow], partners: Mapping[int, EncodedRow]
) -> None:
    """Raise DataError if a translation has a different number of options than its original."""
    for index, partner in partners.items():
        row = rows[index]
        if len(row.options) != len(partner.options):
            raise DataError(
                f"example {examples[row.example].id!r} has {len(row.options)} options and its translation "
                f"{len(partner.options)}. Correct the translation."
            )


def scored_batches(
    rows: Sequence[EncodedRow],
    partners: Mapping[int, EncodedRow],
    *,
    padding: int,
    languages: tuple[str, str],
) -> list[ScoredBatch]:
    """Batch rows, with the translations that are their partners, if any.

    ``partners`` are by row index. ``languages`` are the partners' language and the rows' language.
    """
    unpaired_rows = [row for row in range(len(rows)) if row not in partners]
    batches = []
    for group in in_batches([len(rows[row].subwords) for row in unpaired_rows]):
        batch_rows = [unpaired_rows[index] for index in group]
        sides = collate_alone([rows[row] for row in batch_rows], padding=padding, language=languages[1])
        batches.append(ScoredBatch(batch_rows, sides))
    paired_rows = list(partners)
    lengths = [max(len(rows[row].subwords), len(partners[row].subwords)) for row in paired_rows]
    for group in in_batches(lengths, BUDGET // 2):
        batch_rows = [paired_rows[index] for index in group]
        pairs = [
            RowPair(
                without_labels(partners[row]),
                without_labels(rows[row]),
                reversed_links(partners[row].links),  # From a translation's words to the original's.
            )
            for row in batch_rows
        ]
        batches.append(ScoredBatch(batch_rows, collate_pairs(pairs, padding=padding, languages=languages)))
    return batches
