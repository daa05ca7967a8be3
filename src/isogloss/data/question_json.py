"""Questions about passages in SQuAD's JSON, version 1.1: data → paragraphs → qas → answers.

Rajpurkar et al. (2016), "SQuAD: 100,000+ Questions for Machine Comprehension of Text". JSON is no format
of lines, so an error names its place as in ``data[0].paragraphs[2].qas[1]``; only what is no JSON has a line.
"""

import json
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import groupby
from typing import Any, Literal, TypeVar

from isogloss.core.errors import DataError
from isogloss.data.answer_offsets import places, surely_meant
from isogloss.data.corpora import is_unicode, not_writable
from isogloss.data.examples import Question
from isogloss.data.files import File, members_once, short

Kind = TypeVar("Kind", str, int, list[Any], dict[str, Any])

Answers = Literal["needed", "translated", "ignored"]
"""What is asked of a file's answers: each stands in its passage; those that got lost in translation are left
out; nobody looks at them."""

_NAMES = {str: "text", int: "a whole number", list: "a list", dict: "an object"}


def read_questions(file: File, *, language: str = "", answers: Answers = "needed") -> Iterator[Question]:
    """Read all questions; DataError unless every answer stands in its passage, beyond doubt.

    ``language`` is that of the passages where answers are compared by its own rules. In a translation,
    answers that stand nowhere got lost; a question that lost them all is left out.
    """
    for question in _questions(file, language, answers):
        if question.answers or answers == "ignored":
            yield question


def count_lost(file: File) -> int:
    """Count the questions of a translation that lost all answers, and so are not read."""
    return sum(not question.answers for question in _questions(file, "", "translated"))


def _questions(file: File, language: str, answers: Answers) -> Iterator[Question]:
    seen: set[str] = set()
    document = _is(file, _parsed(file), dict, "the file")
    for i, item in enumerate(_take(file, document, "data", list, "the file")):
        where = f"data[{i}]"
        article = _is(file, item, dict, where)
        title = _is(file, article.get("title", ""), str, f"{where}.title")
        for j, paragraph in enumerate(_take(file, article, "paragraphs", list, where)):
            for question in _paragraph(file, paragraph, f"{where}.paragraphs[{j}]", answers):
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
    seen: set[str] = set()
    for (_, title), article in groupby(questions, key=lambda question: (question.place[0], question.title)):
        yield f'{comma}{{"title": {json.dumps(title, ensure_ascii=False)}, "paragraphs": ['
        yield from _paragraphs(article, seen)
        yield "]}"
        comma = ","
    yield "]}"


def _paragraphs(article: Iterable[Question], seen: set[str]) -> Iterator[str]:
    comma = ""
    for (_, passage), group in groupby(article, key=lambda question: (question.place, question.passage)):
        qas = [_written(question, seen) for question in group]
        yield comma + json.dumps({"context": passage, "qas": qas}, ensure_ascii=False)
        comma = ","


def _written(question: Question, seen: set[str]) -> dict[str, Any]:
    wrong = [text for start, text in question.answers if not _stands(text, start, question.passage)]
    if wrong or not question.answers:
        raise not_writable(
            "questions", question.id, f"answer {wrong[0]!r} not there" if wrong else "no answer"
        )
    if question.id in seen:
        raise not_writable("questions", question.id, "this id a second time; expected one of its own")
    if not all(map(is_unicode, (question.id, question.question, question.passage, question.title))):
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


def _paragraph(file: File, paragraph: object, where: str, answers: Answers) -> Iterator[Question]:
    paragraph = _is(file, paragraph, dict, where)
    passage = _take(file, paragraph, "context", str, where)
    for i, item in enumerate(_take(file, paragraph, "qas", list, where)):
        place = f"{where}.qas[{i}]"
        qa = _is(file, item, dict, place)
        name = _take(file, qa, "id", str, place)
        named = f"{place} (question {name})"
        given = [] if answers == "ignored" else _answers(file, qa, named, answers)
        settled = [_settled(file, answer, passage, named) for answer in given]
        if answers == "needed" and (wrong := [one for one in settled if isinstance(one, DataError)]):
            raise wrong[0]
        found = [one for one in settled if not isinstance(one, DataError)]
        yield Question(
            id=name,
            passage=passage,
            question=_take(file, qa, "question", str, place),
            answers=tuple((start, text) for start, text, _ in found),
            repaired=", ".join(remark for *_, remark in found if remark),
        )


def _answers(file: File, qa: dict[str, Any], where: str, answers: Answers) -> list[Any]:
    """Return a question's answers; a question that has none is refused where all need one."""
    given = _take(file, qa, "answers", list, where)
    if not given and answers == "needed":
        kind = (
            "an impossible question (SQuAD 2.0)" if qa.get("is_impossible") else "a question without answers"
        )
        raise _broken(file, where, kind, "at least one answer, as in version 1.1", "Leave such questions out")
    return given


def _settled(file: File, answer: object, passage: str, where: str) -> tuple[int, str, str] | DataError:
    """Return offset and text of an answer, and what was put right; what is wrong where that cannot be."""
    answer = _is(file, answer, dict, where)
    text = _take(file, answer, "text", str, where)
    start = _take(file, answer, "answer_start", int, where)
    if _stands(text, start, passage):
        return start, text, ""
    found = places(passage, text)
    meant = surely_meant(passage, start, found)
    if meant is not None:
        return *meant, f"answer {meant[1][:60]!r} from {start} to {meant[0]}"
    there = passage[start : start + len(text)] if start >= 0 else ""
    return _broken(
        file,
        where,
        f"answer {text[:60]!r} at {start}, where the passage has {there[:60]!r}; it has that text "
        f"{f'{len(found)} times, none of them surely meant' if found else 'nowhere'}",
        "the answer at its offset",
    )


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


def _broken(
    file: File, where: str, found: str, expected: str, advice: str = "Correct it or fetch the file again"
) -> DataError:
    return DataError(f"{file.name}: {where}: {short(found)}; expected {expected}. {advice}.")
