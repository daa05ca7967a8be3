"""Measure the cost of a plan with many short runs: plan, leases, records and report.

    python benchmarks/many_runs.py                       # 1,000, 4,000 and 16,000 runs; two minutes
    python benchmarks/many_runs.py --runs 100000         # ten minutes

Runs are planned from a recipe, leased, recorded, found again and reported, but compute nothing. Each size has
a separate process, to separate the peaks of memory.
"""

from functools import partial
import argparse
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

HEADS = (
    "runs",
    "plan",
    "make",
    "per run",
    "look again",
    "report",
    "folder",
    "most files in one folder",
    "memory",
)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--runs", type=int, nargs="*", default=[1000, 4000, 16000])
    parser.add_argument("--one", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        print(" | ".join(simulate(options.one)), flush=True)
        return
    print(f"| {' | '.join(HEADS)} |\n|{'---|' * len(HEADS)}")
    for count in options.runs:
        line = subprocess.check_output([sys.executable, __file__, "--one", str(count)], text=True)
        print(f"| {line.strip()} |", flush=True)


def simulate(count: int) -> list[str]:
    from isogloss.core.errors import StorageError
    from isogloss.core.identity import identity
    from isogloss.core.records import Record
    from isogloss.engine import work
    from isogloss.runs.run import RunContext
    from isogloss.engine.engine import make_planned
    from isogloss.engine.engines import Execution
    from isogloss.planning.plan import plan_recipe
    from isogloss.runs.measure import Measure
    from isogloss.runs.run import Run
    from isogloss.reports.report import write_report
    from millisecond import record_run

    def make(context: RunContext, run: Run) -> Record:
        if not isinstance(run, Measure):
            return record_run(context, run)
        model = {"model": identity(run.subjects[0])}
        return record_run(context, run, [{**score_row(language), **model} for language in run.languages])

    work.make = make  # type: ignore[attr-defined]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder)
        plan, planning = time_work(lambda: plan_recipe(recipe(count), out=path))
        plan.write("many runs")
        outcome, making = time_work(partial(make_planned, plan, Execution(jobs=1)))
        again, looking = time_work(partial(make_planned, plan, Execution(jobs=1)))
        if len(outcome.made) != len(plan.runs) or again.made:
            raise StorageError(f"{len(outcome.made)} of {len(plan.runs)} runs made, {len(again.made)} twice.")
        _, reporting = time_work(partial(write_report, path))
        size = sum(path.stat().st_size for path in path.rglob("*") if path.is_file())
        most_count = max(
            len(list(path.iterdir())) for path in (path, path / "figures", path / ".claims") if path.exists()
        )
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    seconds = (f"{duration:.1f} s" for duration in (planning, making))
    return [
        f"{len(plan.runs):,}",
        *seconds,
        f"{1000 * making / len(plan.runs):.1f} ms",
        f"{looking:.1f} s",
        f"{reporting:.1f} s",
        f"{size / 1e6:.0f} MB",
        f"{most_count:,}",
        f"{memory:,.0f} MB",
    ]


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
    return {"title": "Many runs", "encoder": "shipped", "grid": grid, "measure": [{"name": "scores"}]}


def score_row(language: str) -> dict[str, Any]:
    row = {"language": language, "split": "dev", "metric": "accuracy"}
    return {**row, "score": 0.5, "main": True, "baseline": 0.1, "examples": 100}


def time_work(work: Callable[[], Any]) -> tuple[Any, float]:
    start = time.process_time()  # Other programs disturb it little.
    return work(), time.process_time() - start


if __name__ == "__main__":
    main()
