"""Questions about passages in SQuAD's JSON, version 1.1: data → paragraphs → qas → answers.

Rajpurkar et al. (2016), "SQuAD: 100,000+ Questions for Machine Comprehension of Text". A JSON file may have
everything on one line, so errors name a place such as ``data[0].paragraphs[2].qas[1]``. Only errors of JSON
syntax have a line.

Offsets are wrong if white space was changed after they were counted, or if they count bytes or UTF-16 units.
An answer that is not at its offset is relocated if only one place is possible, and reported.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from operator import attrgetter
from typing import Any, Literal, TypeVar

from isogloss.core.errors import DataError, add_location
from isogloss.data.corpus import cannot_write
from isogloss.data.examples import Question
from isogloss.data.files import File, is_unicode, short, unique_keys
from isogloss.features.question_answering.whole_words import WordPlace, find_words

NEAR = 3
"""Maximum distance, in characters, of an ambiguous answer's only close occurrence from its offset."""

Kind = TypeVar("Kind", str, int, list[object], dict[str, object])

Answers = Literal["needed", "there", "translated", "ignored"]
"""Handling of answers. needed: each question has one, and all must be located. there: questions without
answers are skipped, and all answers must be located. translated: answers that cannot be located are
dropped. ignored: none is read."""

_NAMES = {str: "text", int: "a whole number", list: "a list", dict: "an object"}


def read_questions(file: File, *, language: str = "", answers: Answers = "needed") -> Iterator[Question]:
    """Yield all questions, handling their answers as ``answers`` states.

    ``language`` is the language of the passages if answers are compared by its rules. Raises DataError for an
    answer that cannot be located in its passage, except in translations. Questions without any answer left
    are skipped, except when answers are ignored.
    """
    for question in all_questions(file, language=language, answers=answers):
        if question.answers or answers == "ignored":
            yield question


def all_questions(file: File, *, language: str = "", answers: Answers = "needed") -> Iterator[Question]:
    """Yield questions like ``read_questions``, including translated questions that lost their answers."""
    ids = set[str]()
    body = _parse_json(file)
    with add_location(file.name):
        with add_location("the file"):
            articles = _member(_check_type(body, dict), "data", list)
        for i, article in enumerate(articles):
            with add_location(f"data[{i}]"):
                title = _member({"title": "", **_check_type(article, dict)}, "title", str)
                for j, paragraph in enumerate(_member(article, "paragraphs", list)):
                    with add_location(f".paragraphs[{j}]"):
                        for question in _paragraph(paragraph, answers):
                            if question.id in ids:
                                with add_location(f"question {question.id}"):
                                    raise _broken_error("this id a second time", "a unique id")
                            ids.add(question.id)
                            yield replace(question, language=language, title=title, place=(i, j))


def write_questions(questions: Iterable[Question], *, version: str | float) -> Iterator[str]:
    """Yield the lines of a file with the original articles and a paragraph for each run of a passage."""
    yield (f'{{"version": {json.dumps(version)}, ' if version else "{") + '"data": ['
    comma = ""
    ids: set[str] = set()
    for (_, title), article in groupby(questions, key=lambda question: (question.place[0], question.title)):
        yield f'{comma}{{"title": {json.dumps(title, ensure_ascii=False)}, "paragraphs": ['
        yield from _paragraphs(article, ids)
        yield "]}"
        comma = ","
    yield "]}"


def _paragraphs(article: Iterable[Question], ids: set[str]) -> Iterator[str]:
    comma = ""
    for (_, passage), group in groupby(article, key=attrgetter("place", "passage")):
        qas = [_question_object(question, ids) for question in group]
        yield comma + json.dumps({"context": passage, "qas": qas}, ensure_ascii=False)
        comma = ","


def _question_object(question: Question, ids: set[str]) -> dict[str, object]:
    wrong = [text for start, text in question.answers if not _is_at(text, start, question.passage)]
    if wrong or not question.answers:
        raise cannot_write(
            "questions", question.id, f"answer {wrong[0]!r} is not at its offset" if wrong else "no answer"
        )
    if question.id in ids:
        raise cannot_write("questions", question.id, "this id a second time; expected a unique one")
    texts = (question.id, question.question, question.passage, question.title)
    if not all(is_unicode(text) for text in texts):
        raise cannot_write("questions", repr(question.id), "half a surrogate pair in it. Remove it")
    ids.add(question.id)
    return {
        "id": question.id,
        "question": question.question,
        "answers": [{"text": text, "answer_start": start} for start, text in question.answers],
    }


def _parse_json(file: File) -> object:
    try:
        return json.loads("\n".join(line for _, line in file.lines()), object_pairs_hook=unique_keys)
    except json.JSONDecodeError as error:
        raise file.broken(
            error.lineno, f"invalid JSON ({error.msg})", "SQuAD's JSON", "Fetch the file again"
        ) from error
    except (ValueError, RecursionError) as error:
        raise file.broken(1, f"invalid JSON ({error})", "SQuAD's JSON", "Fetch the file again") from error


def _paragraph(paragraph: object, answers: Answers) -> Iterator[Question]:
    passage = _member(_check_type(paragraph, dict), "context", str)
    for i, item in enumerate(_member(paragraph, "qas", list)):
        with add_location(f".qas[{i}]"):
            qa = _check_type(item, dict)
            name = _member(qa, "id", str)
            question = _member(qa, "question", str)
        with add_location(f".qas[{i}] (question {name})"):
            places = [] if answers == "ignored" else list(_place_answers(qa, passage, answers))
        yield Question(
            id=name,
            passage=passage,
            question=question,
            answers=tuple((start, text) for start, text, _ in places),
            repaired=", ".join(repair for *_, repair in places if repair),
        )


def _place_answers(qa: dict[str, object], passage: str, answers: Answers) -> Iterator[tuple[int, str, str]]:
    """Yield offset, text and repair of each answer, dropping answers lost in translation."""
    items = _member(qa, "answers", list)
    if not items and answers == "needed":
        impossible = "an impossible question (SQuAD 2.0)"
        problem = impossible if qa.get("is_impossible") else "a question without answers"
        raise _broken_error(problem, "at least one answer, as in version 1.1", "Remove such questions")
    for item in items:
        answer = _check_type(item, dict)
        text = _member(answer, "text", str)
        location = place_answer(passage, text, _member(answer, "answer_start", int))
        if not isinstance(location, str):
            yield location
        elif answers != "translated":
            raise _broken_error(location, "the answer at its offset")


def place_answer(passage: str, text: str, start: int | None) -> tuple[int, str, str] | str:
    """Return offset, text and repair of an answer, or the problem if it cannot be located.

    An answer without an offset is at the first place with its text.
    """
    if start is not None and _is_at(text, start, passage):
        return start, text, ""
    if start is not None and start < 0:  # Corpora write it for answers outside of the passage.
        return f"answer {text[:60]!r} at {start}, which is not in the passage"
    word_places = find_words(passage, text)
    if start is None:
        return _find_first_place(passage, text, word_places)
    places = [(location.start, location.text) for location in word_places]
    likely_place = _surely_meant(passage, start, places)
    if likely_place is not None:
        return *likely_place, f"answer {likely_place[1][:60]!r} from {start} to {likely_place[0]}"
    passage_text = passage[start : start + len(text)]
    return (
        f"answer {text[:60]!r} at {start}, where the passage has {passage_text[:60]!r}; it has that text "
        f"{f'{len(places)} times, none of them surely meant' if places else 'nowhere'}"
    )


def _find_first_place(
    passage: str, text: str, word_places: Sequence[WordPlace]
) -> tuple[int, str, str] | str:
    """Return offset, text and repair of an answer without an offset."""
    if not word_places:
        inside = " as whole words" if text.strip() and text.strip() in passage else ""
        return f"answer {text[:60]!r}, nowhere{inside}"
    answer = f"answer {text[:60]!r} without an offset"
    repair = f"{answer}, the first of {len(word_places)} places" if len(word_places) > 1 else ""
    if word_places[0].word:
        repair = f"{answer}, inside the word {word_places[0].word[:60]!r}"
    return word_places[0].start, word_places[0].text, repair


def _is_at(text: str, start: int, passage: str) -> bool:
    return bool(text) and start >= 0 and passage.startswith(text, start)


def _member(thing: Any, key: str, kind: type[Kind]) -> Kind:
    if key not in thing:
        raise _broken_error(
            f"no {key!r} among {', '.join(repr(name) for name in thing) or 'nothing'}", f"{key!r}"
        )
    if type(thing[key]) is kind and kind is not str:
        return thing[key]  # type: ignore[no-any-return]
    with add_location(f".{key}"):
        return _check_type(thing[key], kind)


def _check_type(thing: object, kind: type[Kind]) -> Kind:
    if not isinstance(thing, kind) or isinstance(thing, bool):
        raise _broken_error(_show_value(thing), _NAMES[kind])
    if isinstance(thing, str) and not is_unicode(thing):
        raise _broken_error(f"{thing[:40]!r} with half a surrogate pair", "whole Unicode characters")
    return thing


def _show_value(thing: object) -> str:
    """Return a value as JSON, or only the kind of a list or an object."""
    if isinstance(thing, list | dict) and thing:
        return "a list" if isinstance(thing, list) else "an object"
    return json.dumps(thing)[:40]


def _broken_error(
    problem: str, expectation: str, advice: str = "Correct it or fetch the file again"
) -> DataError:
    return DataError(f"{short(problem)}; expected {expectation}. {advice}.")


def _surely_meant(passage: str, start: int, spans: list[tuple[int, str]]) -> tuple[int, str] | None:
    """Return the only occurrence that fits an offset, or None if it is ambiguous."""
    for likely in (
        spans,
        [span for span in spans if start in _other_counts(passage[: span[0]])],
        [span for span in spans if abs(span[0] - start) <= NEAR],
    ):
        if len(likely) == 1:
            return likely[0]
    return None


def _other_counts(text: str) -> tuple[int, int]:
    """Return the length of a text in bytes of UTF-8 and in units of UTF-16."""
    return len(text.encode()), len(text.encode("utf-16-le")) // 2
