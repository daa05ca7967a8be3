"""Extractive question answering: the answer is a span of a passage, predicted by its start and end.

Devlin et al. (2019), Section 4.2: each subword of the passage is scored as the answer's first and as its
last. Long passages become overlapping windows. In windows without the answer the target is the first subword
of the row (the last, if causal), and the best span over all windows is predicted.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Final

import numpy as np
import numpy.typing as npt

from isogloss.core.errors import DataError
from isogloss.core.rows.models import ByMeasure, total
from isogloss.data.examples import Question
from isogloss.encoders.subwords import PairFrame, Window, for_causal, pair_frame, windows
from isogloss.features.question_answering.split_texts import SplitText, split_texts
from isogloss.metrics.texts import (
    GoldAnswers,
    answer_f1_contributions,
    exact_match_contributions,
)
from isogloss.tasks.batch import Batch, EncodedRow, Scores, forward, own_scores, to_array
from isogloss.tasks.task import ExampleParts, LabelsAre

if TYPE_CHECKING:
    from torch import Tensor

    from isogloss.encoders.family import Model, Tokenizer

HEAD: Final = "AutoModelForQuestionAnswering"

QA_LIMIT = 384
"""Subwords per row including special ones (Devlin et al.'s code and its successors)."""

QA_OVERLAP = 128
"""Subwords shared by neighbouring windows, as in later scripts. In Devlin et al.'s code this is the stride,
which gives more rows."""

MAX_QUESTION_SUBWORDS = 64
"""Maximum subwords of a question; longer ones are truncated (Devlin et al.'s code)."""

MAX_ANSWER_SUBWORDS = 30
"""Maximum subwords of an answer (Devlin et al.'s code)."""

NO_ANSWER = 0
"""Index, among a row's scored positions, that stands for "the answer is not in this window"."""

NO_CHARACTERS = array("I", (0, 0))
"""Character offsets of that position."""

QUESTIONS_PER_CALL = 512
"""Questions per call of the tokenizer: enough to keep its threads busy, with little memory."""

CONSTANT_WORDS = (1, 2, 3, 5, 10, 20, 40, 80)
"""Lengths, in words, of the constant answers tried as a baseline."""

MAX_BASELINE_QUESTIONS = 2000
"""Maximum training questions, evenly spaced, on which the baseline is chosen."""


class AnswerMark(IntEnum):
    """Role of a position in its row's answer, as bits. ``BOTH`` is start and end."""

    NONE = 0
    START = 1
    END = 2
    BOTH = 3


@dataclass(frozen=True, kw_only=True)
class SpanQA:
    """Extractive question answering, scored by F1, with exact match as a further measure."""

    name: str
    labels: tuple[str, ...] = ("start", "end")
    """Names of the two scores of each position."""
    longest_answer: int = MAX_ANSWER_SUBWORDS
    """Maximum subwords of an answer."""
    metric: ClassVar[str] = "f1"
    labels_are: ClassVar[LabelsAre] = "span"
    one_answer: ClassVar[None] = None
    parts: ClassVar[ExampleParts] = "question"
    limit: ClassVar[int] = QA_LIMIT
    overlap: ClassVar[int] = QA_OVERLAP
    evaluates_full_length: ClassVar[bool] = False

    def encode(
        self,
        examples: Sequence[Question],
        tokenizer: Tokenizer,
        *,
        limit: int = QA_LIMIT,
        overlap: int = QA_OVERLAP,
    ) -> list[EncodedRow]:
        """Encode each question as rows: its first subwords, then a window of the passage.

        The scored positions of a row are its first subword (its last, if causal), for "no answer here", and
        each subword of the passage that covers any character. Gold has an ``AnswerMark`` for each, for the
        question's first answer.
        """
        layout = _Layout(pair_frame(tokenizer), limit, overlap, for_causal(tokenizer))
        rows: list[EncodedRow] = []
        for start in range(0, len(examples), QUESTIONS_PER_CALL):
            chunk = examples[start : start + QUESTIONS_PER_CALL]
            questions = _split([example.question for example in chunk], tokenizer)
            passages = _split([example.passage for example in chunk], tokenizer)
            for index, example in enumerate(chunk, start=start):
                question = questions[example.question].subwords[: layout.question]
                rows += _rows(index, example, question, passages[example.passage], layout)
        return rows

    def head(self, source: str | Path, *, seed: int | None, attention: str = "sdpa") -> Model:
        """Load an encoder with a start and an end score per subword.

        New weights depend only on the seed.
        """
        from isogloss.encoders.loading import load_with_new_head

        return load_with_new_head(source, HEAD, labels=self.labels, seed=seed, attention=attention)

    def scores(self, model: Model, batch: Batch) -> Tensor:
        """Return the raw outputs [label 2] for start and end at the scored positions."""
        import torch

        from isogloss.encoders.loading import has_own_head

        if has_own_head(model):
            return own_scores(model, batch)
        output = forward(model, batch)
        logits = torch.stack((output.start_logits, output.end_logits), dim=-1)
        return logits[batch.rows, batch.columns]

    def loss(self, model: Model, batch: Batch) -> Tensor:
        """Return the mean over rows, and over start and end, of the cross entropy among a row's positions."""
        return self.loss_of(self.scores(model, batch), batch)

    def loss_of(self, scores: Tensor, batch: Batch) -> Tensor:
        """Return the loss of raw outputs [label 2]."""
        start, end = scores.float().unbind(dim=1)
        return (
            _position_loss(start, batch, AnswerMark.START) + _position_loss(end, batch, AnswerMark.END)
        ) / 2

    def decode(
        self, examples: Sequence[Question], rows: Sequence[EncodedRow], scores: Sequence[Scores]
    ) -> list[str]:
        """Return the best answer to each question over all its windows, or "" for passages without subwords.

        Ties go to the answer that starts first, then to the shortest.
        """
        if {row.example for row in rows} != set(range(len(examples))):
            raise ValueError(
                f"rows of {len({row.example for row in rows})} of {len(examples)} questions: decode all rows "
                f"of all examples together."
            )
        best_candidates: dict[int, tuple[float, int, int]] = {}
        for row, row_scores in zip(rows, scores, strict=True):
            start, end = to_array(row_scores)[1:].T
            span = best_span(start, end, longest=self.longest_answer)
            if span is not None:
                score, start_index, end_index = span
                start_character = row.characters[2 * (1 + start_index)]
                end_character = row.characters[2 * (1 + end_index) + 1]
                candidate = (-score, start_character, end_character)
                previous = best_candidates.get(row.example, candidate)
                best_candidates[row.example] = min(previous, candidate)
        answers = []
        for index, example in enumerate(examples):
            _, start_character, end_character = best_candidates.get(index, (0.0, 0, 0))
            answers.append(example.passage[start_character:end_character])
        return answers

    def gold(self, examples: Sequence[Question]) -> list[GoldAnswers]:
        """Return all correct answers to each question, with the language whose rules normalise them."""
        return [
            GoldAnswers(tuple(text for _, text in example.answers), example.language) for example in examples
        ]

    def score(self, gold: Sequence[GoldAnswers], predicted: Sequence[str]) -> float:
        """Return F1, in [0, 1]."""
        return total(answer_f1_contributions(gold, predicted))

    def contributions(self, gold: Sequence[GoldAnswers], predicted: Sequence[str]) -> ByMeasure:
        """Return F1 and exact match of each question."""
        return {
            "f1": answer_f1_contributions(gold, predicted),
            "em": exact_match_contributions(gold, predicted),
        }

    def majority(self, train_examples: Sequence[Question], test_examples: Sequence[Question]) -> float:
        """Return the score of a constant span of passages, such as the first three words.

        The span is the best one on training questions.
        """
        sample = train_examples[:: max(1, len(train_examples) // MAX_BASELINE_QUESTIONS)]

        def score(span: ConstantSpan, examples: Sequence[Question]) -> float:
            return self.score(self.gold(examples), [span.select(example.passage) for example in examples])

        return score(max(CONSTANT_SPANS, key=lambda span: score(span, sample)), test_examples)


QA = SpanQA(name="qa")
"""QA: the answer to a question, a span of a text (SQuAD, XQuAD, MLQA, TyDi QA's gold passages),
scored by F1."""


@dataclass(frozen=True)
class _Layout:
    """The layout of a row of ``limit`` subwords: a question and a window of its passage."""

    frame: PairFrame
    limit: int
    overlap: int
    causal: bool

    def __post_init__(self) -> None:
        minimum = self.frame.special + 2
        if self.limit < minimum or self.overlap < 0:
            raise ValueError(
                f"rows of {self.limit} subwords, {self.frame.special} of them special, that overlap by "
                f"{self.overlap}: use rows of at least {minimum} and an overlap of at least 0."
            )

    @property
    def question(self) -> int:
        """Maximum subwords of a question, at most half of a row."""
        return min(MAX_QUESTION_SUBWORDS, (self.limit - self.frame.special) // 2)

    def windows(self, question: int, passage: int) -> list[Window]:
        """Return the windows over a passage, given the subwords of question and passage.

        Windows overlap by at most half.
        """
        room = self.limit - self.frame.special - question
        return windows(passage, limit=room, overlap=min(self.overlap, room // 2))


def _split(texts: Sequence[str], tokenizer: Tokenizer) -> dict[str, SplitText]:
    """Split each distinct text once, because neighbouring questions share their passage."""
    unique = list(dict.fromkeys(texts))
    return dict(zip(unique, split_texts(unique, tokenizer), strict=True))


def _rows(
    example_index: int, example: Question, question: Sequence[int], passage: SplitText, layout: _Layout
) -> Iterator[EncodedRow]:
    """Yield the rows of one truncated question and its passage."""
    answer = _answer(example, passage)
    offset = len(layout.frame.opening) + len(question) + len(layout.frame.between)
    for window in layout.windows(len(question), len(passage.subwords)):
        window_subwords = passage.subwords[window.start : window.stop]
        start = bisect_left(passage.span_subwords, window.start)
        stop = bisect_left(passage.span_subwords, window.stop)
        positions = (offset + index - window.start for index in passage.span_subwords[start:stop])
        subwords = layout.frame.subwords(question, window_subwords)
        yield EncodedRow(
            example=example_index,
            subwords=subwords,
            segments=layout.frame.segments_of(len(question), len(window_subwords)),
            positions=array("I", (len(subwords) - 1 if layout.causal else 0, *positions)),
            characters=NO_CHARACTERS + passage.characters[2 * start : 2 * stop],
            gold=_marks(answer, start, stop) if example.answers else (),
        )


def _answer(example: Question, passage: SplitText) -> range:
    """Return the first answer's range of ``passage.span_subwords``, empty without an answer.

    Raises DataError for a wrong offset.
    """
    if not example.answers:
        return range(0)
    begin, text = example.answers[0]
    end = begin + len(text)
    if begin < 0 or example.passage[begin:end] != text:
        raise DataError(
            f"question {example.id!r}: answer {text[:40]!r} is not at character {begin} of its passage, "
            f"which has {example.passage[max(0, begin) : end][:40]!r}. Correct the offset."
        )
    return passage.between(begin, end)


def _marks(answer: range, start: int, stop: int) -> bytes:
    """Mark an answer in ``passage.span_subwords[start:stop]``, or ``NO_ANSWER`` if it is not inside."""
    marks = bytearray(1 + stop - start)
    is_inside = bool(answer) and start <= answer[0] and answer[-1] < stop
    marks[1 + answer[0] - start if is_inside else NO_ANSWER] |= AnswerMark.START
    marks[1 + answer[-1] - start if is_inside else NO_ANSWER] |= AnswerMark.END
    return bytes(marks)


def _position_loss(scores: Tensor, batch: Batch, mark: AnswerMark) -> Tensor:
    """Return the mean over rows of the cross entropy of the marked position among the row's positions."""
    import torch
    from torch.nn.functional import cross_entropy

    row_scores = scores.new_full(batch.subwords.shape, float("-inf"))
    row_scores = row_scores.index_put((batch.rows, batch.columns), scores)
    target = torch.zeros_like(batch.examples)  # The sum is the column of the row's only mark.
    target = target.index_add(0, batch.rows, batch.columns * (batch.gold & mark).bool())
    return cross_entropy(row_scores, target)


def best_span(
    start: npt.NDArray[np.float32], end: npt.NDArray[np.float32], *, longest: int
) -> tuple[float, int, int] | None:
    """Return the best span of at most ``longest`` positions as (score, first, last).

    ``start`` and ``end`` are scores [position]. Ties go to the span that starts first, then to the shortest.
    None is returned without positions.
    """
    if not len(start):
        return None
    padded = np.pad(end, (0, longest - 1), constant_values=-np.inf)
    sums = (start[:, None] + np.lib.stride_tricks.sliding_window_view(padded, longest)).ravel()
    best_index = int(sums.argmax())  # The first of equal sums.
    start_index = best_index // longest
    end_index = start_index + best_index % longest
    return (float(sums[best_index]), start_index, end_index) if end_index < len(end) else None


@dataclass(frozen=True, slots=True)
class ConstantSpan:
    """The first or the last ``words`` words of a passage, or all of a shorter one."""

    words: int
    from_end: bool = False

    def select(self, passage: str) -> str:
        """Return the span of a passage."""
        if self.from_end:
            return passage[len(passage) - len(_first_words(passage[::-1], self.words)) :]
        return _first_words(passage, self.words)


CONSTANT_SPANS = tuple(
    ConstantSpan(words, from_end) for words in CONSTANT_WORDS for from_end in (False, True)
)


def _first_words(text: str, words: int) -> str:
    """Return a text up to the end of its ``words``-th whitespace-separated word."""
    parts = text.split(maxsplit=words)
    return text[: len(text) - len(parts[words])].rstrip() if len(parts) > words else text
