"""Tagging: one label per word, predicted from the state of its first subword (its last, if causal).

UPOS has the 17 universal part-of-speech tags and is scored by word. NER has BIO tags of three types and is
scored by span, after predicted tags are repaired (under-specified optimization, Section 3 and appendix). Long
sentences become windows that score each word once. Windows are merged before tags are decoded, so entities
are not cut at borders of windows.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Literal

from isogloss.core.errors import DataError
from isogloss.core.rows.models import ByMeasure, total
from isogloss.core.tag_schemes import NO_TAG, OUTSIDE, are_bio, as_bio, convert_inventory, decide_scheme
from isogloss.data.examples import ParsedSentence, TaggedSentence
from isogloss.encoders.subwords import scored_subwords, split_words, text_frame, windows
from isogloss.metrics.labels import (
    chunk_contributions,
    class_contributions,
    label_contributions,
    repair,
    span_contributions,
    word_contributions,
)
from isogloss.tasks.batch import TOKENS, Batch, EncodedRow, Scores, forward, join_scores
from isogloss.tasks.task import (
    ROW_LIMIT,
    ROW_OVERLAP,
    SPECIAL,
    ExampleParts,
    LabelsAre,
    encode_labels,
    label_ids,
    most_frequent,
)

if TYPE_CHECKING:
    from torch import Tensor

    from isogloss.encoders.family import Model, Tokenizer

Tags = tuple[str, ...]

UNTAGGED = -1
"""Label of a word without a tag."""

NO_WORD = -1
"""Word index of special subwords."""

Sentence = TaggedSentence | ParsedSentence
"""A sentence split into words, with one tag per word, or without tags if it is unlabelled."""


@dataclass(frozen=True, kw_only=True)
class Tagging:
    """A tagging task: its inventory of tags, and whether words or spans are scored."""

    name: str
    labels: tuple[str, ...]
    metric: Literal["accuracy", "span_f1"]
    labels_are: ClassVar[LabelsAre] = "word"
    one_answer: ClassVar[None] = None
    parts: ClassVar[ExampleParts] = "none"
    limit: ClassVar[int] = ROW_LIMIT
    overlap: ClassVar[int] = ROW_OVERLAP
    evaluates_full_length: ClassVar[bool] = False

    def encode(
        self,
        examples: Sequence[Sentence],
        tokenizer: Tokenizer,
        *,
        limit: int = ROW_LIMIT,
        overlap: int = ROW_OVERLAP,
    ) -> list[EncodedRow]:
        """Encode sentences as rows, and long sentences as windows.

        Words without a tag in a sentence with tags (a projected sentence) are not scored. Raises DataError
        for a tag outside of the inventory.
        """
        gold = self.label_numbers(examples)
        words = [example.words for example in examples]
        rows = sentence_rows(words, gold, tokenizer, limit=limit, overlap=overlap)
        return [replace(row, links=_links(examples[row.example])) for row in rows]

    def label_numbers(self, examples: Sequence[Sentence]) -> list[tuple[int, ...]]:
        """Return the class of each word, or ``UNTAGGED``.

        Sentences without tags have no classes.
        """
        ids = {tag: classes[0] for tag, classes in self.classes().items()} | {NO_TAG: UNTAGGED}
        return [encode_labels(_tags(item), ids, task=self.name, example=item.id) for item in examples]

    def classes(self) -> dict[str, list[int]]:
        """Return the classes of each BIO tag, the closest one first.

        A tag has several classes if the labels are not BIO.
        """
        if self.metric != "span_f1" or are_bio(self.labels):
            return {label: [index] for label, index in label_ids(self.labels).items()}
        classes = defaultdict[str, list[int]](list)
        for index, (label, tag) in enumerate(zip(self.labels, convert_inventory(self.labels), strict=True)):
            classes[tag].insert(0 if label == tag else len(classes[tag]), index)
        for tag in list(classes):
            for letter in "BI" if tag != OUTSIDE else "":
                classes.setdefault(f"{letter}{tag[1:]}", classes[tag])
        return dict(classes)

    def head(self, source: str | Path, *, seed: int | None, attention: str = "sdpa") -> Model:
        """Load an encoder with a linear layer on top.

        New weights depend only on the seed.
        """
        from isogloss.encoders.loading import load_with_new_head

        return load_with_new_head(source, TOKENS, labels=self.labels, seed=seed, attention=attention)

    def scores(self, model: Model, batch: Batch) -> Tensor:
        """Return the raw outputs [label class], computed only at the scored positions.

        Heads of transformers' own classes are computed at all positions.
        """
        from isogloss.encoders.families import family_of
        from isogloss.encoders.loading import has_own_head

        if not has_own_head(model) and TOKENS in family_of(model).own_heads:
            logits: Tensor = forward(model, batch).logits
            return logits[batch.rows, batch.columns]
        states = forward(model.base_model, batch).last_hidden_state
        return family_of(model).tag_scores(model, states[batch.rows, batch.columns])

    def loss(self, model: Model, batch: Batch) -> Tensor:
        """Return the mean cross entropy over the scored words."""
        return self.loss_of(self.scores(model, batch), batch)

    def loss_of(self, scores: Tensor, batch: Batch) -> Tensor:
        """Return the loss of raw outputs [label class], against hard or soft labels."""
        from torch.nn.functional import cross_entropy

        return cross_entropy(scores.float(), batch.gold if batch.soft is None else batch.soft)

    def decode(
        self, examples: Sequence[Sentence], rows: Sequence[EncodedRow], scores: Sequence[Scores]
    ) -> list[Tags]:
        """Return the best tag of each word, merging windows and then repairing BIO tags.

        Raises DataError for a sentence with tags for some words only, because the other words were not
        scored.
        """
        for example in examples:
            if NO_TAG in example.tags:
                raise DataError(
                    f"example {example.id!r}: word {example.tags.index(NO_TAG) + 1} of {len(example.words)} "
                    f"has no tag, but others have. Use such sentences only for training; for predictions, "
                    f"give one tag per word, or none at all."
                )
        return self.answers(examples, rows, scores)

    def answers(
        self, examples: Sequence[Sentence], rows: Sequence[EncodedRow], scores: Sequence[Scores]
    ) -> list[Tags]:
        """Return the predicted answer for each word."""
        classes = join_scores(scores).argmax(axis=-1).tolist() if scores else []
        sentences = merge_windows([len(example.words) for example in examples], rows, classes)
        return [self._valid([self.labels[index] for index in indices]) for indices in sentences]

    def gold(self, examples: Sequence[Sentence]) -> list[Tags]:
        """Return the tags of each sentence."""
        return [_tags(example) for example in examples]

    def score(self, gold: Sequence[Tags], predicted: Sequence[Tags]) -> float:
        """Return accuracy over words or micro F1 over spans, in [0, 1]."""
        measure = span_contributions if self.metric == "span_f1" else label_contributions
        return total(measure(gold, predicted))

    def contributions(self, gold: Sequence[Tags], predicted: Sequence[Tags]) -> ByMeasure:
        """Return each sentence's contribution to the metric and to measures of other papers.

        For accuracy, these are XTREME's F1 and the measures of classes that suites report. For span F1, it is
        the word-level F1 of cross-lingual adjustment.
        """
        if self.metric == "span_f1":
            word_f1 = word_contributions(gold, predicted)
            return {self.metric: span_contributions(gold, predicted), "word_f1": word_f1}
        class_measures = class_contributions(gold, predicted)
        seqeval_f1 = chunk_contributions(gold, predicted)
        return {"accuracy": class_measures["accuracy"], "seqeval_f1": seqeval_f1, **class_measures}

    def majority(self, train_examples: Sequence[Sentence], test_examples: Sequence[Sentence]) -> float:
        """Return the score of the most frequent training tag on every word.

        It is 0 for NER, whose most frequent tag is O.
        """
        tag = most_frequent(chain.from_iterable(self.gold(train_examples)), self.labels)
        answers = [self._valid([tag] * len(example.words)) for example in test_examples]
        return self.score(self.gold(test_examples), answers)

    def _valid(self, tags: Sequence[str]) -> Tags:
        if self.metric != "span_f1":
            return tuple(tags)
        is_bio = are_bio(self.labels)
        return repair(tags if is_bio else as_bio(tags, decide_scheme(self.labels)))


def _links(example: Sentence) -> tuple[tuple[int, int], ...] | None:
    links = example.links if isinstance(example, TaggedSentence) else None
    for source_word, word in links or ():
        if source_word < 0 or not 0 <= word < len(example.words):
            raise DataError(
                f"example {example.id!r}: link {source_word}-{word} is out of range for {len(example.words)} "
                f"words. Give pairs of a word of the original sentence and a word of this translation, "
                f"counted from 0."
            )
    return links


def _tags(example: Sentence) -> Tags:
    if example.tags and len(example.tags) != len(example.words):
        raise DataError(
            f"example {example.id!r}: {len(example.words)} words but {len(example.tags)} tags. "
            f"Give one tag per word, or none at all."
        )
    return example.tags


def sentence_rows(
    sentences: Sequence[Sequence[str]],
    gold: Sequence[tuple[int, ...]],
    tokenizer: Tokenizer,
    *,
    limit: int,
    overlap: int,
) -> list[EncodedRow]:
    """Encode sentences with one label id per word, or with ``()`` for unlabelled ones.

    Rows have at most ``limit`` subwords including special ones; neighbouring windows share ``overlap``. Rows
    are ordered by sentence and word, and sentences without words have no rows. Words labelled ``UNTAGGED``
    are read but not scored.
    """
    _check_overlap(limit, overlap)
    opening, closing = text_frame(tokenizer)
    special = len(opening) + len(closing)
    rows: list[EncodedRow] = []
    for example, (split, labels) in enumerate(zip(split_words(sentences, tokenizer), gold, strict=True)):
        scored_indices = scored_subwords(split, tokenizer)
        for window in windows(len(split.subwords), limit=limit - special, overlap=overlap):
            start, stop = (bisect_left(scored_indices, edge) for edge in (window.own_start, window.own_stop))
            words = [word for word in range(start, stop) if not labels or labels[word] != UNTAGGED]
            if not words:
                continue  # A window inside one very long word owns no scored subword.
            rows.append(
                EncodedRow(
                    example=example,
                    subwords=(*opening, *split.subwords[window.start : window.stop], *closing),
                    positions=tuple(len(opening) + scored_indices[word] - window.start for word in words),
                    words=tuple(words),
                    word_of=array(
                        "i",
                        (
                            *(NO_WORD for _ in opening),
                            *split.words[window.start : window.stop],
                            *(NO_WORD for _ in closing),
                        ),
                    ),
                    gold=tuple(labels[word] for word in words) if labels else (),
                )
            )
    return rows


def _check_overlap(limit: int, overlap: int) -> None:
    if not 0 <= overlap < limit - SPECIAL:
        raise ValueError(
            f"rows of {limit} subwords, {SPECIAL} of them special, cannot overlap by {overlap}: "
            f"use an overlap of 0 to {limit - SPECIAL - 1}."
        )


def merge_windows(
    lengths: Sequence[int], rows: Sequence[EncodedRow], values: Sequence[int]
) -> list[list[int]]:
    """Return, for each sentence of ``lengths`` words, one value per word from all its rows.

    ``values`` has one entry per scored position, row after row. Raises ValueError unless every word has
    exactly one.
    """
    missing = -1
    values_by_sentence = [[missing] * length for length in lengths]
    flat = iter(values)
    for row in rows:
        words = values_by_sentence[row.example]
        for word in row.words:
            words[word] = next(flat)
    position_count = sum(len(row.words) for row in rows)
    if (
        position_count != len(values)
        or position_count != sum(lengths)
        or any(missing in words for words in values_by_sentence)
    ):
        raise ValueError(
            f"{len(values)} values at {position_count} positions for {sum(lengths)} words: decode all "
            f"rows of all examples together, each once."
        )
    return values_by_sentence


UPOS = Tagging(
    name="upos",
    labels=(
        "ADJ", "ADP", "ADV", "AUX", "CCONJ", "DET", "INTJ", "NOUN", "NUM",
        "PART", "PRON", "PROPN", "PUNCT", "SCONJ", "SYM", "VERB", "X",
    ),
    metric="accuracy",
)  # fmt: skip
"""POS tagging: the 17 tags of Universal Dependencies, scored by accuracy."""

NER = Tagging(
    name="ner",
    labels=("O", "B-PER", "I-PER", "B-ORG", "I-ORG", "B-LOC", "I-LOC"),
    metric="span_f1",
)
"""NER: WikiANN's persons (PER), organisations (ORG) and locations (LOC), in BIO, scored by span F1."""

WORD_TAGGING = Tagging(name="word-tagging", labels=(), metric="accuracy")
"""One of the corpus's own tags for each word, scored by accuracy."""

SPAN_TAGGING = Tagging(name="span-tagging", labels=(), metric="span_f1")
"""Spans of words of the corpus's own types, scored by span F1."""
