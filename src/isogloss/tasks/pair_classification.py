"""Pair classification: one label for two texts, read off the state of the first subword.

NLI asks whether a premise entails a hypothesis (XNLI); paraphrase, whether two sentences say the same
(PAWS-X).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import repeat
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from isogloss.core.contributions import ByMeasure
from isogloss.core.errors import DataError
from isogloss.data.examples import SentencePair
from isogloss.encoders.loading import load_with_new_head
from isogloss.metrics.labels import accuracy, label_contributions
from isogloss.tasks.batch import Batch, EncodedRow, forward
from isogloss.tasks.labels import label_numbers, most_frequent, numbering
from isogloss.tasks.sentences import LIMIT, OVERLAP
from isogloss.tasks.task import LabelsAre

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerFast


@dataclass(frozen=True, kw_only=True)
class PairClassification:
    """A task on pairs of texts: its labels; accuracy is its metric."""

    name: str
    labels: tuple[str, ...]
    metric: ClassVar[str] = "accuracy"
    labels_are: ClassVar[LabelsAre] = "example"
    limit: ClassVar[int] = LIMIT
    overlap: ClassVar[int] = OVERLAP
    scored_whole: ClassVar[bool] = False

    def encode(
        self,
        examples: Sequence[SentencePair],
        tokenizer: "PreTrainedTokenizerFast",
        *,
        limit: int = LIMIT,
        overlap: int = OVERLAP,
    ) -> list[EncodedRow]:
        """Turn each pair into one row, the longer text cut until it fits; ``overlap`` has no use here.

        A pair without a label (an empty one) has none in its row; DataError at one the task has not.
        """
        del overlap
        if not examples:
            return []
        encoded = _encoded(examples, tokenizer, limit)
        numbers = numbering(self.labels)
        return [
            EncodedRow(
                example=number,
                subwords=tuple(subwords),
                segments=segments,
                gold=label_numbers(self._label(example), numbers, task=self.name, example=example.id),
            )
            for number, (example, subwords, segments) in enumerate(
                zip(examples, encoded["input_ids"], _segments(encoded), strict=True)
            )
        ]

    def head(self, source: str | Path, *, seed: int, attention: str = "sdpa") -> "PreTrainedModel":
        """Load an encoder and put its family's classifier on it; what is new depends on the seed alone."""
        return load_with_new_head(
            source, "AutoModelForSequenceClassification", labels=self.labels, seed=seed, attention=attention
        )

    def scores(self, model: "PreTrainedModel", batch: Batch) -> Tensor:
        """Return the raw outputs [label class], one line per pair."""
        scores: Tensor = forward(model, batch).logits
        return scores

    def loss(self, model: "PreTrainedModel", batch: Batch) -> Tensor:
        """Return the mean cross entropy over the pairs."""
        return self.loss_of(self.scores(model, batch), batch)

    def loss_of(self, scores: Tensor, batch: Batch) -> Tensor:
        """Return the loss from the raw outputs."""
        return cross_entropy(scores.float(), batch.gold)

    def decode(
        self, examples: Sequence[SentencePair], rows: Sequence[EncodedRow], scores: Sequence[Tensor]
    ) -> list[str]:
        """Return the best label of each pair."""
        if sorted(row.example for row in rows) != list(range(len(examples))):
            raise ValueError(
                f"{len(rows)} rows for {len(examples)} pairs: decode all rows together, each once."
            )
        best = torch.cat(list(scores)).argmax(dim=-1).tolist() if scores else []
        found = {row.example: self.labels[number] for row, number in zip(rows, best, strict=True)}
        return [found[number] for number in range(len(examples))]

    def gold(self, examples: Sequence[SentencePair]) -> list[str]:
        """Return the label of each pair."""
        return [example.label for example in examples]

    def score(self, gold: Sequence[str], predicted: Sequence[str]) -> float:
        """Return accuracy, in [0, 1]; DataError where a pair has no label to compare with."""
        self._check_labels(gold)
        return accuracy(gold, predicted)

    def measures(self, gold: Sequence[str], predicted: Sequence[str]) -> dict[str, float]:
        """Return the metric by its name."""
        return {self.metric: self.score(gold, predicted)}

    def contributions(self, gold: Sequence[str], predicted: Sequence[str]) -> ByMeasure:
        """Return for each pair whether it is right."""
        self._check_labels(gold)
        return {self.metric: label_contributions([(one,) for one in gold], [(one,) for one in predicted])}

    def majority(
        self, train_examples: Sequence[SentencePair], test_examples: Sequence[SentencePair]
    ) -> float:
        """Score the training examples' most frequent label on every pair."""
        label = most_frequent(self.gold(train_examples), self.labels)
        return self.score(self.gold(test_examples), list(repeat(label, len(test_examples))))

    def _label(self, example: SentencePair) -> tuple[str, ...]:
        return (example.label,) if example.label else ()

    def _check_labels(self, gold: Sequence[str]) -> None:
        if "" in gold:
            raise DataError(
                f"{self.name}: {gold.count('')} of {len(gold)} pairs have no label to compare with. "
                f"Take a file with labels (XTREME's test files have none), or predict instead of scoring."
            )


def _encoded(
    examples: Sequence[SentencePair], tokenizer: "PreTrainedTokenizerFast", limit: int
) -> Mapping[str, list[list[int]]]:
    encoded: Mapping[str, list[list[int]]] = tokenizer(
        [example.first for example in examples],
        [example.second for example in examples],
        truncation="longest_first",
        max_length=limit,
        padding=False,
        return_attention_mask=False,
        verbose=False,
    )
    return encoded


def _segments(encoded: Mapping[str, list[list[int]]]) -> list[tuple[int, ...] | None]:
    """Return the segments of each pair; None for one without, all of them where the encoder has none."""
    if "token_type_ids" not in encoded:
        return [None] * len(encoded["input_ids"])
    return [tuple(segments) if any(segments) else None for segments in encoded["token_type_ids"]]


NLI = PairClassification(name="nli", labels=("entailment", "neutral", "contradiction"))
"""XNLI's three relations between a premise and a hypothesis."""

PARAPHRASE = PairClassification(name="paraphrase", labels=("0", "1"))
"""PAWS-X: 1 is a paraphrase."""
