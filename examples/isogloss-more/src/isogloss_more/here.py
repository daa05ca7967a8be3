"""An engine that works on the runs in the caller's process."""

from collections.abc import Sequence
from typing import Any

from isogloss.plugins import Engine, Execution, Work


def start_here(execution: Execution, context: Any, runs: Sequence[Any], report: Any) -> None:
    """Work on the runs until none is left."""
    del execution
    Work(context, runs, report).work()


HERE = Engine(about="in this process (isogloss-more)", start=start_here)
