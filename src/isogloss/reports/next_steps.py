"""Next steps after a study: the commands for its folder, and the seeds that would decide."""

import math
import shlex
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from statistics import stdev

from isogloss.core.registry import Registry
from isogloss.metrics.significance import seeds_needed
from isogloss.reports.checks import UNITS
from isogloss.reports.comparison import SURE, SystemComparison, main_scores
from isogloss.reports.measurements import Measurements
from isogloss.reports.names import and_list, count, language, percent
from isogloss.reports.scores import MEAN, Key, ScoredSet, compare_with_references, key_of, scored_sets

FOLDER = "FOLDER"
"""Stands for the folder of the runs where the command of the study does not name it."""

MOST_SEEDS = 100
"""More seeds are not suggested: the difference is small or very uncertain."""

MOST_UNDECIDED = 3
"""Maximum number of differences for which seeds are suggested. The largest are listed."""


@dataclass(frozen=True)
class NextStep:
    """A step, its reason and its command. The command is empty if a recipe must be changed first."""

    text: str
    command: str = ""


Suggest = Callable[[Measurements, str], Sequence[NextStep]]
"""From measurements, and the folder of the runs as a command names it, to steps."""

NEXT_STEPS: Registry[Suggest] = Registry({}, features="next-steps")
"""Steps that features suggest, by the name of the feature."""


def next_steps(measurements: Measurements) -> list[NextStep]:
    """List the next steps after a study, most urgent first."""
    words = _words(measurements.command)
    folder = shlex.quote(_folder(words))
    steps = [*_to_finish(measurements), *_to_decide(measurements, words)]
    steps += [step for name in NEXT_STEPS for step in NEXT_STEPS[name](measurements, folder)]
    if measurements.finished("fine-tune"):
        steps += [_to_predict(measurements, folder)]
    return steps


def _words(command: str) -> list[str]:
    try:
        return shlex.split(command)
    except ValueError:  # A quote was cut.
        return []


def _folder(words: list[str]) -> str:
    """Return the folder of the runs as the command names it."""
    if words == ["isogloss", "quickstart"]:
        return "runs/quickstart"
    for index, word in enumerate(words):
        if word.startswith("--out="):
            return _shorten_folder(word.removeprefix("--out="))
        if word == "--out" and index + 1 < len(words):
            return _shorten_folder(words[index + 1])
    return FOLDER


def _shorten_folder(folder: str) -> str:
    """Return a folder, or ``FOLDER`` for a folder on another machine."""
    return FOLDER if "…" in folder or PurePath(folder).is_absolute() else folder


def _to_finish(measurements: Measurements) -> Iterator[NextStep]:
    states = [run.state for run in measurements.runs if run.state != "finished"]
    if states:
        counts = {state: states.count(state) for state in dict.fromkeys(states)}
        states_text = and_list(f"{state_count} {state}" for state, state_count in counts.items())
        yield NextStep(
            f"Finish the study: of {count(len(measurements.runs), 'run')}, {states_text}.",
            measurements.command,
        )


def _to_decide(measurements: Measurements, words: list[str]) -> Iterator[NextStep]:
    """Suggest seeds for the largest differences on targets that are not significant over seeds."""
    comparisons = [
        (comparison, system, baseline, test_set)
        for test_set in main_sets(measurements)
        for comparison, system, baseline in _find_undecided(measurements, test_set)
    ]
    comparisons.sort(key=lambda entry: -abs(entry[0].difference))
    for comparison, system, baseline, test_set in comparisons[:MOST_UNDECIDED]:
        yield _seeds_for(comparison, system, baseline, test_set, words)


def _find_undecided(
    measurements: Measurements, test_set: ScoredSet
) -> Iterator[tuple[SystemComparison, str, str]]:
    """Yield comparisons on the targets that are not significant, with the names of both systems."""
    names = {key_of(system): system["name"] for system in test_set.systems}
    references: dict[Key, Key] = {key: key_of(reference) for key, reference in test_set.references.items()}
    shown_columns = {MEAN} if MEAN in test_set.columns else set(test_set.targets)
    for (key, column), comparison in compare_with_references(measurements, test_set, references).items():
        if column in shown_columns and comparison.mark != SURE and comparison.difference:
            yield comparison, names[key], names[references[key]]


def _seeds_for(
    comparison: SystemComparison, system: str, baseline: str, test_set: ScoredSet, words: list[str]
) -> NextStep:
    """Describe how many seeds would show a difference, with the command that adds them."""
    unit, values = UNITS[test_set.unit], comparison.values
    where = language(comparison.languages[0]) if len(comparison.languages) == 1 else "the targets"
    difference = percent(comparison.difference)
    begin = (
        f"Undecided: {system} differs from {baseline} by {difference} points in {where} "
        f"({count(len(values), unit)})."
    )
    if len(values) < 2:
        return NextStep(
            f"{begin} One {unit} says nothing about others: run three or more.",
            _with_seeds(words, 3) if unit == "seed" else "",
        )
    spread = stdev(values)
    seed_count = seeds_needed(comparison.difference, spread) if math.isfinite(spread) else None
    if seed_count is None or seed_count > MOST_SEEDS:
        return NextStep(f"{begin} More than {MOST_SEEDS} {unit}s would be needed for so small a difference.")
    if seed_count <= len(values):
        more = "it is corrected for all tests, and examples count too: score more examples, or add seeds."
        return NextStep(
            f"{begin} By their spread alone, {count(seed_count, unit)} would show it; {more}",
            _with_seeds(words, len(values) + 2) if unit == "seed" else "",
        )
    return NextStep(
        f"{begin} With this spread, {count(seed_count, unit)} would show such a difference (80 % power).",
        _with_seeds(words, seed_count) if unit == "seed" else "",
    )


def _with_seeds(words: list[str], seed_count: int) -> str:
    """Return the command of a study with more seeds. Empty if it is unknown."""
    if words == ["isogloss", "quickstart"]:
        words = ["isogloss", "run", "quickstart", "--out", "runs/quickstart"]
    if words[:2] != ["isogloss", "run"]:
        return ""
    seeds = ",".join(str(seed) for seed in range(seed_count))
    other_words = [word for word in words if not word.startswith("grid.seeds=")]
    if len(other_words) < len(words) and "--set" in other_words:
        other_words.remove("--set")
    return f"{shlex.join(other_words)} --set 'grid.seeds=[{seeds}]'"


def _to_predict(measurements: Measurements, folder: str) -> NextStep:
    """Suggest the model with the highest mean score to predict with."""
    scores = main_scores(measurements.frame("scores"))
    models = {run.id for run in measurements.finished("fine-tune")}
    means = scores[scores["model"].isin(models)].groupby("model")["score"].mean()
    best_run = str(means.idxmax()) if len(means) else min(models)
    choice_text = " with the model of the highest mean score" if len(means) else ""
    return NextStep(f"Label a file of your own{choice_text}.", f"isogloss predict {folder}/{best_run} FILE")


def main_sets(measurements: Measurements) -> list[ScoredSet]:
    """Return the test sets of the main metrics on the best splits."""
    main_sets = main_scores(measurements.frame("scores")).index
    return [test_set for test_set in scored_sets(measurements) if test_set.rows.index.isin(main_sets).all()]
