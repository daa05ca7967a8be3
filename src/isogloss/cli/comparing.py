"""Comparing systems: from folders, runs and a baseline to a table for each pair of systems.

A system has the display names of its test set's table of scores: they are built from its facts and looked up;
no name is parsed.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby, product
from pathlib import Path
from statistics import stdev

import pandas as pd

from isogloss.cli.display import Display, emit, show_line
from isogloss.cli.options import QUICKSTART, Output
from isogloss.core.errors import ConfigError, unknown_name
from isogloss.core.progress import OnProgress, no_progress
from isogloss.core.records import RECORD
from isogloss.data.files import disk_file
from isogloss.data.result_files import PREDICTIONS
from isogloss.metrics.power import MOST_SEEDS, seeds_needed
from isogloss.planning.store_places import local_folder
from isogloss.reports.comparison import ON_EXAMPLES, SURE, SYSTEM, TESTS, Comparison
from isogloss.reports.measurements import Measurements, read_measurements
from isogloss.reports.names import count, name_systems, percent, test_set_name
from isogloss.reports.outputs import ComparedOutputs, compare_outputs
from isogloss.reports.scores import UNITS, Key, ScoredSet, key_of, numbers_of, scored_sets, tested
from isogloss.reports.verdicts import p_text

Facts = Mapping[str, object]

HEADS = (
    *("language", "baseline", "system", "difference", "interval", "d"),
    *("p (seeds)", "p (examples)", "p", "p (Holm)", "seeds", "needed"),
)


@dataclass(frozen=True, kw_only=True)
class ComparisonRequest:
    """The systems, the baseline and the measure to compare."""

    runs: Sequence[str]
    """Folders of runs, folders of single runs, their URLs, or (prefixes of) ids of runs in ``folder``."""
    folder: str | Path
    """A folder of runs, or its URL."""
    against: str
    """A method, an encoder, "ENCODER / METHOD", or the id of a run."""
    measure: str = ""
    """The measure compared; empty: each task's main metric."""
    split: str = ""
    """The split compared; empty: each task's test split, or its dev split if there is no other."""


@dataclass(frozen=True, kw_only=True)
class Compared:
    """Two systems on one column of a test set: a language, or a mean of several."""

    test_set: ScoredSet
    system: Facts
    baseline: Facts
    column: str
    comparison: Comparison


def print_comparisons(request: ComparisonRequest, *, points: float, output: Output) -> None:
    """Print every comparison, and how many seeds are needed to detect a difference of ``points``."""
    with output.progress as display:
        found, notes = compare_runs(request, display.on_progress)
    if output.as_json:
        for one in found:
            emit(_event(one, points))
        for note in notes:
            emit({"note": note})
        return
    for _, group in groupby(found, key=_pair):
        own = list(group)
        show_line(_title(own))
        Display().table(HEADS, [_row(one, points) for one in own])
    show_line(_legend(found, points))
    for note in notes:
        Display(quiet=output.quiet).say(f"isogloss: {note}")


def print_compared_outputs(
    names: Sequence[str], *, against: str, gold: Path | None, by: str, measure: str, as_json: bool
) -> None:
    """Print how files of outputs differ from the baseline's (the last one where none is named)."""
    baseline = against or names[-1]
    others = [name for name in names if name != baseline]
    if not others:
        raise ConfigError("compare: one file alone. Give two: what is compared, and the baseline.")
    files = [disk_file(Path(name)) for name in (*others, baseline)]
    found = compare_outputs(
        files[:-1], files[-1], gold=disk_file(gold) if gold else None, by=by, measure=measure
    )
    if as_json:
        for one in found:
            emit(_output_event(one))
        return
    for _, group in groupby(found, key=lambda one: one.system):
        own = list(group)
        first = own[0]
        show_line(f"{first.system} against {first.baseline}: {first.measure}, paired by {first.by}")
        Display().table(OUTPUT_HEADS, [_output_row(one) for one in own])
    tests = " or ".join(TESTS[name] for name in dict.fromkeys(one.comparison.test for one in found))
    show_line(
        f"Scores and differences in percent. {ON_EXAMPLES} stands on these examples alone (p < 0.05 by "
        f"{tests}, after Holm's correction over {count(len(found), 'test')}); d is Cohen's over examples. "
        f"One file is one training: no {SURE} is possible."
    )


OUTPUT_HEADS = ("language", "baseline", "system", "difference", "d", "p", "p (Holm)", "examples")


def _output_row(one: ComparedOutputs) -> tuple[str, ...]:
    test = one.comparison
    return (
        one.language or "–",
        percent(test.baseline_score),
        percent(test.score),
        f"{100 * test.difference:+.1f} {test.mark}".rstrip(),
        "–" if math.isnan(test.effect) else f"{test.effect:.2f}",
        p_text(test.p_examples),
        p_text(test.p_examples_holm),
        str(test.examples),
    )


def _output_event(one: ComparedOutputs) -> dict[str, object]:
    return {
        **{"system": one.system, "baseline": one.baseline, "measure": one.measure, "paired_by": one.by},
        **{"language": one.language, "languages": list(one.comparison.languages)},
        **numbers_of(one.comparison),
    }


def _pair(one: Compared) -> tuple[object, ...]:
    return (*one.test_set.about.values(), key_of(one.system), key_of(one.baseline))


def _title(group: Sequence[Compared]) -> str:
    one, examples = group[0], [each.comparison.examples for each in group]
    about = one.test_set.about
    same = one.system["encoder"] == one.baseline["encoder"]
    system, baseline = (
        part["system"] if same else f"{part['encoder.label']} / {part['system']}"
        for part in (one.system, one.baseline)
    )
    encoder = f", {one.system['encoder.label']}" if same else ""
    source = f", source {about['source']}" if about["source"] else ""
    name = test_set_name(about)
    many = count(examples[0], "example") if len(set(examples)) == 1 else f"{min(examples)} examples or more"
    measure = f"{about['metric']} on {about['split']}"
    return f"{name}{encoder}{source}: {system} against {baseline}, {measure}, {many}"


def _row(one: Compared, points: float) -> tuple[str, ...]:
    test, estimate = one.comparison, one.comparison.estimate
    interval = "–" if math.isnan(estimate.low) else f"{100 * estimate.low:+.1f} … {100 * estimate.high:+.1f}"
    needed = _needed(one, points)
    return (
        one.column,
        percent(test.baseline_score),
        percent(test.score),
        f"{100 * test.difference:+.1f} {test.mark}".rstrip(),
        interval,
        "–" if math.isnan(test.effect) else f"{test.effect:.2f}",
        *(p_text(p) for p in (test.p_units, test.p_examples, test.p_value, test.p_holm)),
        str(len(test.values)),
        "–" if len(test.values) < 2 else f">{MOST_SEEDS}" if needed is None else str(needed),
    )


def _legend(found: Sequence[Compared], points: float) -> str:
    unit = UNITS[found[0].test_set.unit]
    tests = " or ".join(TESTS[name] for name in dict.fromkeys(one.comparison.test for one in found) if name)
    lines = [
        f"{SURE} stands on {unit}s and examples: p < 0.05 by the test that crosses both, after Holm's "
        f"correction over all of a test set. {ON_EXAMPLES} stands on the examples of these {unit}s alone"
        f"{f' ({tests})' if tests else ''}. Scores and differences in percent, means over {unit}s; the "
        f"interval (95 %) is over both; d is Cohen's over examples. p: over {unit}s, over examples, over "
        f"both, and that corrected.",
        f"needed: the {unit}s with which a paired t-test over them would see a difference of "
        f"{points:g} point{'' if points == 1 else 's'} with 80 % power, at the spread found here.",
    ]
    if all(len(one.comparison.values) < 2 for one in found):
        lines.append(f"No {SURE} is possible: one {unit} says nothing about others. Train more.")
    return "\n".join(lines)


def _needed(one: Compared, points: float) -> int | None:
    """Return how many seeds detect so many points; None for a single seed, or if it is too many."""
    values = one.comparison.values
    return seeds_needed(points / 100, stdev(values)) if len(values) > 1 else None


def _event(one: Compared, points: float) -> dict[str, object]:
    """Return a comparison as a flat JSON object."""
    about, test = one.test_set.about, one.comparison
    return {
        **{name: about[name] for name in ("corpus", "treebank", "mixed", "task", "source", "split")},
        **{"measure": about["metric"], "language": one.column, "languages": list(test.languages)},
        **{"encoder": one.system["encoder.label"], "method": one.system["system"]},
        **{"baseline_encoder": one.baseline["encoder.label"], "baseline_method": one.baseline["system"]},
        **numbers_of(test),
        **{"seeds": len(test.values), "std": stdev(test.values) if len(test.values) > 1 else None},
        **{
            "unit": UNITS[one.test_set.unit],
            "significant": test.mark == SURE,
            "seeds_needed": _needed(one, points),
        },
    }


def compare_runs(
    request: ComparisonRequest, on_progress: OnProgress = no_progress
) -> tuple[list[Compared], list[str]]:
    """Compare the systems of runs with a baseline, each with all its seeds; also return notes.

    ConfigError if a name is unknown, or nothing can be compared.
    """
    folders, names = _folders(request, on_progress)
    read = [read_measurements(folder, on_progress) for folder in folders]
    runs = {run.id: run for m in read for run in m.runs if run.record}
    labels = {key: name for m in read for key, name in m.labels.items()}
    m = Measurements(runs=[*runs.values()], labels=labels)
    scores = name_systems(m.frame("scores"), m.labels)
    if scores.empty:
        raise ConfigError(
            'compare: no scores among these runs. Add [[measure]] name = "scores" to the recipe, and run it.'
        )
    chosen = {_by_run("compare", "folder or scored run", name, scores, scores["run"]) for name in names}
    sets = _requested(request, scored_sets(m))
    is_baseline = _baseline(request.against, sets, scores)
    found = [one for test_set in sets for one in _compared(m, test_set, is_baseline, chosen, on_progress)]
    if not found:
        raise ConfigError(
            f"compare: nothing to hold against {request.against}: no other system was scored on the same "
            f"corpus, source, split and language with the same seeds."
        )
    return found, _notes(m)


def _folders(request: ComparisonRequest, on_progress: OnProgress) -> tuple[list[Path], list[str]]:
    """Return the folders to read, and the runs chosen from them; no run means all."""
    found: dict[Path, None] = {}
    names = []
    own = local_folder(request.folder, on_progress)
    for one in request.runs:
        word = str(local_folder(one, on_progress))
        is_run = (Path(word) / RECORD).exists()
        path = Path(word).resolve() if is_run else Path(word)
        is_folder = path.is_dir() and not is_run
        found[path if is_folder else path.parent if is_run else own] = None
        names += [] if is_folder else [path.name if is_run else word]
        if not is_folder and not is_run and not own.is_dir():
            raise ConfigError(
                f"compare: {one}: there is no such folder, and no run is in {own} (--in). Give folders of "
                f"runs, or ids of runs in --in."
            )
    if own not in found and request.folder != QUICKSTART:
        raise ConfigError(
            f"--in {request.folder}: whatever is compared has a folder of its own. Leave it out."
        )
    return [*found], names


def _requested(request: ComparisonRequest, sets: Sequence[ScoredSet]) -> list[ScoredSet]:
    """Return the test sets with the requested measure and split, or each task's default."""
    requested = (("measure", request.measure, "metric", "main"), ("split", request.split, "split", "best"))
    for name, word, column, own in requested:
        if word and word not in (known := {one.about[column] for one in sets}):
            raise unknown_name(f"--{name}", name, word, known)
        sets = [one for one in sets if (one.about[column] == word if word else one.rows[own].all())]
    return [*sets]


def _compared(
    m: Measurements,
    test_set: ScoredSet,
    is_baseline: Callable[[Facts, Facts], bool],
    chosen: set[Key],
    on_progress: OnProgress,
) -> list[Compared]:
    """Compare the systems of one test set, with one correction for multiple tests."""
    facts = {key_of(one): one for one in test_set.systems}
    against = {
        key: other
        for key, other in product(facts, facts)
        if key != other and (not chosen or key in chosen) and is_baseline(facts[key], facts[other])
    }
    return [
        Compared(
            test_set=test_set, column=column, system=facts[key], baseline=facts[against[key]], comparison=one
        )
        for (key, column), one in tested(m, test_set, against, on_progress).items()
    ]


def _baseline(name: str, sets: Sequence[ScoredSet], scores: pd.DataFrame) -> Callable[[Facts, Facts], bool]:
    """Return the predicate whether the second system is the baseline of the first."""
    systems = [one for test_set in sets for one in test_set.systems]
    same = {_full_name(one): SYSTEM[:0] for one in systems}
    same |= {one["encoder.label"]: SYSTEM[1:] for one in systems}
    same |= {one["system"]: SYSTEM[:1] for one in systems}
    if name in same:
        return lambda one, other: (
            name in (other["system"], other["encoder.label"], _full_name(other))
            and all(other[part] == one[part] for part in same[name])
        )
    key = _by_run("--against", "method, encoder, system or run", name, scores, same)
    return lambda _, other: key_of(other) == key


def _full_name(one: Facts) -> str:
    return f"{one['encoder.label']} / {one['system']}"


def _by_run(where: str, what: str, name: str, scores: pd.DataFrame, known: Iterable[str]) -> Key:
    """Return the system of the score run, or of the model, whose id has this prefix."""
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
    """Return notes on records that could not be read, and on score runs without predictions for tests."""
    without = [run.id for run in m.finished("scores") if not (run.folder / PREDICTIONS).is_file()]
    shown = ", ".join(without[:12]) + (" …" if len(without) > 12 else "")
    note = (
        f"{count(len(without), 'score run')} without predictions, made by an earlier version or unfinished, "
        f"so that only seeds are tested: {shown}. Delete record.json in these folders and run the recipe "
        f"again; models are not trained anew."
    )
    return [*m.unread, *([note] if without else [])]
