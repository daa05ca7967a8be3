"""From what a user names (folders, runs, a baseline) to the comparisons meant.

A system is known by the names that the table of scores of its test set gives it: these are made anew from
what the systems are, and looked up; no name is taken apart.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import pandas as pd

from isogloss.core.errors import ConfigError, unknown_name
from isogloss.core.records import RECORD
from isogloss.data.prediction_table import PREDICTIONS
from isogloss.reports.comparison import SYSTEM, Comparison
from isogloss.reports.measurements import Measurements, read_measurements
from isogloss.reports.names import count, name_systems
from isogloss.reports.scored_sets import Key, ScoredSet, key_of, scored_sets, tested

Facts = Mapping[str, Any]


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
    read = [read_measurements(folder) for folder in folders]
    runs = {run.id: run for m in read for run in m.runs if run.record}
    labels = {key: name for m in read for key, name in m.labels.items()}
    m = Measurements(runs=[*runs.values()], labels=labels)
    scores = name_systems(m.frame("scores"), m.labels)
    if scores.empty:
        raise ConfigError(
            'compare: no scores among these runs. Add [[measure]] name = "scores" to the recipe, and run it.'
        )
    chosen = {_by_run("compare", "folder or scored run", name, scores, scores["run"]) for name in names}
    sets = _asked(request, scored_sets(m))
    is_baseline = _baseline(request.against, sets, scores)
    found = [one for where in sets for one in _compared(m, where, is_baseline, chosen)]
    if not found:
        raise ConfigError(
            f"compare: nothing to hold against {request.against}: no other system was scored on the same "
            f"corpus, source, split and language with the same seeds."
        )
    return found, _notes(m)


def _folders(request: Request) -> tuple[list[Path], list[str]]:
    """Return the folders to read, and the runs named among theirs; no name means all."""
    found: dict[Path, None] = {}
    names = []
    for word in request.runs:
        is_run = (Path(word) / RECORD).exists()
        path = Path(word).resolve() if is_run else Path(word)
        is_folder = path.is_dir() and not is_run
        found[path if is_folder else path.parent if is_run else request.folder] = None
        names += [] if is_folder else [path.name if is_run else word]
    return [*found], names


def _asked(request: Request, sets: Sequence[ScoredSet]) -> list[ScoredSet]:
    """Return the test sets by the measure and on the split asked for, or each task's own."""
    asked = (("measure", request.measure, "metric", "main"), ("split", request.split, "split", "best"))
    for name, word, column, own in asked:
        if word and word not in (known := {where.about[column] for where in sets}):
            raise unknown_name(f"--{name}", name, word, known)
        sets = [one for one in sets if (one.about[column] == word if word else one.rows[own].all())]
    return [*sets]


def _compared(
    m: Measurements, where: ScoredSet, is_baseline: Callable[[Facts, Facts], bool], chosen: set[Key]
) -> list[Compared]:
    """Compare the systems of one test set: one table, one correction."""
    facts = {key_of(one): one for one in where.systems}
    against = {
        key: other
        for key, other in product(facts, facts)
        if key != other and (not chosen or key in chosen) and is_baseline(facts[key], facts[other])
    }
    return [
        Compared(where=where, column=column, system=facts[key], baseline=facts[against[key]], comparison=one)
        for (key, column), one in tested(m, where, against).items()
    ]


def _baseline(name: str, sets: Sequence[ScoredSet], scores: pd.DataFrame) -> Callable[[Facts, Facts], bool]:
    """Return what tells whether the second system is what the first is held against."""
    systems = [one for where in sets for one in where.systems]
    same = {_both(one): SYSTEM[:0] for one in systems}
    same |= {one["encoder.label"]: SYSTEM[1:] for one in systems}
    same |= {one["system"]: SYSTEM[:1] for one in systems}
    if name in same:
        return lambda one, other: (
            name in (other["system"], other["encoder.label"], _both(other))
            and all(other[part] == one[part] for part in same[name])
        )
    key = _by_run("--against", "method, encoder, system or run", name, scores, same)
    return lambda _, other: key_of(other) == key


def _both(one: Facts) -> str:
    return f"{one['encoder.label']} / {one['system']}"


def _by_run(where: str, what: str, name: str, scores: pd.DataFrame, known: Iterable[str]) -> Key:
    """Return the system of the score run, or of the model, whose id begins so."""
    for column in ("run", "model"):
        own = scores[[bool(name) and key.startswith(name) for key in scores[column]]]
        if len(own):
            break
    found = {key_of(one): one["name"] for one in own.to_dict("records")}
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
