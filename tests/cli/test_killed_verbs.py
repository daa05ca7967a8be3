"""Verbs that write data, killed at each of their steps, leave nothing half-written and can be repeated.

And no verb writes where Python's packages are installed, which may be read-only.
"""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from forked import Forked
from tiny import TINY

VERBS = {
    "translate a text": (
        *("translate", "--text", "HERE/text.txt", "--from", "qaa", "--into", "qad"),
        *("--translator", "built-in", "--set", 'unknown="copy"', "--out", "HERE/made/text.txt", "--quiet"),
    ),
    "translate a corpus": (
        *("translate", "xnli", "--from", "qaa", "--into", "qad", "--translator", "built-in"),
        *("--split", "dev", "--examples", "5", "--out", "HERE/made", "--quiet"),
    ),
    "align": ("align", "bitext", "qaa-qab", "--out", "HERE/made", "--examples", "20", "--quiet"),
    "export languages": ("languages", "export", "HERE/made", "--quiet"),
    "begin with a file": (
        *("init", "HERE/made/recipe.toml", "--from", "HERE/sw-train.tsv", "--source", "sw"),
        *("--target", "sr=HERE/text.txt", "--split", "34,33,33", "--force", "--quiet"),
    ),
    "check a corpus": ("corpus", "check", "HERE/own.toml", "--data", "HERE", "--quiet"),
}

DESCRIPTION = """
kind = "text"
files = "{language}-{split}.tsv"
"""

KILLED = """
import os, signal, sys
number, folder, out, *words = sys.argv[1:]
calls = 0

def count(event, arguments):
    global calls
    if event in ("isogloss.shared_file", "open", "os.mkdir", "os.rename", "os.remove", "os.rmdir"):
        if arguments and isinstance(arguments[0], str) and arguments[0].startswith(folder):
            calls += 1
            if calls == int(number):
                os.kill(os.getpid(), signal.SIGKILL)

sys.addaudithook(count)
from isogloss.cli import main
try:
    main(words)
finally:
    number = "0"
    with open(out, "w") as file:
        file.write(str(calls))
"""

REFUSED = """
import isogloss, os, sys, sysconfig
places = {os.path.dirname(isogloss.__file__), *map(sysconfig.get_path, ("purelib", "platlib"))}
writing = os.O_WRONLY | os.O_RDWR | os.O_CREAT

def refuse(event, arguments):
    path = arguments[0] if arguments else None
    if not isinstance(path, str) or not path.startswith(tuple(places)) or "__pycache__" in path:
        return
    if event == "open":
        mode, flags = arguments[1:3]
        writes = bool(flags & writing) or any(letter in "wax+" for letter in mode or "")
    else:
        writes = event in ("os.mkdir", "os.rename", "os.remove", "os.rmdir", "os.link", "os.symlink")
    if writes:
        os.write(2, f"refused: {event} {path}\\n".encode())
        raise OSError(30, "Read-only file system", path)

sys.addaudithook(refuse)
from isogloss.cli import main
main(sys.argv[1:])
"""


def files_in(folder: Path) -> dict[str, bytes]:
    """Return the files in a folder by name, without logs of leases, which differ by process."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
        and "log" not in path.parts
        and path.name not in ("made.json", "checksums.json", "plan.json")
    }


def begin(path: Path) -> None:
    path.mkdir()
    (path / "text.txt").write_text("a b c\nd e\n", encoding="utf-8")
    (path / "sw-train.tsv").write_text("label\ttext\nloc\ta b\nper\tc d\n", encoding="utf-8")
    (path / "own.toml").write_text(DESCRIPTION)


def call(path: Path, verb: str, index: int = 0) -> int:
    """Run a verb and kill it at a step, if that is not 0. Return how it ended."""
    words = [word.replace("HERE", str(path)) for word in VERBS[verb]]
    process = Forked(
        [sys.executable, "-c", KILLED, str(index), f"{path}/", f"{path}.calls", *words],
        cwd=path, env={**os.environ, "XDG_CACHE_HOME": f"{path}.cache"}, stderr=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
    )  # fmt: skip
    return process.wait()


def check_killed(tmp_path: Path, verb: str, share: float) -> None:
    """Kill a verb at a share of its steps, and repeat it each time."""
    whole_folder = tmp_path / "whole"
    begin(whole_folder)
    assert call(whole_folder, verb) == 0
    expected = files_in(whole_folder)
    calls = int(Path(f"{whole_folder}.calls").read_text())
    for index in range(1, calls + 1, max(1, round(1 / share)) if share < 1 else 1):
        folder = tmp_path / f"killed-{index}"
        begin(folder)
        assert call(folder, verb, index) == -signal.SIGKILL
        left = files_in(folder)
        contents = {name: content for name, content in left.items() if not Path(name).name.startswith(".")}
        half_names = [
            name for name, content in contents.items() if name in expected and content != expected[name]
        ]
        assert half_names == [], index
        assert call(folder, verb) == 0, index
        assert files_in(folder) == expected, index


@pytest.mark.nightly
@pytest.mark.slow
def test_a_verb_that_was_killed_in_the_middle_can_be_repeated(tmp_path):
    check_killed(tmp_path, "translate a text", 0.03)


@pytest.mark.nightly
@pytest.mark.parametrize("verb", VERBS)
def test_a_verb_that_was_killed_at_any_step_can_be_repeated(tmp_path, verb):
    check_killed(tmp_path, verb, 1 if verb != "export languages" else 0.03)


@pytest.mark.nightly
@pytest.mark.slow
def test_nothing_is_written_where_packages_are_installed(tmp_path):
    (tmp_path / "r.toml").write_text(TINY)
    verbs = (
        ("run", "r.toml", "--out", "runs", "--engine", "serial", "--quiet"),
        ("report", "runs", "--quiet"),
    )
    for words in verbs:
        process = Forked(
            [sys.executable, "-c", REFUSED, *words],
            cwd=tmp_path, env={**os.environ, "XDG_CACHE_HOME": str(tmp_path / "cache")},
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
        )  # fmt: skip
        _, errors = process.communicate()
        assert process.returncode == 0, errors
        assert "refused" not in errors
    assert (tmp_path / "runs" / "report.html").exists()
