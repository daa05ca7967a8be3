"""Tagging: one label per word, read off the state of the word's first subword.

UPOS has the 17 universal part-of-speech tags and counts words; NER has BIO tags of three types and counts
whole spans, predicted tags being repaired first (under-specified optimization, Section 3 and appendix).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Literal, Protocol

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from isogloss.core.contributions import ByMeasure
from isogloss.core.errors import DataError
from isogloss.encoders import family_of
from isogloss.encoders.loading import load_with_new_head
from isogloss.metrics.labels import (
    accuracy,
    chunk_contributions,
    label_contributions,
    repair,
    seqeval_f1,
    span_contributions,
    span_f1,
    word_contributions,
    word_f1,
)
from isogloss.tasks.batch import Batch, EncodedRow, forward
from isogloss.tasks.labels import label_numbers, most_frequent, numbering
from isogloss.tasks.sentences import LIMIT, OVERLAP, merge, sentence_rows
from isogloss.tasks.task import LabelsAre

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerFast

Tags = tuple[str, ...]


class Tagged(Protocol):
    """A sentence in words; ``tags`` has one for each, or none at all where there are no labels."""

    @property
    def id(self) -> str:
        """Name of the sentence in messages."""
        ...

    @property
    def words(self) -> tuple[str, ...]:
        """The words."""
        ...

    @property
    def tags(self) -> tuple[str, ...]:
        """A tag for each word."""
        ...


@dataclass(frozen=True, kw_only=True)
class Tagging:
    """A tagging task: its inventory of tags and whether words or spans of words are scored."""

    name: str
    labels: tuple[str, ...]
    metric: Literal["accuracy", "span_f1"]
    labels_are: ClassVar[LabelsAre] = "word"
    limit: ClassVar[int] = LIMIT
    overlap: ClassVar[int] = OVERLAP
    scored_whole: ClassVar[bool] = False

    def encode(
        self,
        examples: Sequence[Tagged],
        tokenizer: "PreTrainedTokenizerFast",
        *,
        limit: int = LIMIT,
        overlap: int = OVERLAP,
    ) -> list[EncodedRow]:
        """Turn sentences into rows, long ones into windows; DataError at a tag outside the inventory."""
        numbers = numbering(self.labels)
        gold = [
            label_numbers(_tags(example), numbers, task=self.name, example=example.id) for example in examples
        ]
        words = [example.words for example in examples]
        return sentence_rows(words, gold, tokenizer, limit=limit, overlap=overlap)

    def head(self, source: str | Path, *, seed: int, attention: str = "sdpa") -> "PreTrainedModel":
        """Load an encoder and put a linear layer on it; what is new depends on the seed alone."""
        return load_with_new_head(
            source, "AutoModelForTokenClassification", labels=self.labels, seed=seed, attention=attention
        )

    def scores(self, model: "PreTrainedModel", batch: Batch) -> Tensor:
        """Return the raw outputs [label class], computed at the scored places only."""
        states = forward(model.base_model, batch).last_hidden_state
        return family_of(model).tag_scores(model, states[batch.rows, batch.columns])

    def loss(self, model: "PreTrainedModel", batch: Batch) -> Tensor:
        """Return the mean cross entropy over the scored words."""
        return self.loss_of(self.scores(model, batch), batch)

    def loss_of(self, scores: Tensor, batch: Batch) -> Tensor:
        """Return the loss from the raw outputs; labels may be a teacher's probabilities."""
        return cross_entropy(scores.float(), batch.gold if batch.soft is None else batch.soft)

    def decode(
        self, examples: Sequence[Tagged], rows: Sequence[EncodedRow], scores: Sequence[Tensor]
    ) -> list[Tags]:
        """Return the best tag of each word; BIO tags are repaired once a sentence is whole again."""
        best = torch.cat(list(scores)).argmax(dim=-1).tolist() if scores else []
        merged = merge([len(example.words) for example in examples], rows, best)
        return [self._settle([self.labels[number] for number in numbers]) for numbers in merged]

    def gold(self, examples: Sequence[Tagged]) -> list[Tags]:
        """Return the tags of each sentence."""
        return [_tags(example) for example in examples]

    def score(self, gold: Sequence[Tags], predicted: Sequence[Tags]) -> float:
        """Return accuracy over words or micro F1 over spans, in [0, 1]."""
        if self.metric == "span_f1":
            return span_f1(gold, predicted)
        return accuracy(list(chain.from_iterable(gold)), list(chain.from_iterable(predicted)))

    def measures(self, gold: Sequence[Tags], predicted: Sequence[Tags]) -> dict[str, float]:
        """Return the metric by its name, and what others report in its place.

        Beside accuracy that is XTREME's F1, beside span F1 cross-lingual adjustment's F1 over words.
        """
        found: dict[str, float] = {self.metric: self.score(gold, predicted)}
        if self.metric == "span_f1":
            return found | {"word_f1": word_f1(gold, predicted)}
        return found | {"seqeval_f1": seqeval_f1(gold, predicted)}

    def contributions(self, gold: Sequence[Tags], predicted: Sequence[Tags]) -> ByMeasure:
        """Return what each sentence adds to each of the measures."""
        if self.metric == "span_f1":
            found = {"word_f1": word_contributions(gold, predicted)}
            return {self.metric: span_contributions(gold, predicted), **found}
        found = {"seqeval_f1": chunk_contributions(gold, predicted)}
        return {self.metric: label_contributions(gold, predicted), **found}

    def majority(self, train_examples: Sequence[Tagged], test_examples: Sequence[Tagged]) -> float:
        """Score the training examples' most frequent tag on every word; 0 for NER, where that tag is O."""
        tag = most_frequent(chain.from_iterable(self.gold(train_examples)), self.labels)
        predicted = [self._settle([tag] * len(example.words)) for example in test_examples]
        return self.score(self.gold(test_examples), predicted)

    def _settle(self, tags: Sequence[str]) -> Tags:
        return repair(tags) if self.metric == "span_f1" else tuple(tags)


def _tags(example: Tagged) -> Tags:
    if example.tags and len(example.tags) != len(example.words):
        raise DataError(
            f"example {example.id!r}: {len(example.words)} words but {len(example.tags)} tags. "
            f"Give one tag per word, or none at all."
        )
    return example.tags


UPOS = Tagging(
    name="upos",
    labels=(
        "ADJ", "ADP", "ADV", "AUX", "CCONJ", "DET", "INTJ", "NOUN", "NUM",
        "PART", "PRON", "PROPN", "PUNCT", "SCONJ", "SYM", "VERB", "X",
    ),
    metric="accuracy",
)  # fmt: skip
"""Universal Dependencies' 17 part-of-speech tags."""

NER = Tagging(
    name="ner",
    labels=("O", "B-PER", "I-PER", "B-ORG", "I-ORG", "B-LOC", "I-LOC"),
    metric="span_f1",
)
"""WikiANN's persons, organisations and locations."""
