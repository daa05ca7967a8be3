"""Gains of the systems in a folder of runs, as evidence for advice."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from statistics import fmean
from typing import Any

import pandas as pd

from isogloss.core.arguments import checks_arguments
from isogloss.core.errors import ConfigError, check_named
from isogloss.core.progress import OnProgress, no_progress
from isogloss.features.advising.evidence import Gain
from isogloss.reports.comparison import main_scores
from isogloss.reports.frames import list_rows
from isogloss.reports.measurements import Measurements, PlannedRun, read_measurements
from isogloss.reports.names import name_systems, original_names
from isogloss.store import local_folder

SHARED_KINDS = ("pretrain", "align")
"""Kinds of runs whose hours are no part of an option: every option of an encoder shares them."""

Pair = Mapping[str, Any]
"""A score of an option and the baseline's score, and the facts of both."""

TEST_SET = ["corpus", "treebank", "task", "inputs", "inputs.translator", "encoder.original"]
"""Columns in which an option equals its baseline."""


@checks_arguments
def measured_gains(
    runs: str | Path, *, against: str = "source-only", on_progress: OnProgress = no_progress
) -> list[Gain]:
    """Compute the gain of each system in a folder of runs over a baseline, by language: means over seeds.

    ``runs`` is a folder of runs or its URL. The baseline is the method ``against`` (as the report names it)
    on the encoder before any adjustment, with the first source of each corpus. Pairs have the same seed, and
    languages are no source of either. An option is named after the method, the encoder's label if it is
    adjusted, and the source if it differs. Systems that read all labels of a target are left out, as their
    number is not known. Averages of the baseline's models are compared with the mean over all its seeds.
    ConfigError without scores or without the baseline.

    Device: none. Cost: reads the records.

    >>> gains = isogloss.measured_gains("runs/quickstart")                      # doctest: +SKIP
    >>> isogloss.advise("upos", "qab", gains=gains)                             # doctest: +SKIP
    """
    measurements = read_measurements(local_folder(runs, on_progress), on_progress)
    frame = measurements.frame("scores")
    if frame.empty:
        raise ConfigError(
            f'{runs}: no scores. Add [[measure]] name = "scores" to the recipe, and run it again.'
        )
    rows = name_systems(main_scores(frame), measurements.display_names)
    originals = original_names(rows, measurements.display_names)
    rows = rows.assign(original=rows["encoder.original"].map(originals))
    check_named("--against", "system", set(rows["system"]), against)
    is_baseline = (rows["system"] == against) & (rows["encoder.adjusted"] == "")
    if not is_baseline.any():
        raise ConfigError(
            f"--against {against}: it was scored on adjusted encoders only. Score it on the encoder before "
            f"the adjustment as well, or name another method."
        )
    baselines = rows[is_baseline]
    own_source = baselines.groupby(TEST_SET)["source"].transform("first")
    baselines = baselines[baselines["source"] == own_source]
    pairs = rows.merge(
        baselines[[*TEST_SET, "seed", "language", "score", "source", "way"]],
        on=[*TEST_SET, "seed", "language"],
        suffixes=("", ".baseline"),
    )
    # An average is compared with the mean of its models.
    means = baselines.groupby([*TEST_SET, "language"])["score"].mean().rename("score.mean")
    pairs = pairs.join(means, on=[*TEST_SET, "language"])
    is_average = pairs["average.of"] == against
    pairs["score.baseline"] = pairs["score.baseline"].where(~is_average, pairs["score.mean"])
    is_same = (pairs["way"] == pairs["way.baseline"]) & (pairs["source"] == pairs["source.baseline"])
    pairs = pairs[~(is_same & (pairs["encoder.adjusted"] == ""))]
    return list(_gains(pairs, Costs(measurements)))


def _gains(pairs: pd.DataFrame, costs: "Costs") -> Iterator[Gain]:
    """Yield a gain for each option and language. The option's seeds are averaged."""
    groups: dict[tuple[str, str, str, str], list[Pair]] = {}
    for pair in list_rows(pairs):
        if _is_target(pair):
            key = (pair["task"], pair["original"], _name_option(pair), pair["language"])
            groups.setdefault(key, []).append(pair)
    for (task, encoder, option, code), group in groups.items():
        labels = _count_labels(group[0])
        if labels is not None:
            yield Gain(
                task=task,
                encoder=encoder,
                option=option,
                language=code,
                gain=100 * fmean(pair["score"] - pair["score.baseline"] for pair in group),
                seeds=len({pair["seed"] for pair in group}),
                labels=labels,
                hours=fmean(costs.hours(pair["model"]) for pair in group),
            )


def _is_target(pair: Pair) -> bool:
    """Return whether the language is a source of neither the option nor the baseline."""
    return pair["language"] not in f"{pair['source']}+{pair['source.baseline']}".split("+")


def _name_option(pair: Pair) -> str:
    parts = [str(pair["system"])]
    if pair["encoder.adjusted"]:
        parts.append(str(pair["encoder.label"]))
    if pair["source"] != pair["source.baseline"]:
        parts.append(f"source {pair['source']}")
    return ", ".join(parts)


def _count_labels(pair: Pair) -> int | None:
    """Return the number of target labels that a system read. None if it is not known."""
    if pair["language"] not in str(pair["read.labels"]).split("+"):
        return 0
    for name in ("method.shots", "optimization.examples"):
        number = pair.get(name)
        if not pd.isna(number) and number:
            return int(number)
    return None


class Costs:
    """Computing hours of models, including the models and adjustments they begin with."""

    def __init__(self, measurements: Measurements) -> None:
        """Read the runs of a study."""
        self._runs: Mapping[str, PlannedRun] = {run.id: run for run in measurements.runs}

    def hours(self, model: str) -> float:
        """Return the hours of a model and all that it needed, without pretraining. 0 where not recorded."""
        needed = {model}
        todo = [model]
        while todo:
            run = self._runs.get(todo.pop())
            new = [] if run is None else [key for key in run.record.needs if key not in needed]
            needed.update(new)
            todo.extend(new)
        runs = [self._runs[key] for key in needed if key in self._runs]
        return sum(run.made.seconds or 0.0 for run in runs if run.kind not in SHARED_KINDS) / 3600
