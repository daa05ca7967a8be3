"""Floor 12: names to objects, errors to exit codes: every mistake in one line with the nearest match."""

import errno
import gc
import sys
import traceback
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import typer

from isogloss.cli.app import app
from isogloss.cli.display import print_nowhere
from isogloss.cli.ending import (
    INTERRUPTED,
    OUTPUTS,
    end_on_signals,
    ignore_interrupts,
    name_output_errors,
    open_closed_streams,
)
from isogloss.core.atomic_files import DISK_FULL_ERRORS
from isogloss.core.errors import (
    IsoglossError,
    did_you_mean,
    explaining_missing_models,
    masked,
    one_line,
    plain,
    shortened,
)
from isogloss.core.plug_ins import plug_ins_named
from isogloss.core.processes import is_of_code

__all__ = ["main"]

RESUMABLE = ("run", "quickstart", "search", "align", "fetch")
"""Verbs that resume after an interruption."""

OF_DISKS = {*DISK_FULL_ERRORS, errno.EIO, errno.EROFS, errno.ESTALE}
"""Errors of the system that are no mistake in the code, whatever file they are about."""

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
    open_closed_streams()
    with end_on_signals() as received, name_output_errors():
        status = _status(words, debug="--debug" in words)
    if arguments is None:
        ignore_interrupts()
    sys.exit(128 + received[0] if received and status == INTERRUPTED else status)


def _status(words: list[str], *, debug: bool) -> int:
    try:
        with explaining_missing_models(), plug_ins_named():
            status = int(_command()(words, prog_name="isogloss", standalone_mode=False) or 0)
        sys.stdout.flush()
    except BaseException as error:
        if _is_closed_output(error):
            print_nowhere([1])
            return 0
        return _explain(*_message_and_code(error, words), debug)
    return _explain(_interrupted(words), status, debug) if status == INTERRUPTED else status


def _message_and_code(error: BaseException, words: list[str]) -> tuple[str, int]:
    """Return the message and the exit code of an error."""
    if isinstance(error, IsoglossError):
        return str(error), error.exit_code
    if isinstance(error, _USAGE_ERROR):
        return _usage(error, words), 2
    cause = error.__context__ if isinstance(error, typer.Abort) else error  # typer raises it for others.
    if isinstance(cause, EOFError):
        return "standard input ended before an answer. Give the options (--help).", 2
    if cause is None or not is_of_code(cause):
        return _interrupted(words), INTERRUPTED
    return _unexpected(cause)


def _is_closed_output(error: BaseException) -> bool:
    """Return whether the reader of standard output has closed it; typer exits then."""
    cause = error.__context__ if isinstance(error, SystemExit) else error
    return isinstance(cause, BrokenPipeError) and cause.filename in OUTPUTS


def _unexpected(error: BaseException) -> tuple[str, int]:
    if isinstance(error, OSError) and error.filename in OUTPUTS:
        print_nowhere([OUTPUTS.index(error.filename) + 1])
        return f"{error.filename}: cannot write ({error.strerror}). Choose another place for it.", 2
    if isinstance(error, OSError) and error.filename:
        return f"{error.filename}: {error.strerror}. Check the path, and who may read and write it.", 2
    if isinstance(error, OSError) and error.errno in OF_DISKS:
        return (
            f"a file cannot be read or written ({error.strerror}), and the system does not name it. Check "
            f"the disks and their space; --debug shows where it happened."
        ), 2
    if isinstance(error, MemoryError):
        return f"too little memory ({one_line(error)}). Allow this process more (ulimit -v).", 2
    if isinstance(error, ImportError) and error.name and error.name.partition(".")[0] != "isogloss":
        package = error.name.partition(".")[0]
        return (
            f"the package {package} cannot be loaded ({one_line(error)}). See whether the memory is enough "
            f"(ulimit -v), and whether it is installed for this Python; or install it again."
        ), 2
    message = f"this is a bug in isogloss ({one_line(error)}). "
    return message + "Run again with --debug and report what it prints.", 1


@cache
def _command() -> Callable[..., Any]:
    return typer.main.get_command(app)


def _interrupted(words: list[str]) -> str:
    if words[0] in RESUMABLE:
        return "interrupted. Finished runs are kept; run the same command again to continue."
    if words[0] == "explore":
        return "ended."
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
