"""Floor 3: encode, head, loss, decode and score for each task; the table of all of them."""

from collections.abc import Sequence
from dataclasses import replace

from isogloss.core.errors import unknown_name
from isogloss.tasks.classification import NLI, PARAPHRASE, PairClassification, TextClassification
from isogloss.tasks.multiple_choice import CHOICE
from isogloss.tasks.parsing import PARSING
from isogloss.tasks.span_qa import QA
from isogloss.tasks.tagging import NER, UPOS, Tagging
from isogloss.tasks.task import Task, all_measures

_ALL: tuple[Task, ...] = (UPOS, NER, PARSING, NLI, PARAPHRASE, QA, CHOICE)
TASKS = {task.name: task for task in _ALL}

_OF_ANY_LABELS: tuple[Tagging | TextClassification, ...] = (
    Tagging(name="word-tagging", labels=(), metric="accuracy"),
    Tagging(name="span-tagging", labels=(), metric="span_f1"),
    TextClassification(name="text-classification", labels=()),
    PairClassification(name="pair-classification", labels=()),
)
OF_ANY_LABELS = {task.name: task for task in _OF_ANY_LABELS}
"""Tasks whose labels are those of a described corpus (``data.described``)."""

ALL_TASKS: dict[str, Task] = {**TASKS, **OF_ANY_LABELS}


def find_task(name: str, labels: Sequence[str] = ()) -> Task:
    """Return a task by name; one of any labels gets these. ConfigError for a name that is none."""
    if name in OF_ANY_LABELS:
        return replace(OF_ANY_LABELS[name], labels=tuple(labels))
    if name not in TASKS:
        raise unknown_name("task", "task", name, ALL_TASKS)
    return TASKS[name]


__all__ = ["ALL_TASKS", "OF_ANY_LABELS", "TASKS", "Task", "all_measures", "find_task"]
