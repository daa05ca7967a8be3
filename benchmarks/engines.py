"""What does an engine cost for each run, and do two processes that share a folder make anything twice?

    python benchmarks/engines.py            # 200 runs of a millisecond by each engine; about three minutes

Everything is real but what a run computes: it is planned, claimed and recorded. An engine's start (processes,
a cluster) is what it takes to make a plan of two runs; each further run costs what 200 take more than that.
"""

import argparse
import json
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
    chosen = parser.parse_args()
    if chosen.one:
        print(seconds(chosen.one[0], int(chosen.one[1]), Path(chosen.one[2])))
        return
    print("| engine | start | each run | claimed and finished | made twice |\n|---|---|---|---|---|")
    for engine in chosen.engines:
        (start, _), (all_of_them, made) = (together(engine, count, 1) for count in (2, chosen.runs))
        each = 1000 * (all_of_them - start) / (chosen.runs - 2)
        print(f"| {engine} | {start:.1f} s | {each:.1f} ms | {len(made)} | {twice(made)} |", flush=True)
    print("\n| processes in one folder (serial) | until all is made | made twice |\n|---|---|---|")
    for processes in (1, 2):
        took, made = together("serial", chosen.runs, processes)
        print(f"| {processes} | {took:.1f} s | {twice(made)} |", flush=True)


def together(engine: str, runs: int, processes: int) -> tuple[float, Counter[str]]:
    """Return the seconds that the slowest of some processes takes, and how often each run was made."""
    with tempfile.TemporaryDirectory() as folder:
        words = [sys.executable, __file__, "--one", engine, str(runs), folder]
        running = [subprocess.Popen(words, stdout=subprocess.PIPE, text=True) for _ in range(processes)]
        took = [float(one.communicate()[0].splitlines()[-1]) for one in running]
        log = Path(folder, ".claims", "log")
        lines = [json.loads(line) for path in log.iterdir() for line in path.open(encoding="utf-8")]
    finished = Counter(
        line["run"] for line in lines if line["event"] == "finished" and len(line["run"]) == 12
    )
    return max(took), finished


def twice(made: Counter[str]) -> int:
    return sum(count > 1 for count in made.values())


def seconds(engine: str, runs: int, out: Path) -> float:
    """Make a plan in this process; return how long that took without planning."""
    from isogloss.experiments.engine import Making, make_planned
    from isogloss.experiments.engines import EngineRequest
    from isogloss.experiments.plan import plan_recipe
    from millisecond import quick

    planned = plan_recipe(recipe(runs), out=out)
    planned = replace(planned, sources=quick(planned.sources))
    asked = EngineRequest(engine=engine, jobs=2)
    begin = time.perf_counter()
    outcome = make_planned(planned, Making(jobs=asked.jobs_here, elsewhere=asked.elsewhere))
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
        "seeds": [*range(count // 2)],
    }
    grid["method"] = [{"name": "source-only"}]
    return {"title": "Engines", "encoder": "shipped", "grid": grid, "measure": [{"name": "scores"}]}


if __name__ == "__main__":
    main()
