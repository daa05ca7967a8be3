"""Measure the cost of an engine per run, and whether two processes in a shared folder repeat runs.

    python benchmarks/engines.py            # 200 runs of a millisecond by each engine; about three minutes

Runs are planned, leased and recorded, but compute nothing. The cost of runs is the time from the first
finished run to the last. All other time is the engine's start (processes, a cluster).
"""

import argparse
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

ENGINES = ("serial", "processes", "ray")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--engines", nargs="*", default=ENGINES)
    parser.add_argument("--one", nargs=3, metavar=("ENGINE", "RUNS", "FOLDER"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        print(seconds(options.one[0], int(options.one[1]), Path(options.one[2])))
        return
    print("| engine | start | each run | made | made twice |\n|---|---|---|---|---|")
    for engine in options.engines:
        took, busy, count = together(engine, options.runs, 1)
        milliseconds = f"{1000 * busy / (options.runs - 1):.1f} ms"
        print(
            f"| {engine} | {took - busy:.1f} s | {milliseconds} | {len(count)} | {twice(count)} |", flush=True
        )
    print(
        "\n| processes in one folder (serial) | from the first run to the last | made twice |\n|---|---|---|"
    )
    for processes in (1, 2):
        _, busy, count = together("serial", options.runs, processes)
        print(f"| {processes} | {busy:.1f} s | {twice(count)} |", flush=True)


def together(engine: str, runs: int, processes: int) -> tuple[float, float, Counter[str]]:
    """Return the slowest process's seconds, its seconds of runs, and the count of each run."""
    with tempfile.TemporaryDirectory() as folder:
        words = [sys.executable, __file__, "--one", engine, str(runs), folder]
        running = [subprocess.Popen(words, stdout=subprocess.PIPE, text=True) for _ in range(processes)]
        took = [float(process.communicate()[0].splitlines()[-1]) for process in running]
        lines = [line.split() for line in Path(folder, "made.log").read_text().splitlines()]
    times = [float(line) for line, _ in lines]
    return max(took), max(times) - min(times), Counter(run for _, run in lines)


def twice(count: Counter[str]) -> int:
    return sum(count > 1 for count in count.values())


def seconds(engine: str, runs: int, path: Path) -> float:
    """Execute a plan in this process, and return the seconds without planning."""
    from isogloss.engine.engine import make_planned
    from isogloss.engine.engines import Execution
    from isogloss.planning.plan import plan_recipe
    from millisecond import quick

    plan = plan_recipe(recipe(runs), out=path)
    plan = replace(plan, sources=quick(plan.sources))
    execution = Execution(engine=engine, jobs=1 if engine == "serial" else 2)
    begin = time.perf_counter()
    outcome = make_planned(plan, execution)
    if outcome.failed:
        raise SystemExit(str(outcome.failed))
    return time.perf_counter() - begin


def recipe(count: int) -> dict[str, Any]:
    """Models of many seeds, each with its scores."""
    grid = {
        "corpus": "ud",
        "task": "upos",
        "source": "qaa",
        "targets": ["qab"],
        "seeds": list(range(count // 2)),
    }
    grid["method"] = [{"name": "source-only"}]
    return {"title": "Engines", "encoder": "shipped", "grid": grid, "measure": [{"name": "scores"}]}


if __name__ == "__main__":
    main()
