"""Compare the systems of recorded runs with a baseline on every test set, over seeds and examples.

A system is an encoder, a way of training and a form of the inputs, with all its seeds. Systems have the names
of the table of scores of their test set. Names are built from facts and never parsed.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from statistics import stdev

import pandas as pd

from isogloss.core.errors import ConfigError, unknown_name
from isogloss.core.progress import OnProgress, no_progress
from isogloss.core.records import PREDICTIONS, RECORD
from isogloss.metrics.significance import seeds_needed
from isogloss.reports.checks import UNITS
from isogloss.reports.comparison import SURE, SYSTEM, Compared, SystemComparison
from isogloss.reports.frames import list_rows
from isogloss.reports.measurements import Measurements, naming_unfinished, read_measurements
from isogloss.reports.names import count, name_systems
from isogloss.reports.scores import Key, ScoredSet, compare_with_references, key_of, scored_sets

Facts = Mapping[str, object]

IsBaseline = Callable[[Facts, Facts], bool]
"""Whether the second system is the baseline of the first."""

MOST_LISTED_RUNS = 12


@dataclass(frozen=True, kw_only=True)
class ComparisonRequest:
    """The baseline, the measure and the split of a comparison."""

    against: str
    """A method, an encoder, "ENCODER / METHOD", or the id of a run."""
    measure: str = ""
    """The measure to compare. Default: each task's main metric."""
    split: str = ""
    """The split to compare. Default: each task's test split, or its dev split without one."""
    points: float = 1.0
    """The difference for which the number of seeds is computed, in percentage points."""
    margin: float | None = None
    """The margin within which equivalence is tested (0 to 1). None: it is not tested."""


def folders_and_runs(runs: Sequence[Path], folder: Path) -> tuple[list[Path], list[str]]:
    """Return the folders of runs to read, and the ids of the chosen runs in them. No ids stand for all runs.

    Each of ``runs`` is a folder of runs, the folder of a run, or a prefix of the id of a run in ``folder``.
    """
    folders: dict[Path, None] = {}
    names = []
    for path in runs:
        if (path / RECORD).exists():
            folders[path.resolve().parent] = None
            names.append(path.resolve().name)
        elif path.is_dir():
            folders[path] = None
        elif folder.is_dir():
            folders[folder] = None
            names.append(str(path))
        else:
            raise ConfigError(
                f"compare: {path}: no such folder, and no run is in {folder} (--in). Give folders "
                f"of runs, or ids of runs in --in."
            )
    return list(folders), names


def compare_runs(
    folders: Sequence[Path],
    names: Sequence[str],
    request: ComparisonRequest,
    on_progress: OnProgress = no_progress,
) -> Compared:
    """Compare the systems of all runs, or of the runs named, with a baseline, each with all its seeds.

    ConfigError if a name is unknown, or nothing can be compared.
    """
    studies = [read_measurements(folder, on_progress) for folder in folders]
    measurements = Measurements(
        runs=list({run.id: run for study in studies for run in study.runs if run.record}.values()),
        labels={key: label for study in studies for key, label in study.display_names.items()},
    )
    with naming_unfinished(studies):
        return Compared(_compare(measurements, names, request, on_progress), _notes(measurements))


def _compare(
    measurements: Measurements, names: Sequence[str], request: ComparisonRequest, on_progress: OnProgress
) -> list[dict[str, object]]:
    """Return a row for each system that is compared, test set and language."""
    scores = name_systems(measurements.frame("scores"), measurements.display_names)
    if scores.empty:
        raise ConfigError(
            'compare: no scores among these runs. Add [[measure]] name = "scores" to the recipe, and run it.'
        )
    keys = {_find_system("compare", "folder or scored run", name, scores, scores["run"]) for name in names}
    test_sets = _select_test_sets(request, scored_sets(measurements))
    is_baseline = _baseline(request.against, test_sets, scores)
    rows = [
        row
        for test_set in test_sets
        for row in _rows(measurements, test_set, _pairs(test_set, is_baseline, keys), request, on_progress)
    ]
    if not rows:
        raise ConfigError(
            f"compare: nothing to compare with {request.against}: no other system was scored on the same "
            f"corpus, source, split and language with the same seeds."
        )
    return rows


def _select_test_sets(request: ComparisonRequest, test_sets: Sequence[ScoredSet]) -> list[ScoredSet]:
    options = (("measure", request.measure, "metric", "main"), ("split", request.split, "split", "best"))
    for option, value, column, default in options:
        if value and value not in (available := {test_set.about[column] for test_set in test_sets}):
            raise unknown_name(f"--{option}", option, value, available)
        test_sets = [
            test_set
            for test_set in test_sets
            if (test_set.about[column] == value if value else test_set.rows[default].all())
        ]
    return list(test_sets)


def _pairs(test_set: ScoredSet, is_baseline: IsBaseline, keys: set[Key]) -> dict[Key, Key]:
    """Return the baseline of every system, or of the chosen ones."""
    facts = {key_of(system): system for system in test_set.systems}
    return {
        key: baseline
        for key, baseline in product(facts, facts)
        if key != baseline and (not keys or key in keys) and is_baseline(facts[key], facts[baseline])
    }


def _rows(
    measurements: Measurements,
    test_set: ScoredSet,
    pairs: Mapping[Key, Key],
    request: ComparisonRequest,
    on_progress: OnProgress,
) -> Iterator[dict[str, object]]:
    """Yield a row for each pair of systems and column, with one correction for multiple tests."""
    facts = {key_of(system): system for system in test_set.systems}
    columns = test_set.about
    for (key, column), comparison in compare_with_references(
        measurements, test_set, pairs, on_progress
    ).items():
        system = facts[key]
        baseline = facts[pairs[key]]
        yield {
            **{name: columns[name] for name in ("corpus", "treebank", "mixed", "task", "source", "split")},
            **{"measure": columns["metric"], "language": column, "languages": list(comparison.languages)},
            **{"encoder": system["encoder.label"], "method": system["system"]},
            **{"baseline_encoder": baseline["encoder.label"], "baseline_method": baseline["system"]},
            **comparison.numbers(),
            **_describe_spread(comparison, UNITS[test_set.unit], request.points),
            **comparison.equivalence(request.margin),
        }


def _describe_spread(comparison: SystemComparison, unit: str, points: float) -> dict[str, object]:
    """Return the spread over seeds, and the seeds needed to detect a number of points.

    Both are None if unknown, the number of seeds also if it is too large.
    """
    values = comparison.values
    std = stdev(values) if len(values) > 1 else None
    return {
        **{"seeds": len(values), "std": std, "unit": unit, "significant": comparison.mark == SURE},
        "seeds_needed": None if std is None else seeds_needed(points / 100, std),
    }


def _baseline(name: str, test_sets: Sequence[ScoredSet], scores: pd.DataFrame) -> IsBaseline:
    """Return the predicate of baselines: a name of a system, an encoder or a method, else the id of a run.

    A method is each encoder's own, an encoder each method's own.
    """
    systems = [system for test_set in test_sets for system in test_set.systems]
    shared = {_full_name(system): SYSTEM[:0] for system in systems}
    shared |= {system["encoder.label"]: SYSTEM[1:] for system in systems}
    shared |= {system["system"]: SYSTEM[:1] for system in systems}
    if name in shared:
        return lambda system, candidate: (
            name in (candidate["system"], candidate["encoder.label"], _full_name(candidate))
            and all(candidate[column] == system[column] for column in shared[name])
        )
    key = _find_system("--against", "method, encoder, system or run", name, scores, shared)
    return lambda _, candidate: key_of(candidate) == key


def _full_name(system: Facts) -> str:
    return f"{system['encoder.label']} / {system['system']}"


def _find_system(field: str, kind: str, name: str, scores: pd.DataFrame, available: Iterable[str]) -> Key:
    """Return the system of the score run, or of the model, whose id has this prefix."""
    for column in ("run", "model"):
        rows = scores[[bool(name) and key.startswith(name) for key in scores[column]]]
        if len(rows):
            break
    systems = {key_of(row): row["name"] for row in list_rows(rows)}
    if not systems:
        raise unknown_name(field, kind, name, available)
    if len(systems) > 1:
        raise ConfigError(
            f"{field}: runs of {len(systems)} systems begin with {name!r}: {', '.join(systems.values())}. "
            f"Write more of the id, or name the system."
        )
    return next(iter(systems))


def _notes(measurements: Measurements) -> list[str]:
    runs_without = [
        run.id for run in measurements.finished("scores") if not (run.folder / PREDICTIONS).is_file()
    ]
    run_list = ", ".join(runs_without[:MOST_LISTED_RUNS]) + (
        " …" if len(runs_without) > MOST_LISTED_RUNS else ""
    )
    note = (
        f"{count(len(runs_without), 'score run')} without predictions, made by an earlier version or "
        f"unfinished, so that only seeds are tested: {run_list}. Delete record.json in these folders "
        f"and run the recipe again; models are not trained anew."
    )
    return [*measurements.unread, *([note] if runs_without else [])]
