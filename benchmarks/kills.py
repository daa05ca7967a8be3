"""Kill runs at random moments and restart them until all are finished, then check records and leases.

    python benchmarks/kills.py --kills 100 --engine serial --engine processes
    python benchmarks/kills.py --kills 25 --bucket

Each round starts a small recipe with an engine, in two processes that share a folder in every second round,
and kills one of them with SIGKILL again and again: the main process, one that it started, or all. Killed
processes are restarted until the recipe is done. Then the records are compared with an undisturbed run, and
the log of leases shows repeated runs. The exit code is 1 if a record differs, a run was repeated, files are
left behind, or a process ends with an error. "told" counts errors about runs whose process was killed twice.
These have failed by rule, and are repeated with --retry-failed.

With ``--bucket`` the processes compute runs sequentially in a bucket of a local server, each with a separate
cache. Every second killed process restarts with an empty cache, like a new machine.

The same seed kills after the same waits; how far a run is by then depends on the machine.
"""

import argparse
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from isogloss.core.atomic_files import write_bytes
from isogloss.core.records import RECORD
from isogloss.store.leases import LEASES
from isogloss.features.buckets.remote import Remote
from isogloss.store.store import WORK

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
optimization.epochs = 3
optimization.learning_rate = 5e-4
optimization.batch_size = 8
optimization.checkpoint_every = 3
optimization.precision = "float32"

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
BUCKET = "bucket"
"""Name for the sequential computation in a bucket, in the place of an engine."""


@dataclass
class Found:
    """Results with one engine."""

    kills: Counter[str] = field(default_factory=Counter)
    """By whom they hit."""
    rounds: int = 0
    restarts: int = 0
    differing: int = 0
    """Rounds that ended with records different from the undisturbed run."""
    twice: int = 0
    """Repeated runs."""
    left: Counter[str] = field(default_factory=Counter)
    """Files left behind, by kind."""
    killed_twice: int = 0
    """Processes that told of a run whose process was killed twice: it has failed, until it is retried."""
    errors: int = 0
    """Processes that ended with any other error."""

    @property
    def is_good(self) -> bool:
        """Whether nothing went wrong."""
        return not (self.differing or self.twice or self.left or self.errors)


def main() -> None:
    """Kill the given number of times, and print the results."""
    options = _options()
    rng = random.Random(options.seed)
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(dir=options.folder)))
        if BUCKET in options.engine:
            sys.path.append(str(Path(__file__).parents[1] / "tests"))
            from s3_server import s3_server

            os.environ.update(stack.enter_context(s3_server()).environment_of("benchmark"))
        (folder / "recipe.toml").write_text(RECIPE, encoding="utf-8")
        began = time.monotonic()
        if _start_run(folder, str(folder / "whole"), "serial").wait():
            sys.exit("the undisturbed run failed")
        seconds = time.monotonic() - began
        undisturbed_records = records(folder / "whole")
        print(f"undisturbed: {len(undisturbed_records)} runs in {seconds:.1f} s", flush=True)
        results = {engine: Found() for engine in options.engine}
        while (left := options.kills - _kills(results)) > 0:
            engine = min(results, key=lambda name: results[name].kills.total())
            this_round = _Round(folder, engine, results[engine], rng)
            for kind in this_round.kill(min(left, options.each), seconds):
                count = len(records(this_round.copy_folder()))
                print(
                    f"[{_kills(results)}/{options.kills}] {kind}, {count} of {len(undisturbed_records)} done",
                    flush=True,
                )
            this_round.finish()
            look(this_round.copy_folder(), results[engine], undisturbed_records)
    print(_table(results))
    sys.exit(not all(result.is_good for result in results.values()))


def _kills(results: dict[str, Found]) -> int:
    return sum(result.kills.total() for result in results.values())


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--engine", action="append", help="serial, processes …; each may be given")
    parser.add_argument("--bucket", action="store_true", help="in a bucket, too (needs moto)")
    parser.add_argument("--each", type=int, default=4, help="kills in a round, before it may be done")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--folder", type=Path, help="where runs are made; else a temporary folder")
    options = parser.parse_args()
    options.engine = options.engine or ([] if options.bucket else ["serial", "processes"])
    options.engine += [BUCKET] if options.bucket else []
    return options


@dataclass
class _Round:
    """A recipe in a folder, made by one process or by two, which are killed and started again."""

    folder: Path
    engine: str
    found: Found
    drawn: random.Random
    running: "list[subprocess.Popen[bytes]]" = field(default_factory=list)
    caches: list[str] = field(default_factory=list)
    """Names of the caches of the processes."""

    @property
    def name(self) -> str:
        """Name of its folder of runs."""
        return f"{self.engine}-{self.found.rounds}"

    def kill(self, times: int, seconds: float) -> Iterator[str]:
        """Kill processes up to the given number of times over ``seconds``, and yield what was killed."""
        self.caches = [f"{self.name}-cache-{which_index}" for which_index in range(1 + self.found.rounds % 2)]
        self.running = [self._start(which_index) for which_index in range(len(self.caches))]
        for _ in range(times):
            time.sleep(self.drawn.uniform(0, LONGEST * seconds))
            if all(process.poll() is not None for process in self.running):
                return
            which_position = self.drawn.randrange(len(self.running))
            whom = self.drawn.choice(("main",) if self.engine in ("serial", BUCKET) else WHOM)
            if victims := _kill(self.running[which_position], whom, self.drawn):
                self.found.kills[whom] += 1
                yield f"{self.name}: {whom} killed ({len(victims)})"
            if self.running[which_position].poll() is not None:
                self._end(which_position)
                if self.found.restarts % 2:
                    shutil.rmtree(self.folder / self.caches[which_position], ignore_errors=True)
                self.running[which_position] = self._start(which_position)
                self.found.restarts += 1

    def finish(self) -> None:
        """Wait until all is done, and start once more if a run failed because it was killed twice."""
        codes = [self._end(which_index) for which_index in range(len(self.running))]
        if any(codes):
            self.running = [self._start(0, "--retry-failed")]
            self.found.restarts += 1
            self._end(0)

    def copy_folder(self) -> Path:
        """Return a folder with all files of the round, copied from the bucket if they are there."""
        if self.engine != BUCKET:
            return self.folder / self.name
        remote = Remote(f"s3://{BUCKET}/{self.name}", self.folder / f"{self.name}-copied")
        shutil.rmtree(remote.root, ignore_errors=True)
        for name in remote.listing():
            write_bytes(remote.root, name, remote.read(name) or b"")
        return remote.root

    def _start(self, which_position: int, *options: str) -> "subprocess.Popen[bytes]":
        if self.engine != BUCKET:
            return _start_run(self.folder, str(self.folder / self.name), self.engine, *options)
        cache = {"XDG_CACHE_HOME": str(self.folder / self.caches[which_position])}
        return _start_run(self.folder, f"s3://{BUCKET}/{self.name}", "serial", *options, environment=cache)

    def _end(self, which_position: int) -> int:
        """Wait for a process, return its exit code, and count exits that are neither kills nor failures."""
        exit_code = self.running[which_position].wait(timeout=STUCK)
        if exit_code == 1 and list(self.copy_folder().glob("*/failed.json")):
            self.found.killed_twice += 1
        elif exit_code not in (0, -signal.SIGKILL):
            self.found.errors += 1
        return exit_code


def _start_run(
    folder: Path, text: str, engine: str, *options: str, environment: Mapping[str, str] | None = None
) -> "subprocess.Popen[bytes]":
    words = [sys.executable, "-m", "isogloss", "run", str(folder / "recipe.toml"), "--out", text]
    words += ["--engine", engine, "--quiet", "--no-report", *options]
    words += [] if engine == "serial" else ["--jobs", "2"]
    environment = {**os.environ, **(environment or {})}
    return subprocess.Popen(words, env=environment, stdout=subprocess.DEVNULL, start_new_session=True)


def _kill(process: "subprocess.Popen[bytes]", whom: str, rng: random.Random) -> list[int]:
    """Kill a process, a child of it, or all of them, and return the killed processes."""
    if process.poll() is not None:
        return []
    lower_bound = _list_children(process.pid)
    worker = [rng.choice(lower_bound)] if lower_bound else []
    killed_pids = []
    for victim in {"main": [process.pid], "worker": worker, "all": [process.pid, *lower_bound]}[whom]:
        try:
            os.kill(victim, signal.SIGKILL)
            killed_pids.append(victim)
        except ProcessLookupError:
            continue
    if process.pid in killed_pids:
        process.wait()
    return killed_pids


def _list_children(pid: int) -> list[int]:
    """List the processes below one, from /proc."""
    parents = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            parents[int(path.parent.name)] = int(path.read_text().rpartition(")")[2].split()[1])
        except (OSError, ValueError):
            continue
    child_modules = set[int]()
    new_pids = {pid}
    while new_pids:
        new_pids = {child for child, parent in parents.items() if parent in new_pids} - child_modules
        child_modules |= new_pids
    return sorted(child_modules)


def records(path: Path) -> dict[str, bytes]:
    return {path.parent.name: path.read_bytes() for path in path.glob(f"*/{RECORD}")}


def look(folder: Path, result: Found, undisturbed_records: dict[str, bytes]) -> None:
    """Compare what a round left with the undisturbed run."""
    result.rounds += 1
    result.differing += records(folder) != undisturbed_records
    lines = [json.loads(line) for path in (folder / LEASES / "log").iterdir() for line in path.open()]
    runs = Counter(
        line["run"] for line in lines if line["event"] == "finished" and line["run"] in undisturbed_records
    )
    result.twice += sum(run > 1 for run in runs.values())
    left = {
        "leases": [path for path in (folder / LEASES).iterdir() if path.name not in ("log", "folder")],
        "work folders": list(folder.glob(f"*/{WORK}")),
        "temporary files": [*folder.rglob(".*.tmp"), *folder.rglob(".*.old")],
        "set aside": list(folder.rglob("damaged-*")),
        "failures": list(folder.glob("*/failed.json")),
    }
    for kind, paths in left.items():
        if paths:
            result.left[kind] += len(paths)
            print(
                f"  left in {folder.name}: {', '.join(str(path.relative_to(folder)) for path in paths)}",
                flush=True,
            )


def _table(results: dict[str, Found]) -> str:
    heads = ("engine", "kills", "of", "rounds", "restarts", "differing", "twice", "left", "told", "errors")
    rows = [
        (
            engine,
            result.kills.total(),
            " ".join(f"{whom} {kill}" for whom, kill in sorted(result.kills.items())),
            result.rounds,
            result.restarts,
            result.differing,
            result.twice,
            " ".join(f"{kind} {index}" for kind, index in result.left.items()) or 0,
            result.killed_twice,
            result.errors,
        )
        for engine, result in results.items()
    ]
    return "\n".join(f"| {' | '.join(map(str, row))} |" for row in (heads, ["---"] * len(heads), *rows))


if __name__ == "__main__":
    main()
