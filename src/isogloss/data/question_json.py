"""Questions about passages in SQuAD's JSON, version 1.1: data → paragraphs → qas → answers.

Rajpurkar et al. (2016), "SQuAD: 100,000+ Questions for Machine Comprehension of Text". JSON is no format
of lines, so an error names its place as in ``data[0].paragraphs[2].qas[1]``; only what is no JSON has a line.
"""

import json
from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Any, TypeVar

from isogloss.core.errors import DataError
from isogloss.data.corpora import is_unicode, not_writable
from isogloss.data.examples import Question
from isogloss.data.files import File, members_once, short

Kind = TypeVar("Kind", str, int, list[Any], dict[str, Any])

_NAMES = {str: "text", int: "a whole number", list: "a list", dict: "an object"}


def read_questions(file: File, *, language: str = "", translated: bool = False) -> Iterator[Question]:
    """Read all questions; DataError unless every answer stands where its offset says.

    ``language`` is that of the passages where answers are compared by its own rules. In a translation,
    answers that do not stand anywhere got lost; a question that lost them all is left out.
    """
    for question in _questions(file, language, translated=translated):
        if question.answers:
            yield question


def count_lost(file: File) -> int:
    """Count the questions of a translation that lost all answers, and so are not read."""
    return sum(not question.answers for question in _questions(file, "", translated=True))


def _questions(file: File, language: str, *, translated: bool) -> Iterator[Question]:
    seen: set[str] = set()
    document = _is(file, _parsed(file), dict, "the file")
    for i, article in enumerate(_take(file, document, "data", list, "the file")):
        where = f"data[{i}]"
        paragraphs = _take(file, _is(file, article, dict, where), "paragraphs", list, where)
        for j, paragraph in enumerate(paragraphs):
            for question in _paragraph(file, paragraph, f"{where}.paragraphs[{j}]", language, translated):
                if question.id in seen:
                    raise _broken(
                        file, f"question {question.id}", "this id a second time", "an id of its own"
                    )
                seen.add(question.id)
                yield question


def write_questions(questions: Iterable[Question]) -> Iterator[str]:
    """Give the lines of a file: one article, a paragraph for each run of questions about one passage."""
    yield '{"version": "1.1", "data": [{"title": "", "paragraphs": ['
    comma = ""
    seen: set[str] = set()
    for passage, group in groupby(questions, key=lambda question: question.passage):
        qas = [_written(question, seen) for question in group]
        yield comma + json.dumps({"context": passage, "qas": qas}, ensure_ascii=False)
        comma = ","
    yield "]}]}"


def read_asked(file: File, language: str = "") -> Iterator[Question]:
    """Read all questions without their answers, whether there are any or not."""
    seen: set[str] = set()
    document = _is(file, _parsed(file), dict, "the file")
    for i, article in enumerate(_take(file, document, "data", list, "the file")):
        where = f"data[{i}]"
        paragraphs = _take(file, _is(file, article, dict, where), "paragraphs", list, where)
        for j, paragraph in enumerate(paragraphs):
            for question in _asked(file, paragraph, f"{where}.paragraphs[{j}]", language):
                if question.id in seen:
                    found = f"question {question.id}", "this id a second time"
                    raise _broken(file, *found, "an id of its own")
                seen.add(question.id)
                yield question


def _asked(file: File, paragraph: object, where: str, language: str) -> Iterator[Question]:
    paragraph = _is(file, paragraph, dict, where)
    passage = _take(file, paragraph, "context", str, where)
    for i, item in enumerate(_take(file, paragraph, "qas", list, where)):
        place = f"{where}.qas[{i}]"
        qa = _is(file, item, dict, place)
        name = _take(file, qa, "id", str, place)
        asked = _take(file, qa, "question", str, place)
        yield Question(id=name, passage=passage, question=asked, answers=(), language=language)


def _written(question: Question, seen: set[str]) -> dict[str, Any]:
    wrong = [text for start, text in question.answers if not _stands(text, start, question.passage)]
    if wrong or not question.answers:
        raise not_writable(
            "questions", question.id, f"answer {wrong[0]!r} not there" if wrong else "no answer"
        )
    if question.id in seen:
        raise not_writable("questions", question.id, "this id a second time; expected one of its own")
    if not all(map(is_unicode, (question.id, question.question, question.passage))):
        raise not_writable("questions", repr(question.id), "half a surrogate pair in it. Take it out")
    seen.add(question.id)
    return {
        "id": question.id,
        "question": question.question,
        "answers": [{"text": text, "answer_start": start} for start, text in question.answers],
    }


def _parsed(file: File) -> object:
    try:
        return json.loads("\n".join(line for _, line in file.lines()), object_pairs_hook=members_once)
    except json.JSONDecodeError as error:
        raise file.broken(
            error.lineno, f"no JSON ({error.msg})", "SQuAD's JSON", "Fetch the file again"
        ) from error
    except (ValueError, RecursionError) as error:
        raise file.broken(1, f"no JSON ({error})", "SQuAD's JSON", "Fetch the file again") from error


def _paragraph(
    file: File, paragraph: object, where: str, language: str, translated: bool
) -> Iterator[Question]:
    paragraph = _is(file, paragraph, dict, where)
    passage = _take(file, paragraph, "context", str, where)
    for i, item in enumerate(_take(file, paragraph, "qas", list, where)):
        place = f"{where}.qas[{i}]"
        qa = _is(file, item, dict, place)
        answers = _take(file, qa, "answers", list, place)
        if not answers and not translated:
            raise _broken(file, place, "a question without answers", "at least one, as in version 1.1")
        found = (_answer(file, answer, passage, place, lost=translated) for answer in answers)
        yield Question(
            id=_take(file, qa, "id", str, place),
            passage=passage,
            question=_take(file, qa, "question", str, place),
            answers=tuple(answer for answer in found if answer is not None),
            language=language,
        )


def _answer(file: File, answer: object, passage: str, where: str, *, lost: bool) -> tuple[int, str] | None:
    """Return an answer that stands where it says; else None where answers may be lost, or DataError."""
    answer = _is(file, answer, dict, where)
    text = _take(file, answer, "text", str, where)
    start = _take(file, answer, "answer_start", int, where)
    if not _stands(text, start, passage):
        if lost:
            return None
        there = passage[start : start + len(text)] if start >= 0 else ""
        raise _broken(
            file, where, f"answer {text!r} at {start}, where the passage has {there!r}", "the answer there"
        )
    return start, text


def _stands(text: str, start: int, passage: str) -> bool:
    return bool(text) and start >= 0 and passage.startswith(text, start)


def _take(file: File, thing: dict[str, Any], key: str, kind: type[Kind], where: str) -> Kind:
    if key not in thing:
        raise _broken(file, where, f"no {key!r} among {', '.join(map(repr, thing)) or 'nothing'}", f"{key!r}")
    return _is(file, thing[key], kind, f"{where}.{key}")


def _is(file: File, thing: object, kind: type[Kind], where: str) -> Kind:
    if not isinstance(thing, kind) or isinstance(thing, bool):
        raise _broken(file, where, _shown(thing), _NAMES[kind])
    if isinstance(thing, str) and not is_unicode(thing):
        raise _broken(file, where, f"{thing[:40]!r} with half a surrogate pair", "whole Unicode characters")
    return thing


def _shown(thing: object) -> str:
    """Show a value, but nothing that could be nested without end."""
    if isinstance(thing, list | dict) and thing:
        return "a list" if isinstance(thing, list) else "an object"
    return json.dumps(thing)[:40]


def _broken(file: File, where: str, found: str, expected: str) -> DataError:
    return DataError(
        f"{file.name}: {where}: {short(found)}; expected {expected}. Correct it or fetch the file again."
    )
