"""Inputs of question answering: questions about passages, in SQuAD's JSON or JSON lines."""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial

from isogloss.core.errors import DataError
from isogloss.data.examples import Example, Question
from isogloss.data.files import File
from isogloss.features.question_answering.squad import read_questions
from isogloss.tasks.task import Task
from isogloss.using.formats import (
    Answered,
    FileEntry,
    InputForm,
    InputFormat,
    Prediction,
    is_object,
    keys_missing,
)
from isogloss.using.kinds import read_objects, two_texts


def _question(value: object, name: str, language: str = "") -> Question:
    if isinstance(value, Question):
        return replace(value, answers=())
    question, passage = two_texts(value, "question, passage")
    return Question(id=name, passage=passage, question=question, answers=(), language=language)


def _read_squad(file: File, language: str) -> Iterator[FileEntry]:
    for example in read_questions(file, language=language, answers="ignored"):
        yield FileEntry(lines=(), example=example, body={"id": example.id})


def _write_squad(entries: Iterable[Answered]) -> Iterator[str]:
    """Yield one JSON object of ids and answers, as the official scripts read it."""
    comma = "{"
    for entry, prediction in entries:
        if entry.example is not None and prediction is not None:
            name, text = (
                json.dumps(value, ensure_ascii=False) for value in (entry.example.id, prediction.answer)
            )
            yield f"{comma}{name}: {text}"
            comma = ","
    yield "}" if comma == "," else "{}"


def _question_from_json(body: Mapping[str, object], name: str, language: str) -> Question:
    passage = body.get("context", body.get("passage"))
    if "question" not in body or passage is None:
        raise keys_missing(body, "question and context")
    return _question([body["question"], passage], name, language)


def _question_to_json(_: Example | None, prediction: Prediction | None) -> dict[str, object]:
    return {"answer": None if prediction is None else prediction.answer}


def _is_question(line: str) -> bool:
    return is_object(line) and '"data"' not in line


def _place_answers(gold: object, passage: str) -> tuple[tuple[int, str], ...]:
    """Return right answers with their places in the passage: one text, several, or SQuAD's mapping."""
    texts = gold.get("text") if isinstance(gold, Mapping) else gold
    answers = [texts] if isinstance(texts, str) else texts
    if not isinstance(answers, list | tuple) or not answers:
        raise DataError(f"found the answers {gold!r:.60}; expected a text or a list of texts.")
    for text in answers:
        if not isinstance(text, str) or text not in passage:
            raise DataError(f"the answer {text!r:.60} is not in the passage. Correct one of them.")
    return tuple((passage.index(text), text) for text in answers)


def _read_gold(question: Question, gold: object) -> Question:
    return replace(question, answers=_place_answers(gold, question.passage))


SQUAD = InputFormat(
    name="squad",
    matches=bool,
    read=_read_squad,
    write=_write_squad,
    has_ids=True,
    holds="questions",
    suffixes=(".json",),
)

_QUESTIONS = InputForm(
    formats=(
        InputFormat(
            name="jsonl",
            matches=_is_question,
            read=partial(read_objects, _question_from_json),
        ),
        SQUAD,
    ),
    sample=["a", "a"],
    example=_question,
    from_json=_question_from_json,
    to_json=_question_to_json,
    answered=None,
    auto_class="AutoModelForQuestionAnswering",
    hub_tag="question-answering",
    holds=("questions",),
    read_gold=_read_gold,
)


def find_form(_: Task) -> InputForm:
    """Return the form of questions about passages."""
    return _QUESTIONS
