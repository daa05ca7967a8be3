"""The measurements of a folder of runs: the state of each run, and one tidy frame for each kind of row.

A row of a record has ids and numbers; the facts of a model are in its run. Every model and encoder becomes
one row of facts (method and each of its fields, encoder, seed, languages …). A frame joins the rows of one
kind with the facts of their models. Nothing is parsed from names.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field, fields
from functools import cached_property, wraps
from itertools import chain, groupby
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, TypeVar, cast

import pandas as pd

from isogloss.core.checksums import unseal
from isogloss.core.errors import ConfigError, StorageError, plain, unknown_name, without_folders
from isogloss.core.progress import OnProgress, no_progress, one_by_one
from isogloss.core.records import (
    FAILED,
    PLAN,
    PREDICTIONS,
    RECORD,
    UNREAD,
    Made,
    Plan,
    Record,
    Row,
    kind_of_run,
    read_made,
    read_record,
    run_files,
    understanding,
)
from isogloss.core.rows import ROWS, RowClass, row_class, row_frames
from isogloss.core.shared_files import read_file
from isogloss.core.untrusted import T, convert_json, is_there
from isogloss.data.result_files import StoredPredictions, read_answers, read_predictions
from isogloss.reports.run_facts import (
    FACTS,
    NUMBERS,
    Facts,
    ModelFacts,
    add_data_read,
    check_inputs,
    fields_of,
    method_of,
    tested_inputs,
    treebanks_of,
)
from isogloss.reports.sharing import Shared

TESTED = ("corpus", "inputs", "treebank", "inputs.translator")
"""Inputs of a measurement: corpus, form of the inputs, treebank if all share one, translator."""

EARLIER = (
    "this measurement was made by an earlier version: its rows have names where they now have ids. "
    "Run the recipe again; models are kept, only measurements are repeated."
)

NO_RECORD = Record(id="", kind="", title="", run={})

MOST_NAMED = 3
"""Unfinished runs that a message names."""


@dataclass(frozen=True, kw_only=True)
class PlannedRun:
    """One run of the plan and its state: finished, failed, damaged or missing."""

    id: str
    state: str
    folder: Path
    record: Record = NO_RECORD
    """Empty where the run did not finish."""
    made: Made = field(default_factory=Made)
    error: str = ""
    _facts: ModelFacts = field(default_factory=ModelFacts, repr=False, compare=False)
    """Records of all runs that were read together."""

    @property
    def kind(self) -> str:
        """The diagnostic of a measurement, or the kind of any other run. "" without a record."""
        return kind_of_run(self.record.kind, self.record.run)

    @property
    def method(self) -> str:
        """The method that trained the model or the measured models. "" for none or several."""
        methods = {method_of(run) for run in self._trainings}
        return methods.pop() if len(methods) == 1 else ""

    @property
    def seed(self) -> int | None:
        """The seed of the training, or of the measured models. None for several seeds."""
        seeds = {str(run.get("seed", "")) for run in self._trainings}
        seed = seeds.pop() if len(seeds) == 1 else ""
        return int(seed) if seed.isdecimal() else None

    @property
    def source(self) -> tuple[str, ...]:
        """The source languages of the model, or of the measured models. Empty if they differ."""
        return self._languages("source")

    @property
    def target(self) -> tuple[str, ...]:
        """The target languages of the model, or of the measured models. Empty if they differ."""
        return self._languages("target")

    def _languages(self, side: str) -> tuple[str, ...]:
        languages = {tuple(str(language) for language in run.get(side) or ()) for run in self._trainings}
        return languages.pop() if len(languages) == 1 else ()

    @cached_property
    def _trainings(self) -> tuple[Mapping[str, Any], ...]:
        """The fields of the run itself, or of the runs that a measurement is of."""
        runs = [fields_of(self.record.run)]
        while any("subjects" in run for run in runs):
            runs = [fields_of(subject) for run in runs for subject in run.get("subjects", [run])]
        return tuple(runs)

    def __repr__(self) -> str:
        """Return id, state, kind, method, languages and seed in a line."""
        languages = "+".join(self.source) + (f" to {'+'.join(self.target)}" if self.target else "")
        facts = (self.kind, self.method, languages, "" if self.seed is None else f"seed {self.seed}")
        return (
            f"{type(self).__name__}({', '.join(fact for fact in (self.id, self.state, *facts) if fact):.200})"
        )

    @cached_property
    def models(self) -> Mapping[str, Facts]:
        """The facts of every model and encoder in the run, by id."""
        return self._facts.facts_of_part(self.record.run, self.record.id)

    def row_class(self, columns: Iterable[str]) -> type[RowClass] | None:
        """Return the class of a row with these columns. None if the run has no such rows."""
        return row_class(self.kind, tuple(columns))

    def check(self) -> None:
        """Raise StorageError unless all that reports read of the record is as runs of ours have it."""
        with understanding(self.folder / RECORD):
            check_inputs(self.record.run)
            _ = self.models
            for names, rows in groupby(self.record.rows, key=tuple):
                self._check_rows(names, list(rows))

    def _check_rows(self, names: tuple[str, ...], rows: Sequence[Row]) -> None:
        kind = self.row_class(names)
        if kind is None and self.record.kind == "measure" and self.kind in ROWS:
            raise StorageError(f"{self.folder}: {EARLIER}")
        for name in _subjects_of(kind) if kind else ():
            if name in names and (unknown_models := {row[name] for row in rows} - self.models.keys()):
                raise LookupError(f"{name} {unknown_models.pop()!r:.40} is not in it")


def _subjects_of(kind: type[RowClass] | None) -> tuple[str, ...]:
    """Return the columns of ids of a kind of row, about whose first model facts are joined."""
    subjects: tuple[str, ...] = getattr(kind, "subjects", ("model",))
    return subjects


@dataclass(frozen=True, repr=False)
class Measurements:
    """All data for a report."""

    runs: Sequence[PlannedRun]
    title: str = "Runs without a plan"
    recipe: str = ""
    command: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    """The recipe's names of encoders, by the ids of their runs."""
    methods: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """The ids of the models of each method, by the recipe's name of it."""
    against: Mapping[str, str] = field(default_factory=dict)
    """Ids of models with a baseline in the recipe, each with the id of its baseline."""
    scale: str = ""
    published: Sequence[Mapping[str, object]] = ()
    """Numbers printed in a paper: rows of ``recipes.recipe_text.PUBLISHED_COLUMNS``."""
    notes: tuple[str, ...] = ()
    _frames: dict[str, pd.DataFrame] = field(default_factory=dict)
    _predictions: dict[str, dict[str, StoredPredictions]] = field(default_factory=dict)
    _cache: dict[Callable[..., object], object] = field(default_factory=dict)

    def __repr__(self) -> str:
        """Return title, number of runs and names of frames in a line."""
        frame_names = ", ".join(self.frames)
        return f"Measurements({self.title!r:.80}, {len(self.runs)} runs, frames: {frame_names:.150})"

    def frame(self, name: str) -> pd.DataFrame:
        """Return all rows of a kind as a tidy frame: their fields, and the facts of their models.

        ``run`` is the run that recorded a row; equal rows of several runs count once. A path has the facts of
        the model at its end, a plane or delta the facts of its origin; columns such as ``start.way`` describe
        the remaining models. Rows of a plug-in's diagnostic have its name as kind. Empty if nothing was
        measured. Raises ConfigError for an unknown name.
        """
        if name not in row_frames() and name not in self._rows:
            raise unknown_name("frame", "frame", name, {**row_frames(), **self._rows})
        if name not in self._frames:
            self._frames[name] = self._join_facts(name)
        return self._frames[name]

    @property
    def frames(self) -> list[str]:
        """The names of the frames with rows."""
        return list(self._rows)

    def has_rows(self, name: str) -> bool:
        """Return whether a frame has rows. False for an unknown frame."""
        return (name in row_frames() or name in self._rows) and len(self.frame(name)) > 0

    def predictions(self, run: str, language: str) -> StoredPredictions | None:
        """Return the recorded predictions of a score run on a language, or None."""
        self._predictions[run] = self.stored(run)
        return self._predictions[run].get(language)

    def stored(self, run: str) -> dict[str, StoredPredictions]:
        """Return a run's records of its examples, by language. New reads are not cached."""
        with suppress(StorageError, KeyError):
            if run in self._predictions:
                return self._predictions[run]
            path = self._by_id[run].folder / PREDICTIONS
            if path.is_file():
                return read_predictions(path)
        return {}

    def answers(self, run: str) -> dict[str, dict[str, str]]:
        """Return the predictions of a run's model, as JSON, by language and example's id.

        Empty if unknown.
        """
        with suppress(StorageError, KeyError):
            return read_answers(self._by_id[run].folder / PREDICTIONS)
        return {}

    def folder(self, run: str) -> Path | None:
        """Return the folder of a finished run. None for other runs."""
        is_finished = run in self._by_id and self._by_id[run].state == "finished"
        return self._by_id[run].folder if is_finished else None

    def finished(self, kind: str) -> list[PlannedRun]:
        """Return the finished runs of a kind, or the measurements of a diagnostic."""
        return [run for run in self.runs if run.state == "finished" and run.kind == kind]

    def describe_unfinished(self) -> str:
        """Return a sentence that names planned runs without a record. Empty if all are finished."""
        ids = [run.id for run in self.runs if run.state != "finished"]
        if not ids:
            return ""
        more = f" and {len(ids) - MOST_NAMED} more" if len(ids) > MOST_NAMED else ""
        return f"Not finished, so not read: {', '.join(ids[:MOST_NAMED])}{more}."

    def kinds(self) -> list[str]:
        """Return the kinds of runs and the diagnostics with records, in the order of the plan."""
        return list(dict.fromkeys(run.kind for run in self.runs if run.record.rows))

    def raw(self, kind: str) -> pd.DataFrame:
        """Return the rows of a kind of run, or of a diagnostic, as recorded."""
        rows = [{"run": run.id, **row} for run in self.finished(kind) for row in run.record.rows]
        return pd.DataFrame(rows)

    @cached_property
    def models(self) -> pd.DataFrame:
        """The facts of every model and encoder in any run, by id."""
        facts = {key: model for run in self.runs for key, model in run.models.items()}
        data_reads = {run.id: run.record.read for run in self.runs if run.record.read}
        facts |= {key: add_data_read(facts[key], read) for key, read in data_reads.items() if key in facts}
        frame = pd.DataFrame.from_dict(facts, orient="index")
        frame = frame.reindex(columns=list(dict.fromkeys((*FACTS, *frame.columns))))
        for name in NUMBERS:
            frame[name] = pd.array([model.get(name) for model in facts.values()], dtype="Int64")
        texts = [name for name in FACTS if name not in NUMBERS]
        # A fact that no model has is a column of nan, which must become one of objects to take texts.
        return (
            frame.astype(dict.fromkeys(texts, object)).fillna(dict.fromkeys(texts, "")).copy()
        )  # In one piece: it may be wide.

    @cached_property
    def display_names(self) -> Mapping[str, str]:
        """The recipe's names of encoders (by run id) and of methods (by way of training).

        If the recipe has several names for a way, the first is used.
        """
        ways = self.models["way"]
        way_names: dict[str, str] = {}
        for name, ids in self.methods.items():
            for way in ways.reindex(list(ids)).dropna().unique():
                way_names.setdefault(way, plain(name))
        return {**way_names, **self.labels}

    @cached_property
    def warnings(self) -> tuple[str, ...]:
        """Notes, failures, damaged runs, and the runs' own warnings."""
        words = {"failed": "failed", "damaged": UNREAD}
        failures = [
            f"Run {run.id} {words[run.state]}: {run.error}" for run in self.runs if run.state in words
        ]
        run_warnings = [f"{run.record.title}: {text}" for run in self.runs for text in run.record.warnings]
        return (*self.notes, *failures, *self._mixed_precisions(), *dict.fromkeys(run_warnings))

    def _mixed_precisions(self) -> Iterator[str]:
        """State that models were trained in different precisions."""
        counts = Counter(
            run.made.precision for run in self.runs if run.kind == "fine-tune" and run.made.precision
        )
        if len(counts) > 1:
            parts = " and ".join(f"{count} in {name}" for name, count in sorted(counts.items()))
            yield f"Of the models, {parts} were trained: their differences are also due to rounding."

    @property
    def unread(self) -> list[str]:
        """Warnings about records that could not be read."""
        return [text for text in self.warnings if UNREAD in text]

    @cached_property
    def _by_id(self) -> dict[str, PlannedRun]:
        return {run.id: run for run in self.runs}

    @cached_property
    def _combined_treebanks(self) -> set[tuple[str, str, str]]:
        """Treebanks that some run combines with others, by corpus and language.

        They are not separate test sets.
        """
        read = [treebanks_of(run.record.run) for run in self.runs]
        return {bank for banks in read if len({bank for _, _, bank in banks}) > 1 for bank in banks}

    @cached_property
    def _rows(self) -> dict[str, list[Facts]]:
        """All rows of known kinds, by frame, with their runs and the inputs of these."""
        rows: dict[str, list[Facts]] = {}
        for run in self.runs:
            read = dict(zip(TESTED, tested_inputs(run.record.run, self._combined_treebanks), strict=True))
            for row in run.record.rows:
                kind = run.row_class(row)
                if kind is not None or run.record.kind == "measure":
                    frame = kind.frame if kind is not None else run.kind
                    rows.setdefault(frame, []).append({"run": run.id, **read, **row})
        return rows

    def _join_facts(self, name: str) -> pd.DataFrame:
        row_lists = self._rows.get(name, [])
        own_columns = (
            [field.name for field in fields(row_frames()[name])]
            if name in row_frames()
            else list(chain(*row_lists))
        )
        columns = [column for column in dict.fromkeys((*own_columns, *TESTED)) if column != "run"]
        rows = pd.DataFrame(row_lists, columns=["run", *columns])
        ids = [column for column in _subjects_of(row_frames().get(name)) if column in columns]
        if ids:  # Scores on other inputs are not duplicates.
            rows = rows.drop_duplicates(columns, ignore_index=True)
        facts = self.models
        if (
            name not in row_frames()
        ):  # A plug-in's columns are its own. No column of isogloss has the name of a fact.
            facts = facts[[fact for fact in facts if fact not in rows]]
        rows = rows.join(facts, on=ids[0] if ids else "run")
        for other_id in ids[1:]:
            rows = rows.join(
                self.models[["way", "method", "reference"]].add_prefix(f"{other_id}."), on=other_id
            )
        # As objects, all texts are in one block, which makes selecting rows about ten times as fast.
        return rows.astype(dict.fromkeys(rows.select_dtypes("str"), object)).copy()


Result = TypeVar("Result")
P = ParamSpec("P")


def cache_result(
    function: Callable[Concatenate[Measurements, P], Result],
) -> Callable[Concatenate[Measurements, P], Result]:
    """Cache the result of a function on its measurements. Later calls report no progress."""

    @wraps(function)
    def wrapper(measurements: Measurements, /, *args: P.args, **kwargs: P.kwargs) -> Result:
        if function not in measurements._cache:
            measurements._cache[function] = function(measurements, *args, **kwargs)
        return cast(Result, measurements._cache[function])

    return wrapper


def read_measurements(folder: Path, on_progress: OnProgress = no_progress) -> Measurements:
    """Read a folder of runs. Missing, failed and damaged runs have that state and raise no error.

    Records of unknown runs and measurements of an earlier version also count as damaged. Raises ConfigError
    for a folder without plan and records.
    """
    plan, notes = _read_json(folder / PLAN, Plan)
    present = sorted(path.parent.name for path in run_files(folder, RECORD, FAILED))
    if plan == Plan() and not present:
        raise ConfigError(
            f"{folder}: nothing to report on: neither {PLAN} nor a finished run. "
            f"Name the folder given to `isogloss run … --out`."
        )
    ids = dict.fromkeys(plan.runs or present)
    if extra_runs := set(present) - set(ids):
        notes.append(
            f"{len(extra_runs)} more runs lie in the folder but not in the plan: they are left out. "
            "Run a recipe that describes them all: finished runs are not made again."
        )
    shared = Shared()
    facts = ModelFacts()
    return Measurements(
        runs=[
            _read_run(folder / name, shared, facts) for name in one_by_one(list(ids), "records", on_progress)
        ],
        labels={key: plain(label) for key, label in plan.labels.items()},
        methods=plan.methods,
        against=plan.against,
        published=[asdict(row) for row in plan.published],
        scale=without_folders(plan.scale),
        title=without_folders(plan.title or Measurements.title),
        recipe=without_folders(plan.recipe),
        command=without_folders(plan.command),
        notes=tuple(without_folders(note) for note in notes),
    )


def _read_run(folder: Path, shared: Shared, facts: ModelFacts) -> PlannedRun:
    """Read a run. Its state is missing without a record or a failure."""
    try:
        record = shared.record(read_record(folder))
        circumstances = read_made(folder)
        run = PlannedRun(
            id=record.id, state="finished", folder=folder, record=record, made=circumstances, _facts=facts
        )
        run.check()
        return run
    except StorageError as error:
        if not isinstance(error.__cause__, FileNotFoundError | NotADirectoryError):
            return PlannedRun(id=folder.name, state="damaged", folder=folder, error=without_folders(error))
    if not is_there(folder / FAILED):
        return PlannedRun(id=folder.name, state="missing", folder=folder)
    failure, notes = _read_json(folder / FAILED, dict[str, str])
    reason = failure.get("error") or "; ".join(notes) or "no reason was written down"
    return PlannedRun(id=folder.name, state="failed", folder=folder, error=without_folders(reason))


def _read_json(path: Path, shape: type[T]) -> tuple[T, list[str]]:
    """Return the JSON object in a file (empty without a file), and a note where it is damaged."""
    try:
        return convert_json(shape, unseal(read_file(path.parent, path.name))), []
    except FileNotFoundError:
        return shape(), []
    except (ValueError, OSError) as error:
        return shape(), [f"{path}: cannot be read as a JSON object ({error})."]


@contextmanager
def naming_unfinished(measurements: Iterable[Measurements]) -> Iterator[None]:
    """Add to an error of what was asked for which planned runs are not finished, as these may have it."""
    try:
        yield
    except ConfigError as error:
        notes = [note for study in measurements if (note := study.describe_unfinished())]
        raise ConfigError(" ".join((str(error), *notes))) from error.__cause__
