"""Measure the cost of a folder with many finished runs: planning, inspecting and reporting them.

    python benchmarks/finished_runs.py [--runs 12000 50000 100000] [--folders DIR] [--out FILE --as after]

Records are written directly, as engines write them, without waiting for the disk; with ``--folders`` they are
kept for other versions to read. Times are processor seconds of separate processes, without imports. Memory is
the peak of the process. A grid is the whole command ``isogloss run`` on finished runs with an up-to-date
report, imports included.
"""

from functools import partial
import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

from many_runs import recipe, score_row, time_work

TASKS = ("plan", "look again", "report")
GRID = 1000


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--runs", type=int, nargs="*", default=[12_000, 50_000, 100_000])
    parser.add_argument("--grid", type=int, default=GRID)
    parser.add_argument("--folders", type=Path)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--as", dest="label", default="after")
    parser.add_argument("--task", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.task:
        print(json.dumps(measure_task(options.task, options.runs[0], options.folders)))
        return
    with tempfile.TemporaryDirectory() as temporary:
        folders = options.folders or Path(temporary)
        rows = [{"runs": count, **measure_size(count, folders / str(count))} for count in options.runs]
        grid = measure_grid(options.grid, folders / f"grid-{options.grid}")
    print(f"| {' | '.join(rows[0])} |\n|{'---|' * len(rows[0])}")
    for row in rows:
        print(f"| {' | '.join(f'{value:,}' for value in row.values())} |")
    print(f"a grid of {options.grid:,} finished runs: {grid} s")
    if options.out:
        results = json.loads(options.out.read_text("utf-8")) if options.out.exists() else {}
        results |= {options.label: rows, f"a grid of {options.grid:,}, {options.label}": grid}
        options.out.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")


def measure_size(count: int, path: Path) -> dict[str, float]:
    """Return the seconds of each task and the peaks of its process."""
    ensure_runs(count, path)
    results = {task: json.loads(process(task, count, path)) for task in TASKS}
    seconds = {task: task_result["seconds"] for task, task_result in results.items()}
    return {**seconds, **{f"{task}, MB": task_result["peak"] for task, task_result in results.items()}}


def ensure_runs(count: int, path: Path) -> None:
    if not (path / "plan.json").exists():
        process("write", count, path)


def process(task: str, count: int, path: Path) -> str:
    """Do a task in a separate process, to measure its peak of memory, and return its output."""
    words = ["--task", task, "--runs", str(count), "--folders", str(path)]
    return subprocess.run(
        [sys.executable, __file__, *words], check=True, stdout=subprocess.PIPE, text=True
    ).stdout


def measure_task(task: str, count: int, path: Path) -> dict[str, float]:
    import isogloss.engine.engine
    from isogloss.engine.engines import Execution
    from isogloss.planning.plan import plan_recipe
    from isogloss.reports.report import write_report

    if task == "report":
        (path / "tables" / ".written").unlink(missing_ok=True)
        _, seconds = time_work(partial(write_report, path))
    elif task == "write":
        _, seconds = time_work(partial(write_runs, count, path))
    else:
        plan_recipe(recipe(2), out=path)  # Imports what plans need.
        plan, seconds = time_work(lambda: plan_recipe(recipe(count), out=path))
        if task == "look again":
            make = isogloss.engine.engine.make_planned
            _, seconds = time_work(partial(make, plan, Execution(jobs=1)))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {"seconds": round(seconds, 1), "peak": round(peak)}


def measure_grid(count: int, path: Path) -> float:
    """Return the processor seconds of the whole command on finished runs, the least of three."""
    ensure_runs(count, path)
    file = path.with_suffix(".toml")
    file.write_text(as_toml(count), encoding="utf-8")
    words = [sys.executable, "-m", "isogloss", "run", str(file), "--out", str(path)]
    subprocess.run(words, check=True, capture_output=True)  # Writes the report.
    return round(min(cost(words) for _ in range(3)), 2)


def cost(words: list[str]) -> float:
    start = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(words, check=True, capture_output=True)
    usage_after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage_after.ru_utime + usage_after.ru_stime - start.ru_utime - start.ru_stime


def write_runs(count: int, path: Path) -> None:
    """Write the plan of a recipe and a record of each of its runs."""
    from isogloss.core.identity import content, identity
    from isogloss.core.records import Record
    from isogloss.planning.plan import plan_recipe
    from isogloss.runs.measure import Measure
    from isogloss.runs.run import needs

    plan = plan_recipe(recipe(count), out=path)
    os.fsync = lambda _: None  # This process does nothing else.
    for run in plan.runs:
        dependencies = tuple(identity(need) for need in needs(run))
        rows = (
            [{**score_row(language), "model": dependencies[0]} for language in run.languages]
            if isinstance(run, Measure)
            else []
        )
        plan.store.start(run)
        record = Record(
            id=identity(run), kind=run.name, title=run.title, run=content(run), needs=dependencies, rows=rows
        )
        plan.store.finish(record, {"seconds": 0.001})
    plan.write("many runs")


def as_toml(count: int) -> str:
    """Return the recipe as a file has it."""
    tables = recipe(count)
    grid = tables["grid"]
    (method,) = tables["grid"].pop("method")
    (measure,) = tables["measure"]
    lines = [f"{key} = {json.dumps(tables[key])}" for key in ("title", "encoder")]
    lines += ["[grid]", *(f"{key} = {json.dumps(value)}" for key, value in grid.items())]
    lines += ["[[grid.method]]", f"name = {json.dumps(method['name'])}"]
    return "\n".join([*lines, "[[measure]]", f"name = {json.dumps(measure['name'])}", ""])


if __name__ == "__main__":
    main()
