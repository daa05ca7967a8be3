"""The command line: it runs a verb, and prints every error as one line with an exit code."""

import errno
import gc
import sys
import traceback
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import typer

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
    mask_secrets,
    one_line,
    plain,
    shorten_message,
)
from isogloss.core.plug_ins import plug_ins_named
from isogloss.core.processes import is_of_code

__all__ = ["main"]

RESUMABLE = ("run", "quickstart", "search", "align", "fetch")
"""Verbs that resume after an interruption."""

OF_DISKS = {*DISK_FULL_ERRORS, errno.EIO, errno.EROFS, errno.ESTALE, errno.EACCES, errno.EPERM}
"""Errors of the operating system that are not a bug, for any file."""

COLLECTED_AFTER = 50_000
"""New objects between two passes of the garbage collector. Imports create a million, none of them garbage."""

RANGE_ENDS = (("ge", "more"), ("le", "less"))
"""Pydantic's names of the ends of a range, with the words for values beyond them."""

_USAGE_ERROR: type[Exception] = typer.BadParameter.__mro__[1]
"""The base class of all usage errors, which typer does not export."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit: 0 done, 1 some runs failed, 2 invalid input."""
    if arguments is None:  # This process only runs the command line.
        gc.set_threshold(COLLECTED_AFTER)
    words = list(sys.argv[1:] if arguments is None else arguments) or ["--help"]
    open_closed_streams()
    with end_on_signals() as signals, name_output_errors():
        status = _status(words, debug="--debug" in words)
    if arguments is None:
        ignore_interrupts()
        gc.freeze()  # Python would search all imported objects for garbage several times before it ends.
    sys.exit(128 + signals[0] if signals and status == INTERRUPTED else status)


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
    return _explain(_interruption_message(words), status, debug) if status == INTERRUPTED else status


def _message_and_code(error: BaseException, words: list[str]) -> tuple[str, int]:
    """Return the message and the exit code of an error."""
    if isinstance(error, IsoglossError):
        return str(error), error.exit_code
    if isinstance(error, _USAGE_ERROR):
        return _usage(error, words), 2
    cause = error.__context__ if isinstance(error, typer.Abort) else error  # typer replaces some errors.
    if isinstance(cause, EOFError):
        return "standard input ended before an answer. Give the options (--help).", 2
    if cause is None or not is_of_code(cause):
        return _interruption_message(words), INTERRUPTED
    return _explain_unexpected(cause)


def _is_closed_output(error: BaseException) -> bool:
    """Return whether the reader of standard output has closed it. Typer exits then."""
    cause = error.__context__ if isinstance(error, SystemExit) else error
    return isinstance(cause, BrokenPipeError) and cause.filename in OUTPUTS


def _explain_unexpected(error: BaseException) -> tuple[str, int]:
    if isinstance(error, OSError) and error.filename in OUTPUTS:
        print_nowhere([OUTPUTS.index(error.filename) + 1])
        return f"{error.filename}: cannot write ({error.strerror}). Redirect it to a different place.", 2
    if isinstance(error, OSError) and error.filename:
        return f"{error.filename}: {error.strerror}. Check the path and its permissions.", 2
    if isinstance(error, OSError) and error.errno in OF_DISKS:
        return (
            f"a file, which the system does not name, cannot be read or written ({error.strerror}). Check "
            f"the disks and their free space. --debug shows where it happened."
        ), 2
    if isinstance(error, MemoryError):
        return f"not enough memory ({one_line(error)}). Raise the limit of this process (ulimit -v).", 2
    if isinstance(error, ImportError) and error.name and error.name.partition(".")[0] != "isogloss":
        package = error.name.partition(".")[0]
        return (
            f"the package {package} cannot be loaded ({one_line(error)}). Check that memory is sufficient "
            f"(ulimit -v) and that it is installed for this Python, or install it again."
        ), 2
    message = f"this is a bug in isogloss ({one_line(error)}). "
    return message + "Run again with --debug and report what it prints.", 1


@cache
def _command() -> Callable[..., Any]:
    from isogloss.cli.app import app

    return typer.main.get_command(app)


def _interruption_message(words: list[str]) -> str:
    if words[0] in RESUMABLE:
        return "interrupted. Finished runs are kept. Run the same command again to continue."
    if words[0] == "explore":
        return "ended."
    return "interrupted. Incomplete files were removed. Run the same command again."


def _explain(message: str, status: int, debug: bool) -> int:
    text = plain(" ".join(shorten_message(message).splitlines()))
    line = f"{traceback.format_exc() if debug else ''}isogloss: {text}"
    try:
        print(mask_secrets(line), file=sys.stderr)
    except OSError:  # Standard error was closed. Flushing its buffer at the end must not fail.
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
    suggestion = did_you_mean(wrong, options) if wrong else ""
    return f"{message[:1].lower()}{message[1:]}.{suggestion} See: {verb} --help"


def _wrong_value(error: Any) -> str:
    """Return the found and the expected value of an option, or "" if typer's own message has them."""
    from pydantic import ValidationError

    if not isinstance(error.__cause__, ValidationError):
        return ""
    cause = error.__cause__.errors(include_url=False)[0]
    ends = cause.get("ctx", {})
    kind = "a whole number" if error.__cause__.title.endswith("int") else "a number"
    limits = "".join(f", {ends[end]:g} or {word}" for end, word in RANGE_ENDS if end in ends)
    value = cause["input"] if limits else repr(cause["input"])
    return f"{'/'.join(error.param.opts)}: found {value}; expected {kind}{limits}."
