"""Progress as a callback: the library reports, the command line draws."""

from collections.abc import Callable
from dataclasses import dataclass

from isogloss.core.records import Row


@dataclass(frozen=True, slots=True)
class Progress:
    """A task, how far it is, one short remark (a loss, a score), and the rows a training gained since."""

    what: str
    done: int
    total: int
    remark: str = ""
    rows: tuple[Row, ...] = ()


OnProgress = Callable[[Progress], None]


def no_progress(_: Progress) -> None:
    """Ignore progress."""
