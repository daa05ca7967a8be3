"""Floor 3: encode, head, loss, decode and score for each task; the table of all of them."""

from collections.abc import Sequence
from dataclasses import replace

from isogloss.core.errors import check_named
from isogloss.core.plug_ins import check_value, find_plug_in, plugged_names
from isogloss.tasks.classification import (
    NLI,
    PAIR,
    PAIR_REGRESSION,
    PARAPHRASE,
    REGRESSION,
    MultiLabelClassification,
    TextClassification,
)
from isogloss.tasks.lemmas import Lemmatization
from isogloss.tasks.multiple_choice import CHOICE
from isogloss.tasks.parsing import PARSING
from isogloss.tasks.span_qa import QA
from isogloss.tasks.tagging import NER, UPOS, Tagging
from isogloss.tasks.task import Task, all_measures

_ALL: tuple[Task, ...] = (
    *(UPOS, NER, PARSING, NLI, PARAPHRASE, QA, CHOICE),
    *(REGRESSION, PAIR_REGRESSION),
)
TASKS = {task.name: task for task in _ALL}

_OF_ANY_LABELS: tuple[Tagging | TextClassification, ...] = (
    Tagging(name="word-tagging", labels=(), metric="accuracy"),
    Tagging(name="span-tagging", labels=(), metric="span_f1"),
    Lemmatization(),
    TextClassification(name="text-classification", labels=()),
    TextClassification(name="pair-classification", labels=(), texts=PAIR),
    MultiLabelClassification(name="multi-label-classification", labels=()),
)
OF_ANY_LABELS = {task.name: task for task in _OF_ANY_LABELS}
"""Tasks whose labels are those of a described corpus (``data.described``)."""

ALL_TASKS: dict[str, Task] = {**TASKS, **OF_ANY_LABELS}


def find_task(name: str, labels: Sequence[str] = ()) -> Task:
    """Return a task by name, with these labels if it takes any; ConfigError for an unknown name.

    A name that is not built in is a plug-in's, whose code is imported.
    """
    if name in OF_ANY_LABELS:
        return replace(OF_ANY_LABELS[name], labels=tuple(labels))
    if name in TASKS:
        return TASKS[name]
    check_named("task", "task", task_names(), name)
    task: Task = find_plug_in("tasks", name, ALL_TASKS)
    check_value(task, Task, name)
    return task


def task_names() -> list[str]:
    """Return the names of all tasks, those of plug-ins last."""
    return list(dict.fromkeys((*ALL_TASKS, *plugged_names("tasks"))))


__all__ = [
    "ALL_TASKS",
    "OF_ANY_LABELS",
    "TASKS",
    "Task",
    "all_measures",
    "find_task",
    "task_names",
]
