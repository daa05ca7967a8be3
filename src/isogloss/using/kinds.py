"""The form of each task's inputs and answers.

Words are in a separate module. Here are texts and pairs of them with a label each: rows of tab-separated
columns, JSON lines. Features add the forms of other tasks.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from isogloss.core.arguments import always, never
from isogloss.core.errors import ConfigError, DataError, add_location, missing_feature, one_line
from isogloss.core.plug_ins import package_of
from isogloss.core.registry import Registry
from isogloss.data.examples import Example, LabelledText, SentencePair
from isogloss.data.files import File, numbered_objects
from isogloss.tasks import ALL_TASKS
from isogloss.tasks.batch import EncodedRow, Scores, to_array
from isogloss.tasks.classification import TEXT, TextClassification
from isogloss.tasks.task import LABELS, Task
from isogloss.using.formats import (
    Answered,
    FileEntry,
    InputForm,
    InputFormat,
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

if TYPE_CHECKING:
    from isogloss.encoders.family import Tokenizer

TEXTS = (("text", "text_pair"), ("first", "second"))
"""Keys of the texts in an object, besides "texts" for a list of both."""


def check_takes_inputs(task: Task, tokenizer: "Tokenizer") -> None:
    """Raise ConfigError for a task of a plug-in that does not take the examples of its kind.

    Files and texts become such examples; which class of examples a task takes is known by trying one.
    """
    if not package_of(type(task).encode.__module__):
        return
    form = kind_of(task)
    example = form.example(form.sample, "sample", "")
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
    first_text, second_text = two_texts(value, "first, second")
    return SentencePair(id=name, first=first_text, second=second_text, label="")


def two_texts(value: object, names: str) -> tuple[str, str]:
    """Return two texts of a list. Raises DataError, with ``names`` of the texts, for anything else."""
    texts = value if isinstance(value, list | tuple) else ()
    if len(texts) != 2 or not all(isinstance(text, str) for text in texts):
        raise DataError(f"expected two texts ({names}), found {str(value)[:60]!r}.")
    first_text, second_text = texts
    return first_text, second_text


def read_objects(
    from_json: Callable[[Mapping[str, object], str, str], Example], file: File, language: str
) -> Iterator[FileEntry]:
    """Read an example from each JSON object of a file."""
    for line_number, line, body in numbered_objects(file):
        with add_location(name := f"{file.name}:{line_number}"):
            example = from_json(body, name, language)
        yield FileEntry(lines=(line,), example=example, body=body, original=body)


def _pair_to_json(example: Example | None, prediction: Prediction | None) -> dict[str, object]:
    texts = [example.first, example.second] if isinstance(example, SentencePair) else []
    return {"texts": texts, **label_to_json(prediction)}


def label_to_json(prediction: Prediction | None) -> dict[str, object]:
    """Return the keys of a predicted label."""
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


def _list_table_formats(*, pairs: bool) -> tuple[InputFormat, ...]:
    """Return the formats of tables. For pairs, TSV is the default format."""
    tsv, csv = (partial(read_table, pairs=pairs, has_quotes=has_quotes) for has_quotes in (False, True))
    return (
        InputFormat(name="csv", matches=never, read=csv, write=write_table, option="text"),
        InputFormat(
            name="tsv", matches=always if pairs else never, read=tsv, write=write_table, option="text"
        ),
    )


def add_label(example: Any, answer: object) -> Any:
    """Return an example with a label."""
    return replace(example, label=answer)


_PAIRS = InputForm(
    formats=(
        InputFormat(name="jsonl", matches=is_object, read=partial(read_objects, _pair_from_json)),
        *_list_table_formats(pairs=True),
    ),
    sample=["a", "a"],
    example=_pair,
    from_json=_pair_from_json,
    to_json=_pair_to_json,
    answered=add_label,
    auto_class="AutoModelForSequenceClassification",
    hub_tag="text-classification",
    pipeline="text-classification",
    probabilities=_pair_probabilities,
    holds=("pairs",),
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
    return {"text": text, **label_to_json(prediction)}


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
        InputFormat(name="jsonl", matches=is_object, read=partial(read_objects, _text_from_json)),
        *_list_table_formats(pairs=False),
        InputFormat(name="lines", matches=bool, read=_read_lines, write=_write_lines),
    ),
    sample="a",
    example=_text,
    from_json=_text_from_json,
    to_json=_text_to_json,
    holds=("texts",),
)


def find_text_form(task: Task) -> InputForm:
    """Return the form of a task that labels texts, or pairs of texts."""
    if not isinstance(task, TextClassification):
        return _PAIRS
    form = _TEXTS_ALONE if task.texts == TEXT else _PAIRS
    return form if task.one_answer.probabilities else replace(form, probabilities=None)


FORMS: Registry[Callable[[Task], InputForm]] = Registry(
    {"word": "isogloss.using.words:words", "example": "isogloss.using.kinds:find_text_form"},
    features="input-forms",
)
"""Functions from a task to the form of its inputs and answers, by the unit that is labelled."""


def kind_of(task: Task) -> InputForm:
    """Return the form of a task's inputs and answers."""
    if task.labels_are not in FORMS:
        raise missing_feature(
            f"task {task.name}: inputs of tasks that label each {task.labels_are}", "Install isogloss again."
        )
    return FORMS[task.labels_are](task)
