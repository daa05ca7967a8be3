"""Corpora of questions: questions of rows, and of SQuAD's JSON."""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from isogloss.data.examples import Question
from isogloss.data.files import File
from isogloss.data.formats.corpus_kinds import CorpusKind, name_columns
from isogloss.data.formats.formats import Format
from isogloss.data.formats.reading import NO_ANSWER, CorpusRow
from isogloss.features.question_answering.squad import place_answer, read_questions


def question_of_row(record: CorpusRow) -> Question | None:
    """Return the question of a row, or None for one without an answer if such rows are skipped.

    Raises DataError, with the line, for an answer that cannot be located or is missing.
    """
    passage = record.text("context")
    answers = list[tuple[int, str]]()
    repairs = list[str]()
    for text, start in _answers(record):
        location = place_answer(passage, record.checked_text("an answer", text), _offset(record, start))
        if isinstance(location, str):
            raise record.broken(location, "an answer in its context, at its start")
        answers.append(location[:2])
        repairs.append(location[2])
    if not answers and NO_ANSWER in record.reading.skip and not record.is_unlabelled:
        return None
    if not answers and not record.is_unlabelled:
        raise record.broken(
            "a question without an answer",
            "one from the context, because the task finds one for every question (SQuAD 1.1)",
            'Remove it, or skip all such questions (skip = [""])',
        )
    return Question(
        id=record.id,
        passage=passage,
        question=record.text("question"),
        answers=tuple(answers),
        repaired=", ".join(repair for repair in repairs if repair),
    )


def _answers(record: CorpusRow) -> list[tuple[object, object]]:
    """Return text and start of each answer of a row, with None for a start that is not stated.

    The cell is a text, a list of texts, SQuAD's list of objects, or the object of two lists that the library
    datasets creates from it.
    """
    if record.is_unlabelled:
        return []
    answers = _as_list(record.part("answers"))
    if answers and all(isinstance(answer, Mapping) for answer in answers):
        texts = [text for answer in answers for text in _as_list(answer.get("text"))]
        starts = [start for answer in answers for start in _as_list(answer.get("answer_start"))]
    else:
        texts = [text for text in answers if text != NO_ANSWER]
        has_starts = texts and "start" in record.reading.table.columns
        starts = _as_list(record.part("start")) if has_starts else []
    if starts and len(starts) != len(texts):
        counts = f"{len(texts)} answers and {len(starts)} starts"
        raise record.broken(counts, "a start for each answer, or none")
    return list(zip(texts, starts or [None] * len(texts), strict=True))


def _as_list(cell: Any) -> list[Any]:
    if isinstance(cell, list | tuple):
        return list(cell)
    return [] if cell is None else [cell]


def _offset(record: CorpusRow, start: object) -> int | None:
    if start in (None, ""):
        return None
    if isinstance(start, bool) or not _OFFSET.fullmatch(str(start).strip()):
        raise record.broken(f"start is {str(start)[:60]!r}", "a number of characters, counted from 0")
    return int(str(start))


_OFFSET = re.compile(r"-?\d{1,18}")


def _list_parts(question: Question, _: Sequence[str]) -> dict[str, object]:
    starts, answers = zip(*question.answers, strict=True) if question.answers else ((), ())
    return {
        "context": question.passage,
        "question": question.question,
        "answers": {"text": answers, "answer_start": starts},
    }


def _read_squad(file: File, skip: Collection[str]) -> Iterator[Question]:
    return read_questions(file, answers="there" if NO_ANSWER in skip else "needed")


SPAN = CorpusKind(
    example=Question,
    make=question_of_row,
    columns=name_columns("context", "question", "answers"),
    tasks={"label": "qa"},
    more=("start",),
    suffixes={".json": "squad"},
    parts=_list_parts,
)

SQUAD = Format(columns={"span": {}}, read_examples=_read_squad)
