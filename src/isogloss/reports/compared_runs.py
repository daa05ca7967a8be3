"""From what a user names (folders, runs, a baseline) to the comparisons meant.

A system is known by the names that the table of scores of its test set gives it: these are made anew from
what the systems are, and looked up; no name is taken apart.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from isogloss.core.errors import ConfigError, unknown_name
from isogloss.core.records import RECORD
from isogloss.data.prediction_table import PREDICTIONS
from isogloss.reports.comparison import SYSTEM, Comparison, best_split
from isogloss.reports.measurements import Measurements, read_measurements
from isogloss.reports.names import count, name_systems
from isogloss.reports.scored_sets import Key, ScoredSet, key_of, scored_sets, tested

Facts = Mapping[str, Any]

Baseline = Callable[[Facts, Facts], bool]
"""Tells whether the second system is what the first is held against."""


@dataclass(frozen=True, kw_only=True)
class Request:
    """What is asked for."""

    runs: Sequence[str]
    """Folders of runs, folders of single runs, or ids of runs (or how they begin) in ``folder``."""
    folder: Path
    against: str
    """A method, an encoder, "ENCODER / METHOD", or the id of a run."""
    measure: str = ""
    """The measure compared; each task's own metric when empty."""
    split: str = ""
    """The split compared; when empty, each task's test split, or its dev split where it has no other."""


@dataclass(frozen=True, kw_only=True)
class Compared:
    """Two systems on one column of a test set: a language, or a mean of several."""

    where: ScoredSet
    system: Facts
    baseline: Facts
    column: str
    comparison: Comparison


def compare_runs(request: Request) -> tuple[list[Compared], list[str]]:
    """Compare the systems of runs with a baseline, each with all its seeds; also say what could not be.

    ConfigError where a name is not known, or nothing can be compared.
    """
    folders, names = _folders(request)
    m = _together([read_measurements(folder) for folder in folders])
    scores = m.frame("scores")
    if scores.empty:
        raise ConfigError(
            'compare: no scores among these runs. Add [[measure]] name = "scores" to the recipe, and run it.'
        )
    scores = name_systems(scores, m.labels)
    known = set(scores["run"])
    chosen = {_by_run("compare", "folder or scored run", name, scores, known) for name in names}
    sets = _asked(request, scored_sets(m), scores)
    baseline = _baseline(request.against, sets, scores)
    found = [one for where in sets for one in _compared(m, where, baseline, chosen)]
    if not found:
        raise ConfigError(
            f"compare: nothing to hold against {request.against}: no other system was scored on the same "
            f"corpus, source, split and language with the same seeds."
        )
    return found, _notes(m)


def _folders(request: Request) -> tuple[list[Path], list[str]]:
    """Return the folders to read, and the runs named among theirs; no name means all."""
    folders, names = [], []
    for word in request.runs:
        path = Path(word)
        if (path / RECORD).exists():
            folders.append(path.resolve().parent)
            names.append(path.resolve().name)
        elif path.is_dir():
            folders.append(path)
        else:
            folders.append(request.folder)
            names.append(word)
    return list(dict.fromkeys(folders)), names


def _together(read: Sequence[Measurements]) -> Measurements:
    runs = {run.id: run for m in read for run in m.runs if run.state == "finished"}
    labels = {key: name for m in read for key, name in m.labels.items()}
    return Measurements(runs=list(runs.values()), labels=labels)


def _asked(request: Request, sets: Sequence[ScoredSet], scores: pd.DataFrame) -> list[ScoredSet]:
    """Return the test sets by the measure and on the split asked for, or each task's own."""
    for name, asked, column in (("measure", request.measure, "metric"), ("split", request.split, "split")):
        if asked and asked not in set(scores[column]):
            raise unknown_name(f"--{name}", name, asked, set(scores[column]))
    best = best_split(scores).groupby(["corpus", "task"])["split"].first()
    return [
        where
        for where in sets
        if (where.about["metric"] == request.measure if request.measure else where.rows["main"].all())
        and where.about["split"] == (request.split or best[where.about["corpus"], where.about["task"]])
    ]


def _compared(m: Measurements, where: ScoredSet, is_baseline: Baseline, chosen: set[Key]) -> list[Compared]:
    """Compare the systems of one test set: one table, one correction."""
    facts = {key_of(one): one for one in where.systems}
    wanted = [key for key in facts if not chosen or key in chosen]
    pairs = [(key, other) for key in wanted for other in facts if other != key]
    against = {key: other for key, other in pairs if is_baseline(facts[key], facts[other])}
    return [
        Compared(where=where, column=column, system=facts[key], baseline=facts[against[key]], comparison=one)
        for (key, column), one in tested(m, where, against).items()
    ]


def _baseline(name: str, sets: Sequence[ScoredSet], scores: pd.DataFrame) -> Baseline:
    """Return what tells whether a system is the baseline of another."""
    systems = [one for where in sets for one in where.systems]
    if name in (methods := {one["system"] for one in systems}):
        return lambda one, other: other["system"] == name and other["encoder"] == one["encoder"]
    if name in (encoders := {one["encoder.label"] for one in systems}):
        return lambda one, other: (
            other["encoder.label"] == name and all(other[part] == one[part] for part in SYSTEM[1:])
        )
    if name in (both := set(map(_both, systems))):
        return lambda _, other: _both(other) == name
    known = {*methods, *encoders, *both}
    key = _by_run("--against", "method, encoder, system or run", name, scores, known)
    return lambda _, other: key_of(other) == key


def _both(one: Facts) -> str:
    return f"{one['encoder.label']} / {one['system']}"


def _by_run(where: str, what: str, name: str, scores: pd.DataFrame, known: Iterable[str]) -> Key:
    """Return the system of the score run, or of the model, whose id begins so."""
    own = scores[[bool(name) and key.startswith(name) for key in scores["run"]]]
    own = scores[[bool(name) and key.startswith(name) for key in scores["model"]]] if own.empty else own
    found = {key_of(one): one["name"] for one in own.drop_duplicates(SYSTEM).to_dict("records")}
    if not found:
        raise unknown_name(where, what, name, known)
    if len(found) > 1:
        raise ConfigError(
            f"{where}: runs of {len(found)} systems begin with {name!r}: {', '.join(found.values())}. Write "
            f"more of the id, or name the system."
        )
    return next(iter(found))


def _notes(m: Measurements) -> list[str]:
    """Say which score runs kept nothing to test examples by."""
    without = [run.id for run in m.finished("scores") if not (run.folder / PREDICTIONS).is_file()]
    shown = ", ".join(without[:12]) + (" …" if len(without) > 12 else "")
    note = (
        f"{count(len(without), 'score run')} without predictions, made by an earlier version or unfinished, "
        f"so that only seeds are tested: {shown}. Delete record.json in these folders and run the recipe "
        f"again; models are not trained anew."
    )
    return [note] if without else []
