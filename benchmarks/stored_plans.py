"""Measure what a process saves that reads a stored plan instead of planning.

    python benchmarks/stored_plans.py [--runs 4000 16000 64000] [--rounds 3] [--out FILE]

Processor seconds of one process, the median of several rounds in turns. Planning includes the titles of the
runs, which a stored plan contains.
"""

import argparse
import json
import tempfile
from pathlib import Path
from statistics import median

from many_runs import recipe, time_work

from isogloss.core.progress import OnProgress, no_progress
from isogloss.core.records import PLANNED_RUNS
from isogloss.planning.plan import Planned, plan_recipe


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--runs", type=int, nargs="*", default=[4_000, 16_000, 64_000])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        plan_recipe(recipe(2), out=folder)  # Imports what plans need.
    rows = [measure_size(count, options.rounds) for count in options.runs]
    print(f"| {' | '.join(rows[0])} |\n|{'---|' * len(rows[0])}")
    for row in rows:
        print(f"| {' | '.join(f'{value:,}' for value in row.values())} |")
    if options.out:
        options.out.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")


def measure_size(count: int, rounds: int) -> dict[str, float]:
    seconds_planning = list[float]()
    seconds_reading = list[float]()
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        plan_recipe(recipe(count), out=root).write("stored plans")
        for _ in range(rounds):
            seconds_planning.append(time_work(lambda: plan_with_titles(count, root, on_progress=None))[1])
            plan, seconds = time_work(lambda: plan_with_titles(count, root, on_progress=no_progress))
            seconds_reading.append(seconds)
        if not plan.is_stored:
            raise RuntimeError("the stored plan was not read")
        size = (root / PLANNED_RUNS).stat().st_size
    return {
        "runs": len(plan.runs),
        "plan, s": round(median(seconds_planning), 3),
        "read, s": round(median(seconds_reading), 3),
        "plan : read": round(median(seconds_planning) / median(seconds_reading), 2),
        "bytes per run": round(size / len(plan.runs), 1),
    }


def plan_with_titles(count: int, root: Path, *, on_progress: OnProgress | None) -> Planned:
    plan = plan_recipe(recipe(count), out=root, on_progress=on_progress)
    _ = plan.titles
    return plan


if __name__ == "__main__":
    main()
