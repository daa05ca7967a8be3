"""Inputs of multiple choice: contexts with options, in JSON lines."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial

from isogloss.core.errors import DataError
from isogloss.data.examples import Choice, Example
from isogloss.tasks.batch import EncodedRow, Scores, to_array
from isogloss.tasks.task import Task
from isogloss.using.formats import InputForm, InputFormat, Prediction, keys_missing, softmax
from isogloss.using.kinds import add_label, label_to_json, read_objects


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
    return body | label_to_json(prediction)


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
    formats=(InputFormat(name="jsonl", matches=bool, read=partial(read_objects, _choice_from_json)),),
    sample={"context": "a", "options": ["a", "a"]},
    example=_choice,
    from_json=_choice_from_json,
    to_json=_choice_to_json,
    answered=add_label,
    auto_class="AutoModelForSequenceClassification",
    hub_tag="multiple-choice",
    probabilities=_choice_probabilities,
    holds=("choices",),
)


def find_form(_: Task) -> InputForm:
    """Return the form of contexts with options."""
    return _CHOICES
