"""Classification: one label for a text, or for two, predicted from the first subword (the last, if causal).

NLI: does a premise entail a hypothesis (XNLI)? Paraphrase: do two sentences mean the same (PAWS-X)? Topics,
sentiments and intents have the labels of their corpus.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import repeat
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Final, TypeAlias

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from isogloss.core.contributions import ByMeasure
from isogloss.core.errors import DataError
from isogloss.data.examples import LabelledText, SentencePair
from isogloss.encoders import family_of
from isogloss.encoders.loading import load_with_new_head
from isogloss.encoders.subwords import encode_texts, for_causal
from isogloss.metrics.labels import accuracy, label_contributions
from isogloss.tasks.batch import Batch, EncodedRow, forward, own_scores
from isogloss.tasks.task import LIMIT, OVERLAP, LabelsAre, encode_labels, label_ids, most_frequent

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerFast

HEAD: Final = "AutoModelForSequenceClassification"


Labelled: TypeAlias = LabelledText | SentencePair


@dataclass(frozen=True, kw_only=True)
class TextClassification:
    """A task on texts, scored by accuracy."""

    name: str
    labels: tuple[str, ...]
    metric: ClassVar[str] = "accuracy"
    labels_are: ClassVar[LabelsAre] = "example"
    limit: ClassVar[int] = LIMIT
    overlap: ClassVar[int] = OVERLAP
    evaluates_full_length: ClassVar[bool] = False
    texts: ClassVar[tuple[str, ...]] = ("text",)
    """The fields of an example that are read."""

    def encode(
        self,
        examples: Sequence[Labelled],
        tokenizer: "PreTrainedTokenizerFast",
        *,
        limit: int = LIMIT,
        overlap: int = OVERLAP,
    ) -> list[EncodedRow]:
        """Encode each example as one row, truncating the longer text until it fits; ``overlap`` is unused.

        Examples with an empty label are unlabelled. DataError for a label not in the inventory.
        """
        del overlap
        texts = [tuple(getattr(one, side) for side in self.texts) for one in examples]
        causal = for_causal(tokenizer)
        ids = label_ids(self.labels)
        return [
            EncodedRow(
                example=number,
                subwords=text.subwords,
                segments=text.segments or None,
                positions=(len(text.subwords) - 1,) if causal else (),
                gold=encode_labels(
                    (example.label,) if example.label else (), ids, task=self.name, example=example.id
                ),
            )
            for number, (example, text) in enumerate(
                zip(examples, encode_texts(texts, tokenizer, limit=limit), strict=True)
            )
        ]

    def head(self, source: str | Path, *, seed: int, attention: str = "sdpa") -> "PreTrainedModel":
        """Load an encoder with its family's sequence classifier; new weights depend on the seed alone."""
        return load_with_new_head(source, HEAD, labels=self.labels, seed=seed, attention=attention)

    def scores(self, model: "PreTrainedModel", batch: Batch) -> Tensor:
        """Return the raw outputs [label class], one row per example."""
        if HEAD in family_of(model).own_heads:
            return own_scores(model, batch)
        scores: Tensor = forward(model, batch).logits
        return scores

    def loss(self, model: "PreTrainedModel", batch: Batch) -> Tensor:
        """Return the mean cross entropy over the examples."""
        return self.loss_of(self.scores(model, batch), batch)

    def loss_of(self, scores: Tensor, batch: Batch) -> Tensor:
        """Return the loss of raw outputs [label class]."""
        return cross_entropy(scores.float(), batch.gold)

    def decode(
        self, examples: Sequence[Labelled], rows: Sequence[EncodedRow], scores: Sequence[Tensor]
    ) -> list[str]:
        """Return the best label of each example."""
        if sorted(row.example for row in rows) != list(range(len(examples))):
            raise ValueError(
                f"{len(rows)} rows for {len(examples)} examples: decode all rows together, each once."
            )
        best = torch.cat(list(scores)).argmax(dim=-1).tolist() if scores else []
        found = {row.example: self.labels[number] for row, number in zip(rows, best, strict=True)}
        return [found[number] for number in range(len(examples))]

    def gold(self, examples: Sequence[Labelled]) -> list[str]:
        """Return the label of each example."""
        return [example.label for example in examples]

    def score(self, gold: Sequence[str], predicted: Sequence[str]) -> float:
        """Return accuracy, in [0, 1]; DataError for unlabelled ones."""
        self._check_labels(gold)
        return accuracy(gold, predicted)

    def contributions(self, gold: Sequence[str], predicted: Sequence[str]) -> ByMeasure:
        """Return for each example whether its label is correct; DataError for unlabelled ones."""
        self._check_labels(gold)
        return {self.metric: label_contributions([(one,) for one in gold], [(one,) for one in predicted])}

    def majority(self, train_examples: Sequence[Labelled], test_examples: Sequence[Labelled]) -> float:
        """Score the most frequent training label on every example."""
        label = most_frequent(self.gold(train_examples), self.labels)
        return self.score(self.gold(test_examples), list(repeat(label, len(test_examples))))

    def _check_labels(self, gold: Sequence[str]) -> None:
        if "" in gold:
            raise DataError(
                f"{self.name}: {gold.count('')} of {len(gold)} examples have no label to compare with. "
                f"Take a file with labels (XTREME's test files have none), or predict instead of scoring."
            )


@dataclass(frozen=True, kw_only=True)
class PairClassification(TextClassification):
    """A task on pairs of texts, scored by accuracy."""

    texts: ClassVar[tuple[str, ...]] = ("first", "second")


NLI = PairClassification(name="nli", labels=("entailment", "neutral", "contradiction"))
"""XNLI's three relations between a premise and a hypothesis."""

PARAPHRASE = PairClassification(name="paraphrase", labels=("0", "1"))
"""PAWS-X: 1 is a paraphrase."""
