"""Examples of one language, encoded once, for scoring by any engine."""

from collections.abc import Sequence
from dataclasses import dataclass

from isogloss.core.progress import OnProgress, no_progress
from isogloss.data.examples import Example
from isogloss.tasks.batch import EncodedRow
from isogloss.tasks.task import Answer, Task


@dataclass(frozen=True, kw_only=True)
class EncodedExamples:
    """Examples of one language with their rows, encoded once."""

    task: Task
    examples: Sequence[Example]
    rows: Sequence[EncodedRow]
    gold: list[Answer]
    """The gold label of each example."""
    language: str = ""
    """The language (or pair, such as en-sw), which models with language modules or maps need."""
    on_progress: OnProgress = no_progress
    """Called with the number of rows scored, after each batch."""


def row_limit(task: Task, longest_text: int, limit: int) -> int:
    """Return the maximum number of subwords of a row, given the tokenizer's and the limit in training."""
    return longest_text if task.evaluates_full_length else limit
