"""Killed at any moment and started again, a recipe comes to the records of one that was not disturbed."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

import isogloss
from isogloss.core.errors import StorageError
from isogloss.core.records import RECORD
from isogloss.experiments.store import WORK

RECIPE = """
title = "Seconds"
encoder = "shipped"

[grid]
corpus = "wikiann"
source = "qaa"
targets = ["qab"]
seeds = [0]
examples = 160
dev_examples = 8
optimization = { epochs = 2, learning_rate = 5e-4, batch_size = 8, checkpoint_every = 4 }

[[grid.method]]
name = "source-only"

[[grid.method]]
name = "target-only"

[[grid.method]]
name = "bilingual"

[[measure]]
name = "plane"
examples = 40
alphas = [-0.5, 0.0, 0.5, 1.0]
"""
PATIENCE = 120
"""Seconds a busy machine may take until what is waited for."""


def command(folder: Path, out: str, engine: str) -> list[str]:
    return [
        *(sys.executable, "-m", "isogloss", "run", str(folder / "r.toml"), "--out", str(folder / out)),
        *("--engine", engine, "--jobs", "2", "--quiet", "--no-report"),
    ]


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The folder with the recipe, and the records of a run that nobody disturbed."""
    folder = tmp_path_factory.mktemp("killed")
    (folder / "r.toml").write_text(RECIPE)
    return folder, records(isogloss.run(folder / "r.toml", out=folder / "whole", jobs=1, report=False).out)


def in_training(out: Path) -> bool:
    """Tell whether a model is half trained."""
    return any(out.glob(f"*/{WORK}/checkpoint-*"))


def in_plane(out: Path) -> bool:
    """Tell whether all models are there, and the plane through them has begun."""
    return len(list(out.glob("*/model"))) == 3 and len(folders(out)) == 4


@pytest.mark.slow
@pytest.mark.parametrize(("engine", "moment"), [("processes", in_training), ("serial", in_plane)])
def test_killed_and_started_again_it_comes_to_the_same(whole, engine: str, moment: Callable[[Path], bool]):
    folder, undisturbed = whole
    out = folder / f"{engine}-{moment.__name__}"
    running = subprocess.Popen(command(folder, out.name, engine), stdout=subprocess.DEVNULL)
    wait_until(lambda: moment(out) or running.poll() is not None)
    children = descendants(running.pid)
    running.send_signal(signal.SIGKILL)
    assert running.wait() == -signal.SIGKILL, "it was done before it could be killed"
    wait_until(lambda: not any(map(is_alive, children)))
    assert records(out) != undisturbed
    begun = records(out)

    isogloss.run(folder / "r.toml", out=out, jobs=1 if engine == "serial" else 2, report=False)
    assert records(out) == undisturbed
    assert begun.items() <= undisturbed.items()
    assert not list(out.glob("*/work")) + list(out.glob("*/.*.tmp"))


@pytest.mark.slow
def test_two_at_once_do_not_get_in_each_others_way(whole):
    folder, undisturbed = whole
    first = subprocess.Popen(command(folder, "twice", "serial"), stdout=subprocess.DEVNULL)
    wait_until(lambda: any((folder / "twice").glob("*/")))
    first.send_signal(signal.SIGSTOP)  # It holds the folder, however long the second one takes to start.
    with pytest.raises(StorageError, match=rf"another process \({first.pid}\) is making runs in this folder"):
        isogloss.run(folder / "r.toml", out=folder / "twice", jobs=1, report=False)
    first.send_signal(signal.SIGCONT)
    assert first.wait() == 0
    assert records(folder / "twice") == undisturbed


@pytest.mark.slow
def test_an_interruption_is_one_line_and_leaves_no_process(whole):
    folder, undisturbed = whole
    words = command(folder, "interrupted", "processes")
    # What a shell runs in the background ignores Ctrl-C, and so would this process if the tests run there.
    heeds = partial(signal.signal, signal.SIGINT, signal.SIG_DFL)
    running = subprocess.Popen(
        words,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        preexec_fn=heeds,  # noqa: PLW1509
    )
    wait_until(lambda: in_training(folder / "interrupted"))
    children = descendants(running.pid)
    os.killpg(running.pid, signal.SIGINT)  # What a terminal does at Ctrl-C.
    _, said = running.communicate(timeout=PATIENCE)
    assert running.returncode == 130
    assert said == (
        "isogloss: interrupted. Finished runs are kept; the same command goes on where it stopped.\n"
    )
    wait_until(lambda: not any(map(is_alive, children)))
    assert records(folder / "interrupted").items() <= undisturbed.items()


def records(out: Path) -> dict[str, bytes]:
    return {path.parent.name: path.read_bytes() for path in out.glob(f"*/{RECORD}")}


def folders(out: Path) -> list[Path]:
    return [path for path in out.glob("*/") if path.name not in {"figures", "tables"}]


def wait_until(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end, "waited too long"
        time.sleep(0.02)


def descendants(pid: int) -> list[int]:
    """List the processes below one, from /proc."""
    parents = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            parents[int(path.parent.name)] = int(path.read_text().rpartition(")")[2].split()[1])
        except (OSError, ValueError):
            continue
    found, new = set(), {pid}
    while new:
        new = {child for child, parent in parents.items() if parent in new} - found
        found |= new
    return sorted(found)


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return "Z" not in Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
