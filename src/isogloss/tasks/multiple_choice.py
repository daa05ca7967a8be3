"""Multiple choice: which of several options follows from a context, or answers a question about it?

Devlin et al. (2019), Section 4.4 (SWAG), and Radford et al. (2018), Figure 1: each option is encoded with the
context, the head gives each such text one score, and the options of an item share one softmax. Items may
differ in the number of options. The question precedes the option, so that of a long text the context is cut.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy
from torch.nn.utils.rnn import pad_sequence

from isogloss.core.errors import DataError
from isogloss.core.rows.models import ByMeasure, total
from isogloss.data.examples import Choice
from isogloss.encoders.family import Model, Tokenizer
from isogloss.encoders.loading import load_with_new_head
from isogloss.encoders.subwords import encode_texts, for_causal
from isogloss.metrics.labels import label_contributions
from isogloss.tasks.batch import SEQUENCES, Batch, EncodedRow, sequence_scores
from isogloss.tasks.task import CLASSES, ROW_OVERLAP, ExampleParts, LabelsAre, OneAnswer

CHOICE_LIMIT = 384
"""Subwords of a context with one option, special ones included: contexts may be passages, as of questions."""

NO_OPTION = -1e4
"""Score where an item has fewer options than another: its probability is 0 in every precision, and finite, so
that the difference of two such scores is none."""


@dataclass(frozen=True, kw_only=True)
class MultipleChoice:
    """A task on contexts with options, one of which is right, scored by accuracy."""

    name: str
    labels: tuple[str, ...] = ("score",)
    """The one score of each option."""
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

        Where that is too long the longer of the two is cut; ``overlap`` is unused. DataError for fewer than
        two options, or a label that is none of them.
        """
        del overlap
        gold = [_checked_label(example) for example in examples]
        texts = [(item.context, _asked(item, option)) for item in examples for option in item.options]
        encoded = iter(encode_texts(texts, tokenizer, limit=limit))
        causal, rows = for_causal(tokenizer), list[EncodedRow]()
        for number, example in enumerate(examples):
            subwords, segments, ends, options = list[int](), list[int](), list[int](), list[int]()
            for _ in example.options:
                text = next(encoded)
                ends.append(len(subwords) + (len(text.subwords) - 1 if causal else 0))
                options.append(len(text.subwords))
                subwords += text.subwords
                segments += text.segments
            rows.append(
                EncodedRow(
                    example=number,
                    subwords=tuple(subwords),
                    segments=tuple(segments) or None,
                    positions=tuple(ends),
                    options=tuple(options),
                    gold=gold[number],
                )
            )
        return rows

    def head(self, source: str | Path, *, seed: int | None, attention: str = "sdpa") -> Model:
        """Load an encoder with its family's sequence classifier; new weights depend on the seed alone."""
        return load_with_new_head(source, SEQUENCES, labels=self.labels, seed=seed, attention=attention)

    def scores(self, model: Model, batch: Batch) -> Tensor:
        """Return the raw outputs [item option], ``NO_OPTION`` where an item has fewer than another."""
        items = torch.split(sequence_scores(model, batch).squeeze(1), list(batch.options))
        return pad_sequence(list(items), batch_first=True, padding_value=NO_OPTION)

    def loss(self, model: Model, batch: Batch) -> Tensor:
        """Return the mean cross entropy over the items, each among its own options."""
        return self.loss_of(self.scores(model, batch), batch)

    def loss_of(self, scores: Tensor, batch: Batch) -> Tensor:
        """Return the loss of raw outputs [item option]."""
        return cross_entropy(scores.float(), batch.gold)

    def decode(
        self, examples: Sequence[Choice], rows: Sequence[EncodedRow], scores: Sequence[Tensor]
    ) -> list[int]:
        """Return the index of the best option of each example; the first of equal ones."""
        if sorted(row.example for row in rows) != list(range(len(examples))):
            raise ValueError(
                f"{len(rows)} rows for {len(examples)} examples: decode all rows together, each once."
            )
        best = {
            row.example: int(option_scores.argmax()) for row, option_scores in zip(rows, scores, strict=True)
        }
        return [best[number] for number in range(len(examples))]

    def gold(self, examples: Sequence[Choice]) -> list[int | None]:
        """Return the index of the right option of each example; None for unlabelled ones."""
        return [example.label for example in examples]

    def score(self, gold: Sequence[int | None], predicted: Sequence[int]) -> float:
        """Return accuracy, in [0, 1]; DataError for unlabelled ones."""
        return total(self.contributions(gold, predicted)[self.metric])

    def contributions(self, gold: Sequence[int | None], predicted: Sequence[int]) -> ByMeasure:
        """Return for each example whether its option is the right one; DataError for unlabelled ones."""
        self._check_labels(gold)
        return {
            self.metric: label_contributions([(label,) for label in gold], [(label,) for label in predicted])
        }

    def majority(self, train_examples: Sequence[Choice], test_examples: Sequence[Choice]) -> float:
        """Score the place where the right option stands most often in training, on every example."""
        counts = Counter(sorted(example.label for example in train_examples if example.label is not None))
        ((position, _),) = counts.most_common(1) or [(0, 0)]
        return self.score(self.gold(test_examples), [position] * len(test_examples))

    def _check_labels(self, gold: Sequence[int | None]) -> None:
        if None in gold:
            raise DataError(
                f"{self.name}: {gold.count(None)} of {len(gold)} examples have no label to compare with. "
                f"Take a file with labels, or predict instead of scoring."
            )


CHOICE = MultipleChoice(name="multiple-choice")
"""One of several options (XCOPA, Belebele, StoryCloze and others, as they are described); accuracy."""


def _asked(example: Choice, option: str) -> str:
    """Return the second text of a row: prompt, question and option."""
    return " ".join(filter(None, (example.prompt, example.question, option)))


def _checked_label(example: Choice) -> tuple[int, ...]:
    """Return the label of an example, if any; DataError if it is not the index of an option."""
    count = len(example.options)
    if count < 2:
        raise DataError(f"example {example.id!r} has {count} options; expected two or more. Take it out.")
    if example.label is None:
        return ()
    if not 0 <= example.label < count:
        raise DataError(
            f"example {example.id!r}: label {example.label} for {count} options; expected 0 to {count - 1}. "
            f"Correct it."
        )
    return (example.label,)
