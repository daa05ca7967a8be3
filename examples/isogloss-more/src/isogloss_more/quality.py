"""Quality estimation of words: each word of a machine translation is OK or BAD, given the source sentence."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, ClassVar

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from isogloss.plugins import (
    Batch,
    Contributions,
    DataError,
    EncodedRow,
    family_of,
    forward,
    label_contributions,
    load_with_new_head,
    merge_windows,
    scored_subwords,
    special_subwords,
    split_words,
    total,
)

LABELS = ("OK", "BAD")
LIMIT = 128


@dataclass(frozen=True, slots=True, kw_only=True)
class RatedTranslation:
    """A source sentence and the words of its machine translation, each with OK or BAD."""

    id: str
    source: tuple[str, ...]
    words: tuple[str, ...]
    ratings: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class WordQuality:
    """Rate each word of a translation. A row is the source, a separator and the translation."""

    name: str = "word-quality"
    labels: tuple[str, ...] = LABELS
    metric: ClassVar[str] = "accuracy"
    labels_are: ClassVar[str] = "word"
    one_answer: ClassVar[None] = None
    parts: ClassVar[str] = "none"
    limit: ClassVar[int] = LIMIT
    overlap: ClassVar[int] = 0
    evaluates_full_length: ClassVar[bool] = False

    def encode(
        self, examples: Sequence[RatedTranslation], tokenizer: Any, *, limit: int = LIMIT, overlap: int = 0
    ) -> list[EncodedRow]:
        """Encode examples. Source sentences that do not fit next to the translation are cut."""
        del overlap
        opening, closing = special_subwords(tokenizer)
        sources = split_words([example.source for example in examples], tokenizer)
        translations = split_words([example.words for example in examples], tokenizer)
        rows = []
        for index, (example, source, translation) in enumerate(
            zip(examples, sources, translations, strict=True)
        ):
            room = limit - 3 - len(translation.subwords)
            if room < 0:
                raise DataError(
                    f"example {example.id!r}: found {len(translation.subwords)} subwords in its translation; "
                    f"{limit - 3} fit into a row. Raise limit."
                )
            context = source.subwords[:room]
            offset = len(context) + 2
            rows.append(
                EncodedRow(
                    example=index,
                    subwords=(opening, *context, closing, *translation.subwords, closing),
                    positions=tuple(offset + place for place in scored_subwords(translation, tokenizer)),
                    words=tuple(range(len(example.words))),
                    gold=tuple(LABELS.index(rating) for rating in example.ratings),
                )
            )
        return rows

    def head(self, source: Any, *, seed: int | None, attention: str = "sdpa") -> Any:
        """Load an encoder with a head for words."""
        kind = "AutoModelForTokenClassification"
        return load_with_new_head(source, kind, labels=self.labels, seed=seed, attention=attention)

    def scores(self, model: Any, batch: Batch) -> Tensor:
        """Return the raw scores [word rating]."""
        states = forward(model.base_model, batch).last_hidden_state
        return family_of(model).tag_scores(model, states[batch.rows, batch.columns])

    def loss(self, model: Any, batch: Batch) -> Tensor:
        """Return the mean cross-entropy over words."""
        return self.loss_of(self.scores(model, batch), batch)

    def loss_of(self, scores: Tensor, batch: Batch) -> Tensor:
        """Return the mean cross-entropy of raw scores, or of a teacher's probabilities."""
        return cross_entropy(scores.float(), batch.gold if batch.soft is None else batch.soft)

    def decode(
        self, examples: Sequence[RatedTranslation], rows: Sequence[EncodedRow], scores: Sequence[Tensor]
    ) -> list[tuple[str, ...]]:
        """Return the rating of each word."""
        predicted_ids = (
            torch.cat([torch.as_tensor(row) for row in scores]).argmax(dim=-1).tolist() if scores else []
        )
        merged = merge_windows([len(example.words) for example in examples], rows, predicted_ids)
        return [tuple(LABELS[index] for index in ratings) for ratings in merged]

    def gold(self, examples: Sequence[RatedTranslation]) -> list[tuple[str, ...]]:
        """Return the gold ratings."""
        return [example.ratings for example in examples]

    def score(self, gold: Sequence[tuple[str, ...]], predicted: Sequence[tuple[str, ...]]) -> float:
        """Return the accuracy."""
        return total(self.contributions(gold, predicted)[self.metric])

    def contributions(
        self, gold: Sequence[tuple[str, ...]], predicted: Sequence[tuple[str, ...]]
    ) -> dict[str, Contributions]:
        """Return each example's contribution to the accuracy."""
        return {"accuracy": label_contributions(gold, predicted)}

    def majority(
        self, train_examples: Sequence[RatedTranslation], test_examples: Sequence[RatedTranslation]
    ) -> float:
        """Return the accuracy of the most frequent training rating."""
        ratings = list(chain.from_iterable(self.gold(train_examples)))
        majority_label = max(LABELS, key=ratings.count)
        return self.score(
            self.gold(test_examples), [(majority_label,) * len(example.words) for example in test_examples]
        )


WORD_QUALITY = WordQuality()
