"""Processes that are stopped at a rename for longer than their lease, and go on when another has taken over.

    python tests/paused.py FOLDER          # every point, in a folder of its own: 22 rounds, some ten minutes

A process stops itself (SIGSTOP) before or after a file or folder of a run gets its name, or once it has
claimed a run. It goes on while the other process makes the run, or when that has made everything.
"""

import fnmatch
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

LEASE = 1.5
POINTS = (
    *product(("model", "checksums.json", "record.json", "made.json", "checkpoint-*"), ("before", "after")),
    ("claim", "after"),
)
"""What gets its name, and when the process stops."""
MEANWHILE = ("work", "done")
"""How far the other process is when this one goes on."""


def stopping(target: str, when: str) -> None:
    """Let this process stop once, before or after something gets a name that matches."""
    from isogloss.experiments import claims

    left = [target]

    def stop(name: str, now: str) -> None:
        if left and now == when and fnmatch.fnmatch(name, target):
            left.clear()
            os.kill(os.getpid(), signal.SIGSTOP)

    def watched(rename: Callable[..., Any]) -> Callable[..., Any]:
        def call(source: Any, to: Any, **more: Any) -> None:
            stop(Path(to).name, "before")
            rename(source, to, **more)
            stop(Path(to).name, "after")

        return call

    os.rename, os.replace = watched(os.rename), watched(os.replace)
    create = claims.FolderBoard.create

    def created(board: Any, name: str, content: bytes) -> bool:
        done = create(board, name, content)
        if done and len(name.partition(".")[0]) == 12:
            stop("claim", "after")
        return done

    claims.FolderBoard.create = created  # type: ignore[method-assign]


def child(target: str, when: str, *words: str) -> None:
    """Be isogloss with short leases, which stops at a point."""
    from isogloss.cli import main
    from isogloss.experiments import claims

    given = claims.Claims.__init__.__defaults__
    claims.Claims.__init__.__defaults__ = tuple(LEASE if one == claims.LEASE else one for one in given)
    if target != "nowhere":
        stopping(target, when)
    main(list(words))


def started(folder: Path, out: str, target: str = "nowhere", when: str = "") -> subprocess.Popen[str]:
    words = (
        "run",
        str(folder / "r.toml"),
        "--out",
        str(folder / out),
        "--engine",
        "serial",
        "--quiet",
        "--no-report",
    )
    command = [sys.executable, __file__, "--child", target, when, *words]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)


def is_stopped(pid: int) -> bool:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "T"


def takes_over(out: Path, process: int) -> bool:
    """Return whether a process has claimed a run after another one had."""
    logs = out.glob(f".claims/log/*-{process}-*.jsonl")
    lines = [json.loads(line) for log in logs for line in log.read_text().splitlines()]
    return any(line["event"] == "claimed" and line["claim"] > 1 for line in lines)


def pause(folder: Path, out: str, point: tuple[str, str], meanwhile: str) -> tuple[list[int], str]:
    """Make a recipe's runs in two processes, one of which is paused; return their exit codes and errors."""
    from killed import wait_until

    paused = started(folder, out, *point)
    wait_until(lambda: paused.poll() is not None or is_stopped(paused.pid))
    assert paused.poll() is None, paused.stderr and paused.stderr.read()
    other = started(folder, out)
    if meanwhile == "work":
        wait_until(lambda: other.poll() is not None or takes_over(folder / out, other.pid))
        time.sleep(0.3)
    else:
        other.wait()
    paused.send_signal(signal.SIGCONT)
    errors = "".join(process.communicate()[1] for process in (paused, other))
    return [paused.returncode, other.returncode], errors


def main(folder: Path) -> None:
    from killed import RECIPE, left, records

    (folder / "r.toml").write_text(RECIPE)
    assert started(folder, "whole").wait() == 0
    whole, bad = records(folder / "whole"), 0
    for number, (point, meanwhile) in enumerate(product(POINTS, MEANWHILE)):
        codes, errors = pause(folder, f"out{number}", point, meanwhile)
        out = folder / f"out{number}"
        equal, behind = records(out) == whole, [path.name for path in left(out)]
        good = codes == [0, 0] and equal and not behind
        bad += not good
        print(  # noqa: T201
            *point,
            meanwhile,
            codes,
            "equal" if equal else "DIFFERENT",
            *behind,
            errors.strip()[-300:],
            flush=True,
        )
    print(f"{number + 1 - bad} of {number + 1} rounds: exit codes 0, equal bytes, nothing left behind")  # noqa: T201
    sys.exit(bad > 0)


if __name__ == "__main__":
    if sys.argv[1] == "--child":
        child(*sys.argv[2:])
    else:
        main(Path(sys.argv[1]))
