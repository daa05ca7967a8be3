"""The end of the command line: signals, and the streams it prints to."""

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
"""Exit code after Ctrl-C: 128 + SIGINT. Other signals exit with 128 + their number."""

GRACE = 10.0
"""Seconds after Ctrl-C from which another one ends the process immediately. Until then, runs are released."""

END_SIGNALS = [signal.SIGTERM, *([signal.SIGHUP] if hasattr(signal, "SIGHUP") else [])]
"""Signals by which a scheduler, or a closed terminal, requests the end of a process."""

OUTPUTS = ("standard output", "standard error")
"""Names of the files in errors of writing to them."""


@dataclass
class _Signals:
    """The signals that a process received."""

    shown: list[int] = field(default_factory=terminals)
    received: list[int] = field(default_factory=list)
    since: float = 0.0
    """Time of the first Ctrl-C."""

    def interrupt(self, signal_number: int, _: object) -> None:
        """End the process at Ctrl-C, and ignore further ones for ``GRACE`` seconds while it releases runs."""
        self.received.append(signal_number)
        if self.received.count(signal_number) == 1:
            self.since = time.monotonic()
            raise Signalled
        if time.monotonic() - self.since > GRACE:
            os.write(2, b"isogloss: ended immediately. Run the same command again to continue.\n")
            os._exit(INTERRUPTED)

    def end(self, signal_number: int, _: object) -> None:
        """Let a run write a checkpoint and stop, and interrupt anything else."""
        self.received.append(signal_number)
        if signal_number != signal.SIGTERM:
            print_nowhere(self.shown)
            if len(self.received) > 1:  # A shell repeats the signal that its terminal has already sent.
                return
        if not request_interruption():
            raise Signalled


@contextmanager
def end_on_signals() -> Iterator[list[int]]:
    """Let runs write a checkpoint at SIGTERM and SIGHUP and stop, and yield the received signals.

    Other work, and runs at a second SIGTERM, end as at Ctrl-C: temporary files and children are removed.
    """
    signals = _Signals()
    if threading.current_thread() is not threading.main_thread():  # Only the main thread receives signals.
        yield signals.received
        return
    # A process started by nohup keeps ignoring SIGHUP.
    handlers = {
        signal_number: signal.signal(signal_number, signals.end)
        for signal_number in END_SIGNALS
        if signal.getsignal(signal_number) != signal.SIG_IGN
    }
    if signal.getsignal(signal.SIGINT) == signal.default_int_handler:  # Background jobs ignore SIGINT.
        handlers[signal.SIGINT] = signal.signal(signal.SIGINT, signals.interrupt)
    try:
        yield signals.received
    finally:
        for signal_number, handler in handlers.items():
            signal.signal(signal_number, handler)


def ignore_interrupts() -> None:
    """Ignore Ctrl-C until Python has ended, which takes a moment."""
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, signal.SIG_IGN)


def open_closed_streams() -> None:
    """Redirect closed standard streams to the null device."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            stream = open(os.devnull, mode, encoding="utf-8")  # noqa: PTH123, SIM115
            os.set_inheritable(stream.fileno(), True)  # Child processes also need open streams.
            setattr(sys, name, stream)


@contextmanager
def name_output_errors() -> Iterator[None]:
    """Name the stream in errors of writing to standard output and standard error."""
    streams = dict(zip(OUTPUTS, (sys.stdout, sys.stderr), strict=True))
    for name, stream in streams.items():
        for method in ("write", "flush"):
            setattr(stream, method, _name_errors(getattr(stream, method), name))
    try:
        yield
    finally:
        for stream in streams.values():
            for method in ("write", "flush"):
                vars(stream).pop(method, None)


def _name_errors(write: Callable[..., Any], name: str) -> Callable[..., Any]:
    def write_named(*arguments: Any) -> Any:
        try:
            return write(*arguments)
        except OSError as error:
            error.filename = name
            raise

    return write_named
