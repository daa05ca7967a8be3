"""How the command line ends: signals and the streams it prints to."""

import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from isogloss.cli.display import print_nowhere, terminals
from isogloss.core.processes import Signalled, request_interruption

INTERRUPTED = 130
"""Exit code after Ctrl-C: 128 + SIGINT; after other signals 128 + theirs. Nothing else has such codes."""

GRACE = 10.0
"""Seconds after Ctrl-C until another one ends the process at once: before, runs are given back."""

END_SIGNALS = [signal.SIGTERM, *([signal.SIGHUP] if hasattr(signal, "SIGHUP") else [])]
"""Signals by which a scheduler, or a terminal that is closed, asks a process to end."""

OUTPUTS = ("standard output", "standard error")
"""Names of the files in errors of writing to them."""


@dataclass
class _Signals:
    """The signals that a process received."""

    shown: list[int] = field(default_factory=terminals)
    received: list[int] = field(default_factory=list)
    since: float = 0.0
    """When the first Ctrl-C came."""

    def interrupt(self, number: int, _: object) -> None:
        """End the process at Ctrl-C; ignore further ones while it gives its runs back."""
        self.received.append(number)
        if self.received.count(number) == 1:
            self.since = time.monotonic()
            raise Signalled
        if time.monotonic() - self.since > GRACE:
            os.write(2, b"isogloss: ended at once; run the same command again to continue.\n")
            os._exit(INTERRUPTED)

    def end(self, number: int, _: object) -> None:
        """Let a run write a checkpoint and leave; end anything else."""
        self.received.append(number)
        if number != signal.SIGTERM:
            print_nowhere(self.shown)
            if len(self.received) > 1:  # A shell passes on what its terminal has sent already.
                return
        if not request_interruption():
            raise Signalled


@contextmanager
def end_on_signals() -> Iterator[list[int]]:
    """Let runs write a checkpoint at SIGTERM and SIGHUP and leave; yield the signals received.

    Anything else, and runs at a second SIGTERM, end as at Ctrl-C: temporary files and children are removed.
    """
    signals = _Signals()
    if threading.current_thread() is not threading.main_thread():  # Signals reach it alone.
        yield signals.received
        return
    # What nohup starts ignores SIGHUP, and goes on doing so.
    handlers = {
        number: signal.signal(number, signals.end)
        for number in END_SIGNALS
        if signal.getsignal(number) != signal.SIG_IGN
    }
    if signal.getsignal(signal.SIGINT) == signal.default_int_handler:  # A job in the background ignores it.
        handlers[signal.SIGINT] = signal.signal(signal.SIGINT, signals.interrupt)
    try:
        yield signals.received
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)


def ignore_interrupts() -> None:
    """Ignore Ctrl-C until Python has ended, which takes a moment."""
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, signal.SIG_IGN)


def open_closed_streams() -> None:
    """Redirect closed standard streams to the null device."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            stream = open(os.devnull, mode, encoding="utf-8")  # noqa: PTH123, SIM115
            os.set_inheritable(stream.fileno(), True)  # For processes begun from here, too.
            setattr(sys, name, stream)


@contextmanager
def name_output_errors() -> Iterator[None]:
    """Name the stream in errors of writing to standard output and standard error."""
    streams = dict(zip(OUTPUTS, (sys.stdout, sys.stderr), strict=True))
    for name, stream in streams.items():
        for method in ("write", "flush"):
            setattr(stream, method, _named(getattr(stream, method), name))
    try:
        yield
    finally:
        for stream in streams.values():
            for method in ("write", "flush"):
                vars(stream).pop(method, None)


def _named(write: Callable[..., Any], name: str) -> Callable[..., Any]:
    def write_named(*arguments: Any) -> Any:
        try:
            return write(*arguments)
        except OSError as error:
            error.filename = name
            raise

    return write_named
