"""Pause a process at a rename for longer than its lease, then let it go on: do both processes end well?

    python benchmarks/paused.py --rounds 24 --at model --at record.json

Each round starts a small recipe in two processes that share a folder. The first stops itself (SIGSTOP) right
before, or right after, a file or folder gets its name: a model, a record, what is written with it, the second
checkpoint, a lease. The second one takes the run over. When it has just leased it, when it has made
something, or when it is done, the first goes on. Exit code 1 unless both end with 0, records are those of an
undisturbed run, and nothing is left behind.

Rounds go through all places, sides and moments in turn; the last three of them pause at a random moment.
"""

import argparse
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from fnmatch import fnmatch
from itertools import cycle, islice, product
from pathlib import Path

from isogloss.store.leases import LEASES
from isogloss.store.leases import FolderBoard, leases_in
from kills import RECIPE, STUCK, Found, look, records

PLACES = ("model", "record.json", "made.json", "checksums.json", "checkpoint-*", "claim")
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
    """Where the first process stops, and when it goes on."""

    place: str
    side: str
    moment: str

    def __str__(self) -> str:
        """Say it in words."""
        return f"{self.side} {self.place}, until the other is {self.moment}"


def pauses() -> list[Pause]:
    """List every place, side and moment, and random moments; neighbours differ in place and moment."""
    every = [Pause(*one) for one in product(PLACES, SIDES, MOMENTS)]
    mixed = [every[number * 7 % len(every)] for number in range(len(every))]
    return [*mixed, *(Pause(ANYWHERE, "in", moment) for moment in MOMENTS)]


def paused(folder: Path, out: str, pause: Pause) -> tuple[int, int]:
    """Make the recipe of a folder in two processes, the first of them paused; return their exit codes."""
    anywhere = pause.place == ANYWHERE
    first = _started(folder, out, *(() if anywhere else (pause.place, pause.side)))
    second = None
    try:
        if anywhere:
            _wait(lambda: (folder / out / LEASES).exists() or first.poll() is not None, str(pause))
            time.sleep(random.uniform(0, LONGEST))
            first.send_signal(signal.SIGSTOP)
        _wait(lambda: _is_stopped(first) or first.poll() is not None, f"pause {pause}")
        if first.poll() is not None:
            raise RuntimeError(f"the first process ended with {first.returncode} before it stopped: {pause}")
        second = _started(folder, out)
        known, made = _logs(folder / out), _made(folder / out)
        come = {
            "starting": lambda: any(map(_has_leased, _logs(folder / out) - known)),
            "at work": lambda: _made(folder / out) != made,
            "done": lambda: False,
        }[pause.moment]
        _wait(lambda: come() or second.poll() is not None, str(pause))
        first.send_signal(signal.SIGCONT)
        return first.wait(timeout=STUCK), second.wait(timeout=STUCK)
    finally:
        for process in (first, second):
            if process is not None and process.poll() is None:
                process.kill()
                process.wait()


def undisturbed(folder: Path, out: str) -> dict[str, bytes]:
    """Make the recipe of a folder in one process; return its records."""
    if code := _started(folder, out).wait():
        raise RuntimeError(f"the undisturbed run ended with {code}")
    return records(folder / out)


def _started(folder: Path, out: str, *stop: str) -> "subprocess.Popen[bytes]":
    words = ["run", str(folder / "recipe.toml"), "--out", str(folder / out), "--engine", "serial"]
    words = [sys.executable, __file__, "--child", *(stop or ("", "")), *words, "--quiet", "--no-report"]
    return subprocess.Popen(words, stdout=subprocess.DEVNULL, start_new_session=True)


def child(place: str, side: str, words: list[str]) -> None:
    """Run isogloss with short leases in a process that stops itself once."""
    from isogloss.cli import main as isogloss

    out = Path(words[words.index("--out") + 1])
    leases_in(out).duration = LEASE_DURATION
    if place == "claim":
        _stop_around(
            FolderBoard, "create", side, lambda _, name, __: bool(re.match(r"[0-9a-f]{12}\.1$", name))
        )
    elif place:
        number = iter(range(1000))
        nth = 1 if place.startswith("checkpoint") else 0

        def is_it(_: object, to: object) -> bool:
            return fnmatch(Path(str(to)).name, place) and next(number) == nth

        _stop_around(os, "rename", side, is_it)
        _stop_around(os, "replace", side, is_it)
    isogloss(words)


def _stop_around(owner: object, name: str, side: str, is_it: Callable[..., bool]) -> None:
    """Let this process stop before or after a call, once."""
    call, stopped = getattr(owner, name), []

    def around(*arguments: object, **options: object) -> object:
        stops = not stopped and is_it(*arguments)
        if stops:
            stopped.append(True)
        if stops and side == "before":
            os.kill(os.getpid(), signal.SIGSTOP)
        result = call(*arguments, **options)
        if stops and side == "after":
            os.kill(os.getpid(), signal.SIGSTOP)
        return result

    setattr(owner, name, around)


def _is_stopped(process: "subprocess.Popen[bytes]") -> bool:
    stat = Path(f"/proc/{process.pid}/stat").read_text()
    return stat.rpartition(")")[2].split()[0] == "T"


def _logs(out: Path) -> set[Path]:
    return set((out / LEASES / "log").glob("*"))


def _made(out: Path) -> set[Path]:
    """List what the runs have made so far."""
    return {path for name in (*PLACES, "work/checkpoint-*") for path in out.glob(f"*/{name}")}


def _has_leased(log: Path) -> bool:
    return bool(CLAIMED.search(log.read_text()))


def _wait(condition: Callable[[], bool], what: str) -> None:
    end = time.monotonic() + STUCK
    while not condition():
        if time.monotonic() > end:
            raise TimeoutError(what)
        time.sleep(0.02)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--rounds", type=int, default=len(pauses()))
    parser.add_argument(
        "--at", action="append", choices=[*PLACES, ANYWHERE], help="where; may be given again; else all"
    )
    parser.add_argument("--folder", type=Path, help="where runs are made; else a temporary folder")
    return parser.parse_args()


def played(
    folder: Path, whole: dict[str, bytes], pause: Pause
) -> tuple[tuple[int, int], int, dict[str, int]]:
    """Play a round in a folder with the undisturbed run; return exit codes, what differs and what is left."""
    out = folder / f"{pause.place.strip('-*')}-{pause.side}-{pause.moment.replace(' ', '-')}"
    out.mkdir()
    shutil.copy(folder / "whole" / "precision.json", out)
    codes, found = paused(folder, out.name, pause), Found()
    look(out, found, whole)
    shutil.rmtree(out)
    return codes, found.differing, dict(found.left)


def main() -> None:
    """Pause as often as is asked for, and print what was found."""
    options = _options()
    wanted = [one for one in pauses() if not options.at or one.place in options.at]
    good = 0
    with tempfile.TemporaryDirectory(dir=options.folder) as name:
        folder = Path(name)
        (folder / "recipe.toml").write_text(SMALL, encoding="utf-8")
        whole = undisturbed(folder, "whole")
        for number, pause in enumerate(islice(cycle(wanted), options.rounds), 1):
            began = time.monotonic()
            codes, differing, left = played(folder, whole, pause)
            is_good = (codes, differing, left) == ((0, 0), 0, {})
            good += is_good
            found = f"exit codes {codes[0]} and {codes[1]}, {differing} differing, left {left or 'nothing'}"
            what = f"{'good' if is_good else 'BAD'}: {pause}: {found}"
            print(f"[{number}/{options.rounds}] {what} ({time.monotonic() - began:.0f} s)", flush=True)
    print(f"{good} of {options.rounds} rounds good")
    sys.exit(good < options.rounds)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        child(sys.argv[2], sys.argv[3], sys.argv[4:])
    main()
