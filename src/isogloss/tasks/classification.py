"""Classification and regression of a text or a pair, from the first subword (the last, if causal).

NLI: does a premise entail a hypothesis (XNLI)? Paraphrase: do two sentences have the same meaning (PAWS-X)?
Topics, sentiments and intents have the labels of their corpus. A text may have several labels (emotions) with
independent probabilities, and a text or pair may have a number (how similar are two sentences?).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import repeat
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, ClassVar, TypeAlias, TypedDict, TypeVar

from isogloss.core.errors import DataError
from isogloss.core.rows.models import ByMeasure, total
from isogloss.data.examples import Label, LabelledText, SentencePair
from isogloss.encoders.subwords import encode_texts, for_causal
from isogloss.metrics.labels import class_contributions, label_set_contributions
from isogloss.metrics.ranks import correlation_contributions
from isogloss.tasks.batch import SEQUENCES, Batch, EncodedRow, Scores, join_scores, sequence_scores
from isogloss.tasks.task import (
    CLASSES,
    LABELS,
    NUMBER,
    ROW_LIMIT,
    ROW_OVERLAP,
    Answer,
    ExampleParts,
    LabelsAre,
    OneAnswer,
    encode_labels,
    label_ids,
    most_frequent,
)

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    from torch import Tensor

    from isogloss.encoders.family import Model, Tokenizer

Labelled: TypeAlias = LabelledText | SentencePair

Kind = TypeVar("Kind")

TEXT = ("text",)
"""Field of a text."""

PAIR = ("first", "second")
"""Fields of a pair."""

UNLABELLED = ""
"""Label of an example with an unknown label."""


class LabelledRow(TypedDict, total=False):
    """Field of ``EncodedRow`` with the label of its example."""

    gold: tuple[int, ...]
    soft: Tensor


@dataclass(frozen=True, kw_only=True)
class TextClassification:
    """A task on texts with one label each, scored by accuracy."""

    name: str
    labels: tuple[str, ...]
    texts: tuple[str, ...] = TEXT
    """Fields of an example that are read."""
    metric: ClassVar[str] = "accuracy"
    problem_type: ClassVar[str] = ""
    """Hugging Face's name of such a head, if the labels do not imply it."""
    one_answer: ClassVar[OneAnswer] = CLASSES
    labels_are: ClassVar[LabelsAre] = "example"
    limit: ClassVar[int] = ROW_LIMIT
    overlap: ClassVar[int] = ROW_OVERLAP
    evaluates_full_length: ClassVar[bool] = False

    @property
    def parts(self) -> ExampleParts:
        """The parts of an example that can be in different languages."""
        return "pair" if self.texts == PAIR else "none"

    def encode(
        self,
        examples: Sequence[Labelled],
        tokenizer: Tokenizer,
        *,
        limit: int = ROW_LIMIT,
        overlap: int = ROW_OVERLAP,
    ) -> list[EncodedRow]:
        """Encode each example as one row, truncating the longer text until it fits.

        ``overlap`` is unused. Examples with an empty label are unlabelled. Raises DataError for a label
        outside of the inventory.
        """
        del overlap
        texts = [tuple(getattr(example, side) for side in self.texts) for example in examples]
        causal = for_causal(tokenizer)
        ids = label_ids(self.labels)
        return [
            EncodedRow(
                example=index,
                subwords=text.subwords,
                segments=text.segments or None,
                positions=(len(text.subwords) - 1,) if causal else (),
                **(LabelledRow() if example.label == UNLABELLED else self._encode_label(example, ids)),
            )
            for index, (example, text) in enumerate(
                zip(examples, encode_texts(texts, tokenizer, limit=limit), strict=True)
            )
        ]

    def _encode_label(self, example: Labelled, ids: Mapping[str, int]) -> LabelledRow:
        return {"gold": encode_labels((_class_of(example),), ids, task=self.name, example=example.id)}

    def head(self, source: str | Path, *, seed: int | None, attention: str = "sdpa") -> Model:
        """Load an encoder with its family's sequence classifier.

        New weights depend only on the seed.
        """
        from isogloss.encoders.loading import load_with_new_head

        return load_with_new_head(
            source,
            SEQUENCES,
            labels=self.labels,
            seed=seed,
            attention=attention,
            problem_type=self.problem_type,
        )

    def scores(self, model: Model, batch: Batch) -> Tensor:
        """Return the raw outputs [label class], one row per example."""
        return sequence_scores(model, batch)

    def loss(self, model: Model, batch: Batch) -> Tensor:
        """Return the mean loss over the examples."""
        return self.loss_of(self.scores(model, batch), batch)

    def loss_of(self, scores: Tensor, batch: Batch) -> Tensor:
        """Return the mean cross entropy of raw outputs [label class]."""
        from torch.nn.functional import cross_entropy

        return cross_entropy(scores.float(), batch.gold)

    def decode(
        self, examples: Sequence[Labelled], rows: Sequence[EncodedRow], scores: Sequence[Scores]
    ) -> list[Label]:
        """Return the predicted label, labels or number of each example."""
        if sorted(row.example for row in rows) != list(range(len(examples))):
            raise ValueError(
                f"{len(rows)} rows for {len(examples)} examples: decode all rows together, each once."
            )
        answers = self._answers(join_scores(scores)) if scores else []
        answer_of = {row.example: answer for row, answer in zip(rows, answers, strict=True)}
        return [answer_of[index] for index in range(len(examples))]

    def _answers(self, scores: npt.NDArray[np.float32]) -> Sequence[Label]:
        return [self.labels[index] for index in scores.argmax(axis=-1).tolist()]

    def gold(self, examples: Sequence[Labelled]) -> list[Label]:
        """Return the label, labels or number of each example."""
        return [example.label for example in examples]

    def score(self, gold: Sequence[Answer], predicted: Sequence[Answer]) -> float:
        """Return the metric.

        Raises DataError for unlabelled examples.
        """
        return total(self.contributions(gold, predicted)[self.metric])

    def contributions(self, gold: Sequence[Answer], predicted: Sequence[Answer]) -> ByMeasure:
        """Return each example's contribution to each measure.

        Raises DataError for unlabelled examples.
        """
        missing_labels = sum(label == UNLABELLED for label in gold)
        if missing_labels:
            raise DataError(
                f"{self.name}: {missing_labels} of {len(gold)} examples have no label to compare with. "
                f"Use a file with labels (XTREME's test files have none), or predict instead of scoring."
            )
        return self._contributions(gold, predicted)

    def _contributions(self, gold: Sequence[Answer], answers: Sequence[Answer]) -> ByMeasure:
        return class_contributions([(label,) for label in gold], [(label,) for label in answers])

    def majority(self, train_examples: Sequence[Labelled], test_examples: Sequence[Labelled]) -> float:
        """Return the score of the constant answer that is best on the training examples."""
        answer = self._constant([example for example in train_examples if example.label != UNLABELLED])
        return self.score(self.gold(test_examples), list(repeat(answer, len(test_examples))))

    def _constant(self, train_examples: Sequence[Labelled]) -> Label:
        return most_frequent((_class_of(example) for example in train_examples), self.labels)


@dataclass(frozen=True, kw_only=True)
class MultiLabelClassification(TextClassification):
    """A task on texts with any number of labels each, scored by micro F1.

    Each label has an independent probability, and is predicted if it is above one half.
    """

    metric: ClassVar[str] = "micro_f1"
    problem_type: ClassVar[str] = "multi_label_classification"
    one_answer: ClassVar[OneAnswer] = LABELS

    def _encode_label(self, example: Labelled, ids: Mapping[str, int]) -> LabelledRow:
        import torch

        indices = encode_labels(_labels_of(example), ids, task=self.name, example=example.id)
        return {"soft": torch.zeros(1, len(ids)).index_fill(1, torch.tensor(indices, dtype=torch.long), 1.0)}

    def loss_of(self, scores: Tensor, batch: Batch) -> Tensor:
        """Return the mean binary cross entropy of raw outputs [example label]."""
        from torch.nn.functional import binary_cross_entropy_with_logits

        return binary_cross_entropy_with_logits(scores.float(), batch.learned)

    def _answers(self, scores: npt.NDArray[np.float32]) -> Sequence[Label]:
        return [
            tuple(label for label, is_positive in zip(self.labels, row, strict=True) if is_positive)
            for row in (scores > 0).tolist()
        ]

    def gold(self, examples: Sequence[Labelled]) -> list[Label]:
        """Return the labels of each example in the order of the inventory."""
        ids = label_ids(self.labels)
        return [
            tuple(sorted(example.label, key=ids.__getitem__))
            if isinstance(example.label, tuple)
            else example.label
            for example in examples
        ]

    def _contributions(self, gold: Sequence[Answer], answers: Sequence[Answer]) -> ByMeasure:
        return label_set_contributions(gold, answers, self.labels)

    def _constant(self, train_examples: Sequence[Labelled]) -> Label:
        """Return the most frequent labels, in the number that scores best."""
        gold = self.gold(train_examples)
        counts = Counter(label for example in train_examples for label in _labels_of(example))
        ranking = sorted(self.labels, key=lambda label: -counts[label])
        choices = [tuple(ranking[:count]) for count in range(len(ranking) + 1)]
        return max(choices, key=lambda choice: self.score(gold, [choice] * len(gold)))


@dataclass(frozen=True, kw_only=True)
class Regression(TextClassification):
    """A task on texts or pairs with a number each, scored by Spearman's rank correlation."""

    labels: tuple[str, ...] = ("number",)
    metric: ClassVar[str] = "spearman"
    problem_type: ClassVar[str] = "regression"
    one_answer: ClassVar[OneAnswer] = NUMBER

    def _encode_label(self, example: Labelled, ids: Mapping[str, int]) -> LabelledRow:  # noqa: ARG002
        import torch

        return {"soft": torch.tensor([[_number(example)]])}

    def loss_of(self, scores: Tensor, batch: Batch) -> Tensor:
        """Return the mean squared error of raw outputs [example 1]."""
        from torch.nn.functional import mse_loss

        return mse_loss(scores.float(), batch.learned)

    def _answers(self, scores: npt.NDArray[np.float32]) -> Sequence[Label]:
        numbers: list[float] = scores.squeeze(-1).tolist()
        return numbers

    def _contributions(self, gold: Sequence[Answer], answers: Sequence[Answer]) -> ByMeasure:
        return correlation_contributions(gold, answers)

    def _constant(self, train_examples: Sequence[Labelled]) -> Label:
        """Return the mean of the training numbers, whose correlation with anything is 0."""
        return fmean(_number(example) for example in train_examples) if train_examples else 0.0


def _class_of(example: Labelled) -> str:
    return _label(example, str, "one label")


def _labels_of(example: Labelled) -> tuple[str, ...]:
    return _label(example, tuple, "a list of labels")


def _number(example: Labelled) -> float:
    return _label(example, float, "a number")


def _label(example: Labelled, kind: type[Kind], description: str) -> Kind:
    if not isinstance(example.label, kind):
        raise DataError(
            f"example {example.id!r}: label {example.label!r:.60}; expected {description}. Choose a "
            f"different task, or set the corpus's kind of labels (predicts = …)."
        )
    return example.label


NLI = TextClassification(name="nli", labels=("entailment", "neutral", "contradiction"), texts=PAIR)
"""NLI: entailment, neutral or contradiction of a premise and a hypothesis, scored by accuracy."""

PARAPHRASE = TextClassification(name="paraphrase", labels=("0", "1"), texts=PAIR)
"""Whether two sentences have the same meaning (PAWS-X): 1 or 0, scored by accuracy."""

REGRESSION = Regression(name="regression")
"""A number for a text, scored by Spearman's ρ."""

PAIR_REGRESSION = Regression(name="pair-regression", texts=PAIR)
"""A number for two texts, such as their similarity (STS), scored by Spearman's ρ."""

TEXT_CLASSIFICATION = TextClassification(name="text-classification", labels=())
"""One of the corpus's own labels for a text, scored by accuracy."""

PAIR_CLASSIFICATION = TextClassification(name="pair-classification", labels=(), texts=PAIR)
"""One of the corpus's own labels for two texts, scored by accuracy."""

MULTI_LABEL_CLASSIFICATION = MultiLabelClassification(name="multi-label-classification", labels=())
"""Any number of the corpus's own labels for a text, scored by micro F1."""
