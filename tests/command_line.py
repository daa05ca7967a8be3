"""The command line in this process: what it prints, where, and how it ends."""

import io
import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from isogloss.cli import display, main


@dataclass(frozen=True)
class Ended:
    """Output and exit code of a command."""

    status: int
    out: str
    err: str

    @property
    def lines(self) -> list[dict[str, Any]]:
        """Standard output as JSON lines."""
        return [json.loads(line) for line in self.out.splitlines()]

    @property
    def message(self) -> str:
        """The one line a refused command writes."""
        assert self.status == 2, self
        assert self.out == ""
        assert self.err.startswith("isogloss: ")
        assert self.err.endswith("\n")
        assert self.err.count("\n") == 1, self.err
        assert "Traceback" not in self.err
        return self.err.removeprefix("isogloss: ").rstrip("\n")


Command = Callable[..., Ended]


@pytest.fixture
def command(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, patient: None) -> Command:
    def run(*arguments: object, stdin: str = "") -> Ended:
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(stdin.encode())))
        capsys.readouterr()
        with pytest.raises(SystemExit) as end:
            main([str(argument) for argument in arguments])
        output = capsys.readouterr()
        return Ended(int(end.value.code or 0), output.out, output.err)

    return run


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Delay progress on a busy machine, because no test of a command expects it."""
    monkeypatch.setattr(display, "FIRST_LINE_SECONDS", 3600.0)
    monkeypatch.delenv("COLUMNS", raising=False)  # A runner of tests may set it; tables are as wide.


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch, patient: None) -> None:
    """Print all progress, whenever it comes."""
    monkeypatch.setattr(display, "FIRST_LINE_SECONDS", -1.0)
    monkeypatch.setattr(display, "LINE_SECONDS", -1.0)
