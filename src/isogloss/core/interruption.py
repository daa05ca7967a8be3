"""Interruptions: a scheduler that needs the machine sends SIGTERM, and kills processes that still run later.

A training stops with a checkpoint after its current step; anything else stops at its next progress report.
"""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_requested, _interruptible = threading.Event(), threading.Event()
_uninterruptible: list[bool] = []
"""Not empty while a step runs that must finish first."""
_stop_if_lost: ContextVar[Callable[[], None]] = ContextVar("stop_if_lost", default=lambda: None)


class Interrupted(BaseException):
    """Raised when a process is interrupted; the same command resumes where it stopped."""


def request_interruption() -> bool:
    """Request that this process stops; return False outside ``interruptible``, or if it was requested."""
    if not _interruptible.is_set() or _requested.is_set():
        return False
    _requested.set()
    return True


def interruption_requested() -> bool:
    """Return whether this process was interrupted."""
    return _requested.is_set()


def should_stop() -> bool:
    """Return whether this process was interrupted, and runs no step that must finish first."""
    return _requested.is_set() and not _uninterruptible


@contextmanager
def uninterruptible() -> Iterator[None]:
    """Finish this context before an interruption: half done, its work would be lost."""
    _uninterruptible.append(True)
    try:
        yield
    finally:
        _uninterruptible.pop()


@contextmanager
def interruptible() -> Iterator[None]:
    """Mark this context as one that checks for interruptions."""
    _interruptible.set()
    try:
        yield
    finally:
        _interruptible.clear()
        _requested.clear()


@contextmanager
def stopping_if_lost(check: Callable[[], None]) -> Iterator[None]:
    """Let ``check`` raise Interrupted, in this context, when another process has taken the run over."""
    token = _stop_if_lost.set(check)
    try:
        yield
    finally:
        _stop_if_lost.reset(token)


def stop_if_lost() -> None:
    """Stop if another process has taken the run over: called before each rename and removal."""
    _stop_if_lost.get()()


def stop_at_sigterm() -> None:
    """Let SIGTERM interrupt this process, whatever it does; call it in the main thread."""
    signal.signal(signal.SIGTERM, lambda *_: _requested.set())
