"""Running recipes and showing what came of it."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import typer

from isogloss.cli.display import Display
from isogloss.core.records import Record, read_record
from isogloss.core.runs import Run, needs, run_id

ROWS_SHOWN = 40


def run_and_report(
    recipe: str,
    *,
    out: Path | None = None,
    data: Path | None = None,
    scale: str = "",
    changes: Sequence[str] = (),
    jobs: int = 0,
    quiet: bool = False,
    as_json: bool = False,
    command: str = "",
) -> None:
    """Run a recipe with progress, write its report, and end with the exit code that says how it went."""
    from isogloss import api
    from isogloss.experiments.execute import title_of
    from isogloss.experiments.recipe import parse_change

    with Display(quiet=quiet, as_json=as_json) as display:

        def announce(run: Run, outcome: Any, total: int) -> None:
            display.say(f"[{outcome.ended + 1}/{total}] {title_of(run)}")

        result = api.run(
            recipe,
            out=out,
            data=data,
            scale=scale,
            changes=dict(parse_change(change) for change in changes),
            jobs=jobs,
            tell=display.tell,
            announce=announce,
            command=command,
        )
        outcome = result.outcome
        display.say(
            f"{len(outcome.made)} runs made, {len(outcome.done)} were there, {len(outcome.failed)} failed."
        )
    show_report(result.report, as_json=as_json)
    for key, message in outcome.failed.items():
        print(f"isogloss: run {key} failed: {message}", file=sys.stderr)
    if outcome.failed:
        raise typer.Exit(1)


def print_plan(
    recipe: str,
    *,
    out: Path | None,
    data: Path | None,
    scale: str,
    changes: Sequence[str],
    quiet: bool,
    as_json: bool,
) -> None:
    """Print every run of a recipe: its id, whether it is done, and for how many others it is made."""
    from isogloss.experiments.execute import title_of
    from isogloss.experiments.recipe import parse_change
    from isogloss.experiments.running import plan_recipe

    planned = plan_recipe(recipe, out=out, data=data, scale=scale, changes=dict(map(parse_change, changes)))
    shared = {run_id(run): 0 for run in planned.runs}
    for run in planned.runs:
        for needed in needs(run):
            shared[run_id(needed)] += 1
    rows = [
        (
            run_id(run),
            "done" if planned.store.is_finished(run) else "to do",
            str(shared[run_id(run)]),
            title_of(run),
        )
        for run in planned.runs
    ]
    Display(quiet=quiet, as_json=as_json).table(("run", "state", "needed by", "what"), rows)


def show_report(report: Any, *, as_json: bool) -> None:
    """Print where the report is and the short table of what was found."""
    display = Display(as_json=as_json)
    if as_json:
        claims = [
            {"claim": one.letter, "verdict": one.verdict, "number": one.number} for one in report.claims
        ]
        display.emit(
            {"event": "report", "html": str(report.html), "summary": dict(report.summary), "claims": claims}
        )
        return
    display.table(("what", "found"), report.summary)
    print(f"Report: {report.html}")


def show_run(folder: Path, prefix: str, *, as_json: bool) -> None:
    """Print a record: what the run was, what it needed, its first rows."""
    from isogloss.experiments.store import Store

    record = read_record(Store(folder).find(prefix))
    display = Display(as_json=as_json)
    if as_json:
        display.emit({name: getattr(record, name) for name in Record.__dataclass_fields__})
        return
    about = [("id", record.id), ("title", record.title), ("needs", " ".join(record.needs) or "nothing")]
    display.table(("what", "value"), [*about, *(("warning", text) for text in record.warnings)])
    heads = tuple(dict.fromkeys(name for row in record.rows for name in row))
    shown = record.rows[:ROWS_SHOWN]
    display.table(heads, [[_cell(row.get(name)) for name in heads] for row in shown])
    if len(record.rows) > len(shown):
        print(f"… {len(record.rows) - len(shown)} more rows in {folder / record.id / 'record.json'}")


def predict_file(model: Path, file: Path) -> None:
    """Print each line of a file with what the model predicts for it."""
    from isogloss.api import load_model
    from isogloss.core.errors import DataError

    loaded = load_model(model)
    if not file.is_file():
        raise DataError(f"{file}: there is no such file. Give a text file, one sentence a line.")
    lines = [line for line in file.read_text(encoding="utf-8").splitlines() if line.strip()]
    pairs = loaded.task.name in {"nli", "paraphrase"}
    for number, line in enumerate(lines, start=1):
        if pairs and line.count("\t") != 1:
            raise DataError(f"{file}:{number}: expected two texts with one tab between them, found {line!r}.")
    predicted = loaded.predict([line.split("\t") if pairs else line.split() for line in lines])
    for line, labels in zip(lines, predicted, strict=True):
        print(f"{line}\t{labels if isinstance(labels, str) else ' '.join(labels)}")


def _cell(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, float) else "" if value is None else str(value)
