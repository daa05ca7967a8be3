"""Floor 3: encode, head, loss, decode and score for each task."""

from isogloss.tasks.table import TASKS
from isogloss.tasks.task import Task

__all__ = ["TASKS", "Task"]
