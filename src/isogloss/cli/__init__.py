"""Floor 12: names to objects, errors to exit codes: every mistake in one line with the nearest match."""

import errno
import gc
import os
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any

import typer

from isogloss.cli.app import app
from isogloss.cli.display import print_nowhere, terminals
from isogloss.core.errors import (
    IsoglossError,
    did_you_mean,
    explaining_missing_models,
    masked,
    one_line,
    plain,
    shortened,
)
from isogloss.core.processes import Interrupted, request_interruption

__all__ = ["main"]

INTERRUPTED = 130
"""Exit code after Ctrl-C: 128 + SIGINT; after other signals it is 128 + theirs."""

END_SIGNALS = [signal.SIGTERM, *([signal.SIGHUP] if hasattr(signal, "SIGHUP") else [])]
"""Signals by which a scheduler, or a terminal that is closed, asks a process to end."""

RESUMABLE = ("run", "quickstart", "search", "align", "fetch")
"""Verbs that resume after an interruption."""

UNWRITABLE = {errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EBADF}
"""Errors of a standard output that is full, or was closed."""

COLLECTED_AFTER = 50_000
"""New objects between two passes of the garbage collector: imports make a million, and none is garbage."""

RANGE_ENDS = (("ge", "more"), ("le", "less"))
"""How pydantic calls the ends of a range, and what lies beyond them."""

_USAGE_ERROR: type[Exception] = typer.BadParameter.__mro__[1]
"""The class of all errors in the use of verbs and options, which typer does not export."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit: 0 done, 1 some runs failed, 2 invalid input."""
    if arguments is None:  # This process is of the command line alone.
        gc.set_threshold(COLLECTED_AFTER)
    words = list(sys.argv[1:] if arguments is None else arguments) or ["--help"]
    _open_closed_streams()
    with _ended_by_signals() as received:
        status = _status(words, debug="--debug" in words)
    sys.exit(128 + received[0] if received and status == INTERRUPTED else status)


def _open_closed_streams() -> None:
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            stream = open(os.devnull, mode, encoding="utf-8")  # noqa: PTH123, SIM115
            os.set_inheritable(stream.fileno(), True)  # For processes begun from here, too.
            setattr(sys, name, stream)


@contextmanager
def _ended_by_signals() -> Iterator[list[int]]:
    """Let runs write a checkpoint at SIGTERM and SIGHUP and leave; yield the signals received.

    Anything else, and runs at a second SIGTERM, end as at Ctrl-C: temporary files and children are removed.
    """
    received: list[int] = []
    shown = terminals()

    def end(number: int, _: object) -> None:
        received.append(number)
        if number != signal.SIGTERM:
            print_nowhere(shown)
            if len(received) > 1:  # A shell passes on what its terminal has sent already.
                return
        if not request_interruption():
            raise KeyboardInterrupt

    if threading.current_thread() is not threading.main_thread():  # Signals reach it alone.
        yield received
        return
    # What nohup starts ignores SIGHUP, and goes on doing so.
    handlers = {
        number: signal.signal(number, end)
        for number in END_SIGNALS
        if signal.getsignal(number) != signal.SIG_IGN
    }
    try:
        yield received
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)


def _status(words: list[str], *, debug: bool) -> int:
    try:
        with explaining_missing_models():
            status = int(_command()(words, prog_name="isogloss", standalone_mode=False) or 0)
        sys.stdout.flush()
    except IsoglossError as error:
        return _explain(str(error), error.exit_code, debug)
    except _USAGE_ERROR as error:
        return _explain(_usage(error, words), 2, debug)
    except (KeyboardInterrupt, Interrupted, typer.Abort):
        status = INTERRUPTED
    except (BrokenPipeError, SystemExit):  # typer exits at a broken pipe, and at nothing else here.
        print_nowhere([1])
        return 0
    except Exception as error:
        return _explain(*_unexpected(error), debug)
    if status == INTERRUPTED:
        return _explain(_interrupted(words), status, debug)
    return status


def _unexpected(error: Exception) -> tuple[str, int]:
    if isinstance(error, OSError) and error.filename:
        return f"{error.filename}: {error.strerror}. Check the path, and who may read and write it.", 2
    if isinstance(error, OSError) and error.errno in UNWRITABLE:
        print_nowhere([1])
        return f"standard output: cannot write ({error.strerror}). Choose another place for it.", 2
    message = f"this is a bug in isogloss ({one_line(error)}). "
    return message + "Run again with --debug and report what it prints.", 1


@cache
def _command() -> Callable[..., Any]:
    return typer.main.get_command(app)


def _interrupted(words: list[str]) -> str:
    if words[0] in RESUMABLE:
        return "interrupted. Finished runs are kept; run the same command again to continue."
    return "interrupted. No incomplete file is left; run the same command again to finish."


def _explain(message: str, status: int, debug: bool) -> int:
    text = plain(" ".join(shortened(message).splitlines()))
    line = f"{traceback.format_exc() if debug else ''}isogloss: {text}"
    try:
        print(masked(line), file=sys.stderr)
    except OSError:  # Nobody reads it, or nobody can; flushing the buffer at the end must not fail.
        print_nowhere([2])
    return status


def _usage(error: Any, words: Sequence[str]) -> str:
    verb = error.ctx.command_path if error.ctx else "isogloss"
    if value := _wrong_value(error):
        return f"{value} See: {verb} --help"
    message = error.format_message().strip().partition(" (Possible")[0].rstrip(".")
    options: list[str] = (
        [name for part in error.ctx.command.params for name in part.opts] if error.ctx else []
    )
    wrong = getattr(error, "option_name", "")
    if message.startswith("No such command"):
        options = list(error.ctx.command.commands)
        wrong = next((word for word in words if repr(word) in message), "")
    near = did_you_mean(wrong, options) if wrong else ""
    return f"{message[:1].lower()}{message[1:]}.{near} See: {verb} --help"


def _wrong_value(error: Any) -> str:
    """Return the found and the expected value of an option; empty where typer's own message has them."""
    from pydantic import ValidationError

    if not isinstance(error.__cause__, ValidationError):
        return ""
    first = error.__cause__.errors(include_url=False)[0]
    ends = first.get("ctx", {})
    number = "a whole number" if error.__cause__.title.endswith("int") else "a number"
    least, most = (f", {ends[end]:g} or {word}" if end in ends else "" for end, word in RANGE_ENDS)
    value = first["input"] if least or most else repr(first["input"])
    return f"{'/'.join(error.param.opts)}: found {value}; expected {number}{least}{most}."
