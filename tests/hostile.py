"""A study in a folder that others may write to: what commands open in it, and what others may put there.

Every command of a tiny study is run once while the paths are recorded that it reads or writes below the
folder. Each of them is then replaced by each kind of hostile file, and the command is run again.
"""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from forked import Forked
from isogloss.core.processes import host

RECIPE = """
title = "Shared"
encoder = "shipped"

[grid]
corpus = "wikiann"
source = "qaa"
targets = ["qab"]
seeds = [0]
examples = 16
dev_examples = 8

[grid.optimization]
epochs = 1
learning_rate = 5e-4
batch_size = 8
checkpoint_every = 1
precision = "float32"

[[grid.method]]
name = "source-only"

[[measure]]
name = "scores"
examples = 8
"""

ANOTHER_METHOD = """
[[grid.method]]
name = "oracle-stopping"
"""
"""Addition to the recipe if systems are compared."""

SECONDS = 120.0
"""A process that lives longer hangs: on an idle machine it takes two."""

MOST_MEMORY = 1 << 30
"""Bytes that a command may take beyond those that its process has at its start."""

CHILD = """
import json, os, resource, sys
from pathlib import Path
import hostile
hostile.be(json.loads(sys.argv.pop()))
"""


@dataclass(frozen=True)
class Command:
    """A command, and the folder that it begins with."""

    words: Sequence[str]
    """RUNS stands for the folder of runs, MODEL for the run with a model, HERE for the folder around it."""
    begins: str
    """One of ``STATES``."""


COMMANDS: Mapping[str, Command] = {
    "run": Command(("run", "HERE/r.toml", "--out", "RUNS", "--engine", "serial", "--quiet"), "empty"),
    "resume": Command(
        ("run", "HERE/r.toml", "--out", "RUNS", "--engine", "serial", "--quiet", "--no-report"), "interrupted"
    ),
    "run again": Command(
        ("run", "HERE/r.toml", "--out", "RUNS", "--engine", "serial", "--quiet", "--no-report"), "finished"
    ),
    "report": Command(("report", "RUNS", "--quiet"), "finished"),
    "list": Command(("list", "runs", "--in", "RUNS"), "finished"),
    "compare": Command(("compare", "RUNS", "--against", "source-only"), "compared"),
    "export": Command(("export", "RUNS/MODEL", "HERE/exported", "--quiet"), "finished"),
    "score": Command(("results", "RUNS", "--to", "HERE/results"), "finished"),
}


def be(request: Mapping[str, object]) -> None:
    """Be the process of a command: with short leases, bounded memory and, if asked, a record of its paths."""
    import resource

    from isogloss.cli import main
    from isogloss.reports.drawing import Figure
    from isogloss.store import leases, store
    from isogloss.training.checkpoints import Checkpoints

    board = leases.FolderBoard
    log = leases.LOG
    store.leases_in = cache(  # Who waits for a lease that nobody renews waits for a second.
        lambda root: leases.Leases(board(root / leases.LEASES), log=log, duration=1.0)
    )
    Figure.drawn = lambda self, layout, *formats: dict.fromkeys(formats, b"<svg/>")
    if request.get("dies"):
        save = Checkpoints.save

        def save_and_die(*args: object, **options: object) -> None:
            save(*args, **options)
            os._exit(0)

        Checkpoints.save = save_and_die
    calls = request.get("seen")
    if calls:
        _record(Path(str(request["runs"])), Path(str(calls)))
    else:
        now = int(Path("/proc/self/statm").read_text().split()[5]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_DATA, (now + MOST_MEMORY, now + MOST_MEMORY))
    main([str(word) for word in request["words"]])


def _record(runs: Path, calls: Path) -> None:
    """Write the names below a folder of all that this process opens, lists, renames or removes there."""
    text = set[str]()
    file = calls.open("a", encoding="utf-8")

    def hear(event: str, args: tuple[object, ...]) -> None:
        if event.startswith(("open", "os.", "shutil.", "isogloss.")):
            for path in args:
                if isinstance(path, str) and path.startswith(f"{runs}/") and path not in text:
                    text.add(path)
                    file.write(f"{path.removeprefix(f'{runs}/')}\n")
                    file.flush()

    sys.addaudithook(hear)


@dataclass(frozen=True)
class Ended:
    """Output and exit code of a command."""

    code: int | None
    """None where it hung."""
    errors: str


def call(folder: Path, name: str, *, calls: Path | None = None, dies: bool = False) -> Ended:
    """Run a command on the folder ``here/runs``."""
    runs = folder / "runs"
    command = COMMANDS[name]
    model = next((path.parent.name for path in sorted(runs.glob("*/model"))), "MODEL")
    if (folder / "model").exists():
        model = (folder / "model").read_text()
    places = {"RUNS": str(runs), "HERE": str(folder), "MODEL": model}
    words = list(command.words)
    for place, path in places.items():
        words = [word.replace(place, path) for word in words]
    request = {"words": words, "runs": str(runs), "seen": calls and str(calls), "dies": dies}
    environment = {
        **os.environ,
        "PYTHONPATH": str(Path(__file__).parent),
        "XDG_CACHE_HOME": str(folder / "c"),
    }
    errors = folder / "errors"
    errors.touch()
    program = f"import os; os.dup2(os.open({str(errors)!r}, os.O_WRONLY), 2)\n{CHILD}"
    process = Forked(
        [sys.executable, "-c", program, json.dumps(request)],
        env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=folder,
    )  # fmt: skip
    try:
        result = process.wait(SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
        return Ended(None, errors.read_text(errors="replace"))
    return Ended(result, errors.read_text(errors="replace"))


def _write(content: bytes) -> Callable[[Path, Path], object]:
    return lambda path, _: path.write_bytes(content)


def _sparse(path: Path, _: Path) -> None:
    with path.open("wb") as file:
        file.truncate(2 << 30)


NUMBERS = {
    "process": f"{host()}-\u00b2-1", "pid": 10**400, "machine": "\u202e" * 3, "held": True, "beat": -1,
    "size": -1, "crc32": 5, "id": 1e308, "runs": [-1], "seconds": -1e300, "step": -(10**300),
}  # fmt: skip

KINDS: Mapping[str, Callable[[Path, Path], object]] = {
    "link to a file": lambda path, outside: path.symlink_to(outside / "file"),
    "link to a folder": lambda path, outside: path.symlink_to(outside / "folder"),
    "dangling link": lambda path, outside: path.symlink_to(outside / "nothing"),
    "pipe": lambda path, _: os.mkfifo(path),
    "folder": lambda path, _: (path.mkdir(), (path / "inside").write_text("x")),
    "empty": _write(b""),
    "nested": _write(b'{"a":' * 100_000),
    "sparse": _sparse,
    "odd numbers": _write(json.dumps(NUMBERS, ensure_ascii=False).encode()),
    "no text": _write(bytes(range(256))),
}


def victim(path: Path) -> Path:
    """Make a folder with files of somebody else. Return it."""
    outside = path / "outside"
    (outside / "folder" / "model").mkdir(parents=True)
    for name in ("file", "folder/runs.csv", "folder/record.json", "folder/config.json", "folder/model/x"):
        (outside / name).write_text("mine\n")
    return outside


def content_of(folder: Path) -> dict[str, tuple[str, int]]:
    """Return the files and folders below one, with contents and modes."""
    return {
        path.relative_to(folder).as_posix(): (path.read_text() if path.is_file() else "", path.stat().st_mode)
        for path in sorted(folder.rglob("*"))
    }


def put_hostile(path: Path, kind: str, outside: Path) -> None:
    """Replace what is at a path by a hostile file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.is_symlink() or path.is_file():
        path.unlink()
    elif path.is_dir():
        shutil.rmtree(path)
    KINDS[kind](path, outside)


def faults(path: Path, name: str, place: str, kind: str) -> list[str]:
    """Run a command on a copy in which a file is hostile. Return what is wrong with how it ended."""
    outside = victim(path)
    texts_before = content_of(outside)
    put_hostile(path / "runs" / place, kind, outside)
    result = call(path, name)
    wrong = []
    if content_of(outside) != texts_before:
        wrong.append("it changed a file outside")
    if result.code is None:
        wrong.append("it hung")
    elif result.code not in (0, 1, 2):
        wrong.append(f"it ended with {result.code}")
    if "a bug in isogloss" in result.errors or "Traceback" in result.errors:
        wrong.append(f"it called this a bug: {result.errors[-300:]}")
    elif result.code and not any(part in result.errors for part in _names(place)):
        wrong.append(f"it ended with {result.code} and named no file: {result.errors[-300:]}")
    if _is_published(path):
        wrong.append("it published what a link leads to")
    return wrong


def _names(place: str) -> Iterator[str]:
    """Yield names by which a message may name a file: its own, or a folder's that it is in."""
    yield from (part for part in Path(place).parts)


def _is_published(folder: Path) -> bool:
    return any(
        "mine" in path.read_text(errors="replace")
        for top in ("exported", "results")
        for path in (folder / top).rglob("*")
        if path.is_file() and path.stat().st_size < 1000
    )


STATES = ("empty", "interrupted", "finished", "compared")
"""Commands on a folder of runs. Compared is a finished study of two methods."""


def make_states(base: Path) -> None:
    """Make a folder for each state of the study, to be copied for each case."""
    for state in STATES:
        (base / state).mkdir(parents=True)
        more = ANOTHER_METHOD if state == "compared" else ""
        (base / state / "r.toml").write_text(RECIPE + more)
    call(base / "finished", "run")
    call(base / "compared", "run")
    (model,) = (base / "finished" / "runs").glob("*/model")
    call(base / "interrupted", "run", dies=True)
    for state in STATES:
        (base / state / "model").write_text(model.parent.name)


def paths_of(base: Path, name: str, inputs: Path) -> list[str]:
    """Return the paths in the folder of runs that a command opens, without those named after a process."""
    shutil.copytree(base / COMMANDS[name].begins, inputs)
    paths_before = {path.relative_to(inputs / "runs").as_posix() for path in (inputs / "runs").rglob("*")}
    folder = inputs / "seen"
    folder.touch()
    result = call(inputs, name, calls=folder)
    assert result.code == 0, (name, result)
    paths_after = {path.relative_to(inputs / "runs").as_posix() for path in (inputs / "runs").rglob("*")}
    paths = {
        *folder.read_text().splitlines(),
        *(paths_before if name in ("report", "run again") else ()),
        *(paths_after - paths_before),
    }
    return sorted(path for path in paths if host() not in path and path[:2] != "c/")
