"""Share one store between processes for minutes under kills, pauses, hostile files and slow storage.

    python benchmarks/soak.py --seconds 600
    python benchmarks/soak.py --seconds 600 --bucket

Several processes compute the runs of one recipe. They are killed, paused and interrupted at random, and
restarted. Meanwhile links to files elsewhere and leases of odd content are planted, and removed after some
seconds, as a user does who reads the message. Storage is slow: in a folder each call takes a millisecond, and
each process sees new files up to 30 seconds late, as a client of NFS does; in a bucket each request takes up
to 50 ms.

At the end nothing may be lost (a record that was there is there, with the same bytes), repeated (by the log
of leases), or changed outside. Some records are compared with an undisturbed process. Processes may end with
0, by a signal, with 130 or 143 after it, and with 2 and a message that names what was planted. Exit code 1 if
anything else was found.
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
from collections.abc import Callable
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1] / "tests"))

from forked import Forked
from kills import BUCKET, records
from late_files import Client, network_folders
from s3_server import s3_server

from isogloss.core.atomic_files import write_bytes
from isogloss.core.records import RECORD
from isogloss.store.leases import LEASES
from isogloss.features.buckets.remote import Remote

RECIPE = """
title = "Soak"
encoder = "shipped"

[grid]
corpus = "wikiann"
source = "qaa"
targets = ["qab"]
seeds = [SEEDS]
examples = 24
dev_examples = 8

[grid.optimization]
epochs = 2
learning_rate = 5e-4
batch_size = 8
checkpoint_every = 2
precision = "float32"

[[grid.method]]
name = "source-only"

[[measure]]
name = "scores"
examples = 8
"""

SIGNALS = (signal.SIGKILL, signal.SIGKILL, signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGSTOP)
"""Drawn at random, with equal shares."""

INTERVALS = (4.0, 14.0)
"""Seconds between two disturbances."""

PAUSES = (2.0, 70.0)
"""Seconds of a pause: shorter and longer than a lease lasts."""

ODD = (
    b"",
    b"[" * 100_000,
    b'{"a":' * 10_000,
    b"[1,2]",
    bytes(range(256)),
    b'{"process": "x-99999999999999999999-1", "held": true}',
    b'{"held": "no", "token": 5, "reached": {"a": []}, "machine": [1]}',
)
"""Contents of leases that nobody wrote."""

PLANTED_SECONDS = (12.0, 20.0)
"""Longer than the ten seconds in which a holder of a lease finds out."""


@dataclass
class Result:
    """Counts of disturbances and results."""

    seconds: float = 0.0
    signals: Counter[str] = field(default_factory=Counter)
    planted: Counter[str] = field(default_factory=Counter)
    restarts: int = 0
    ended: Counter[str] = field(default_factory=Counter)
    """Processes by exit code. Codes of signals are negative."""
    records: int = 0
    lost: int = 0
    changed: int = 0
    """Records whose bytes changed after they were there."""
    twice: int = 0
    outside: int = 0
    """Files outside the store that were changed, made or removed."""
    failed: int = 0
    compared: int = 0
    differing: int = 0
    """Compared records that differ from the undisturbed process."""
    odd_ends: list[str] = field(default_factory=list)
    """Messages of processes that ended as none may."""

    @property
    def is_good(self) -> bool:
        """Return whether nothing was lost, made twice or changed, and every process ended as it may."""
        faults = (self.lost, self.changed, self.twice, self.outside, self.failed, self.differing)
        return not any(faults) and not self.odd_ends


@dataclass
class Planted:
    """Something planted, and how to remove it."""

    remove: Callable[[], object]
    until: float


class Soak:
    """Processes that share a store, and what disturbs them."""

    def __init__(self, folder: Path, options: argparse.Namespace, environment: dict[str, str]) -> None:
        self.folder = folder
        self.options = options
        self.environment = environment
        self.random = random.Random(options.seed)
        self.result = Result()
        self.store = folder / "runs"
        self.remote = Remote(f"s3://{BUCKET}/soak", folder / "copied") if options.bucket else None
        self.processes: list[Forked] = []
        self.paused: dict[int, float] = {}
        self.planted: list[Planted] = []
        self.seen: dict[str, bytes] = {}
        self.victim = folder / "outside"
        (self.victim / "folder").mkdir(parents=True)
        for name in ("file", "folder/state.json", "folder/record.json"):
            (self.victim / name).write_text("mine\n")
        self.store.mkdir()
        seeds = ", ".join(str(value) for value in range(options.runs))
        (folder / "recipe.toml").write_text(RECIPE.replace("SEEDS", seeds), encoding="utf-8")

    def run(self) -> Result:
        """Disturb the processes until the time is over, then compare."""
        outside_files = self._outside()
        self.processes = [self._start(index) for index in range(self.options.processes)]
        began = time.monotonic()
        while time.monotonic() - began < self.options.seconds:
            time.sleep(self.random.uniform(*INTERVALS))
            self._wake_and_clean()
            self._restart()
            self.random.choice((self._send_signal, self._send_signal, self._plant))()
            self._look()
            print(f"{time.monotonic() - began:.0f} s: {len(self.seen)} records", flush=True)
        self._wake_and_clean(everything=True)
        for process in self.processes:
            process.kill()
            process.wait()
        self._look()
        self.result.seconds = round(time.monotonic() - began)
        self.result.outside = len(outside_files.items() ^ self._outside().items())
        self._count()
        return self.result

    def _start(self, number: int) -> Forked:
        url = self.remote.url if self.remote else str(self.store)
        words = ["run", str(self.folder / "recipe.toml"), "--out", url, "--engine", "serial", "--quiet"]
        request = json.dumps({"words": [*words, "--no-report"], "folder": str(self.store), "number": number})
        errors = self.folder / f"errors-{number}"
        errors.touch()
        program = (
            f"import os, sys; os.dup2(os.open({str(errors)!r}, os.O_WRONLY | os.O_TRUNC), 2); "
            f"sys.path.insert(0, {str(Path(__file__).parent)!r}); import soak; soak.be(sys.argv[1])"
        )
        return Forked(
            [sys.executable, "-c", program, request],
            env={**self.environment, "XDG_CACHE_HOME": str(self.folder / f"cache-{number}")},
            stdout=subprocess.DEVNULL,
            start_new_session=True,
        )

    def _restart(self) -> None:
        for index, process in enumerate(self.processes):
            exit_code = process.poll()
            if exit_code is None:
                continue
            self._note_end(index, exit_code)
            self.result.restarts += 1
            self.processes[index] = self._start(index)

    def _note_end(self, number: int, exit_code: int) -> None:
        self.result.ended[str(exit_code)] += 1
        message = (self.folder / f"errors-{number}").read_text(errors="replace").strip()
        is_named = exit_code == 2 and (LEASES in message or "link" in message)
        if exit_code in (0, 130, 143) or -exit_code in SIGNALS or is_named:  # Or by a second signal.
            return
        self.result.odd_ends.append(f"{exit_code}: {message[-400:]}")

    def _send_signal(self) -> None:
        running = [process for process in self.processes if process.pid not in self.paused]
        if not running:
            return
        process = self.random.choice(running)
        choice = self.random.choice(SIGNALS)
        if choice == signal.SIGSTOP:
            self.paused[process.pid] = time.monotonic() + self.random.choice(PAUSES)
        process.send_signal(choice)
        self.result.signals[choice.name] += 1

    def _wake_and_clean(self, *, everything: bool = False) -> None:
        now = time.monotonic()
        for pid, until in list(self.paused.items()):
            if everything or now > until:
                del self.paused[pid]
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGCONT)
        for obstacle in list(self.planted):
            if everything or now > obstacle.until:
                self.planted.remove(obstacle)
                obstacle.remove()

    def _plant(self) -> None:
        left = sorted(self._plan() - self.seen.keys())
        if not left:
            return
        kind = self.random.choice(("lease", "link")) if self.remote is None else "lease"
        run = self.random.choice(left)
        remove = self._plant_link(run) if kind == "link" else self._plant_lease(run)
        if remove:
            self.result.planted[kind] += 1
            self.planted.append(Planted(remove, time.monotonic() + self.random.uniform(*PLANTED_SECONDS)))

    def _plan(self) -> set[str]:
        with suppress(OSError, ValueError, TypeError):
            content = (
                self.remote.read("plan.json") if self.remote else (self.store / "plan.json").read_bytes()
            )
            return set(json.loads(content)["runs"])
        return set()

    def _plant_lease(self, run: str) -> Callable[[], object] | None:
        """Write a lease that nobody holds, in place of one that is there or of the next one."""
        name = f"{LEASES}/{run}.{self.random.choice((1, 1, 2))}"
        content = self.random.choice(ODD)
        if self.remote:
            remote = self.remote
            remote.write(name, content)
            return lambda: remote.remove([name]) if remote.read(name) == content else None
        path = self.store / name
        path.write_bytes(content)
        return lambda: path.unlink() if path.exists() and path.read_bytes() == content else None

    def _plant_link(self, run: str) -> Callable[[], object] | None:
        """Put a link to a file or folder elsewhere in place of a lease, a run's folder or what is in it."""
        name, target = self.random.choice(
            (
                (f"{LEASES}/{run}.1", "file"),
                (f"{LEASES}/{run}.2", "file"),
                (f"{LEASES}/damage.1", "file"),
                (run, "folder"),
                (f"{run}/work", "folder"),
                (f"{run}/failed.json", "file"),
                (f"{run}/.record.json.x-1-1.tmp", "file"),
                (f"{LEASES}/log/other.jsonl", "file"),
            )
        )
        path = self.store / name
        if path.is_dir() and not path.is_symlink():
            return None
        path.parent.mkdir(exist_ok=True)
        temporary = self.folder / "link"
        temporary.symlink_to(self.victim / target)
        temporary.replace(path)
        return lambda: path.unlink() if path.is_symlink() else None

    def _look(self) -> None:
        """Compare the records that are there with those that were seen."""
        now = self._records()
        self.result.lost += len(self.seen.keys() - now.keys())
        self.result.changed += sum(now.get(key, content) != content for key, content in self.seen.items())
        self.seen = now

    def _records(self) -> dict[str, bytes]:
        if self.remote is None:
            return records(self.store)
        names = [name for name in self.remote.listing() if name.endswith(f"/{RECORD}")]
        contents = {
            name: self.seen[name.partition("/")[0]] for name in names if name.partition("/")[0] in self.seen
        }
        return {name.partition("/")[0]: contents.get(name) or self.remote.read(name) or b"" for name in names}

    def _count(self) -> None:
        if self.remote:
            for name in self.remote.listing():
                write_bytes(self.remote.root, name, self.remote.read(name) or b"")
            self.store = self.remote.root
            self.seen = records(self.store)
        lines = []
        for path in (self.store / LEASES / "log").iterdir():
            for line in path.read_text().splitlines():
                with suppress(ValueError):  # The last line of a process that was killed.
                    lines.append(json.loads(line))
        run_counts = Counter(
            line["run"] for line in lines if line["event"] == "finished" and line["run"] in self.seen
        )
        self.result.twice = sum(run_count > 1 for run_count in run_counts.values())
        self.result.failed = len(list(self.store.glob("*/failed.json")))
        self.result.records = len(self.seen)
        self._compare()

    def _compare(self) -> None:
        """Make the first runs of the plan in an undisturbed process, and compare records."""
        seeds = ", ".join(str(value) for value in range(self.options.compared))
        (self.folder / "some.toml").write_text(RECIPE.replace("SEEDS", seeds), encoding="utf-8")
        folder = self.folder / "undisturbed"
        words = ["run", str(self.folder / "some.toml"), "--out", str(folder), "--engine", "serial", "--quiet"]
        process = Forked([sys.executable, "-m", "isogloss", *words, "--no-report"], env=self.environment)
        if process.wait():
            sys.exit("the undisturbed process failed")
        for key, content in records(folder).items():
            if key in self.seen:
                self.result.compared += 1
                self.result.differing += content != self.seen[key]

    def _outside(self) -> dict[str, str]:
        return {str(path): path.read_text() if path.is_file() else "" for path in self.victim.rglob("*")}


def be(request: str) -> None:
    """Be one of the processes, on slow storage."""
    options = json.loads(request)
    call = Remote._call
    slow = random.Random(os.getpid())

    def call_slowly(*arguments: object, **keywords: object) -> object:
        time.sleep(slow.uniform(0, 0.05))
        return call(*arguments, **keywords)

    Remote._call = call_slowly
    from isogloss.cli import main

    with network_folders(Client(Path(options["folder"]).resolve(), seconds=30, delay=0.001)):
        main(options["words"])


def main() -> None:
    """Disturb for the given time, and print the results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--processes", type=int, default=4)
    parser.add_argument(
        "--bucket", action="store_true", help="share a bucket of a server on this machine (moto)"
    )
    parser.add_argument("--runs", type=int, default=200, help="models of the recipe")
    parser.add_argument(
        "--compared", type=int, default=4, help="models that an undisturbed process makes, too"
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--folder", type=Path, help="where runs are made; else a temporary folder")
    parser.add_argument("--json", type=Path, help="file for the result")
    options = parser.parse_args()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(dir=options.folder)))
        environment = dict(os.environ)
        if options.bucket:
            environment |= stack.enter_context(s3_server()).environment_of("soak")
            os.environ.update(environment)
        result = Soak(folder, options, environment).run()
    print(json.dumps(vars(result), indent=1))
    if options.json:
        options.json.write_text(json.dumps(vars(result), indent=1) + "\n", encoding="utf-8")
    sys.exit(not result.is_good)


if __name__ == "__main__":
    main()
