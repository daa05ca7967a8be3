"""A folder of runs: its measurements, its main scores and its report."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

from isogloss.core.progress import OnProgress, no_progress
from isogloss.core.records import RECORD, Record, read_record
from isogloss.store import store_at
from isogloss.store.store import Outcome, Store

if TYPE_CHECKING:
    import pandas as pd

    from isogloss.reports.measurements import Measurements, PlannedRun
    from isogloss.reports.report import Report


@dataclass(frozen=True, repr=False)
class Study:
    """A folder of runs: their measurements and their report."""

    out: Path
    """For runs below a URL, the folder of their copies."""
    address: str | Path = ""
    """That URL, or the folder."""

    @cached_property
    def measurements(self) -> "Measurements":
        """All measurements in the folder, read once."""
        from isogloss.reports.measurements import read_measurements

        return read_measurements(self.out)

    @property
    def runs(self) -> "Sequence[PlannedRun]":
        """Every run of the plan, with its state and its record."""
        return self.measurements.runs

    def frame(self, name: str) -> "pd.DataFrame":
        """Return all rows of a kind ("scores", "cka" …) with the facts of their models, as a DataFrame."""
        return self.measurements.frame(name)

    @cached_property
    def report(self) -> "Report":
        """The report, written on first access where it is missing or outdated."""
        return report(self.address or self.out)

    @property
    def records(self) -> list[Record]:
        """The records of the runs that are finished."""
        return [run.record for run in self.runs if run.state == "finished"]

    def scores(self) -> "pd.DataFrame":
        """Return the main scores (0 to 1): a row for each test set and system, a column for each language.

        They are means over seeds on the test split, or on dev where nothing else was scored.
        """
        from isogloss.reports.comparison import main_scores
        from isogloss.reports.names import name_systems

        rows = name_systems(main_scores(self.frame("scores")), self.measurements.display_names)
        index = ["corpus", "task", "metric", "encoder.label", "system"]
        return rows.pivot_table(index=index, columns="language", values="score", sort=False)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self.address or self.out)!r}: {_states(self.runs)})"

    def _repr_html_(self) -> str:
        """Return HTML for a notebook: folder, states of runs, frames, main scores, a figure of paths."""
        from isogloss.reports.sections import section_figures

        frames = self.measurements.frames
        rows = [("folder", str(self.out)), ("runs", _states(self.runs)), ("frames", ", ".join(frames))]
        scores = self.scores().to_html(float_format="{:.3f}".format) if "scores" in frames else ""
        figures = section_figures("paths", self.measurements)
        return _html(rows) + scores + "".join(figure.svg for figure in figures[:1])


@dataclass(frozen=True, repr=False)
class Result(Study):
    """The result of running a recipe: the study in its folder, and what became of its runs in this call."""

    outcome: Outcome = field(default_factory=Outcome)
    ids: tuple[str, ...] = ()
    """Ids of the runs of this plan, dependencies first."""

    @property
    def records(self) -> list[Record]:
        """The records of the runs of this plan that are finished."""
        return [read_record(self.out / run) for run in self.ids if (self.out / run / RECORD).exists()]


def _states(runs: "Sequence[PlannedRun]") -> str:
    """Return the number of runs in each state, in words."""
    return ", ".join(f"{count} {state}" for state, count in Counter(run.state for run in runs).items())


def _html(rows: Sequence[tuple[str, str]]) -> str:
    lines = (f"<tr><th>{escape(name)}</th><td>{escape(text)}</td></tr>" for name, text in rows)
    return f"<table>{''.join(lines)}</table>"


def read(out: str | Path) -> Study:
    """Read a folder of runs, or those below a URL. Raises ConfigError without a plan or a record.

    Device: none. Cost: reads all records of the folder when they are first asked for.
    """
    store = store_at(out)
    store.download_records()
    study = Study(store.root, out)
    _ = study.measurements
    return study


def report(out: str | Path, *, on_progress: OnProgress = no_progress) -> "Report":
    """Write the report of a folder of runs, or of those below a URL, where it is missing or outdated."""
    return write_report_of(store_at(out), on_progress)


def report_alone(store: Store, on_progress: OnProgress = no_progress) -> "Report":
    """Write the report of a store while no other process does."""
    with store.leases.alone("report"):
        return write_report_of(store, on_progress)


def write_report_of(store: Store, on_progress: OnProgress) -> "Report":
    """Write the report of a store where it is missing or outdated, and upload it."""
    from isogloss.reports.report import write_report

    store.download_records(on_progress)
    study_report = write_report(store.root, on_progress)
    store.upload_report((study_report.html, *study_report.figures, *study_report.tables))
    return study_report
