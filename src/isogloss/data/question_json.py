"""Questions about passages in SQuAD's JSON, version 1.1: data → paragraphs → qas → answers.

Rajpurkar et al. (2016), "SQuAD: 100,000+ Questions for Machine Comprehension of Text". JSON is no format
of lines, so an error names its place as in ``data[0].paragraphs[2].qas[1]``; only what is no JSON has a line.
"""

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import groupby
from typing import Any, TypeVar

from isogloss.core.errors import DataError
from isogloss.data.answer_offsets import places, surely_meant
from isogloss.data.examples import Question
from isogloss.data.files import File

Kind = TypeVar("Kind", str, int, list[Any], dict[str, Any])

_SURROGATE = re.compile("[\ud800-\udfff]")
"""JSON can escape half of a UTF-16 pair, which is no character and cannot be encoded."""

_NAMES = {str: "text", int: "a whole number", list: "a list", dict: "an object"}


def read_questions(file: File, *, language: str = "", answered: bool = True) -> Iterator[Question]:
    """Read all questions; DataError unless every answer stands in its passage, beyond doubt.

    ``language`` is that of the passages where answers are compared by its own rules. Questions need no
    answers when ``answered`` is False.
    """
    seen: set[str] = set()
    document = _is(file, _parsed(file), dict, "the file")
    for i, item in enumerate(_take(file, document, "data", list, "the file")):
        where = f"data[{i}]"
        article = _is(file, item, dict, where)
        title = _is(file, article.get("title", ""), str, f"{where}.title")
        for j, paragraph in enumerate(_take(file, article, "paragraphs", list, where)):
            for question in _paragraph(file, paragraph, f"{where}.paragraphs[{j}]", answered):
                if question.id in seen:
                    raise _broken(
                        file, f"question {question.id}", "this id a second time", "an id of its own"
                    )
                seen.add(question.id)
                yield replace(question, language=language, title=title, place=(i, j))


def write_questions(questions: Iterable[Question], *, version: str | float = "1.1") -> Iterator[str]:
    """Give the lines of a file: articles as they stood, a paragraph for each run of one passage."""
    yield (f'{{"version": {json.dumps(version)}, ' if version else "{") + '"data": ['
    comma = ""
    for (_, title), article in groupby(questions, key=lambda question: (question.place[0], question.title)):
        yield f'{comma}{{"title": {json.dumps(title, ensure_ascii=False)}, "paragraphs": ['
        yield from _paragraphs(article)
        yield "]}"
        comma = ","
    yield "]}"


def _paragraphs(article: Iterable[Question]) -> Iterator[str]:
    comma = ""
    for (_, passage), group in groupby(article, key=lambda question: (question.place, question.passage)):
        qas = [
            {
                "id": question.id,
                "question": question.question,
                "answers": [{"text": text, "answer_start": start} for start, text in question.answers],
            }
            for question in group
        ]
        yield comma + json.dumps({"context": passage, "qas": qas}, ensure_ascii=False)
        comma = ","


def _parsed(file: File) -> object:
    try:
        return json.loads("\n".join(line for _, line in file.lines()))
    except json.JSONDecodeError as error:
        raise file.broken(
            error.lineno, f"no JSON ({error.msg})", "SQuAD's JSON", "Fetch the file again"
        ) from error
    except (ValueError, RecursionError) as error:
        raise file.broken(1, f"no JSON ({error})", "SQuAD's JSON", "Fetch the file again") from error


def _paragraph(file: File, paragraph: object, where: str, answered: bool) -> Iterator[Question]:
    paragraph = _is(file, paragraph, dict, where)
    passage = _take(file, paragraph, "context", str, where)
    for i, item in enumerate(_take(file, paragraph, "qas", list, where)):
        place = f"{where}.qas[{i}]"
        qa = _is(file, item, dict, place)
        key = _take(file, qa, "id", str, place)
        answers = _answers(file, qa, f"{place} (question {key})", answered)
        settled = [_settled(file, answer, passage, f"{place} (question {key})") for answer in answers]
        yield Question(
            id=key,
            passage=passage,
            question=_take(file, qa, "question", str, place),
            answers=tuple((start, text) for start, text, _ in settled),
            repaired=", ".join(remark for *_, remark in settled if remark),
        )


def _answers(file: File, qa: dict[str, Any], where: str, answered: bool) -> list[Any]:
    """Return a question's answers; a question that has none is refused where all need one."""
    if not answered and "answers" not in qa:
        return []
    answers = _take(file, qa, "answers", list, where)
    if answered and not answers:
        kind = (
            "an impossible question (SQuAD 2.0)" if qa.get("is_impossible") else "a question without answers"
        )
        raise _broken(file, where, kind, "at least one answer, as in version 1.1", "Leave such questions out")
    return answers


def _settled(file: File, answer: object, passage: str, where: str) -> tuple[int, str, str]:
    """Return offset and text of an answer, and what was put right."""
    answer = _is(file, answer, dict, where)
    text = _take(file, answer, "text", str, where)
    start = _take(file, answer, "answer_start", int, where)
    if text and start >= 0 and passage[start : start + len(text)] == text:
        return start, text, ""
    found = places(passage, text)
    meant = surely_meant(passage, start, found)
    if meant is None:
        there = passage[start : start + len(text)] if start >= 0 else ""
        raise _broken(
            file,
            where,
            f"answer {text[:60]!r} at {start}, where the passage has {there[:60]!r}; it has that text "
            f"{f'{len(found)} times, none of them surely meant' if found else 'nowhere'}",
            "the answer at its offset",
        )
    return *meant, f"answer {meant[1][:60]!r} from {start} to {meant[0]}"


def _take(file: File, thing: dict[str, Any], key: str, kind: type[Kind], where: str) -> Kind:
    if key not in thing:
        raise _broken(file, where, f"no {key!r} among {', '.join(map(repr, thing)) or 'nothing'}", f"{key!r}")
    return _is(file, thing[key], kind, f"{where}.{key}")


def _is(file: File, thing: object, kind: type[Kind], where: str) -> Kind:
    if not isinstance(thing, kind) or isinstance(thing, bool):
        raise _broken(file, where, f"{json.dumps(thing)[:40]}", _NAMES[kind])
    if isinstance(thing, str) and _SURROGATE.search(thing):
        raise _broken(file, where, f"half a character in {json.dumps(thing)[:60]}", "text in Unicode")
    return thing


def _broken(
    file: File, where: str, found: str, expected: str, advice: str = "Correct it or fetch the file again"
) -> DataError:
    return DataError(f"{file.name}: {where}: {found}; expected {expected}. {advice}.")
