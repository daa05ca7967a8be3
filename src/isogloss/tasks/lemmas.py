"""Lemmatization as tagging: the label of a word is the rule that yields its lemma (``data.lemma_rules``).

Examples and answers have lemmas; rules are the classes of the head. All rules that are too rare for the
inventory form one class, which is learned but never predicted. The predicted lemma is the lemma under the
most probable rule that fits the word, or the word itself if no rule fits.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from isogloss.core.rows.models import ByMeasure, total
from isogloss.core.tag_schemes import NO_TAG
from isogloss.data.lemma_rules import NO_LEMMA, UNLISTED, lemma_by, rule_of
from isogloss.metrics.labels import lemma_contributions
from isogloss.tasks.batch import EncodedRow, Scores, join_scores
from isogloss.tasks.tagging import UNTAGGED, Sentence, Tagging, Tags, merge_windows
from isogloss.tasks.task import label_ids


@dataclass(frozen=True, kw_only=True)
class Lemmatization(Tagging):
    """The lemma of each word. ``labels`` are rules, with ``UNLISTED`` for all other rules."""

    name: str = "lemmas"
    labels: tuple[str, ...] = ()
    metric: Literal["accuracy", "span_f1"] = "accuracy"

    def label_numbers(self, examples: Sequence[Sentence]) -> list[tuple[int, ...]]:
        """Return the index of the rule of each word, or ``UNTAGGED``."""
        ids = label_ids(self.labels)

        def rule_id(word: str, lemma: str) -> int:
            if lemma == NO_TAG:
                return UNTAGGED
            return ids[UNLISTED] if lemma == NO_LEMMA else ids.get(rule_of(word, lemma), ids[UNLISTED])

        golds = self.gold(examples)
        return [
            tuple(rule_id(word, lemma) for word, lemma in zip(example.words, gold, strict=True))
            if gold
            else ()
            for example, gold in zip(examples, golds, strict=True)
        ]

    def answers(
        self, examples: Sequence[Sentence], rows: Sequence[EncodedRow], scores: Sequence[Scores]
    ) -> list[Tags]:
        """Return the lemma of each word."""
        return [tuple(lemma for _, lemma in words) for words in self.apply_rules(examples, rows, scores)]

    def apply_rules(
        self, examples: Sequence[Sentence], rows: Sequence[EncodedRow], scores: Sequence[Scores]
    ) -> list[list[tuple[int, str]]]:
        """Return for each word the index of the most probable rule that fits it, and the resulting lemma.

        If no rule fits, the index is the index of ``UNLISTED``, and the lemma is the word.
        """
        unlisted_id = self.labels.index(UNLISTED)
        flat = join_scores(scores) if scores else np.zeros((0, len(self.labels)), np.float32)
        listed = flat.copy()
        listed[:, unlisted_id] = -np.inf
        best_rules = listed.argmax(axis=-1).tolist()

        def apply(position: int, word: str) -> tuple[int, str]:
            best_rule = best_rules[position]
            if (lemma := lemma_by(self.labels[best_rule], word)) is not None:
                return best_rule, lemma
            for rule in np.argsort(-flat[position], kind="stable").tolist():
                if (lemma := lemma_by(self.labels[rule], word)) is not None:
                    return rule, lemma
            return unlisted_id, word

        positions = merge_windows([len(example.words) for example in examples], rows, range(len(flat)))
        return [
            [apply(position, word) for position, word in zip(word_positions, example.words, strict=True)]
            for example, word_positions in zip(examples, positions, strict=True)
        ]

    def score(self, gold: Sequence[Tags], predicted: Sequence[Tags]) -> float:
        """Return the share of right lemmas, in [0, 1]."""
        return total(self.contributions(gold, predicted)[self.metric])

    def contributions(self, gold: Sequence[Tags], predicted: Sequence[Tags]) -> ByMeasure:
        """Return the number of right lemmas of each sentence, and of words."""
        return {self.metric: lemma_contributions(gold, predicted, NO_LEMMA)}

    def majority(self, train_examples: Sequence[Sentence], test_examples: Sequence[Sentence]) -> float:
        """Return the score of the most frequent training rule on every word.

        A word that the rule does not fit is its own lemma.
        """
        counts = Counter(self._rules(train_examples))
        rule = max(self.labels, key=counts.__getitem__)
        answers = [
            tuple(word if (lemma := lemma_by(rule, word)) is None else lemma for word in example.words)
            for example in test_examples
        ]
        return self.score(self.gold(test_examples), answers)

    def _rules(self, examples: Iterable[Sentence]) -> Iterable[str]:
        for example in examples:
            pairs = zip(example.words, example.tags, strict=False)
            yield from (rule_of(word, lemma) for word, lemma in pairs if lemma not in (NO_TAG, NO_LEMMA))


LEMMAS = Lemmatization()
"""The lemma of each word, by rules from the training sentences, scored by accuracy."""
