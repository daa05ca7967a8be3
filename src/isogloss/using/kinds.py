"""The form of each task's inputs and answers.

Words are in a separate file; here are texts and pairs of them with a label each (rows of tab-separated
columns, JSON lines), contexts with options (JSON lines), and questions about passages with an answer each
(SQuAD's JSON, JSON lines).
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from isogloss.core.arguments import always, never
from isogloss.core.errors import ConfigError, DataError, add_location, one_line
from isogloss.core.plug_ins import package_of
from isogloss.data.examples import Choice, Example, LabelledText, Question, SentencePair
from isogloss.data.files import File, numbered_objects
from isogloss.tasks import ALL_TASKS
from isogloss.tasks.batch import EncodedRow, Scores, to_array
from isogloss.tasks.classification import TEXT, TextClassification
from isogloss.tasks.task import LABELS, Task
from isogloss.using.formats import (
    Answered,
    FileEntry,
    Format,
    InputForm,
    Prediction,
    Probabilities,
    answer_cells,
    is_object,
    keys_missing,
    read_table,
    sigmoid,
    softmax,
    write_table,
)
from isogloss.using.words import words

if TYPE_CHECKING:
    from isogloss.encoders.family import Tokenizer

TEXTS = (("text", "text_pair"), ("first", "second"))
"""Keys of the texts in an object, besides "texts" for a list of both."""


SAMPLES: Mapping[str, object] = {
    **{unit: ["a"] for unit in ("word", "tree")},
    **{unit: ["a", "a"] for unit in ("example", "span")},
    "option": {"context": "a", "options": ["a", "a"]},
}
"""The smallest input, by the unit that is labelled."""


def check_takes_inputs(task: Task, tokenizer: "Tokenizer") -> None:
    """Raise ConfigError for a task of a plug-in that does not take the examples of its kind.

    Files and texts become such examples; which class of examples a task takes is known by trying one.
    """
    if not package_of(type(task).encode.__module__):
        return
    sample = "a" if kind_of(task) is _TEXTS_ALONE else SAMPLES[task.labels_are]
    example = kind_of(task).example(sample, "sample", "")
    try:
        task.encode([example], tokenizer)
    except Exception as error:  # Whatever the code of others raises.
        raise ConfigError(
            f"task {task.name}: its inputs would be {type(example).__name__}, as those of all tasks with "
            f'labels_are = "{task.labels_are}", and it does not take them ({one_line(error)}). Score it on '
            "its corpus, which makes examples of its own (isogloss evaluate), or let its encode take these."
        ) from error


def probabilities_of(task: Task) -> Probabilities:
    """Return the function that computes a task's probabilities.

    Raises ConfigError for a task without probabilities.
    """
    probabilities = kind_of(task).probabilities
    if probabilities is None:
        having = sorted(name for name, task_ in ALL_TASKS.items() if kind_of(task_).probabilities)
        raise ConfigError(
            f"--scores: task {task.name} has no probability for each answer; these have: "
            f"{', '.join(having)}. Remove --scores."
        )
    return probabilities


def _pair(value: object, name: str, language: str = "") -> SentencePair:  # noqa: ARG001
    if isinstance(value, SentencePair):
        return replace(value, label="")
    first_text, second_text = _two_texts(value, "first, second")
    return SentencePair(id=name, first=first_text, second=second_text, label="")


def _question(value: object, name: str, language: str = "") -> Question:
    if isinstance(value, Question):
        return replace(value, answers=())
    question, passage = _two_texts(value, "question, passage")
    return Question(id=name, passage=passage, question=question, answers=(), language=language)


def _two_texts(value: object, names: str) -> tuple[str, str]:
    texts = value if isinstance(value, list | tuple) else ()
    if len(texts) != 2 or not all(isinstance(text, str) for text in texts):
        raise DataError(f"expected two texts ({names}), found {str(value)[:60]!r}.")
    first_text, second_text = texts
    return first_text, second_text


def _read_objects(
    from_json: Callable[[Mapping[str, object], str, str], Example], file: File, language: str
) -> Iterator[FileEntry]:
    for line_number, line, body in numbered_objects(file):
        with add_location(name := f"{file.name}:{line_number}"):
            example = from_json(body, name, language)
        yield FileEntry(lines=(line,), example=example, body=body, original=body)


def _pair_to_json(example: Example | None, prediction: Prediction | None) -> dict[str, object]:
    texts = [example.first, example.second] if isinstance(example, SentencePair) else []
    return {"texts": texts, **_label_to_json(prediction)}


def _label_to_json(prediction: Prediction | None) -> dict[str, object]:
    if prediction is None:
        return {"label": None}
    if prediction.scores is None:
        return {"label": prediction.answer}
    scores = {label: round(score, 6) for label, score in prediction.scores.items()}
    return {"label": prediction.answer, "scores": scores}


def _pair_from_json(body: Mapping[str, object], name: str, language: str) -> SentencePair:
    keys = next((keys for keys in TEXTS if set(keys) <= body.keys()), None)
    value = body.get("texts") if keys is None else [body[key] for key in keys]
    if value is None:
        raise keys_missing(body, "text and text_pair, or texts")
    return _pair(value, name, language)


def _pair_probabilities(
    task: Task,
    _: Sequence[Example],
    rows: Sequence[EncodedRow],
    scores: Sequence[Scores],
    answers: Sequence[str],
) -> list[Mapping[str, float]]:
    """Return the probability of each label, in the order of the inventory."""
    label_probabilities: list[Mapping[str, float]] = [{} for _ in answers]
    compute = sigmoid if task.one_answer is LABELS else softmax
    for row, raw in zip(rows, scores, strict=True):
        probabilities = compute(to_array(raw).ravel()).tolist()
        label_probabilities[row.example] = dict(zip(task.labels, probabilities, strict=True))
    return label_probabilities


def _tables(*, pairs: bool) -> tuple[Format, ...]:
    """Return the formats of tables. For pairs, TSV is the default format."""
    tsv, csv = (partial(read_table, pairs=pairs, has_quotes=has_quotes) for has_quotes in (False, True))
    return (
        Format(name="csv", matches=never, read=csv, write=write_table, option="text"),
        Format(name="tsv", matches=always if pairs else never, read=tsv, write=write_table, option="text"),
    )


def _add_label(example: Any, answer: object) -> Any:
    return replace(example, label=answer)


_PAIRS = InputForm(
    formats=(
        Format(name="jsonl", matches=is_object, read=partial(_read_objects, _pair_from_json)),
        *_tables(pairs=True),
    ),
    example=_pair,
    from_json=_pair_from_json,
    to_json=_pair_to_json,
    answered=_add_label,
    auto_class="AutoModelForSequenceClassification",
    hub_tag="text-classification",
    pipeline="text-classification",
    probabilities=_pair_probabilities,
)


def _text(value: object, name: str, language: str = "") -> LabelledText:  # noqa: ARG001
    if isinstance(value, LabelledText):
        return replace(value, label="")
    if not isinstance(value, str):
        raise DataError(f"expected a text, found {str(value)[:60]!r}.")
    return LabelledText(id=name, text=value, label="")


def _text_from_json(body: Mapping[str, object], name: str, language: str) -> LabelledText:
    if "text" not in body:
        raise keys_missing(body, "text")
    return _text(body["text"], name, language)


def _text_to_json(example: Example | None, prediction: Prediction | None) -> dict[str, object]:
    text = example.text if isinstance(example, LabelledText) else ""
    return {"text": text, **_label_to_json(prediction)}


def _read_lines(file: File, _: str) -> Iterator[FileEntry]:
    for line_number, line in file.lines():
        example = LabelledText(id=str(line_number), text=line, label="") if line.strip() else None
        yield FileEntry(lines=(line,), example=example, body={"line": line_number})


def _write_lines(entries: Iterable[Answered]) -> Iterator[str]:
    for entry, prediction in entries:
        yield "\t".join([*entry.lines, *answer_cells(prediction)])


_TEXTS_ALONE = replace(
    _PAIRS,
    formats=(
        Format(name="jsonl", matches=is_object, read=partial(_read_objects, _text_from_json)),
        *_tables(pairs=False),
        Format(name="lines", matches=bool, read=_read_lines, write=_write_lines),
    ),
    example=_text,
    from_json=_text_from_json,
    to_json=_text_to_json,
)


def _choice(value: object, name: str, language: str = "") -> Choice:
    if isinstance(value, Choice):
        return replace(value, label=None)
    if not isinstance(value, Mapping):
        raise DataError(
            f"expected a mapping with context and options, also question or prompt; found "
            f"{str(value)[:60]!r}."
        )
    return _choice_from_json(value, name, language)


def _choice_from_json(body: Mapping[str, object], name: str, language: str) -> Choice:  # noqa: ARG001
    if not {"context", "options"} <= body.keys():
        raise keys_missing(body, "context and options")
    values = body["options"]
    options = tuple(values) if isinstance(values, list | tuple) else ()
    context, question, prompt = (body.get(key, "") for key in ("context", "question", "prompt"))
    if len(options) < 2 or not all(isinstance(text, str) for text in (context, question, prompt, *options)):
        raise DataError(f"expected texts, two or more of them as options; found {str(body)[:120]}.")
    return Choice(
        id=name,
        context=str(context),
        question=str(question),
        prompt=str(prompt),
        options=options,
        label=None,
    )


def _choice_to_json(example: Example | None, prediction: Prediction | None) -> dict[str, object]:
    body: dict[str, object] = {"context": "", "options": []}
    if isinstance(example, Choice):
        texts = {"question": example.question, "prompt": example.prompt}
        body = {"context": example.context, "options": list(example.options)}
        body |= {name: text for name, text in texts.items() if text}
    return body | _label_to_json(prediction)


def _choice_probabilities(
    _task: Task,
    _examples: Sequence[Example],
    rows: Sequence[EncodedRow],
    scores: Sequence[Scores],
    answers: Sequence[int],
) -> list[Mapping[str, float]]:
    """Return the probability of each option, by its index."""
    probabilities_of: list[Mapping[str, float]] = [{} for _ in answers]
    for row, raw in zip(rows, scores, strict=True):
        probabilities = softmax(to_array(raw).ravel())[: len(row.options)].tolist()
        probabilities_of[row.example] = {
            str(index): probability for index, probability in enumerate(probabilities)
        }
    return probabilities_of


_CHOICES = InputForm(
    formats=(Format(name="jsonl", matches=bool, read=partial(_read_objects, _choice_from_json)),),
    example=_choice,
    from_json=_choice_from_json,
    to_json=_choice_to_json,
    answered=_add_label,
    auto_class="AutoModelForSequenceClassification",
    hub_tag="multiple-choice",
    probabilities=_choice_probabilities,
)


def _read_squad(file: File, language: str) -> Iterator[FileEntry]:
    from isogloss.data.formats.questions import read_questions

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


_QUESTIONS = InputForm(
    formats=(
        Format(
            name="jsonl",
            matches=_is_question,
            read=partial(_read_objects, _question_from_json),
        ),
        Format(name="squad", matches=bool, read=_read_squad, write=_write_squad, has_ids=True),
    ),
    example=_question,
    from_json=_question_from_json,
    to_json=_question_to_json,
    answered=None,
    auto_class="AutoModelForQuestionAnswering",
    hub_tag="question-answering",
)


def kind_of(task: Task) -> InputForm:
    """Return the form of a task's inputs and answers."""
    if isinstance(task, TextClassification):
        kind = _TEXTS_ALONE if task.texts == TEXT else _PAIRS
        return kind if task.one_answer.probabilities else replace(kind, probabilities=None)
    if task.labels_are == "option":
        return _CHOICES
    if task.labels_are in ("word", "tree"):
        return words(task)
    return _PAIRS if task.labels_are == "example" else _QUESTIONS
