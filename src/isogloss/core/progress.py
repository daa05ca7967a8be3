"""Progress as a callback: the library reports, the command line draws."""

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Progress:
    """A task, how far it is, and one short remark (a loss, a score)."""

    what: str
    done: int
    total: int
    remark: str = ""


OnProgress = Callable[[Progress], None]


def no_progress(_: Progress) -> None:
    """Ignore progress."""
