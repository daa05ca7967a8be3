"""Labelled examples of a user's own, to score a model on: examples of a corpus, or mappings with a label."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, cast

from isogloss.core.errors import DataError
from isogloss.data.examples import KINDS, Example, ParsedSentence
from isogloss.tasks.task import Task
from isogloss.using.formats import InputForm

GOLD = ("gold", "tags", "labels", "label", "answers", "answer")
"""Keys of the label of a mapping, by priority."""


def read_labelled_example(task: Task, kind: InputForm, value: object, name: str, language: str) -> Example:
    """Return an example with its label, from an example or a mapping. ``name`` is its name in messages.

    A mapping has the keys of inputs of ``predict`` and its label under a key of ``GOLD``. DataError for
    anything else.
    """
    if type(value) in KINDS.values():
        kind.example(value, name, language)
        return cast(Example, value)
    if not isinstance(value, Mapping):
        raise DataError(
            f"found a {type(value).__name__}; expected an example of isogloss.load_corpus, or a mapping with "
            f"the keys of inputs of predict and its label."
        )
    example: Any = kind.from_json(value, name, language)
    key = next((key for key in GOLD if value.get(key) is not None), None)
    if key is None or isinstance(example, ParsedSentence):
        raise DataError(
            f"found the keys {', '.join(map(str, value))}; expected a label of task {task.name} under "
            f"{', '.join(GOLD[:-1])} or {GOLD[-1]}. Add it, or give examples of isogloss.load_corpus."
        )
    gold = value[key]
    gold = gold.tolist() if hasattr(gold, "tolist") else gold
    if kind.read_gold is not None:
        return kind.read_gold(example, gold)
    if hasattr(example, "tags"):
        return cast(Example, replace(example, tags=_read_tags(task, gold, len(example.words))))
    if isinstance(gold, list | tuple):
        return cast(Example, replace(example, label=tuple(_read_label(task, label) for label in gold)))
    return cast(Example, replace(example, label=_read_label(task, gold)))


def _read_tags(task: Task, gold: object, words: int) -> tuple[str, ...]:
    if not isinstance(gold, list | tuple) or len(gold) != words:
        found_labels = f"{len(gold)} labels" if isinstance(gold, list | tuple) else f"the label {gold!r:.60}"
        raise DataError(
            f"found {found_labels} for {words} words; expected a list with a label for each word."
        )
    return tuple(str(_read_label(task, label)) for label in gold)


def _read_label(task: Task, label: Any) -> Any:
    """Return a label as the task names it. For classes, a whole number may be the index of a label."""
    is_whole = isinstance(label, int) and not isinstance(label, bool)
    if not is_whole or not task.labels or task.labels_are == "option" or str(label) in task.labels:
        return str(label) if is_whole and str(label) in task.labels else label
    if not 0 <= label < len(task.labels):
        raise DataError(
            f"found the label {label}; expected one of {', '.join(task.labels)}, or its index, 0 to "
            f"{len(task.labels) - 1}."
        )
    return task.labels[label]
