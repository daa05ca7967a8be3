"""What a folder of runs holds: the plan, the records, what failed, what is damaged and what is missing."""

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from isogloss.core.errors import ConfigError, DataError, StorageError
from isogloss.core.records import MADE, RECORD, Record, Row, Value, read_record
from isogloss.data.prediction_table import PREDICTIONS
from isogloss.oldreports.rows import Score
from isogloss.oldreports.told_apart import told_apart
from isogloss.oldreports.typed_rows import typed

PLAN = "plan.json"
FAILED = "failed.json"

MIXED = "mixed"
"""How the inputs of test sets are called, at least at first, that hold two languages."""

_FOLDERS = re.compile(r"(?<![\w.:/<~])(?:[A-Za-z]:)?[/\\](?:[^\s/\\:\"'<>,;]+[/\\])+")
"""The folders in front of an absolute path: they belong to one machine and stay out of a page."""

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class Run:
    """One run of the plan and how it ended: finished, failed, damaged or missing."""

    id: str
    state: str
    record: Record | None = None
    made: Mapping[str, Any]
    error: str = ""
    predictions: Path | None = None
    """What a measurement of scores kept, example by example, where it did."""

    @property
    def title(self) -> str:
        """The human label, or the id where no record says one."""
        return self.record.title if self.record else self.id

    @property
    def kind(self) -> str:
        """What the run makes, or "" where no record says it."""
        return self.record.kind if self.record else ""

    @property
    def diagnostic(self) -> str:
        """What a measure measured; "" for other runs."""
        if self.record is None or self.record.kind != "measure":
            return ""
        part = self.record.run.get("diagnostic")
        return str(part.get("kind", "unknown")) if isinstance(part, Mapping) else "unknown"


@dataclass(frozen=True, kw_only=True)
class Gathered:
    """Everything a report is made from."""

    title: str
    recipe: str
    command: str
    runs: tuple[Run, ...]
    warnings: tuple[str, ...]

    def finished(self, kind: str) -> list[Run]:
        """Return the finished runs of a kind."""
        return [run for run in self.runs if run.state == "finished" and run.kind == kind]

    def raw(self, diagnostic: str) -> list[dict[str, Value]]:
        """Return every row of a diagnostic (or of a kind of run) as it was recorded, with its run's id."""
        return [
            {"run": run.id, **row}
            for run in self.runs
            if run.record is not None and diagnostic in (run.diagnostic, run.kind)
            for row in run.record.rows
        ]

    def diagnostics(self) -> list[str]:
        """Return the names of the diagnostics that have records, in the order of the plan."""
        return list(dict.fromkeys(run.diagnostic for run in self.runs if run.diagnostic))


def gather(out: Path) -> Gathered:
    """Read a folder of runs; only a folder without plan and records is an error."""
    plan, notes = _read_json(out / PLAN)
    shorten = _shortener(out, _labels(plan))
    planned = [str(name) for name in plan.get("runs", [])] if isinstance(plan.get("runs", []), list) else []
    present = sorted(path.parent.name for name in (RECORD, FAILED) for path in out.glob(f"*/{name}"))
    if not plan and not present:
        raise ConfigError(
            f"{out}: there is nothing to report on: neither {PLAN} nor a finished run. "
            f"Name the folder given to `isogloss run … --out`."
        )
    ids = dict.fromkeys(planned if planned else present)
    strangers = len(set(present) - set(ids))
    if strangers:
        notes = [*notes, f"{strangers} more runs lie in the folder but not in the plan: they are left out."]
    runs = named_apart(_read_run(out / name, shorten) for name in ids)
    return Gathered(
        title=shorten(str(plan.get("title") or "Runs without a plan")),
        recipe=shorten(str(plan.get("recipe", ""))),
        command=shorten(str(plan.get("command", ""))),
        runs=runs,
        warnings=tuple(shorten(note) for note in notes),
    )


def named_apart(runs: Iterable[Run]) -> tuple[Run, ...]:
    """Return runs with names that tell their models apart, those of several folders together included."""
    every = tuple(runs)
    records = told_apart({run.id: run.record for run in every if run.record is not None})
    return tuple(replace(run, record=records.get(run.id)) for run in every)


def rows_of(gathered: Gathered, kind: type[T]) -> tuple[list[T], list[str]]:
    """Return the typed rows of a diagnostic, and what was left out and why.

    Equal rows count once: two measures may well have looked at the same model.
    """
    name: str = kind.diagnostic  # type: ignore[attr-defined]
    found = [run_rows(run, kind) for run in gathered.runs if run.diagnostic == name]
    rows = dict.fromkeys(row for rows, _ in found for row in rows)
    return list(rows), [note for _, notes in found for note in notes]


def run_rows(run: Run, kind: type[T]) -> tuple[list[T], list[str]]:
    """Return one run's typed rows, and what was left out and why."""
    good: list[T] = []
    bad: Counter[str] = Counter()
    another: tuple[str, ...] = getattr(kind, "another_with", ())
    for row in run.record.rows if run.record else ():
        if any(name in row for name in another):
            continue
        try:
            good.append(typed(kind, row))
        except DataError as error:
            bad[str(error)] += 1
    return good, [f"{run.title}: {n} row{'s' * (n > 1)} left out ({text})." for text, n in bad.items()]


def measured_beside(gathered: Gathered) -> list[Score]:
    """Return what was measured beside the metric (exact match beside F1 …) as scores of their own."""
    known = {field.name for field in fields(Score)}
    found: dict[Score, None] = {}
    for row in gathered.raw(Score.diagnostic):
        others = {
            name: value for name, value in row.items() if name not in known and isinstance(value, float)
        }
        for name, value in others.items():
            with suppress(DataError):  # A row that is no score was noted when the scores were read.
                found[typed(Score, {**row, "metric": name, "score": value, "baseline": None})] = None
    return list(found)


def mixed_test_sets(gathered: Gathered) -> dict[str, str]:
    """Return the test sets whose inputs are partly in the source language, each with its plain one."""
    found: dict[str, str] = {}
    for run in gathered.runs:
        inputs = str(run.record.run.get("inputs") or "") if run.record else ""
        if run.diagnostic == Score.diagnostic and inputs.startswith(MIXED):
            names = {row.corpus for row in run_rows(run, Score)[0]}
            found |= {name: name.removesuffix(f" {inputs}") for name in names}
    return found


def _read_run(folder: Path, shorten: Callable[[str], str]) -> Run:
    made, made_notes = _read_json(folder / MADE)
    if (folder / RECORD).exists():
        try:
            record = _clean(read_record(folder), shorten)
        except StorageError as error:
            return Run(id=folder.name, state="damaged", made=made, error=shorten(str(error)))
        record = replace(record, warnings=(*record.warnings, *(shorten(note) for note in made_notes)))
        kept = folder / PREDICTIONS
        predictions = kept if kept.exists() else None
        return Run(id=folder.name, state="finished", record=record, made=made, predictions=predictions)
    if (folder / FAILED).exists():
        failed, notes = _read_json(folder / FAILED)
        error_text = str(failed.get("error") or "; ".join(notes) or "no reason was written down")
        return Run(id=folder.name, state="failed", made=made, error=shorten(error_text))
    return Run(id=folder.name, state="missing", made=made)


def _clean(record: Record, shorten: Callable[[str], str]) -> Record:
    """Return the record with machine paths shortened; a shape no run writes is damage."""
    if not isinstance(record.run, Mapping) or not all(isinstance(row, Mapping) for row in record.rows):
        raise StorageError(f"{record.id}: this record is damaged (its run or its rows are no tables).")
    return replace(
        record,
        kind=str(record.kind),
        title=shorten(str(record.title)),
        rows=[dict(_shortened(row, shorten)) for row in record.rows],
        warnings=tuple(shorten(str(warning)) for warning in record.warnings),
    )


def _shortened(row: Row, shorten: Callable[[str], str]) -> Iterator[tuple[str, Value]]:
    for name, value in row.items():
        yield str(name), shorten(value) if isinstance(value, str) else value


def _read_json(path: Path) -> tuple[dict[str, Any], list[str]]:
    """Return the JSON object in a file, empty where there is no file; a damaged one adds a note."""
    if not path.exists():
        return {}, []
    try:
        body = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, OSError) as error:
        return {}, [f"{path}: cannot be read ({error})."]
    return (body, []) if isinstance(body, dict) else ({}, [f"{path}: holds no JSON object."])


def _labels(plan: Mapping[str, Any]) -> dict[str, str]:
    """Return what the recipe calls encoders whose names in records are long, the longest name first."""
    labels = plan.get("labels")
    found = {str(name): str(label) for name, label in labels.items()} if isinstance(labels, dict) else {}
    return dict(sorted(found.items(), key=lambda one: -len(one[0])))


def _shortener(out: Path, labels: Mapping[str, str]) -> Callable[[str], str]:
    """Return the function that puts in the recipe's labels, and takes the folders of paths out of a text."""
    own = [
        f"{folder}/" for folder in dict.fromkeys((str(out.resolve()), str(out))) if folder not in (".", "/")
    ]

    @cache
    def shorten(text: str) -> str:
        for name, label in labels.items():
            text = text.replace(name, label)
        if "/" not in text and "\\" not in text:
            return text
        for folder in own:
            text = text.replace(folder, "")
        return _FOLDERS.sub("…/", text)

    return shorten
