"""Leaving when asked: a scheduler that needs the machine sends SIGTERM, and kills what still runs later.

A training writes a checkpoint after its current step and leaves; anything else leaves at its next progress.
"""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_asked, _heeded = threading.Event(), threading.Event()
_undisturbed: list[bool] = []
"""Not empty while something runs that must finish first."""
_leave_if_lost: ContextVar[Callable[[], None]] = ContextVar("leave_if_lost", default=lambda: None)


class Left(BaseException):
    """Raised when a process was asked to leave; the same command resumes where it left."""


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
    """Return whether this process was asked to leave, and runs nothing that must finish first."""
    return _asked.is_set() and not _undisturbed


@contextmanager
def undisturbed() -> Iterator[None]:
    """Let this process leave only after what runs in this context, which would be lost half done."""
    _undisturbed.append(True)
    try:
        yield
    finally:
        _undisturbed.pop()


@contextmanager
def heeding() -> Iterator[None]:
    """Mark what runs in this context as checking whether it was asked to leave."""
    _heeded.set()
    try:
        yield
    finally:
        _heeded.clear()
        _asked.clear()


@contextmanager
def leaving(check: Callable[[], None]) -> Iterator[None]:
    """Let ``check`` raise Left, in this context, where what is made has become another process's."""
    before = _leave_if_lost.set(check)
    try:
        yield
    finally:
        _leave_if_lost.reset(before)


def leave_if_lost() -> None:
    """Leave what another process makes by now: called before anything gets its name, or is removed."""
    _leave_if_lost.get()()


def leave_at_sigterm() -> None:
    """Let SIGTERM ask this process to leave, whatever it does; call it in the main thread."""
    signal.signal(signal.SIGTERM, lambda *_: _asked.set())
