"""Lemmatization as tagging: the label of a word is the rule that makes its lemma (``data.lemma_rules``).

Examples and answers have lemmas; rules are the classes of the head. All rules too rare for the inventory
are one class, which is learned and never predicted. Predicted is the lemma by the most probable rule
that fits the word, or the word itself where none does.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from isogloss.core.rows.models import ByMeasure, total
from isogloss.core.tag_schemes import NO_TAG
from isogloss.data.lemma_rules import NO_LEMMA, UNLISTED, lemma_by, rule_of
from isogloss.metrics.labels import lemma_contributions
from isogloss.tasks.batch import EncodedRow
from isogloss.tasks.tagging import UNTAGGED, Sentence, Tagging, Tags, merge
from isogloss.tasks.task import label_ids


@dataclass(frozen=True, kw_only=True)
class Lemmatization(Tagging):
    """The lemma of each word; ``labels`` are rules, ``UNLISTED`` for all others among them."""

    name: str = "lemmas"
    labels: tuple[str, ...] = ()
    metric: Literal["accuracy", "span_f1"] = "accuracy"

    def label_numbers(self, examples: Sequence[Sentence]) -> list[tuple[int, ...]]:
        """Return the number of the rule of each word."""
        ids = label_ids(self.labels)

        def number(word: str, lemma: str) -> int:
            if lemma == NO_TAG:
                return UNTAGGED
            return ids[UNLISTED] if lemma == NO_LEMMA else ids.get(rule_of(word, lemma), ids[UNLISTED])

        golds = self.gold(examples)
        return [
            tuple(map(number, example.words, gold)) if gold else ()
            for example, gold in zip(examples, golds, strict=True)
        ]

    def answers(
        self, examples: Sequence[Sentence], rows: Sequence[EncodedRow], scores: Sequence[Tensor]
    ) -> list[Tags]:
        """Return the lemma of each word."""
        return [tuple(lemma for _, lemma in words) for words in self.applied(examples, rows, scores)]

    def applied(
        self, examples: Sequence[Sentence], rows: Sequence[EncodedRow], scores: Sequence[Tensor]
    ) -> list[list[tuple[int, str]]]:
        """Return for each word the number of the most probable rule that fits it, and the lemma it makes.

        Where none fits, the number is that of ``UNLISTED``, and the lemma is the word.
        """
        unlisted = self.labels.index(UNLISTED)
        flat = torch.cat(list(scores)).float() if scores else torch.zeros(0, len(self.labels))
        best = (
            flat.index_fill(1, torch.tensor([unlisted], device=flat.device), -torch.inf)
            .argmax(dim=-1)
            .tolist()
        )

        def lemma(position: int, word: str) -> tuple[int, str]:
            if (edited := lemma_by(self.labels[best[position]], word)) is not None:
                return best[position], edited
            ranked = flat[position].argsort(descending=True, stable=True).tolist()
            fitting = ((number, lemma_by(self.labels[number], word)) for number in ranked)
            return next(
                ((number, edited) for number, edited in fitting if edited is not None), (unlisted, word)
            )

        positions = merge([len(example.words) for example in examples], rows, range(len(flat)))
        return [
            list(map(lemma, of_words, example.words))
            for example, of_words in zip(examples, positions, strict=True)
        ]

    def score(self, gold: Sequence[Tags], predicted: Sequence[Tags]) -> float:
        """Return the share of right lemmas, in [0, 1]."""
        return total(self.contributions(gold, predicted)[self.metric])

    def contributions(self, gold: Sequence[Tags], predicted: Sequence[Tags]) -> ByMeasure:
        """Return the number of right lemmas of each sentence, and of words."""
        return {self.metric: lemma_contributions(gold, predicted, NO_LEMMA)}

    def majority(self, train_examples: Sequence[Sentence], test_examples: Sequence[Sentence]) -> float:
        """Score the most frequent training rule on every word that it fits, and else the word itself."""
        counts = Counter(self._rules(train_examples))
        rule = max(self.labels, key=lambda label: counts[label])
        predicted = [
            tuple(word if (edited := lemma_by(rule, word)) is None else edited for word in example.words)
            for example in test_examples
        ]
        return self.score(self.gold(test_examples), predicted)

    def _rules(self, examples: Iterable[Sentence]) -> Iterable[str]:
        for example in examples:
            pairs = zip(example.words, example.tags, strict=False)
            yield from (rule_of(word, lemma) for word, lemma in pairs if lemma not in (NO_TAG, NO_LEMMA))


LEMMAS = Lemmatization()
"""The lemma of each word, by rules that the training sentences show; accuracy."""
