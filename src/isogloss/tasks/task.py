"""What a task is: from examples to rows, a head, scores, a loss, decoded predictions and their score."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias, runtime_checkable

from torch import Tensor

from isogloss.core.contributions import ByMeasure
from isogloss.tasks.batch import Batch, EncodedRow
from isogloss.tasks.sentences import LIMIT, OVERLAP

if TYPE_CHECKING:
    from transformers import PretrainedConfig, PreTrainedModel, PreTrainedTokenizerFast

    Config: TypeAlias = PretrainedConfig
    Model: TypeAlias = PreTrainedModel
    Tokenizer: TypeAlias = PreTrainedTokenizerFast
else:  # The names under which floors above know the types of a library they do not import.
    Config = Model = Tokenizer = Any

LabelsAre = Literal["example", "word", "span", "tree"]
"""What a task's labels are of: a whole example, each word, a piece of a passage, or words as a tree."""


@runtime_checkable
class Task(Protocol):
    """A task: each kind of examples has its own, and what it predicts per example is its own too."""

    @property
    def name(self) -> str:
        """Name in recipes and in the table of tasks."""
        ...

    @property
    def metric(self) -> str:
        """Name of what ``score`` returns."""
        ...

    @property
    def labels_are(self) -> LabelsAre:
        """What its labels are of; what else treats tasks differently asks this."""
        ...

    @property
    def labels(self) -> tuple[str, ...]:
        """The label inventory; a label's place is its number."""
        ...

    @property
    def limit(self) -> int:
        """Subwords of a row, special ones included, unless a recipe says otherwise."""
        ...

    @property
    def overlap(self) -> int:
        """Subwords that neighbouring windows share, unless a recipe says otherwise."""
        ...

    @property
    def scored_whole(self) -> bool:
        """Whether rows that are scored may be as long as the encoder takes, whatever training takes."""
        ...

    def encode(
        self,
        examples: Sequence[Any],
        tokenizer: "PreTrainedTokenizerFast",
        *,
        limit: int = LIMIT,
        overlap: int = OVERLAP,
    ) -> list[EncodedRow]:
        """Turn examples into rows of at most ``limit`` subwords; DataError at a label the task has not."""
        ...

    def head(self, source: str | Path, *, seed: int, attention: str = "sdpa") -> "PreTrainedModel":
        """Load an encoder and put this task's head on it; what is new depends on the seed alone."""
        ...

    def scores(self, model: "PreTrainedModel", batch: Batch) -> Tensor:
        """Return the raw outputs [label class] at the places of the batch."""
        ...

    def loss(self, model: "PreTrainedModel", batch: Batch) -> Tensor:
        """Return the mean loss over the places of the batch."""
        ...

    def decode(
        self, examples: Sequence[Any], rows: Sequence[EncodedRow], scores: Sequence[Tensor]
    ) -> list[Any]:
        """Return what is predicted for each example, from each row's scores [label class], in any order."""
        ...

    def gold(self, examples: Sequence[Any]) -> list[Any]:
        """Return each example's gold answer, in the form ``decode`` predicts it."""
        ...

    def score(self, gold: Sequence[Any], predicted: Sequence[Any]) -> float:
        """Return the task's metric, in [0, 1]."""
        ...

    def measures(self, gold: Sequence[Any], predicted: Sequence[Any]) -> dict[str, float]:
        """Return the metric, first, and what the field reports beside it, by name; each in [0, 1]."""
        ...

    def contributions(self, gold: Sequence[Any], predicted: Sequence[Any]) -> ByMeasure:
        """Return what each example adds to each measure; its ``total`` is the measure, to the bit."""
        ...

    def majority(self, train_examples: Sequence[Any], test_examples: Sequence[Any]) -> float:
        """Score the baseline that always answers the most frequent label of the training examples."""
        ...


@runtime_checkable
class ScoredTask(Task, Protocol):
    """A task whose loss is computed from its scores, so that rows of two sides can run in one pass."""

    def loss_of(self, scores: Tensor, batch: Batch) -> Tensor:
        """Return the loss from the raw outputs [label class] at the places of the batch."""
        ...
