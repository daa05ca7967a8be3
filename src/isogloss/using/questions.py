"""Questions about passages and the answer to each: SQuAD's JSON, JSON lines."""

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from isogloss.core.errors import DataError
from isogloss.data.examples import Example, Question
from isogloss.data.files import File
from isogloss.data.questions import read_questions
from isogloss.using.formats import (
    Answered,
    Entry,
    Format,
    Kind,
    Prediction,
    is_object,
    keys_missing,
    numbered_objects,
)


def questions() -> Kind:
    """Make the kind of tasks that answer questions with a piece of a passage."""
    return Kind(
        formats=(
            Format(name="jsonl", looks_so=_is_asked, read=_read_objects),
            Format(name="squad", looks_so=bool, read=_read_squad, write=write_answers, has_ids=True),
        ),
        example=question,
        of_object=_of_object,
        told=_told,
        answered=None,
        auto_class="AutoModelForQuestionAnswering",
    )


def question(value: Any, where: str, language: str = "") -> Question:
    """Make a question of two texts: the question and the passage that answers it."""
    two = isinstance(value, list | tuple) and len(value) == 2
    if not two or not all(isinstance(text, str) for text in value):
        raise DataError(f"{where}: expected two texts (question, passage), found {str(value)[:60]!r}.")
    asked, passage = value
    return Question(id=where, passage=passage, question=asked, answers=(), language=language)


def write_answers(entries: Iterable[Answered]) -> Iterator[str]:
    """Give one JSON object of ids and answers, as the official scripts read it."""
    comma = "{"
    for entry, prediction in entries:
        if entry.example is not None and prediction is not None:
            name, text = (
                json.dumps(one, ensure_ascii=False) for one in (entry.example.id, prediction.answer)
            )
            yield f"{comma}{name}: {text}"
            comma = ","
    yield "}" if comma == "," else "{}"


def _told(_: Example | None, prediction: Prediction | None) -> dict[str, Any]:
    return {"answer": None if prediction is None else prediction.answer}


def _read_squad(file: File, language: str) -> Iterator[Entry]:
    for example in read_questions(file, language=language, answers="ignored"):
        yield Entry(lines=(), example=example, about={"id": example.id})


def _is_asked(line: str) -> bool:
    return is_object(line) and '"data"' not in line


def _read_objects(file: File, language: str) -> Iterator[Entry]:
    for number, line, body in numbered_objects(file):
        example = _of_object(body, f"{file.name}:{number}", language)
        yield Entry(lines=(line,), example=example, about=body)


def _of_object(body: Mapping[str, Any], where: str, language: str) -> Question:
    passage = body.get("context", body.get("passage"))
    if "question" not in body or passage is None:
        raise keys_missing(body, where, "question and context")
    return question([body["question"], passage], where, language)
