"""Leaving when asked: a scheduler that needs the machine sends SIGTERM, and kills what is there later.

What trains writes a checkpoint after the step it is in and leaves; anything else leaves at its next progress.
"""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

_asked, _heeded = threading.Event(), threading.Event()
_undisturbed: list[bool] = []
"""Not empty while something is done that is finished first."""


class Left(BaseException):
    """Raised when a process was asked to end: the same command goes on from where it left."""


def ask_to_leave() -> bool:
    """Ask this process to leave; return False where nothing heeds that, or where it was asked before."""
    if not _heeded.is_set() or _asked.is_set():
        return False
    _asked.set()
    return True


def asked_to_leave() -> bool:
    """Return whether this process was asked to leave."""
    return _asked.is_set()


def leaves_now() -> bool:
    """Return whether it was asked to, and does nothing that is finished first."""
    return _asked.is_set() and not _undisturbed


@contextmanager
def undisturbed() -> Iterator[None]:
    """Finish what is done here before this process leaves: what it left half done would all be lost."""
    _undisturbed.append(True)
    try:
        yield
    finally:
        _undisturbed.pop()


@contextmanager
def heeding() -> Iterator[None]:
    """Say that what is done here looks whether it was asked to leave."""
    _heeded.set()
    try:
        yield
    finally:
        _heeded.clear()
        _asked.clear()


def leave_at_sigterm() -> None:
    """Let SIGTERM ask this process, whatever it does, to leave; only its main thread can."""
    signal.signal(signal.SIGTERM, lambda *_: _asked.set())
