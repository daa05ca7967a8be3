"""Span QA: the answer to a question is a piece of a passage, read off where it starts and where it ends.

Devlin et al. (2019), Section 4.2: each subword of the passage is scored as the answer's first and as its
last. A long passage becomes overlapping windows; a window without the answer is taught to point at the
first subword of its row, and the best span of all windows is the answer.
"""

from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy, pad

from isogloss.core.contributions import ByMeasure
from isogloss.core.errors import DataError
from isogloss.data.examples import Question
from isogloss.encoders.loading import load_with_new_head
from isogloss.encoders.subwords import (
    PairFrame,
    SplitText,
    Window,
    pair_frame,
    split_texts,
    windows,
)
from isogloss.metrics.question_answering import (
    GoldAnswers,
    answer_f1,
    answer_f1_contributions,
    exact_match,
    exact_match_contributions,
)
from isogloss.tasks.batch import Batch, EncodedRow, forward
from isogloss.tasks.task import LabelsAre

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerFast

LIMIT = 384
"""Subwords of a row with the special ones (Devlin et al.'s code, and all after it)."""

OVERLAP = 128
"""Subwords that neighbouring windows share, as in later scripts; Devlin et al.'s code moves a
window on by so many instead, which costs more rows."""

LONGEST_QUESTION = 64
"""Subwords of a question; what is longer is cut (the same)."""

LONGEST_ANSWER = 30
"""Subwords of an answer (the same)."""

NO_ANSWER = 0
"""Place in a row that stands for "the answer is not in this window"."""

NOWHERE = array("I", (0, 0))
"""The characters of that place."""

TOGETHER = 512
"""Questions encoded at a time: enough to keep the tokenizer busy, few enough for any memory."""


CONSTANT_WORDS = (1, 2, 3, 5, 10, 20, 40, 80)
"""Words of the pieces tried as the one answer to everything: the floor any model must rise above."""

ENOUGH = 2000
"""Training questions that the choice is made on, taken evenly from all."""


class Mark(IntEnum):
    """What a place is in its row's answer; as bits, so that ``BOTH`` is a start and an end."""

    NONE = 0
    START = 1
    END = 2
    BOTH = 3


@dataclass(frozen=True, slots=True)
class Answer:
    """A piece of a passage, from character ``begin`` to before ``end``, with the sum of its two scores."""

    text: str
    begin: int
    end: int
    score: float


@dataclass(frozen=True, kw_only=True)
class SpanQA:
    """Extractive question answering; F1 is its metric, exact match is reported beside it."""

    name: str
    labels: tuple[str, ...] = ("start", "end")
    """What each place has a score for."""
    longest_answer: int = LONGEST_ANSWER
    """Subwords."""
    metric: ClassVar[str] = "f1"
    labels_are: ClassVar[LabelsAre] = "span"
    limit: ClassVar[int] = LIMIT
    overlap: ClassVar[int] = OVERLAP
    scored_whole: ClassVar[bool] = False

    def encode(
        self,
        examples: Sequence[Question],
        tokenizer: "PreTrainedTokenizerFast",
        *,
        limit: int = LIMIT,
        overlap: int = OVERLAP,
    ) -> list[EncodedRow]:
        """Turn each question into rows: its first subwords, then a window of the passage.

        A row's places are the first subword, for "no answer here", then each subword of the passage that
        stands for any character. Gold is a ``Mark`` for each, from the first of a question's answers.
        """
        fit = _Fit(pair_frame(tokenizer), limit, overlap)
        rows: list[EncodedRow] = []
        for first in range(0, len(examples), TOGETHER):
            some = examples[first : first + TOGETHER]
            questions = _split([example.question for example in some], tokenizer)
            passages = _split([example.passage for example in some], tokenizer)
            for number, example in enumerate(some, start=first):
                question = questions[example.question].subwords[: fit.question]
                rows += _rows(number, example, question, passages[example.passage], fit)
        return rows

    def head(self, source: str | Path, *, seed: int, attention: str = "sdpa") -> "PreTrainedModel":
        """Load an encoder and put two scores per subword on it; what is new depends on the seed alone."""
        return load_with_new_head(
            source, "AutoModelForQuestionAnswering", labels=self.labels, seed=seed, attention=attention
        )

    def scores(self, model: "PreTrainedModel", batch: Batch) -> Tensor:
        """Return the raw outputs [label 2] for start and end at the places of the batch."""
        output = forward(model, batch)
        both = torch.stack((output.start_logits, output.end_logits), dim=-1)
        return both[batch.rows, batch.columns]

    def loss(self, model: "PreTrainedModel", batch: Batch) -> Tensor:
        """Return the mean over rows and over start and end of the cross entropy among a row's places."""
        return self.loss_of(self.scores(model, batch), batch)

    def loss_of(self, scores: Tensor, batch: Batch) -> Tensor:
        """Return the loss from the raw outputs."""
        start, end = scores.float().unbind(dim=1)
        return (_choice_loss(start, batch, Mark.START) + _choice_loss(end, batch, Mark.END)) / 2

    def decode(
        self, examples: Sequence[Question], rows: Sequence[EncodedRow], scores: Sequence[Tensor]
    ) -> list[str]:
        """Return the best answer to each question; empty where the passage has no subwords."""
        found = self.best_answers(examples, rows, scores, count=1)
        return [answers[0].text if answers else "" for answers in found]

    def best_answers(
        self,
        examples: Sequence[Question],
        rows: Sequence[EncodedRow],
        scores: Sequence[Tensor],
        *,
        count: int,
    ) -> list[list[Answer]]:
        """Return the ``count`` best answers to each question over all its windows, the best first."""
        if {row.example for row in rows} != set(range(len(examples))):
            raise ValueError(
                f"rows of {len({row.example for row in rows})} of {len(examples)} questions: decode all rows "
                f"of all examples together."
            )
        found: list[dict[tuple[int, int], float]] = [{} for _ in examples]
        for row, row_scores in zip(rows, scores, strict=True):
            spans = found[row.example]
            for begin, end, score in _spans(row, row_scores, self.longest_answer, count):
                spans[begin, end] = max(score, spans.get((begin, end), score))
        return [_best(example.passage, spans, count) for example, spans in zip(examples, found, strict=True)]

    def gold(self, examples: Sequence[Question]) -> list[GoldAnswers]:
        """Return all right answers to each question, with the language whose rules compare them."""
        return [
            GoldAnswers(tuple(text for _, text in example.answers), example.language) for example in examples
        ]

    def score(self, gold: Sequence[GoldAnswers], predicted: Sequence[str]) -> float:
        """Return F1, in [0, 1]."""
        return answer_f1(gold, predicted)

    def measures(self, gold: Sequence[GoldAnswers], predicted: Sequence[str]) -> dict[str, float]:
        """Return F1 and exact match."""
        return {"f1": answer_f1(gold, predicted), "em": exact_match(gold, predicted)}

    def contributions(self, gold: Sequence[GoldAnswers], predicted: Sequence[str]) -> ByMeasure:
        """Return the F1 of each question, and whether its answer is right as a whole."""
        return {
            "f1": answer_f1_contributions(gold, predicted),
            "em": exact_match_contributions(gold, predicted),
        }

    def majority(self, train_examples: Sequence[Question], test_examples: Sequence[Question]) -> float:
        """Score the constant piece of every passage (say, its first three words) that is best in training."""
        piece = best_constant(
            [example.passage for example in train_examples], self.gold(train_examples), self.score
        )
        return self.score(self.gold(test_examples), [piece.of(example.passage) for example in test_examples])


QA = SpanQA(name="qa")
"""SQuAD, XQuAD, MLQA, TyDi QA's gold passages."""


@dataclass(frozen=True)
class _Fit:
    """How a question and a passage share a row of ``limit`` subwords."""

    frame: PairFrame
    limit: int
    overlap: int

    def __post_init__(self) -> None:
        least = self.frame.special + 2
        if self.limit < least or self.overlap < 0:
            raise ValueError(
                f"rows of {self.limit} subwords, {self.frame.special} of them special, that overlap by "
                f"{self.overlap}: use rows of at least {least} and an overlap of at least 0."
            )

    @property
    def question(self) -> int:
        """Most subwords of a question: never more than half of a row's room."""
        return min(LONGEST_QUESTION, (self.limit - self.frame.special) // 2)

    def windows(self, question: int, passage: int) -> list[Window]:
        """Cover a passage beside a question; where there is little room, windows overlap by half at most."""
        room = self.limit - self.frame.special - question
        return windows(passage, limit=room, overlap=min(self.overlap, room // 2))


def _split(texts: Sequence[str], tokenizer: "PreTrainedTokenizerFast") -> dict[str, SplitText]:
    """Split each text once: neighbouring questions share their passage."""
    unique = list(dict.fromkeys(texts))
    return dict(zip(unique, split_texts(unique, tokenizer), strict=True))


def _rows(
    number: int, example: Question, question: Sequence[int], passage: SplitText, fit: _Fit
) -> Iterator[EncodedRow]:
    """Give the rows of one question, already cut, and its passage."""
    answer = _answer(example, passage)
    before = len(fit.frame.opening) + len(question) + len(fit.frame.between)
    for window in fit.windows(len(question), len(passage.subwords)):
        shown = passage.subwords[window.start : window.stop]
        first, stop = (bisect_left(passage.places, place) for place in (window.start, window.stop))
        places = (before + place - window.start for place in passage.places[first:stop])
        yield EncodedRow(
            example=number,
            subwords=fit.frame.subwords(question, shown),
            segments=fit.frame.segments_of(len(question), len(shown)),
            positions=array("I", (NO_ANSWER, *places)),
            characters=NOWHERE + passage.characters[2 * first : 2 * stop],
            gold=_marks(answer, first, stop) if example.answers else (),
        )


def _answer(example: Question, passage: SplitText) -> range:
    """Return the passage's places that the first answer has; DataError when it does not stand there."""
    if not example.answers:
        return range(0)
    begin, text = example.answers[0]
    end = begin + len(text)
    if begin < 0 or example.passage[begin:end] != text:
        raise DataError(
            f"question {example.id!r}: answer {text[:40]!r} does not stand at character {begin} of its "
            f"passage, where there is {example.passage[max(0, begin) : end][:40]!r}. Correct the offset."
        )
    return passage.between(begin, end)


def _marks(answer: range, first: int, stop: int) -> bytes:
    """Mark an answer among a passage's places ``first`` to before ``stop``, or that it is not there."""
    marks = bytearray(1 + stop - first)
    inside = bool(answer) and first <= answer[0] and answer[-1] < stop
    marks[1 + answer[0] - first if inside else NO_ANSWER] |= Mark.START
    marks[1 + answer[-1] - first if inside else NO_ANSWER] |= Mark.END
    return bytes(marks)


def _choice_loss(scores: Tensor, batch: Batch, mark: Mark) -> Tensor:
    """Return the mean over rows of the cross entropy of the marked place among the row's own places."""
    among = scores.new_full(batch.subwords.shape, float("-inf"))
    among = among.index_put((batch.rows, batch.columns), scores)
    right = torch.zeros_like(batch.examples)  # Each row has one such mark, so the sum is its column.
    right = right.index_add(0, batch.rows, batch.columns * (batch.gold & mark).bool())
    return cross_entropy(among, right)


def _spans(row: EncodedRow, scores: Tensor, longest: int, count: int) -> Iterator[tuple[int, int, float]]:
    """Give the best spans of a row, as characters, with the sum of their scores."""
    start, end = scores[1:].float().unbind(dim=1)
    for score, first, last in best_spans(start, end, longest=longest, count=count):
        yield row.characters[2 * (1 + first)], row.characters[2 * (1 + last) + 1], score


def best_spans(start: Tensor, end: Tensor, *, longest: int, count: int) -> list[tuple[float, int, int]]:
    """Return the best spans as (score, first, last), of at most ``longest`` places, the best first.

    ``start`` and ``end`` are [place]. Of equally good spans the one that begins first counts, then the
    shortest.
    """
    if not len(start):
        return []
    ends = pad(end, (0, longest - 1), value=float("-inf")).unfold(0, longest, 1)
    sums = (start.unsqueeze(1) + ends).flatten()
    # Of equal sums argmax gives the first; so does a stable sort, which takes twenty times as long.
    best = sums.argmax().unsqueeze(0) if count == 1 else sums.argsort(descending=True, stable=True)[:count]
    found = zip(sums[best].tolist(), best.tolist(), strict=True)
    return [
        (score, place // longest, place // longest + place % longest)
        for score, place in found
        if place // longest + place % longest < len(end)
    ]


def _best(passage: str, spans: dict[tuple[int, int], float], count: int) -> list[Answer]:
    """Rank the spans of all windows of a question; of equally good ones the first in the passage counts."""
    ranked = sorted(spans.items(), key=lambda item: (-item[1], item[0]))
    return [Answer(passage[begin:end], begin, end, score) for (begin, end), score in ranked[:count]]


@dataclass(frozen=True, slots=True)
class Piece:
    """The first or the last words of a passage; all of it where it has no more."""

    words: int
    from_end: bool = False

    def of(self, passage: str) -> str:
        """Return the piece of a passage."""
        if self.from_end:
            return passage[len(passage) - len(_first_words(passage[::-1], self.words)) :]
        return _first_words(passage, self.words)


PIECES = tuple(Piece(words, from_end) for words in CONSTANT_WORDS for from_end in (False, True))


def best_constant(
    passages: Sequence[str], gold: Sequence[Any], score: Callable[[Sequence[Any], Sequence[str]], float]
) -> Piece:
    """Return the piece that scores best on training questions, the shortest of equals."""
    step = max(1, len(passages) // ENOUGH)
    passages, gold = passages[::step], gold[::step]
    return max(PIECES, key=lambda piece: score(gold, [piece.of(passage) for passage in passages]))


def _first_words(text: str, words: int) -> str:
    """Return a text up to the end of a word; what white space parts is a word."""
    rest = text.split(maxsplit=words)
    return text[: len(text) - len(rest[words])].rstrip() if len(rest) > words else text
