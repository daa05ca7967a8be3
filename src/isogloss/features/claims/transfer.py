"""Claims of the first paper about paths between models: the rule of each and the function that checks it.

Paper: "Zero-shot Cross-lingual Transfer is Under-specified Optimization", Sections 3 to 5, Appendices B, C.
Only the paper's setting counts: unmodified encoders that are trained whole, paths between its three kinds of
models. Tasks, sources, encoders and ways of training are never averaged: each has a separate check. The value
of a seed is the mean over all targets; seeds with missing targets are dropped. For encoders pretrained with
several seeds, pretraining seeds are the units, and fine-tuning seeds are averaged within them.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

import pandas as pd

from isogloss.features.claims.checks import check_independent, check_spreads, check_trend, name_comparison
from isogloss.features.claims.comparisons import drop_pilots, labelled_groups
from isogloss.features.claims.path_examples import (
    ExampleTerms,
    difference,
    error_over_examples,
    example_error,
)
from isogloss.features.claims.transfer_rows import (
    NEAR,
    WHOLE,
    barrier_rows,
    delta_rows,
    is_paper_setting,
    path_rows,
    plane_rows,
)
from isogloss.metrics.estimates import crossed_estimate
from isogloss.reports.checks import HELPS, UNITS, Bounds, Check, check_of, not_measured
from isogloss.reports.comparison import TEST_SET, rows_of, unit_of
from isogloss.reports.measurements import Measurements
from isogloss.reports.verdicts import Rule

HARDLY = 0.03
"""A score that "hardly moves" changes by less than three points."""

SMOOTH = 0.9
"""Rank correlation of α and score from which a rise is smooth, and R² from which it is linear."""

FAR_LARGER = 3.0
"""A spread that is "far larger" is this many times the other."""

FLAT = 0.1
"""A flat surface rises by less than ten points per unit of α: 2.5 points up to α = 0.25."""

SIMILAR = "consistently similar source language performance"
SMOOTHLY = "smoothly and linearly improves"
"""Words of the paper, where it prints no numbers."""

ON_PATH = [*TEST_SET, "encoder", "way", "start.way"]

NO_FILTER: Mapping[str, str] = {}
LINEAR = ("slope", "gain", "drop")
"""Statistics of a path that are sums of scores, so that examples have a share in each."""

PLAIN: Bounds = {"scale": 1, "digits": 2}
SIMILARLY: Bounds = {"below": HARDLY, "printed": SIMILAR}
SOURCE = {"role": "source"}
TARGET = {"role": "target"}
EQ_1, EQ_2 = ({"start.method": start, **WHOLE} for start in ("source-only", "target-only"))

Part = Callable[[str, pd.DataFrame], list[Check]]
"""Makes the checks of one statement from a description of the systems and their rows."""


def compare_stds(measurements: Measurements) -> list[Check]:
    """Compare standard deviations over fine-tuning seeds on one encoder, of targets and source (1c)."""
    rows = measurements.frame("scores")
    rows = rows[is_paper_setting(rows) & rows["main"].eq(True) & (rows["method"] == "source-only")]
    rows = drop_pilots(rows, ["corpus", "task", "source", "encoder"], ["way", "encoder.run"], "seed")
    checks = []
    several = rows.groupby("encoder")["encoder.run"].nunique() > 1
    for label, group in labelled_groups(measurements, rows, [*TEST_SET, "encoder", "way", "encoder.run"]):
        first_row = group.iloc[0]
        seed_remark = (
            f" pretraining seed {first_row['encoder.seed']}" if several[first_row["encoder"]] else ""
        )
        table = group.pivot_table(index="seed", columns="language", values="score")
        if len(table) == 1:
            continue  # One seed has no spread.
        sources = [language for language in table if language in group["source"].iloc[0].split("+")]
        targets = table.drop(columns=sources).dropna(axis="columns")
        if targets.columns.size and sources:
            words = f"{label}{seed_remark}: spread of targets / of the source"
            spreads = check_spreads(words, targets, table[sources], FAR_LARGER, "much higher variance")
            checks += name_comparison(spreads, _name_place(group, "encoder.run"), split=first_row["split"])
    return checks


def _name_place(group: pd.DataFrame, *more: str) -> str:
    """Name the comparison of a group of rows, without the split."""
    return " ".join(
        str(group[name].iloc[0]) for name in (*ON_PATH, *more) if name in group and name != "split"
    )


def compare_slopes(measurements: Measurements) -> list[Check]:
    """Compare how steeply target and source rise from the source-only model on, on paths and planes (1k).

    Along (α₁, 0) a plane has the points of the path, so that either makes the same two statements.
    """
    paths = rows_of(path_rows(measurements), EQ_1)
    planes = plane_rows(measurements)
    checks = []
    for name, rows in (("Eq. 1", paths), ("Eq. 3", planes)):
        words = f"slope at the source-only model along {name}, target − source"
        if {"source", "target"} <= set(rows.get("role", ())):
            flat = {"above": -FLAT, "below": FLAT, "printed": SIMILAR, "of_median": True}
            source = _mean(f"slope at the source-only model along {name}, source", "slope", flat, SOURCE)
            steeper = _mean(words, "slope", {**HELPS, "of_median": True}, TARGET, SOURCE)
            for statement, part in (("target − source", steeper), ("source", source)):
                checks += [
                    replace(check, statement=statement) for check in _check_each(measurements, rows, part)
                ]
    return checks


def compare_parts(measurements: Measurements) -> list[Check]:
    """Compare the gain of moving only the encoder or only the head with the gain of the whole model (1i)."""
    rows = rows_of(path_rows(measurements), {"start.method": "source-only", **TARGET})
    near_zero = {"above": -HARDLY, "below": HARDLY}
    as_whole = {**near_zero, "printed": "similar findings"}
    negligible = {**near_zero, "printed": "a negligible effect"}
    less = _mean("gain of the whole − of the encoder", "gain", as_whole, WHOLE, {"part": "encoder"})
    head = _mean("gain of the head", "gain", negligible, {"part": "head"})
    return _check_each(measurements, rows, less, head) if {"all"} < set(rows["part"]) else []


def check_target_paths(measurements: Measurements) -> list[Check]:
    """Check that source and target are swapped along Eq. 2 (1j)."""
    stays, rises = (rows_of(path_rows(measurements), EQ_2 | role) for role in (TARGET, SOURCE))
    return [
        *_check_each(measurements, stays, _level_of_targets),
        *_check_each(measurements, rises, *RISES),
    ]


def _check_each(measurements: Measurements, rows: pd.DataFrame, *parts: Part) -> list[Check]:
    """Make the checks of each task, source, encoder and way of training."""
    return [
        check
        for label, group in labelled_groups(measurements, rows, ON_PATH)
        for part in parts
        for check in name_comparison(part(label, group), _name_place(group), split=group["split"].iloc[0])
    ]


def _mean(
    words: str,
    name: str,
    bounds: Bounds,
    included: Mapping[str, str] = NO_FILTER,
    minus: Mapping[str, str] = NO_FILTER,
) -> Part:
    """Return a function that checks the mean over seeds of a column, or a difference of two such means."""

    def check(label: str, group: pd.DataFrame) -> list[Check]:
        sides = [rows_of(group, side) for side in (included, minus)]
        values, less = (side.groupby(["unit", "target"])[name].mean() for side in sides)
        means = _complete(values - less if minus else values)
        if name == "rho":
            rhos = means.mean(axis=1)
            check = check_trend(rhos, int(group["points"].min()), f"{label}: {words}", bounds, _unit(group))
        else:
            errors = _example_terms(name, means, sides, minus)
            check = _check(f"{label}: {words}", means, bounds, _unit(group), errors)
        return [replace(check, statement=words)]

    return check


def _unit(group: pd.DataFrame) -> str:
    return "pretraining seed" if (group["units"] == "pretraining seed").any() else "seed"


def _example_terms(
    name: str, means: pd.DataFrame, sides: Sequence[pd.DataFrame], minus: object
) -> list[tuple[float, ExampleTerms]] | None:
    """Return contributions of examples to a difference.

    Empty if a run recorded none, None for other statistics.
    """
    if name not in LINEAR:
        return None
    errors = [example_error(side, name, means) for side in (sides if minus else sides[:1])]
    return difference(*errors) if all(errors) else []


def _complete(values: "pd.Series[float]") -> pd.DataFrame:
    """Return values by unit and target as a table [unit target] of the units that have all targets."""
    return values.dropna().unstack("target").dropna()


def _check(
    label: str,
    means: pd.DataFrame,
    bounds: Bounds,
    unit: str = "seed",
    examples: Sequence[tuple[float, ExampleTerms]] | None = None,
) -> Check:
    """Check the mean over units [unit target], with the error of examples where the runs recorded them."""
    check = check_of(means.mean(axis=1), label, {"scale": 100, "digits": 1, **bounds}, unit)
    if examples is None or not check.values:
        return check
    error, count = error_over_examples(examples) if examples else (0.0, 0)
    estimate = crossed_estimate(check.values, example_error=error, examples=count)
    return replace(check, statistic=estimate, examples=count)


def _level(label: str, group: pd.DataFrame) -> list[Check]:
    """Check that scores have no barrier between the ends, and that the last is not below the first."""
    if not group["highest"].max() > 0:
        return [Check(about=f"{label}: every score is 0, nothing was learned", statement="barrier")]
    barrier = replace(_barrier(f"{label}: barrier", group), statement="barrier")
    return [barrier, *_mean("drop from end to end", "drop", SIMILARLY)(label, group)]


def _level_of_targets(label: str, group: pd.DataFrame) -> list[Check]:
    return _level(f"{label} targets", group)


def _barrier(label: str, group: pd.DataFrame) -> Check:
    barriers, with_examples = barrier_rows(group)
    means = _complete(barriers)
    return _check(label, means, SIMILARLY, _unit(group), example_error(with_examples, "barrier", means))


def _variances(label: str, group: pd.DataFrame) -> list[Check]:
    starts, ends = (
        group.pivot_table(index="unit", columns="target", values=column) for column in ("first", "last")
    )
    words = f"{label}: spread of targets at α = 0 / at α = 1"
    has_values = starts.columns.size and ends.columns.size
    return check_spreads(words, starts, ends, 1.0) if has_values else []


def _compare_encoders(measurements: Measurements, rows: pd.DataFrame) -> list[Check]:
    """Compare each encoder's slope with the next better encoder's, on the paths that both have.

    Encoders are independent draws, so their pretraining seeds are not paired. For existing encoders,
    fine-tuning seeds are the units, and the check concerns only these two encoders.
    """
    if rows["encoder"].nunique() < 2:
        return []
    all_checks = []
    for label, group in labelled_groups(measurements, rows, [*TEST_SET, "way", "start.way", "points"]):
        unit = unit_of(group)
        start_scores, slope, gain = (
            group.pivot_table(index=[unit, "target"], columns="encoder", values=name)
            for name in ("first", "slope", "gain")
        )
        names = dict(zip(group["encoder"], group["encoder.label"], strict=True))
        order = (
            list(start_scores.mean().sort_values(kind="stable").index) if len(start_scores) else list[str]()
        )
        checks = []
        for worse, better in pairwise([name for name in order if name in slope]):
            sides = [slope[name].dropna().unstack("target") for name in (worse, better)]
            shared = sides[0].columns.intersection(sides[1].columns)
            ours, theirs = (side[shared].dropna().mean(axis=1) for side in sides)
            if len(shared) and len(ours) and len(theirs):
                words = f"{label}: slope of {names[worse]} − of {names[better]}, which transfers better"
                scaled_bounds = {**HELPS, "scale": 100, "digits": 1}
                error = _slope_error(group, unit, (worse, better), [side[shared].dropna() for side in sides])
                check = check_independent(ours, theirs, words, scaled_bounds, UNITS[unit], examples=error)
                pair = name_comparison(
                    [replace(check, examples=error[1])],
                    f"{_name_place(group)} {worse} {better}",
                    statement="slope",
                    split=group["split"].iloc[0],
                    preference=[-group["points"].iloc[0]],
                )
                gaps = [gain[name].unstack("target")[shared].mean(axis=1) for name in (worse, better)]
                gap_shares = [(side / gap).dropna() for side, gap in zip((ours, theirs), gaps, strict=True)]
                share = f"{words}, as a share of the gap to the bilingual model"
                checks += pair
                if all(len(share) for share in gap_shares):
                    unjudged_bounds = {**PLAIN, "judged": False}
                    checks.append(
                        check_independent(gap_shares[0], gap_shares[1], share, unjudged_bounds, UNITS[unit])
                    )
        nothing = not_measured(
            f"{label}: slopes up to {NEAR} from the source-only model, on paths that two encoders share"
        )
        all_checks += checks or [replace(nothing, statement="slope")]
    return all_checks


def _slope_error(
    group: pd.DataFrame, unit: str, encoders: Sequence[str], means: Sequence[pd.DataFrame]
) -> tuple[float, int]:
    """Return the error over examples of the difference of two encoders' slopes, and how many there are."""
    rows = group.assign(unit=group[unit])
    sides = [
        example_error(rows[rows["encoder"] == name], "slope", table)
        for name, table in zip(encoders, means, strict=True)
    ]
    return error_over_examples(difference(*sides)) if all(sides) else (0.0, 0)


def _rule_of_paths(values: Mapping[str, object], *parts: Part) -> Rule:
    """Return a rule that checks the paths with some values of columns."""

    def check(measurements: Measurements) -> list[Check]:
        return _check_each(measurements, rows_of(path_rows(measurements), values), *parts)

    return check


def _rule_of_deltas(part: Part) -> Rule:
    """Return a rule that checks the deltas between models."""

    def check(measurements: Measurements) -> list[Check]:
        return _check_each(measurements, delta_rows(measurements), part)

    return check


def _rule_of_encoders(
    read_rows: Callable[[Measurements], pd.DataFrame], values: Mapping[str, object]
) -> Rule:
    """Return a rule that compares the slopes of encoders."""

    def check(measurements: Measurements) -> list[Check]:
        return _compare_encoders(measurements, rows_of(read_rows(measurements), values))

    return check


RISES = (
    _mean("ρ of α and score", "rho", {"above": SMOOTH, "printed": SMOOTHLY, **PLAIN}),
    _mean("gain", "gain", HELPS),
)

OF_MEDIAN: Bounds = {"of_median": True}
LINEAR_RISE: Bounds = {"above": SMOOTH, "printed": SMOOTHLY, **PLAIN, **OF_MEDIAN}
STRAIGHT = _mean("R² of a line", "straight", LINEAR_RISE)

EQUAL: Bounds = {"above": 0.8, "below": 1.25, "ratio": True, "printed": "near identical norms", **PLAIN}
RATIO = _mean("‖δ_S‖ / ‖δ_T‖", "ratio", {**EQUAL, **OF_MEDIAN})

AROUND_55: Bounds = {"above": 45, "below": 65, "printed": "around 55°", "scale": 1, "digits": 0, **OF_MEDIAN}
ANGLE = _mean("angle in degrees", "angle", AROUND_55)

RULES: Mapping[str, Rule] = {
    "1a": _rule_of_paths(EQ_1 | SOURCE, _level),
    "1b": _rule_of_paths(EQ_1 | TARGET, *RISES),
    "1c": compare_stds,
    "1d": _rule_of_deltas(RATIO),
    "1e": _rule_of_encoders(path_rows, EQ_1 | TARGET),
    "1f": _rule_of_paths(EQ_1 | TARGET, STRAIGHT),
    "1g": _rule_of_deltas(ANGLE),
    "1h": _rule_of_paths(EQ_1 | TARGET, _variances),
    "1i": compare_parts,
    "1j": check_target_paths,
    "1k": compare_slopes,
    "1l": _rule_of_encoders(plane_rows, TARGET),
}
"""The function that checks each claim of the paper (``claims.toml``)."""
