"""Multiple choice: which of several options follows from a context, or answers a question about it?

Devlin et al. (2019), Section 4.4 (SWAG), and Radford et al. (2018), Figure 1: each option is encoded with the
context, the head gives each such text one score, and the options of an item share one softmax. Items may have
different numbers of options. The question precedes the option, so that only the context of a long text is
truncated.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from isogloss.core.errors import DataError
from isogloss.core.rows.models import ByMeasure, total
from isogloss.data.examples import Choice
from isogloss.encoders.subwords import encode_texts, for_causal
from isogloss.metrics.labels import label_contributions
from isogloss.tasks.batch import SEQUENCES, Batch, EncodedRow, Scores, sequence_scores, to_array
from isogloss.tasks.task import CLASSES, ROW_OVERLAP, ExampleParts, LabelsAre, OneAnswer

if TYPE_CHECKING:
    from torch import Tensor

    from isogloss.encoders.family import Model, Tokenizer

CHOICE_LIMIT = 384
"""Subwords of a context with one option, special ones included. Contexts may be whole passages."""

NO_OPTION = -1e4
"""Score of missing options in items with fewer options. Its probability is 0 in every precision. It is
finite, so the difference of two such scores is 0."""


@dataclass(frozen=True, kw_only=True)
class MultipleChoice:
    """A task on contexts with options, exactly one of them right, scored by accuracy."""

    name: str
    labels: tuple[str, ...] = ("score",)
    """Name of the single score of each option."""
    metric: ClassVar[str] = "accuracy"
    labels_are: ClassVar[LabelsAre] = "option"
    limit: ClassVar[int] = CHOICE_LIMIT
    overlap: ClassVar[int] = ROW_OVERLAP
    evaluates_full_length: ClassVar[bool] = False
    one_answer: ClassVar[OneAnswer] = CLASSES
    parts: ClassVar[ExampleParts] = "none"

    def encode(
        self,
        examples: Sequence[Choice],
        tokenizer: Tokenizer,
        *,
        limit: int = CHOICE_LIMIT,
        overlap: int = ROW_OVERLAP,
    ) -> list[EncodedRow]:
        """Encode each example as one row: the context with each option in turn, of ``limit`` subwords each.

        If they are too long, the longer one is truncated. ``overlap`` is unused. Raises DataError for fewer
        than two options, and for a label that is not the index of an option.
        """
        del overlap
        gold = [_check_label(example) for example in examples]
        texts = [(item.context, _option_text(item, option)) for item in examples for option in item.options]
        encoded_texts = iter(encode_texts(texts, tokenizer, limit=limit))
        causal = for_causal(tokenizer)
        rows = list[EncodedRow]()
        for index, example in enumerate(examples):
            subwords = list[int]()
            segments = list[int]()
            ends = list[int]()
            options = list[int]()
            for _ in example.options:
                text = next(encoded_texts)
                ends.append(len(subwords) + (len(text.subwords) - 1 if causal else 0))
                options.append(len(text.subwords))
                subwords += text.subwords
                segments += text.segments
            rows.append(
                EncodedRow(
                    example=index,
                    subwords=tuple(subwords),
                    segments=tuple(segments) or None,
                    positions=tuple(ends),
                    options=tuple(options),
                    gold=gold[index],
                )
            )
        return rows

    def head(self, source: str | Path, *, seed: int | None, attention: str = "sdpa") -> Model:
        """Load an encoder with its family's sequence classifier.

        New weights depend only on the seed.
        """
        from isogloss.encoders.loading import load_with_new_head

        return load_with_new_head(source, SEQUENCES, labels=self.labels, seed=seed, attention=attention)

    def scores(self, model: Model, batch: Batch) -> Tensor:
        """Return the raw outputs [item option], with ``NO_OPTION`` for missing options."""
        import torch
        from torch.nn.utils.rnn import pad_sequence

        items = torch.split(sequence_scores(model, batch).squeeze(1), list(batch.options))
        return pad_sequence(list(items), batch_first=True, padding_value=NO_OPTION)

    def loss(self, model: Model, batch: Batch) -> Tensor:
        """Return the mean cross entropy over the items, each among its own options."""
        return self.loss_of(self.scores(model, batch), batch)

    def loss_of(self, scores: Tensor, batch: Batch) -> Tensor:
        """Return the loss of raw outputs [item option]."""
        from torch.nn.functional import cross_entropy

        return cross_entropy(scores.float(), batch.gold)

    def decode(
        self, examples: Sequence[Choice], rows: Sequence[EncodedRow], scores: Sequence[Scores]
    ) -> list[int]:
        """Return the index of the best option of each example, the first of equal ones."""
        if sorted(row.example for row in rows) != list(range(len(examples))):
            raise ValueError(
                f"{len(rows)} rows for {len(examples)} examples: decode all rows together, each once."
            )
        best_options = {
            row.example: int(to_array(option_scores).argmax())
            for row, option_scores in zip(rows, scores, strict=True)
        }
        return [best_options[index] for index in range(len(examples))]

    def gold(self, examples: Sequence[Choice]) -> list[int | None]:
        """Return the index of the right option of each example, or None for unlabelled ones."""
        return [example.label for example in examples]

    def score(self, gold: Sequence[int | None], predicted: Sequence[int]) -> float:
        """Return accuracy, in [0, 1].

        Raises DataError for unlabelled examples.
        """
        return total(self.contributions(gold, predicted)[self.metric])

    def contributions(self, gold: Sequence[int | None], predicted: Sequence[int]) -> ByMeasure:
        """Return whether the predicted option of each example is right.

        Raises DataError for unlabelled examples.
        """
        self._check_labels(gold)
        return {
            self.metric: label_contributions([(label,) for label in gold], [(label,) for label in predicted])
        }

    def majority(self, train_examples: Sequence[Choice], test_examples: Sequence[Choice]) -> float:
        """Return the score of the most frequent index of the right option in training."""
        counts = Counter(sorted(example.label for example in train_examples if example.label is not None))
        ((position, _),) = counts.most_common(1) or [(0, 0)]
        return self.score(self.gold(test_examples), [position] * len(test_examples))

    def _check_labels(self, gold: Sequence[int | None]) -> None:
        if None in gold:
            raise DataError(
                f"{self.name}: {gold.count(None)} of {len(gold)} examples have no label to compare with. "
                f"Use a file with labels, or predict instead of scoring."
            )


CHOICE = MultipleChoice(name="multiple-choice")
"""One of several options (XCOPA, Belebele, StoryCloze and others, from descriptions), scored by accuracy."""


def _option_text(example: Choice, option: str) -> str:
    """Return the second text of a row: prompt, question and option."""
    return " ".join(text for text in (example.prompt, example.question, option) if text)


def _check_label(example: Choice) -> tuple[int, ...]:
    """Return the label of an example, or () without one.

    Raises DataError if it is not the index of an option, or if the options are fewer than two.
    """
    count = len(example.options)
    if count < 2:
        raise DataError(f"example {example.id!r} has {count} options; expected two or more. Remove it.")
    if example.label is None:
        return ()
    if not 0 <= example.label < count:
        raise DataError(
            f"example {example.id!r}: label {example.label} for {count} options; expected 0 to {count - 1}. "
            f"Correct it."
        )
    return (example.label,)
