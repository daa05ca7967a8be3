"""Progress as a callback: the library reports, the command line draws."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from isogloss.core.records import Row

Thing = TypeVar("Thing")


@dataclass(frozen=True, slots=True)
class Progress:
    """A task, its progress, a short remark (a loss, a score), and the rows that are new."""

    what: str
    done: int
    total: int
    remark: str = ""
    rows: "tuple[Row, ...]" = ()
    job: int = 0
    """Number of the reporting process, from 1. 0 for a single process."""

    def __repr__(self) -> str:
        """Return the progress without its rows."""
        remark = f", {self.remark!r:.100}" if self.remark else ""
        return f"Progress({self.what!r:.100}, {self.done} of {self.total}{remark})"


OnProgress = Callable[[Progress], None]


def no_progress(_: Progress) -> None:
    """Ignore progress."""


def _no_remark(_: object) -> str:
    return ""


def one_by_one(
    things: Sequence[Thing],
    activity: str,
    on_progress: OnProgress,
    remark: Callable[[Thing], str] = _no_remark,
) -> Iterator[Thing]:
    """Yield things one by one and report their number. An empty sequence reports nothing."""
    for index, thing in enumerate(things):
        on_progress(Progress(activity, index, len(things), remark(thing)))
        yield thing
    if things:
        on_progress(Progress(activity, len(things), len(things)))
