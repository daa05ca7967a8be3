"""Floor 3: encode, head, loss, decode and score for each task; the table of all of them."""

from isogloss.tasks.pair_classification import NLI, PARAPHRASE
from isogloss.tasks.parsing import PARSING
from isogloss.tasks.span_qa import QA
from isogloss.tasks.tagging import NER, UPOS
from isogloss.tasks.task import Task, all_measures

_ALL: tuple[Task, ...] = (UPOS, NER, PARSING, NLI, PARAPHRASE, QA)
TASKS = {task.name: task for task in _ALL}

__all__ = ["TASKS", "Task", "all_measures"]
