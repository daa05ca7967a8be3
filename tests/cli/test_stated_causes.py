"""A message that states a cause is true. Exit codes of signals are used for nothing else."""

import errno
import io
import os
import subprocess
import sys
from collections.abc import Callable

import pytest
import typer

from forked import Forked
from isogloss import cli

DISK = ("ENOSPC", "EDQUOT", "EIO", "EROFS")
NETWORK = ("ECONNREFUSED", "ECONNRESET", "ETIMEDOUT", "EPIPE", "EBADF")


@pytest.fixture
def end_with(monkeypatch, capsys) -> Callable[[BaseException], tuple[int, str]]:
    """Return the exit code and the line of a command whose code raises an error."""

    def run(error: BaseException) -> tuple[int, str]:
        def command(*_: object, **__: object) -> None:
            raise error

        monkeypatch.setattr(cli, "_command", lambda: command)
        with pytest.raises(SystemExit) as end:
            cli.main(["run", "x"])
        (line,) = capsys.readouterr().err.splitlines()
        return int(end.value.code), line

    return run


@pytest.mark.parametrize("path", ["", "/somewhere/x"])
@pytest.mark.parametrize("kind", [*DISK, *NETWORK])
def test_an_error_of_something_else_is_not_said_of_standard_output(end_with, kind, path):
    index = getattr(errno, kind)
    status, line = end_with(OSError(index, os.strerror(index), *([path] if path else [])))
    assert status in (1, 2)
    assert "standard output" not in line
    assert path in line
    assert os.strerror(index) in line
    assert ("bug in isogloss" in line) == (not path and kind in NETWORK)


@pytest.mark.parametrize("kind", [*DISK, "EBADF"])
def test_an_output_that_cannot_be_written_is_said(kind, monkeypatch, capsys):
    class Full(io.StringIO):
        def write(self, _: str) -> int:
            raise OSError(getattr(errno, kind), "cannot")

    def command(*_: object, **__: object) -> None:
        typer.echo("a result")

    monkeypatch.setattr(cli, "_command", lambda: command)
    monkeypatch.setattr(cli, "print_nowhere", lambda _: None)
    monkeypatch.setattr(sys, "stdout", Full())
    with pytest.raises(SystemExit) as end:
        cli.main(["list"])
    assert end.value.code == 2
    assert "standard output: cannot write (cannot)" in capsys.readouterr().err


@pytest.mark.parametrize("error", [KeyboardInterrupt(), SystemExit(0), SystemExit(130), SystemExit(None)])
def test_code_that_ends_the_process_is_no_interruption_and_no_success(end_with, error):
    status, line = end_with(error)
    assert status == 1
    assert type(error).__name__ in line
    assert "interrupted." not in line


def test_a_pipe_of_something_else_that_is_closed_is_no_success(end_with):
    error = SystemExit(1)
    error.__context__ = BrokenPipeError(errno.EPIPE, "Broken pipe")
    assert end_with(error)[0] == 1


def test_an_input_that_ends_before_an_answer_is_no_interruption(end_with):
    error = typer.Abort()
    error.__context__ = EOFError()
    status, line = end_with(error)
    assert (status, "standard input ended" in line) == (2, True)


@pytest.mark.parametrize(
    "error",
    [
        MemoryError(),
        ImportError("libblas.so: failed to map segment from shared object", name="scipy.linalg"),
        ImportError("libcudart.so.12: cannot open shared object file", name="torch._C"),
    ],
)
def test_too_little_memory_and_packages_that_cannot_be_loaded_are_no_bugs(end_with, error):
    status, line = end_with(error)
    assert status == 2
    assert "bug in isogloss" not in line
    assert (
        (error.name or "").partition(".")[0] in line if isinstance(error, ImportError) else "memory" in line
    )


def test_a_name_that_isogloss_lacks_is_a_bug(end_with):
    assert "bug in isogloss" in end_with(ImportError("cannot import name 'x'", name="isogloss.core"))[1]


CLEANS_UP = """
import time
from isogloss import cli
from isogloss.cli import ending

def command(words, **_):
    try:
        print("begun", flush=True)
        time.sleep(600)
    finally:
        print("ending", flush=True)
        time.sleep({seconds})
        print("cleaned up", flush=True)

cli._command = lambda: command
ending.GRACE = {grace}
cli.main()
"""


@pytest.mark.nightly
@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="sends signals of Unix")
@pytest.mark.parametrize(
    ("grace", "seconds", "message"), [(600, 0.5, "interrupted."), (0, 600, "ended at once")]
)
def test_ctrl_c_several_times_is_one_line_and_130(grace, seconds, message):
    """Cleanup is finished first. If it takes long, a further Ctrl-C ends the process at once."""
    program = CLEANS_UP.format(seconds=seconds, grace=grace)
    running = Forked([sys.executable, "-c", program, "run"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert running.stdout.readline() == "begun\n"
    running.send_signal(2)
    assert running.stdout.readline() == "ending\n"
    for _ in range(3):
        running.send_signal(2)
    output, errors = running.communicate()
    assert running.returncode == 130
    assert ("cleaned up" in output) == bool(grace)
    assert errors.startswith(f"isogloss: {message}")
    assert errors.count("\n") == 1
