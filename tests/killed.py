"""A recipe of a few seconds, to be disturbed in the middle. What is left of it then, and of its processes."""

import json
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from isogloss.core.records import RECORD
from isogloss.store.leases import LEASES
from tiny import as_precise_as

RECIPE = """
title = "Seconds"
encoder = "shipped"

[grid]
corpus = "wikiann"
source = "qaa"
targets = ["qab"]
seeds = [0]
examples = 80
dev_examples = 8
optimization.epochs = 2
optimization.learning_rate = 5e-4
optimization.batch_size = 8
optimization.checkpoint_every = 4
optimization.precision = "float32"

[[grid.method]]
name = "source-only"

[[grid.method]]
name = "target-only"

[[measure]]
name = "interpolation"
between = ["source-only", "target-only"]
examples = 40
alphas = [-0.5, -0.25, 0.0, 0.25, 0.5, 0.75, 1.0, 1.25, 1.5]
"""
LONG = RECIPE.replace("epochs = 2", "epochs = 8").replace("checkpoint_every = 4", "checkpoint_every = 30")
"""Models are half trained for long, with requests for checkpoints at steps that 30 does not divide."""
ALONE = LONG.partition('[[grid.method]]\nname = "target-only"')[0]
"""A recipe with only one of these models."""
PATIENCE = 300
"""Seconds a busy machine may take until what is waited for."""


def command(folder: Path, out_folder: str, engine: str, recipe: str = "r.toml") -> list[str]:
    """Return the command for a recipe's runs in a neighbouring folder, with the precision known there."""
    as_precise_as(folder, folder / out_folder)
    return [
        *(sys.executable, "-m", "isogloss", "run", str(folder / recipe), "--out", str(folder / out_folder)),
        *("--engine", engine, "--quiet", "--no-report", *(() if engine == "serial" else ("--jobs", "2"))),
    ]


def records(path: Path) -> dict[str, bytes]:
    return {path.parent.name: path.read_bytes() for path in path.glob(f"*/{RECORD}")}


def count_runs(path: Path) -> Counter[str]:
    """Count how often each run was computed, by the log of leases."""
    lines = [json.loads(line) for path in (path / LEASES / "log").iterdir() for line in path.open()]
    return Counter(
        line["run"] for line in lines if line["event"] == "finished" and line["run"] in records(path)
    )


def left(path: Path) -> list[Path]:
    """List what only unfinished runs need."""
    leases = [path for path in (path / LEASES).iterdir() if path.name not in ("log", "folder")]
    return [*leases, *path.glob("*/work"), *path.glob("*/.*.tmp"), *path.glob(".*.tmp")]


def folders(path: Path) -> list[Path]:
    return [path for path in path.glob("*/") if path.name not in {"figures", "tables", LEASES}]


def wait_until(condition: Callable[[], object]) -> None:
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
    result = set()
    new_pids = {pid}
    while new_pids:
        new_pids = {child for child, parent in parents.items() if parent in new_pids} - result
        result |= new_pids
    return sorted(result)


def is_alive(pid: int) -> bool:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):  # It may end while its file is open.
        return False
    return "Z" not in stat.rpartition(")")[2].split()[0]
