"""The interface of a task, and definitions that tasks share: row lengths, label inventories, measures."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol, TypeAlias, runtime_checkable

from isogloss.core.errors import DataError, did_you_mean
from isogloss.core.rows.models import ByMeasure, total
from isogloss.tasks.batch import Batch, EncodedRow, Scores

if TYPE_CHECKING:
    from jaxtyping import Float
    from torch import Tensor

    from isogloss.encoders.family import Model, Tokenizer

Compare: TypeAlias = "Callable[[Tensor, Tensor], Tensor]"
"""Function of the raw outputs [pair class] on an example and on its translation."""


class OneAnswer(NamedTuple):
    """Functions of the raw outputs that predict one answer to an example and to its translation."""

    mean: Compare
    """Raw outputs of the mean prediction."""
    probabilities: Callable[[Tensor], Tensor] | None = None
    """Probabilities of raw outputs, or None for a number."""
    divergence: Compare | None = None
    """Mean of KL(p‖q) over pairs, or None for a number."""


def _mean_of_classes(
    scores: Float[Tensor, "pair class"], translation_scores: Float[Tensor, "pair class"]
) -> Float[Tensor, "pair class"]:
    """Return the logarithms of the mean probabilities."""
    return ((scores.softmax(dim=-1) + translation_scores.softmax(dim=-1)) / 2).log()


def divergence_of_classes(
    scores: Float[Tensor, "pair class"], translation_scores: Float[Tensor, "pair class"]
) -> Float[Tensor, ""]:
    """Return the mean of KL(p‖q) over pairs, with p from ``scores`` and q from ``translation_scores``."""
    from torch.nn.functional import kl_div, log_softmax

    p = log_softmax(scores, dim=-1)
    q = log_softmax(translation_scores, dim=-1)
    return kl_div(q, p, reduction="batchmean", log_target=True)


def _mean_of_labels(
    scores: Float[Tensor, "pair label"], translation_scores: Float[Tensor, "pair label"]
) -> Float[Tensor, "pair label"]:
    """Return the logits of the mean probabilities, which are finite even if a probability rounds to 1."""
    import torch
    from torch.nn.functional import logsigmoid

    yes = torch.logaddexp(logsigmoid(scores), logsigmoid(translation_scores))
    no = torch.logaddexp(logsigmoid(-scores), logsigmoid(-translation_scores))
    return yes - no


def _divergence_of_labels(
    scores: Float[Tensor, "pair label"], translation_scores: Float[Tensor, "pair label"]
) -> Float[Tensor, ""]:
    """Return the mean over pairs of the sum of the labels' divergences."""
    from torch.nn.functional import kl_div, logsigmoid

    divergences = [
        kl_div(
            logsigmoid(sign * translation_scores),
            logsigmoid(sign * scores),
            reduction="none",
            log_target=True,
        )
        for sign in (1, -1)
    ]
    return (divergences[0] + divergences[1]).sum(dim=-1).mean()


def _softmax(scores: Tensor) -> Tensor:
    return scores.softmax(dim=-1)


def _sigmoid(scores: Tensor) -> Tensor:
    return scores.sigmoid()


CLASSES = OneAnswer(_mean_of_classes, _softmax, divergence_of_classes)
"""Functions for one of several classes."""

LABELS = OneAnswer(_mean_of_labels, _sigmoid, _divergence_of_labels)
"""Functions for any number of labels."""


def _mean_scores(scores: Tensor, translation_scores: Tensor) -> Tensor:
    return (scores + translation_scores) / 2


NUMBER = OneAnswer(_mean_scores)
"""Function for a number."""


ROW_LIMIT = 128
"""Subwords per row including special ones (under-specified optimization, appendix)."""

ROW_OVERLAP = 64
"""Subwords shared by neighbouring windows (the paper's released code)."""

SPECIAL = 2
"""Special subwords of a single text: one opens it, one closes it."""

LabelsAre = Literal["example", "option", "word", "span", "tree"]
"""Unit that is labelled: a whole example, one of its options, each word, a span of a passage, or the words as
a tree."""

ExampleParts = Literal["pair", "question", "none"]
"""The two texts of a pair, question and passage, or none."""

Example: TypeAlias = Any
"""An example of the task: the concrete class depends on the task (``data.examples``)."""

Answer: TypeAlias = Any
"""A gold or predicted answer: label, tags, tree or text, depending on the task."""


@runtime_checkable  # Tests check annotations by beartype as the code runs.
class Task(Protocol):
    """A task, with its own class of examples and of answers."""

    @property
    def name(self) -> str:
        """Name in recipes and in the table of tasks."""

    @property
    def metric(self) -> str:
        """Name of the metric that ``score`` returns."""

    @property
    def labels_are(self) -> LabelsAre:
        """Unit that is labelled, by which other code distinguishes tasks."""

    @property
    def one_answer(self) -> OneAnswer | None:
        """Functions that compare predictions on an example and its translation.

        None is for tasks whose examples and translations have different positions.
        """

    @property
    def parts(self) -> ExampleParts:
        """The parts of an example that can be in different languages."""

    @property
    def labels(self) -> tuple[str, ...]:
        """Label inventory. A label's id is its index."""

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
        """Encode examples as rows of at most ``limit`` subwords.

        Raises DataError for unknown labels.
        """

    def head(self, source: str | Path, *, seed: int | None, attention: str = "sdpa") -> Model:
        """Load an encoder with this task's head.

        New weights depend only on the seed.
        """

    def scores(self, model: Model, batch: Batch) -> Tensor:
        """Return the raw outputs [label class] at the scored positions."""

    def loss(self, model: Model, batch: Batch) -> Tensor:
        """Return the mean loss over the scored positions."""

    def decode(
        self, examples: Sequence[Example], rows: Sequence[EncodedRow], scores: Sequence[Scores]
    ) -> list[Answer]:
        """Return the predicted answer to each example from the scores [label class] of rows in any order.

        Scores are tensors on the CPU or arrays.
        """

    def gold(self, examples: Sequence[Example]) -> list[Answer]:
        """Return each example's gold answer."""

    def score(self, gold: Sequence[Answer], predicted: Sequence[Answer]) -> float:
        """Return the task's metric: in [0, 1], or in [-1, 1] for a correlation."""

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
    """A task that a model learns in addition to its main task, and its examples."""

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
    """Return all measures of a task by name, the metric first.

    They are in [0, 1], or in [-1, 1] for correlations.
    """
    return {name: total(contributions) for name, contributions in task.contributions(gold, predicted).items()}


def label_ids(labels: Iterable[str]) -> dict[str, int]:
    """Return the id of each label of an inventory: its index."""
    return {label: index for index, label in enumerate(labels)}


def encode_labels(
    labels: Sequence[str], ids: Mapping[str, int], *, task: str, example: str
) -> tuple[int, ...]:
    """Return the label ids of one example.

    Raises DataError for a label outside of the inventory.
    """
    try:
        return tuple(ids[label] for label in labels)
    except KeyError:
        index, label = next((index, label) for index, label in enumerate(labels) if label not in ids)
        where = f"example {example!r}" + (f", word {index + 1}" if len(labels) > 1 else "")
        raise DataError(
            f"{where}: {task} has no label {label!r}.{did_you_mean(label, ids)} "
            f"Allowed: {', '.join(name for name in ids if name)}."
        ) from None


def most_frequent(occurrences: Iterable[str], labels: Sequence[str]) -> str:
    """Return the most frequent label, or the first in the inventory of equally frequent ones."""
    counts = Counter(occurrences)
    return max(labels, key=counts.__getitem__)
