"""Pause a process at a rename for longer than its lease, resume it, and check that both processes end well.

    python benchmarks/paused.py --rounds 24 --at model --at record.json
    python benchmarks/paused.py --rounds 8 --bucket

Each round starts a small recipe in two processes that share a folder. The first stops itself (SIGSTOP) right
before, or right after, a file or folder gets its name: a model, a record, what is written with it, the second
checkpoint, a lease. The second takes the run over. The first resumes after the lease, after a first result,
or at the end of the second. The exit code is 1 unless both end with 0, records equal an undisturbed run, and
all temporary files are removed.

Rounds go through all places, sides and moments in turn; the last three of them pause at a random moment. With
``--bucket`` the two processes share a bucket of a local server and have separate caches; they pause around
uploads. A run of this recipe is shorter than the time between uploads of checkpoints, so that no pause is at
one.
"""

import argparse
import math
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from fnmatch import fnmatch
from functools import partial
from itertools import cycle, islice, product
from pathlib import Path

from isogloss.store.leases import LEASES
from isogloss.features.buckets.remote import Remote
from isogloss.store.store import PRECISION
from isogloss.core.atomic_files import write_bytes
from isogloss.store import store_at
from kills import RECIPE, STUCK, Found, look, records

PLACES = ("model", "record.json", "made.json", "checksums.json", "checkpoint-*", "lease")
IN_A_BUCKET = ("model", "record.json", "made.json", "files.json", "lease")
ANYWHERE = "anything"
"""The place of a pause at a random moment."""
SIDES = ("before", "after")
MOMENTS = ("starting", "at work", "done")
LEASE_DURATION = 2.0
"""Seconds: short, so that a round does not wait for a minute."""

CLAIMED = re.compile(r'"run": "[0-9a-f]{12}", "claim": \d+, "event": "claimed"')
"""In a log of leases: a run that was leased, which what one process at a time does is not."""

LONGEST = 3.0
"""Seconds after the first lease within which a process is stopped at a random moment."""

SMALL = RECIPE.partition('[[grid.method]]\nname = "target-only"')[0] + (
    '[[measure]]\nname = "scores"\nexamples = 8\n'
)
"""A model and its scores."""


@dataclass(frozen=True)
class Pause:
    """Place where the first process stops, and moment when it resumes."""

    place: str
    side: str
    moment: str

    def __str__(self) -> str:
        """Say it in words."""
        return f"{self.side} {self.place}, until the other is {self.moment}"


def pauses(places: Sequence[str] = PLACES) -> list[Pause]:
    """List every place, side and moment, and random moments. Neighbours differ in place and moment."""
    all_pauses = [Pause(*parts) for parts in product(places, SIDES, MOMENTS)]
    shuffled_pauses = [all_pauses[index * 7 % len(all_pauses)] for index in range(len(all_pauses))]
    return [*shuffled_pauses, *(Pause(ANYWHERE, "in", moment) for moment in MOMENTS)]


@dataclass(frozen=True)
class Runs:
    """Runs of the recipe in a folder: in a folder next to it, or in a bucket, with a cache each."""

    folder: Path
    out: str
    environment_of: Callable[[str], Mapping[str, str]] | None = None
    """Returns how a machine finds the bucket."""

    @property
    def remote(self) -> Remote:
        return Remote(f"s3://bucket/{self.out}", self.folder / self.out / "copies")

    def start(self, machine: str, *stop: str) -> "subprocess.Popen[bytes]":
        """Start a process, which stops itself once at a place and side."""
        cache = {"XDG_CACHE_HOME": str(self.folder / self.out / machine)}
        environment = {**self.environment_of(machine), **cache} if self.environment_of else {}
        url = self.remote.url if self.environment_of else str(self.folder / self.out)
        return _start_run(self.folder, url, environment, *stop)

    def logs(self) -> dict[str, str]:
        """Return the logs of leases by name."""
        if self.environment_of:
            names = self.remote.listing(f"{LEASES}/log")
            return {name: (self.remote.read(name) or b"").decode() for name in names}
        return {path.name: path.read_text() for path in (self.folder / self.out / LEASES / "log").glob("*")}

    def list_made(self) -> set[str]:
        """List what the runs have made so far."""
        if self.environment_of:
            return {name for name in self.remote.listing() if "/" in name and not name.startswith(LEASES)}
        folder = self.folder / self.out
        return {str(path) for name in (*PLACES, "work/checkpoint-*") for path in folder.glob(f"*/{name}")}

    def copy_folder(self) -> Path:
        """Return a folder with all files."""
        for name in self.remote.listing() if self.environment_of else ():
            write_bytes(self.remote.root, name, self.remote.read(name) or b"")
        return self.remote.root if self.environment_of else self.folder / self.out


def run_paused(runs: Runs, pause: Pause) -> tuple[int, int]:
    """Run the recipe in two processes, the first of them paused, and return their exit codes."""
    anywhere = pause.place == ANYWHERE
    first_process = runs.start("first", *(() if anywhere else (pause.place, pause.side)))
    second = None
    try:
        if anywhere:
            _wait(lambda: bool(runs.logs()) or first_process.poll() is not None, str(pause))
            time.sleep(random.uniform(0, LONGEST))
            first_process.send_signal(signal.SIGSTOP)
        _wait(lambda: _is_stopped(first_process) or first_process.poll() is not None, f"pause {pause}")
        if first_process.poll() is not None:
            raise RuntimeError(
                f"the first process ended with {first_process.returncode} before it stopped: {pause}"
            )
        second = runs.start("second")
        logs = runs.logs().keys()
        result = runs.list_made()
        come = {
            "starting": lambda: any(
                CLAIMED.search(text) for name, text in runs.logs().items() if name not in logs
            ),
            "at work": lambda: runs.list_made() != result,
            "done": lambda: False,
        }[pause.moment]
        _wait(lambda: come() or second.poll() is not None, str(pause))
        first_process.send_signal(signal.SIGCONT)
        return first_process.wait(timeout=STUCK), second.wait(timeout=STUCK)
    finally:
        for process in (first_process, second):
            if process is not None and process.poll() is None:
                process.kill()
                process.wait()


def run_undisturbed(folder: Path, text: str) -> dict[str, bytes]:
    """Run the recipe of a folder in one process, and return its records."""
    if exit_code := Runs(folder, text).start("alone").wait():
        raise RuntimeError(f"the undisturbed run ended with {exit_code}")
    return records(folder / text)


def _start_run(
    folder: Path, out_folder: str, environment: Mapping[str, str], *stop: str
) -> "subprocess.Popen[bytes]":
    words = ["run", str(folder / "recipe.toml"), "--out", out_folder, "--engine", "serial"]
    words = [sys.executable, __file__, "--child", *(stop or ("", "")), *words, "--quiet", "--no-report"]
    environment = {**os.environ, **environment}
    return subprocess.Popen(words, env=environment, stdout=subprocess.DEVNULL, start_new_session=True)


def child(pause_at: str, side: str, words: list[str]) -> None:
    """Run isogloss with short leases in a process that stops itself once."""
    from isogloss.cli import main as isogloss
    from isogloss.training import checkpoints

    checkpoints.CHECKPOINT_SHARE = math.inf  # Each checkpoint that is due is written.
    store = store_at(words[words.index("--out") + 1])
    store.leases.duration = LEASE_DURATION
    if pause_at == "lease":
        board = type(store.leases.board)
        _stop_around(board, "create", side, lambda _, name, __: bool(re.match(r"[0-9a-f]{12}\.1$", name)))
    elif pause_at and store.url:
        _stop_around(Remote, "_put", side, lambda _, names: any(map(partial(_is_at, pause_at), names)))
        _stop_around(Remote, "write", side, lambda _, name, __, **___: _is_at(pause_at, name))
    elif pause_at:
        index = iter(range(1000))
        nth = 1 if pause_at.startswith("checkpoint") else 0

        def is_it(_: object, to: object) -> bool:
            return fnmatch(Path(str(to)).name, pause_at) and next(index) == nth

        _stop_around(os, "rename", side, is_it)
        _stop_around(os, "replace", side, is_it)
    isogloss(words)


def _stop_around(owner: object, name: str, side: str, is_it: Callable[..., bool]) -> None:
    """Let this process stop before or after a call, once."""
    call = getattr(owner, name)
    stops_made = []

    def around(*arguments: object, **options: object) -> object:
        stops = not stops_made and is_it(*arguments)
        if stops:
            stops_made.append(True)
        if stops and side == "before":
            os.kill(os.getpid(), signal.SIGSTOP)
        result = call(*arguments, **options)
        if stops and side == "after":
            os.kill(os.getpid(), signal.SIGSTOP)
        return result

    setattr(owner, name, around)


def _is_stopped(process: "subprocess.Popen[bytes]") -> bool:
    try:
        stat = Path(f"/proc/{process.pid}/stat").read_text()
    except FileNotFoundError:  # It ended meanwhile.
        return False
    return stat.rpartition(")")[2].split()[0] == "T"


def _is_at(pause_at: str, name: str) -> bool:
    """Return whether an uploaded file is the one of a pause, or a file of the model."""
    return f"/{pause_at}" in name


def _wait(condition: Callable[[], bool], text: str) -> None:
    end = time.monotonic() + STUCK
    while not condition():
        if time.monotonic() > end:
            raise TimeoutError(text)
        time.sleep(0.02)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--rounds", type=int, default=len(pauses()))
    parser.add_argument(
        "--at",
        action="append",
        choices=[*dict.fromkeys((*PLACES, *IN_A_BUCKET)), ANYWHERE],
        help="where; may be given again; else all",
    )
    parser.add_argument("--bucket", action="store_true", help="share a bucket (needs moto), not a folder")
    parser.add_argument("--folder", type=Path, help="where runs are made; else a temporary folder")
    return parser.parse_args()


def play_round(
    folder: Path,
    undisturbed_records: dict[str, bytes],
    pause: Pause,
    environment_of: Callable[[str], Mapping[str, str]] | None = None,
) -> tuple[tuple[int, int], int, dict[str, int]]:
    """Play a round in a folder with the undisturbed run, and return exit codes, differences and leftovers."""
    out_folder = folder / f"{pause.place.strip('-*')}-{pause.side}-{pause.moment.replace(' ', '-')}"
    out_folder.mkdir()
    runs = Runs(folder, out_folder.name, environment_of)
    if environment_of:
        runs.remote.write(PRECISION, (folder / "whole" / PRECISION).read_bytes())
    else:
        shutil.copy(folder / "whole" / PRECISION, out_folder)
    codes = run_paused(runs, pause)
    result = Found()
    look(runs.copy_folder(), result, undisturbed_records)
    shutil.rmtree(out_folder)
    return codes, result.differing, dict(result.left)


def main() -> None:
    """Pause the given number of times, and print the results."""
    options = _options()
    chosen_pauses = pauses(IN_A_BUCKET if options.bucket else PLACES)
    chosen_pauses = [pause for pause in chosen_pauses if not options.at or pause.place in options.at]
    good_value = 0
    environment_of = None
    with ExitStack() as stack:
        name = stack.enter_context(tempfile.TemporaryDirectory(dir=options.folder))
        if options.bucket:
            sys.path.append(str(Path(__file__).parents[1] / "tests"))
            from s3_server import s3_server

            environment_of = stack.enter_context(s3_server()).environment_of
            os.environ.update(environment_of("benchmark"))
        folder = Path(name)
        (folder / "recipe.toml").write_text(SMALL, encoding="utf-8")
        undisturbed_records = run_undisturbed(folder, "whole")
        for index, pause in enumerate(islice(cycle(chosen_pauses), options.rounds), 1):
            began = time.monotonic()
            codes, differing, left = play_round(folder, undisturbed_records, pause, environment_of)
            is_good = (codes, differing, left) == ((0, 0), 0, {})
            good_value += is_good
            outcome = f"exit codes {codes[0]} and {codes[1]}, {differing} differing, left {left or 'nothing'}"
            text = f"{'good' if is_good else 'BAD'}: {pause}: {outcome}"
            print(f"[{index}/{options.rounds}] {text} ({time.monotonic() - began:.0f} s)", flush=True)
    print(f"{good_value} of {options.rounds} rounds good")
    sys.exit(good_value < options.rounds)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        child(sys.argv[2], sys.argv[3], sys.argv[4:])
    main()
