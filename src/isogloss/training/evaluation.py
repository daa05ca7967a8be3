"""Scoring models on data that was encoded once, however the inputs come.

Inputs of a target language come as they are, translated into the source language (translate-test: XTREME,
X-Mixup's baseline), or with a part in the source language (cross-lingual adjustment, Section 4). X-Mixup,
Section 4.3, reads each input beside its translation into the source language: in classification the
probabilities of both sides are averaged; in tagging and span QA the target side counts, which has taken up
the source's in the layer that mixes. An input without a translation runs alone, unmixed.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from isogloss.core.errors import ConfigError, DataError, check_named
from isogloss.core.languages import BOTH
from isogloss.core.progress import OnProgress, Progress, no_progress
from isogloss.core.run_parts import Optimization
from isogloss.data.examples import Example
from isogloss.data.projection.parallel_examples import mixed_pairs, mixed_questions
from isogloss.encoders.annotations import Tokenizer
from isogloss.encoders.mixup import MixingTrace, Mixup, mixing
from isogloss.tasks import TASKS, Task, all_measures, find_task
from isogloss.tasks.batch import Batch, EncodedRow, collate
from isogloss.tasks.classification import PAIR
from isogloss.tasks.one_answer import one_answer
from isogloss.tasks.task import Answer, Model
from isogloss.training.batching import by_length
from isogloss.training.linked_rows import LinkedRows, check_linked, subword_links, turned
from isogloss.training.precision import release_memory, scoring

BUDGET = 8192
"""Subwords of one batch, padding included: large enough that arithmetic, not calls, takes the time."""

CALL = 64
"""Subwords a CPU computes in about the time one more batch costs: more padding than that is not worth it."""


class ScoredBatch(NamedTuple):
    """Rows that are scored together."""

    numbers: list[int]
    batch: Batch
    """The rows; preceded by as many translations where rows are paired."""
    before: int = 0
    """Places of the translations that are scored; 0 without translations."""
    links: Tensor | None = None
    """[pair target source]: whether subwords of rows and translations belong to linked words, where known."""


@dataclass(frozen=True, kw_only=True)
class Evaluation:
    """Examples of one language, encoded and batched once, that score any model of the task."""

    task: Task
    examples: Sequence[Example]
    rows: Sequence[EncodedRow]
    batches: Sequence[ScoredBatch]
    gold: list[Answer]
    """The gold label of each example."""
    precision: str = "auto"
    baseline: float | None = None
    """Score of always saying the commonest label of the training data."""
    language: str = ""
    """The language (or pair, as in en-sw); a model with language modules or maps must know it."""
    mixup: Mixup = field(default_factory=lambda: Mixup(layer=1, largest=0.0))
    """Where and how much the model that is scored mixes of translations."""
    warnings: tuple[str, ...] = ()
    """A warning of examples without a translation."""
    on_progress: OnProgress = no_progress
    """Receives the number of rows scored, after each batch."""

    @property
    def metric(self) -> str:
        """Name of the task's metric."""
        return self.task.metric

    def score(self, model: Model) -> float:
        """Return the task's metric for a model."""
        return self.task.score(self.gold, self.predict(model))

    def measures(self, model: Model) -> dict[str, float]:
        """Return the task's metric first, then its secondary metrics."""
        return all_measures(self.task, self.gold, self.predict(model))

    def predict(self, model: Model) -> list[Answer]:
        """Return what a model predicts for each example, in their order."""
        return self.task.decode(self.examples, self.rows, self.scores(model))

    def scores(self, model: Model) -> list[Tensor]:
        """Return the raw scores [label class] of each row, in their order, in float32 on the CPU.

        Where both sides answer they are those of the mean of both.
        """
        both = one_answer(self.task)
        found: list[Tensor] = [torch.empty(0)] * len(self.rows)
        for each, scores, _ in self._passes(model, self.batches):
            own = scores[each.before :]
            if each.before and both:
                own = both.mean(scores[: each.before], own)
            counts = [self.rows[number].scored for number in each.numbers]
            for number, part in zip(each.numbers, torch.split(own, counts), strict=True):
                found[number] = part
        return found

    def ratios(self, model: Model) -> Float[Tensor, " example"]:
        """Return λ of each example, the mean over its rows; nan for one without a translation.

        All 0 where nothing is mixed.
        """
        found: list[list[float]] = [[] for _ in self.examples]
        paired = [each for each in self.batches if each.before]
        for each, _, noted in self._passes(model, paired):
            counts = each.batch.options[-len(each.numbers) :] or (1,) * len(each.numbers)
            ratios = torch.zeros(sum(counts)) if noted.ratios is None else noted.ratios.cpu()
            for number, own in zip(each.numbers, torch.split(ratios, list(counts)), strict=True):
                found[self.rows[number].example] += own.tolist()
        return torch.tensor([sum(each) / len(each) if each else float("nan") for each in found])

    def _passes(
        self, model: Model, batches: Sequence[ScoredBatch]
    ) -> Iterator[tuple[ScoredBatch, Tensor, MixingTrace]]:
        """Run a model on batches; give each with its scores and what the layer that mixes noted."""
        model.eval()
        done, total = 0, sum(len(each.numbers) for each in batches)
        with scoring(model, self.precision) as device:
            for each in batches:
                batch = each.batch.to(device)
                with mixing_translations(model, self.mixup, each, batch) as noted:
                    scores = self.task.scores(model, batch).float().cpu()
                yield each, scores, noted
                done += len(each.numbers)
                self.on_progress(Progress("scoring", done, total, self.language))
        release_memory()


def mixing_translations(
    model: Model, mixup: Mixup, each: ScoredBatch, batch: Batch
) -> AbstractContextManager[MixingTrace]:
    """Let a model mix while it runs on a batch, on its device; nothing is mixed without translations."""
    if not each.before:
        return nullcontext(MixingTrace())
    device = batch.subwords.device
    mixup.ratio.to(device)
    links = None if each.links is None else each.links.to(device)
    return mixing(model, mixup, batch.mask, batch.languages, links)


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
        examples, tokenizer, limit=_limit(task, tokenizer, optimization), overlap=optimization.overlap
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


def in_batches(lengths: Sequence[int], budget: int | None = None) -> list[list[int]]:
    """Batch rows: many small batches with little padding on a CPU, few large ones on a GPU."""
    return by_length(lengths, budget or BUDGET, padding=None if torch.cuda.is_available() else CALL)


def beside_translations(
    own: Evaluation,
    translations: Sequence[Example],
    tokenizer: Tokenizer,
    optimization: Optimization,
    *,
    mixup: Mixup,
    source: str = "",
) -> Evaluation:
    """Pair prepared examples with their translations into the source language.

    Translations are found by the examples' ids, and their labels are not looked at. A long example has
    several rows; each runs beside the row of the translation at the same point of the text. ``source`` is
    the language of the translations.
    """
    task, rows, padding = own.task, own.rows, tokenizer.pad_token_id
    numbers = {example.id: number for number, example in enumerate(own.examples)}
    there = [one for one in translations if one.id in numbers]
    if mixup.attends == "links" and mixup.largest:
        check_linked(there, f"{source or 'source'} translations of {own.language or 'the inputs'}")
    limit = _limit(task, tokenizer, optimization)
    encoded = task.encode(there, tokenizer, limit=limit, overlap=optimization.overlap)
    partners = _partners(rows, encoded, [numbers[one.id] for one in there])
    _check_options(own.examples, rows, partners)
    alone = {row.example for number, row in enumerate(rows) if number not in partners}
    return replace(
        own,
        batches=scored_batches(rows, partners, padding=padding, languages=(source, own.language)),
        mixup=mixup,
        warnings=(
            f"{len(alone)} of {len(own.examples)} examples have no translation into the source language and "
            f"are predicted unmixed. Translate them for what X-Mixup was trained for.",
        )
        if alone
        else (),
    )


def _limit(task: Task, tokenizer: Tokenizer, optimization: Optimization) -> int:
    limit: int = tokenizer.model_max_length if task.evaluates_full_length else optimization.limit
    return limit


def _partners(
    rows: Sequence[EncodedRow], translations: Sequence[EncodedRow], examples: Sequence[int]
) -> dict[int, EncodedRow]:
    """Find rows' partners: of the translation's rows the one that lies where a row's middle does.

    ``examples`` are the numbers of the translations' examples.
    """
    others: dict[int, list[EncodedRow]] = {}
    for row in translations:
        others.setdefault(examples[row.example], []).append(row)
    own: dict[int, list[int]] = {}
    for number, row in enumerate(rows):
        own.setdefault(row.example, []).append(number)
    return {
        number: others[example][(2 * place + 1) * len(others[example]) // (2 * len(numbers))]
        for example, numbers in own.items()
        if example in others
        for place, number in enumerate(numbers)
    }


def _check_options(
    examples: Sequence[Example], rows: Sequence[EncodedRow], partners: Mapping[int, EncodedRow]
) -> None:
    """Raise DataError for a choice whose translation has more options, or fewer."""
    for number, partner in partners.items():
        row = rows[number]
        if len(row.options) != len(partner.options):
            raise DataError(
                f"example {examples[row.example].id!r} has {len(row.options)} options and its translation "
                f"{len(partner.options)}; expected as many. Correct the translation."
            )


def scored_batches(
    rows: Sequence[EncodedRow],
    partners: Mapping[int, EncodedRow],
    *,
    padding: int,
    languages: tuple[str, str],
) -> list[ScoredBatch]:
    """Batch rows: those without a partner alone, the others after their partners, by the rows' numbers.

    ``languages`` are the partners' and the rows'.
    """
    alone = [number for number in range(len(rows)) if number not in partners]
    found = []
    for group in in_batches([len(rows[number].subwords) for number in alone]):
        numbers = [alone[place] for place in group]
        batch = collate([rows[number] for number in numbers], padding=padding, languages=languages[1:])
        found.append(ScoredBatch(numbers, batch))
    return found + _paired(rows, partners, padding=padding, languages=languages)


def _paired(
    rows: Sequence[EncodedRow],
    partners: Mapping[int, EncodedRow],
    *,
    padding: int,
    languages: tuple[str, str],
) -> list[ScoredBatch]:
    """Batch rows that have a partner, after their partners."""
    pairs = list(partners.items())
    lengths = [max(len(rows[number].subwords), len(partner.subwords)) for number, partner in pairs]
    found = []
    for group in in_batches(lengths, BUDGET // 2):
        numbers = [pairs[place][0] for place in group]
        before = [pairs[place][1] for place in group]
        unlabelled = [replace(row, gold=(), heads=()) for row in (*before, *(rows[one] for one in numbers))]
        source, target = ((language,) * len(group) for language in languages)
        batch = collate(unlabelled, padding=padding, languages=source + target)
        pairs_here = [
            LinkedRows(other, rows[one], turned(other.links))  # From a row to its translation.
            for one, other in zip(numbers, before, strict=True)
        ]
        links = subword_links(pairs_here, width=batch.subwords.size(1))
        found.append(ScoredBatch(numbers, batch, sum(row.scored for row in before), links))
    return found


ORIGINAL_INPUTS = ""
TRANSLATED = "translated"
PAIRED = "paired"
"""Each input beside its translation into the source language, for models that mix the two (X-Mixup)."""

Mix = Callable[[Sequence[Example], Sequence[Example]], Sequence[Example]]
"""From the examples of the target and of the source language."""

MIXED: Mapping[str, Mix] = {
    "mixed": partial(mixed_pairs, side="random"),
    "mixed-first": partial(mixed_pairs, side="first"),
    "mixed-second": partial(mixed_pairs, side="second"),
    "mixed-question": partial(mixed_questions, part="question"),
    "mixed-passage": partial(mixed_questions, part="passage"),
}
"""What is in the source language: one text of a pair (at random, by the id), or one part of a question."""

PARTS: Mapping[str, str] = {
    name: "question" if name in ("mixed-question", "mixed-passage") else "pair" for name in MIXED
}
"""The kind of examples that have these parts."""

Read = Callable[[str], list[Example]]


def check_inputs(inputs: str, task: str, where: str) -> None:
    """Raise ConfigError unless there are such inputs, and the task's examples have the parts they mix."""
    if inputs != ORIGINAL_INPUTS:
        check_named(where, "kind of inputs", (TRANSLATED, PAIRED, *MIXED), inputs)
    kind, mixed = _parts_of(find_task(task)), PARTS.get(inputs)
    if mixed not in (None, kind):
        fitting = [TRANSLATED, *(name for name, one in PARTS.items() if one == kind)]
        able = " and ".join(name for name, one in TASKS.items() if _parts_of(one) == mixed)
        raise ConfigError(
            f"{where}: {inputs!r} is for {able}, not for {task}. "
            f"Choose {' or '.join(fitting)}, or leave it out."
        )


def _parts_of(task: Task) -> str:
    pair = getattr(task, "texts", ()) == PAIR
    return "pair" if pair else "question" if task.labels_are == "span" else ""


def codes_read(inputs: str, language: str, source: tuple[str, ...]) -> tuple[str, ...]:
    """Return the languages (or pairs) whose examples make up a language's inputs; the source's are plain."""
    if inputs == ORIGINAL_INPUTS or language in source or not source:
        return (language,)
    translation = f"{language}-{source[0]}"
    if inputs == PAIRED:
        return language, translation
    return (translation,) if inputs == TRANSLATED else (language, source[0])


def language_read(inputs: str, language: str, source: tuple[str, ...]) -> str:
    """Return the language (or pair) that a model reads: both, joined by +, where an example has both."""
    return BOTH.join(codes_read(inputs, language, source))


def examples_of(inputs: str, language: str, source: tuple[str, ...], read: Read) -> list[Example]:
    """Return a language's examples with their inputs as asked; DataError where a test set is not parallel."""
    own, *others = (read(code) for code in codes_read(inputs, language, source))
    return list(MIXED[inputs](own, others[0])) if others else own
