"""The interface of a task, and what tasks share: row lengths, label inventories, measures."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple, Protocol, TypeAlias, runtime_checkable

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import kl_div, log_softmax, logsigmoid

from isogloss.core.errors import DataError, did_you_mean
from isogloss.core.rows.models import ByMeasure, total
from isogloss.encoders.family import Model, Tokenizer
from isogloss.tasks.batch import Batch, EncodedRow

Compare = Callable[[Tensor, Tensor], Tensor]
"""From the raw outputs [pair class] on an example and on its translation."""


class OneAnswer(NamedTuple):
    """Functions of the raw outputs that predict one answer to an example and to its translation."""

    mean: Compare
    """The raw outputs of the mean prediction."""
    probabilities: Callable[[Tensor], Tensor] | None = None
    """Probabilities of raw outputs; None for a number."""
    divergence: Compare | None = None
    """The mean of KL(p‖q) over pairs; None for a number."""


def _mean_of_classes(
    first: Float[Tensor, "pair class"], second: Float[Tensor, "pair class"]
) -> Float[Tensor, "pair class"]:
    """Return logarithms of the mean probabilities."""
    return ((first.softmax(dim=-1) + second.softmax(dim=-1)) / 2).log()


def divergence_of_classes(
    first: Float[Tensor, "pair class"], second: Float[Tensor, "pair class"]
) -> Float[Tensor, ""]:
    """Return the mean of KL(p‖q) over pairs."""
    p, q = (log_softmax(scores, dim=-1) for scores in (first, second))
    return kl_div(q, p, reduction="batchmean", log_target=True)


def _mean_of_labels(
    first: Float[Tensor, "pair label"], second: Float[Tensor, "pair label"]
) -> Float[Tensor, "pair label"]:
    """Return the logits of the mean probabilities, finite where a probability rounds to 1."""
    yes, no = (torch.logaddexp(logsigmoid(sign * first), logsigmoid(sign * second)) for sign in (1, -1))
    return yes - no


def _divergence_of_labels(
    first: Float[Tensor, "pair label"], second: Float[Tensor, "pair label"]
) -> Float[Tensor, ""]:
    """Return the divergence of independent labels: the sum of theirs."""
    sides = ((scores, -scores) for scores in (first, second))
    (yes, no), (other_yes, other_no) = ([logsigmoid(side) for side in signs] for signs in sides)
    return (
        (
            kl_div(other_yes, yes, reduction="none", log_target=True)
            + kl_div(other_no, no, reduction="none", log_target=True)
        )
        .sum(dim=-1)
        .mean()
    )


CLASSES = OneAnswer(_mean_of_classes, lambda scores: scores.softmax(dim=-1), divergence_of_classes)
"""One of several classes."""

LABELS = OneAnswer(_mean_of_labels, lambda scores: scores.sigmoid(), _divergence_of_labels)
"""Any number of labels."""

NUMBER = OneAnswer(lambda first, second: (first + second) / 2)
"""A number."""


ROW_LIMIT = 128
"""Subwords per row including special ones (under-specified optimization, appendix)."""

ROW_OVERLAP = 64
"""Subwords shared by neighbouring windows (the paper's released code)."""

SPECIAL = 2
"""Special subwords of a single text: one opens it, one closes it."""

LabelsAre = Literal["example", "option", "word", "span", "tree"]
"""The unit that is labelled: a whole example, one of its options, each word, a span of a passage, or the
words as a tree."""

ExampleParts = Literal["pair", "question", "none"]
"""The two texts of a pair, question and passage, or none."""

Example: TypeAlias = Any
"""An example of the task: the concrete class depends on the task (``data.examples``)."""

Answer: TypeAlias = Any
"""A gold or predicted answer: label, tags, tree or text, depending on the task."""


@runtime_checkable  # Tests check annotations by beartype as the code runs.
class Task(Protocol):
    """A task: each has its own class of examples and of answers."""

    @property
    def name(self) -> str:
        """Name in recipes and in the table of tasks."""

    @property
    def metric(self) -> str:
        """Name of the metric that ``score`` returns."""

    @property
    def labels_are(self) -> LabelsAre:
        """The unit that is labelled; code that treats tasks differently asks this."""

    @property
    def one_answer(self) -> OneAnswer | None:
        """How predictions on an example and its translation are compared; None with different positions."""

    @property
    def parts(self) -> ExampleParts:
        """The parts of an example that can be in different languages."""

    @property
    def labels(self) -> tuple[str, ...]:
        """The label inventory; a label's id is its index."""

    @property
    def limit(self) -> int:
        """Default number of subwords per row, special ones included."""

    @property
    def overlap(self) -> int:
        """Default number of subwords shared by neighbouring windows."""

    @property
    def evaluates_full_length(self) -> bool:
        """Whether evaluation rows may be as long as the encoder allows, whatever the limit in training."""

    def encode(
        self,
        examples: Sequence[Example],
        tokenizer: Tokenizer,
        *,
        limit: int = ROW_LIMIT,
        overlap: int = ROW_OVERLAP,
    ) -> list[EncodedRow]:
        """Encode examples as rows of at most ``limit`` subwords; DataError for unknown labels."""

    def head(self, source: str | Path, *, seed: int | None, attention: str = "sdpa") -> Model:
        """Load an encoder with this task's head; new weights depend on the seed alone."""

    def scores(self, model: Model, batch: Batch) -> Tensor:
        """Return the raw outputs [label class] at the scored positions."""

    def loss(self, model: Model, batch: Batch) -> Tensor:
        """Return the mean loss over the scored positions."""

    def decode(
        self, examples: Sequence[Example], rows: Sequence[EncodedRow], scores: Sequence[Tensor]
    ) -> list[Answer]:
        """Return the predicted answer to each example from the scores [label class] of rows in any order."""

    def gold(self, examples: Sequence[Example]) -> list[Answer]:
        """Return each example's gold answer."""

    def score(self, gold: Sequence[Answer], predicted: Sequence[Answer]) -> float:
        """Return the task's metric, in [0, 1]."""

    def contributions(self, gold: Sequence[Answer], predicted: Sequence[Answer]) -> ByMeasure:
        """Return each example's contribution to each measure, the metric first."""

    def majority(self, train_examples: Sequence[Example], test_examples: Sequence[Example]) -> float:
        """Return the score of the baseline that always predicts the most frequent training label."""


@runtime_checkable
class ScoredTask(Task, Protocol):
    """A task whose loss is a function of its scores, so that both sides of a pair can share one pass."""

    def loss_of(self, scores: Tensor, batch: Batch) -> Tensor:
        """Return the loss of raw outputs [label class] at the scored positions."""


@dataclass(frozen=True, kw_only=True)
class FurtherTask:
    """A task that a model learns in addition to its own, and its examples."""

    task: Task
    corpus: str
    train: Callable[[str], Sequence[Example]]
    """Training examples of one language."""
    dev: Callable[[str], Sequence[Example]]
    """Development examples of one language."""
    limit: int
    """Subwords per row, special ones included."""
    overlap: int
    """Subwords shared by neighbouring windows."""


def all_measures(task: Task, gold: Sequence[Answer], predicted: Sequence[Answer]) -> dict[str, float]:
    """Return all measures of a task by name, the metric first; in [0, 1], correlations in [-1, 1]."""
    return {name: total(contributions) for name, contributions in task.contributions(gold, predicted).items()}


def label_ids(labels: Iterable[str]) -> dict[str, int]:
    """Return the id of each label of an inventory: its index."""
    return {label: number for number, label in enumerate(labels)}


def encode_labels(
    labels: Sequence[str], ids: Mapping[str, int], *, task: str, example: str
) -> tuple[int, ...]:
    """Return the label ids of one example; DataError for a label not in the inventory."""
    try:
        return tuple(ids[label] for label in labels)
    except KeyError:
        index, label = next((index, label) for index, label in enumerate(labels) if label not in ids)
        where = f"example {example!r}" + (f", word {index + 1}" if len(labels) > 1 else "")
        raise DataError(
            f"{where}: {task} has no label {label!r}.{did_you_mean(label, ids)} "
            f"Allowed: {', '.join(filter(None, ids))}."
        ) from None


def most_frequent(occurrences: Iterable[str], labels: Sequence[str]) -> str:
    """Return the most frequent label; ties go to the first in the inventory."""
    counts = Counter(occurrences)
    return max(labels, key=lambda label: counts[label])
