"""What a reader can do after a study: the commands for its folder, and the seeds that would decide."""

import math
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import PurePath
from statistics import stdev

from isogloss.metrics.significance import seeds_needed
from isogloss.reports.candidates import all_candidates
from isogloss.reports.checks import UNITS
from isogloss.reports.comparison import SURE, SystemComparison, main_scores
from isogloss.reports.measurements import Measurements
from isogloss.reports.names import and_list, count, language, percent
from isogloss.reports.scores import MEAN, Key, ScoredSet, key_of, scored_sets, tested

FOLDER = "FOLDER"
"""Stands for the folder of the runs where the command of the study does not name it."""

MOST_SEEDS = 100
"""More seeds are not suggested: the difference is small or very uncertain."""

MOST_UNDECIDED = 3
"""Differences for which seeds are suggested; the largest are listed."""


@dataclass(frozen=True)
class NextStep:
    """What to do and why, and the command; empty where a recipe must be changed first."""

    text: str
    command: str = ""


def next_steps(m: Measurements) -> list[NextStep]:
    """Return what to do after a study, most urgent first."""
    words = _words(m.command)
    folder = shlex.quote(_folder(words))
    steps = [*_to_finish(m), *_to_decide(m, words)]
    if all_candidates(m):
        text = "Choose a model without labels, and see what such choices lose where labels are known."
        steps.append(NextStep(text, f"isogloss choose {folder}"))
    elif m.has_rows("scores") and m.frame("scores")["model"].nunique() > 1:
        text = (
            'Choosing among these models without target labels needs [[measure]] name = "label-free" in the '
            "recipe. Models are not trained again."
        )
        steps.append(NextStep(text, m.command))
    baselines = [
        str(baseline["name"]) for test_set in _main_sets(m) for baseline in test_set.references.values()
    ]
    if baselines:
        name = shlex.quote(max(baselines, key=baselines.count))
        text = "Test every difference from a baseline, over seeds and examples."
        steps.append(NextStep(text, f"isogloss compare {folder} --against {name}"))
    if m.finished("fine-tune"):
        if m.has_rows("interpolation") or m.has_rows("plane"):
            text = "Move along the paths with your own sentences, all seeds side by side."
            steps.append(NextStep(text, f"isogloss explore {folder}"))
        steps += [_to_predict(m, folder)]
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
            return _shown(word.removeprefix("--out="))
        if word == "--out" and index + 1 < len(words):
            return _shown(words[index + 1])
    return FOLDER


def _shown(folder: str) -> str:
    """Return a folder; ``FOLDER`` for one on another machine."""
    return FOLDER if "…" in folder or PurePath(folder).is_absolute() else folder


def _to_finish(m: Measurements) -> Iterator[NextStep]:
    states = [run.state for run in m.runs if run.state != "finished"]
    if states:
        counts = {state: states.count(state) for state in dict.fromkeys(states)}
        found = and_list(f"{number} {state}" for state, number in counts.items())
        yield NextStep(f"Finish the study: of {count(len(m.runs), 'run')}, {found}.", m.command)


def _main_sets(m: Measurements) -> list[ScoredSet]:
    """Return the test sets of the main metrics on the best splits."""
    best = main_scores(m.frame("scores")).index
    return [test_set for test_set in scored_sets(m) if test_set.rows.index.isin(best).all()]


def _to_decide(m: Measurements, words: list[str]) -> Iterator[NextStep]:
    """Suggest seeds for the largest differences on targets that are not significant over seeds."""
    undecided = [
        (comparison, system, baseline, test_set)
        for test_set in _main_sets(m)
        for comparison, system, baseline in _undecided(m, test_set)
    ]
    undecided.sort(key=lambda found: -abs(found[0].difference))
    for comparison, system, baseline, test_set in undecided[:MOST_UNDECIDED]:
        yield _seeds_for(comparison, system, baseline, test_set, words)


def _undecided(m: Measurements, test_set: ScoredSet) -> Iterator[tuple[SystemComparison, str, str]]:
    """Yield comparisons on the targets that are not significant, with the names of both systems."""
    names = {key_of(system): system["name"] for system in test_set.systems}
    references: dict[Key, Key] = {key: key_of(other) for key, other in test_set.references.items()}
    shown = {MEAN} if MEAN in test_set.columns else {*test_set.targets}
    for (key, column), comparison in tested(m, test_set, references).items():
        if column in shown and comparison.mark != SURE and comparison.difference:
            yield comparison, names[key], names[references[key]]


def _seeds_for(
    comparison: SystemComparison, system: str, baseline: str, test_set: ScoredSet, words: list[str]
) -> NextStep:
    """Say how many seeds would show a difference, with the command that adds them."""
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
    needed = seeds_needed(comparison.difference, spread) if math.isfinite(spread) else None
    if needed is None or needed > MOST_SEEDS:
        return NextStep(f"{begin} More than {MOST_SEEDS} {unit}s would be needed for so small a difference.")
    if needed <= len(values):
        more = "it is corrected for all tests, and examples count too: score more examples, or add seeds."
        return NextStep(
            f"{begin} By their spread alone, {count(needed, unit)} would show it; {more}",
            _with_seeds(words, len(values) + 2) if unit == "seed" else "",
        )
    return NextStep(
        f"{begin} With this spread, {count(needed, unit)} would show such a difference (80 % power).",
        _with_seeds(words, needed) if unit == "seed" else "",
    )


def _with_seeds(words: list[str], number: int) -> str:
    """Return the command of a study with more seeds; empty where it is unknown."""
    if words == ["isogloss", "quickstart"]:
        words = ["isogloss", "run", "quickstart", "--out", "runs/quickstart"]
    if words[:2] != ["isogloss", "run"]:
        return ""
    seeds = ",".join(map(str, range(number)))
    kept = [word for word in words if not word.startswith("grid.seeds=")]
    if len(kept) < len(words) and "--set" in kept:
        kept.remove("--set")
    return f"{shlex.join(kept)} --set 'grid.seeds=[{seeds}]'"


def _to_predict(m: Measurements, folder: str) -> NextStep:
    """Suggest the model with the highest mean score to predict with."""
    scores = main_scores(m.frame("scores"))
    models = {run.id for run in m.finished("fine-tune")}
    means = scores[scores["model"].isin(models)].groupby("model")["score"].mean()
    best = str(means.idxmax()) if len(means) else min(models)
    which = " with the model of the highest mean score" if len(means) else ""
    return NextStep(f"Label a file of your own{which}.", f"isogloss predict {folder}/{best} FILE")
