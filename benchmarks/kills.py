"""Kill runs at random moments and start them again, until all is done: do records and claims survive that?

    python benchmarks/kills.py --kills 100 --engine serial --engine processes

Each round starts a small recipe with an engine, in two processes that share a folder in every second round,
and kills one of them with SIGKILL again and again: the main process, one that it started, or all. What was
killed is started again until the recipe is done. Then the records are compared with those of a run that
nobody disturbed, and the log of claims says whether a run was made twice. Exit code 1 if anything differs.

The same seed kills after the same waits; how far a run is by then depends on the machine.
"""

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from isogloss.core.records import RECORD
from isogloss.experiments.claims import FOLDER as CLAIMS
from isogloss.experiments.store import WORK

RECIPE = """
title = "To be killed"
encoder = "shipped"

[grid]
corpus = "wikiann"
source = "qaa"
targets = ["qab"]
seeds = [0]
examples = 48
dev_examples = 8
optimization = { epochs = 3, learning_rate = 5e-4, batch_size = 8, checkpoint_every = 3 }

[[grid.method]]
name = "source-only"

[[grid.method]]
name = "target-only"

[[measure]]
name = "interpolation"
between = ["source-only", "target-only"]
alphas = [0.0, 0.5, 1.0]
"""

WHOM = ("main", "worker", "all")
LONGEST = 0.9
"""Part of an undisturbed run's seconds after which a process is killed at the latest."""
STUCK = 600
"""Seconds after which something is taken to wait for ever."""


@dataclass
class Found:
    """What was found with one engine."""

    kills: Counter[str] = field(default_factory=Counter)
    """By whom they hit."""
    rounds: int = 0
    restarts: int = 0
    differing: int = 0
    """Rounds that ended with records other than those of the undisturbed run."""
    twice: int = 0
    """Runs that were made twice."""
    left: Counter[str] = field(default_factory=Counter)
    """What was left behind, by kind."""
    failed: int = 0
    """Processes that ended with an error of their own."""

    @property
    def is_good(self) -> bool:
        """Whether nothing went wrong."""
        return not (self.differing or self.twice or self.left or self.failed)


def main() -> None:
    """Kill as often as is asked for, and print what was found."""
    options = _options()
    drawn = random.Random(options.seed)
    with tempfile.TemporaryDirectory(dir=options.folder) as name:
        folder = Path(name)
        (folder / "recipe.toml").write_text(RECIPE, encoding="utf-8")
        began = time.monotonic()
        if _started(folder, "whole", "serial").wait():
            sys.exit("the undisturbed run failed")
        seconds = time.monotonic() - began
        whole = _records(folder / "whole")
        print(f"undisturbed: {len(whole)} runs in {seconds:.1f} s", flush=True)
        found = {engine: Found() for engine in options.engine}
        while (done := sum(one.kills.total() for one in found.values())) < options.kills:
            engine = min(found, key=lambda one: found[one].kills.total())
            most = min(options.kills - done, options.each)
            _round(folder, engine, _Killing(drawn, most, seconds, found[engine], done, options.kills), whole)
    print(_table(found))
    sys.exit(not all(one.is_good for one in found.values()))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--engine", action="append", help="serial, processes …; each may be given")
    parser.add_argument("--each", type=int, default=4, help="kills in a round, before it may be done")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--folder", type=Path, help="where runs are made; else a temporary folder")
    options = parser.parse_args()
    options.engine = options.engine or ["serial", "processes"]
    return options


@dataclass
class _Killing:
    """The kills of one round."""

    drawn: random.Random
    most: int
    seconds: float
    found: Found
    done: int
    """Kills before this round."""
    of: int


def _round(folder: Path, engine: str, killing: _Killing, whole: dict[str, bytes]) -> None:
    """Start a recipe, kill it until the round's kills are spent or it is done, and look at what is there."""
    found, out = killing.found, f"{engine}-{killing.found.rounds}"
    running = [_started(folder, out, engine) for _ in range(1 + found.rounds % 2)]
    for number in range(killing.most):
        time.sleep(killing.drawn.uniform(0, LONGEST * killing.seconds))
        which = killing.drawn.randrange(len(running))
        whom = killing.drawn.choice(WHOM if engine != "serial" else ("main",))
        is_over = running[which].poll() is not None
        if is_over and all(one.poll() is not None for one in running):
            break
        how = "was done" if is_over else _kill(running[which], whom, killing.drawn)
        if not is_over:
            found.kills[whom] += 1
        done = len(_records(folder / out))
        print(
            f"[{killing.done + number + 1}/{killing.of}] {out}: {whom} {how}, {done}/{len(whole)} done",
            flush=True,
        )
        if running[which].poll() is not None:
            found.failed += running[which].returncode not in (0, -signal.SIGKILL)
            running[which] = _started(folder, out, engine)
            found.restarts += 1
    for one in running:
        found.failed += one.wait(timeout=STUCK) != 0
    _look(folder / out, found, whole)


def _started(folder: Path, out: str, engine: str) -> "subprocess.Popen[bytes]":
    words = [*(sys.executable, "-m", "isogloss", "run", str(folder / "recipe.toml")), "--out"]
    words += [str(folder / out), "--engine", engine, "--jobs", "2", "--quiet", "--no-report"]
    return subprocess.Popen(words, stdout=subprocess.DEVNULL, start_new_session=True)


def _kill(process: "subprocess.Popen[bytes]", whom: str, drawn: random.Random) -> str:
    """Kill a process, one below it, or all of them; return what was done."""
    below = _below(process.pid)
    if whom == "worker":
        if not below:
            return "had not begun"
        victims = [drawn.choice(below)]
    else:
        victims = [process.pid, *(below if whom == "all" else ())]
    for victim in victims:
        try:
            os.kill(victim, signal.SIGKILL)
        except ProcessLookupError:
            continue
    if whom != "worker":
        process.wait()
    return f"killed ({len(victims)} of {1 + len(below)})"


def _below(pid: int) -> list[int]:
    """List the processes below one, from /proc."""
    parents = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            parents[int(path.parent.name)] = int(path.read_text().rpartition(")")[2].split()[1])
        except (OSError, ValueError):
            continue
    found, new = set[int](), {pid}
    while new:
        new = {child for child, parent in parents.items() if parent in new} - found
        found |= new
    return sorted(found)


def _records(out: Path) -> dict[str, bytes]:
    return {path.parent.name: path.read_bytes() for path in out.glob(f"*/{RECORD}")}


def _look(out: Path, found: Found, whole: dict[str, bytes]) -> None:
    """Compare what a round left with the undisturbed run."""
    found.rounds += 1
    found.differing += _records(out) != whole
    lines = [json.loads(line) for path in (out / CLAIMS / "log").iterdir() for line in path.open()]
    made = Counter(line["run"] for line in lines if line["event"] == "finished" and line["run"] in whole)
    found.twice += sum(number > 1 for number in made.values())
    left = {
        "claims": [path for path in (out / CLAIMS).iterdir() if path.name != "log"],
        "work folders": list(out.glob(f"*/{WORK}")),
        "temporary files": [*out.rglob(".*.tmp"), *out.rglob(".*.old")],
        "set aside": [*out.rglob("damaged-*")],
        "failures": list(out.glob("*/failed.json")),
    }
    for kind, paths in left.items():
        if paths:
            found.left[kind] += len(paths)
            print(
                f"  left in {out.name}: {', '.join(str(path.relative_to(out)) for path in paths)}", flush=True
            )


def _table(found: dict[str, Found]) -> str:
    heads = ("engine", "kills", "of", "rounds", "restarts", "differing", "twice", "left", "failed")
    rows = [
        (
            engine,
            one.kills.total(),
            " ".join(f"{whom} {number}" for whom, number in sorted(one.kills.items())),
            one.rounds,
            one.restarts,
            one.differing,
            one.twice,
            " ".join(f"{kind} {number}" for kind, number in one.left.items()) or 0,
            one.failed,
        )
        for engine, one in found.items()
    ]
    return "\n".join(f"| {' | '.join(map(str, row))} |" for row in (heads, ["---"] * len(heads), *rows))


if __name__ == "__main__":
    main()
