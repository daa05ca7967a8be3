"""Tasks, which encode, train, decode and score, and the tables that list them."""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from isogloss.core.errors import check_named
from isogloss.core.plug_ins import check_value, find_plug_in, plugged_names
from isogloss.core.registry import Registry

if TYPE_CHECKING:
    from isogloss.tasks.classification import TextClassification
    from isogloss.tasks.tagging import Tagging
    from isogloss.tasks.task import Task

TASKS: "Registry[Task]" = Registry(
    {
        "upos": "isogloss.tasks.tagging:UPOS",
        "ner": "isogloss.tasks.tagging:NER",
        "nli": "isogloss.tasks.classification:NLI",
        "paraphrase": "isogloss.tasks.classification:PARAPHRASE",
        "regression": "isogloss.tasks.classification:REGRESSION",
        "pair-regression": "isogloss.tasks.classification:PAIR_REGRESSION",
    },
    features="tasks",
)

OF_ANY_LABELS: "Registry[Tagging | TextClassification]" = Registry(
    {
        "word-tagging": "isogloss.tasks.tagging:WORD_TAGGING",
        "span-tagging": "isogloss.tasks.tagging:SPAN_TAGGING",
        "lemmas": "isogloss.tasks.lemmas:LEMMAS",
        "text-classification": "isogloss.tasks.classification:TEXT_CLASSIFICATION",
        "pair-classification": "isogloss.tasks.classification:PAIR_CLASSIFICATION",
        "multi-label-classification": "isogloss.tasks.classification:MULTI_LABEL_CLASSIFICATION",
    }
)
"""Tasks with the labels of a described corpus (``data.corpora.own``)."""

ALL_TASKS: "Registry[Task]" = Registry({**TASKS.places, **OF_ANY_LABELS.places})


def find_task(name: str, labels: Sequence[str] = ()) -> "Task":
    """Return a task by name, with the given labels if it is defined for any labels.

    A name that is not built in belongs to a plug-in, whose code is imported. Raises ConfigError for an
    unknown name.
    """
    if name in OF_ANY_LABELS:
        return replace(OF_ANY_LABELS[name], labels=tuple(labels))
    if name in TASKS:
        return TASKS[name]
    check_named("task", "task", task_names(), name)
    from isogloss.tasks.task import Task

    task: Task = find_plug_in("tasks", name, ALL_TASKS)
    check_value(task, Task, name)
    return task


def task_names() -> list[str]:
    """Return the names of all tasks, with plug-ins last."""
    return list(dict.fromkeys((*ALL_TASKS, *plugged_names("tasks"))))
