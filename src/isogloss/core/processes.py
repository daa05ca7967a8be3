"""Processes that share a folder: names, which of them have ended, and interruption.

A scheduler that needs the machine sends SIGTERM, and kills processes that still run later. A training stops
with a checkpoint after its current step; anything else stops at its next progress report.
"""

import gc
import os
import platform
import re
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from hashlib import blake2s
from pathlib import Path
from uuid import getnode

WORLD_SIZE_VARIABLES = ("WORLD_SIZE", "PMI_SIZE", "OMPI_COMM_WORLD_SIZE", "MV2_COMM_WORLD_SIZE")
"""Environment variables by which launchers pass the number of processes (as read by Accelerate)."""


_PROCESS = re.compile(r"(?P<host>[^-]*)-(?P<number>[1-9][0-9]{0,9})(?:-(?P<started>.*))?", re.DOTALL)
"""The name of a process, which others may have written."""


def is_launched() -> bool:
    """Return whether, by the environment, a launcher started this process as one of several."""
    return any(os.environ.get(name, "1") != "1" for name in WORLD_SIZE_VARIABLES)


def cores() -> int:
    """Return the number of cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def this_process() -> str:
    """Return the name of this process, unique among the processes that run now on any machine.

    HOST-PID-START: the hash of the host, the process number, and when it started, as the system reports it (0
    where it does not).
    """
    return f"{host()}-{os.getpid()}-{_read_start(os.getpid())}"


@cache
def host() -> str:
    """Return a hash of this machine since its last start and of its namespace of processes (containers)."""
    parts = [platform.node(), str(getnode())]
    for source in ("/proc/sys/kernel/random/boot_id", "/proc/self/ns/pid"):
        path = Path(source)
        try:
            parts.append(str(path.readlink()) if path.is_symlink() else path.read_text(encoding="utf-8"))
        except OSError:
            continue
    return blake2s("\n".join(parts).encode(), digest_size=5).hexdigest()


def has_ended(process: str) -> bool:
    """Return whether a process has certainly ended.

    False for processes of other machines and unknown texts.
    """
    match = _PROCESS.fullmatch(process)
    if match is None or match["host"] != host() or os.name == "nt":
        return False
    process_id = int(match["number"])
    start = match["started"] or ""
    try:
        os.kill(process_id, 0)
    except ProcessLookupError:
        return True
    except (OSError, OverflowError):  # It belongs to a different user.
        return False
    return start not in ("", "0", _read_start(process_id))


def _read_start(process_id: int) -> str:
    """Return when a process started, in ticks since the machine started. 0 if unknown."""
    try:
        stat = Path(f"/proc/{process_id}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    except OSError:
        return "0"
    return "ended" if stat[0] == "Z" else stat[19]


_requested, _interruptible = threading.Event(), threading.Event()
_uninterruptible: list[bool] = []
"""Not empty while a step runs that must finish first."""
_stop_if_lost: ContextVar[Callable[[], None]] = ContextVar("stop_if_lost", default=lambda: None)


class Interrupted(BaseException):
    """Raised when a process is interrupted. The same command resumes where it stopped."""


class Signalled(KeyboardInterrupt):
    """Raised by the command line when a signal ends it: any code may raise a bare KeyboardInterrupt."""


def is_of_code(error: BaseException) -> bool:
    """Return whether code raised an exception, rather than a signal or a request to leave a run.

    Foreign code may call ``sys.exit``. If Python does not raise KeyboardInterrupt at SIGINT, code has raised
    it.
    """
    if type(error) is KeyboardInterrupt:
        return signal.getsignal(signal.SIGINT) not in (signal.default_int_handler, None)
    return isinstance(error, Exception | SystemExit)


def request_interruption() -> bool:
    """Request that this process stops.

    Returns False outside ``interruptible``, or if it was already requested.
    """
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
    """Let SIGTERM interrupt this process, whatever it does. Call this in the main thread."""
    signal.signal(signal.SIGTERM, lambda *_: _requested.set())


@contextmanager
def collector_paused() -> Iterator[None]:
    """Make no passes of the garbage collector in this context.

    Imports of torch and transformers create a million objects, and so does reading a large plan. None of them
    is garbage, but Python searches them again and again: a fifth of the time that a training takes to start.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
