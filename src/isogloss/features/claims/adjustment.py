"""Claims of the third paper about cross-lingual adjustment: the rule of each and the function that checks it.

Paper: "The Impact of Cross-Lingual Adjustment of Contextual Word Representations on Zero-Shot Transfer",
Sections 5.2 to 5.4 and Appendix A. Only the paper's adjustment and tasks are judged. Other findings become
notes. An adjusted encoder is one draw. If both sides have different encoders, the unit is the adjusting seed,
and fine-tuning seeds are averaged within it.
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import partial

import pandas as pd

from isogloss.features.claims.adjustment_rows import (
    ADJUSTING_SEED,
    ADJUSTMENT,
    ALL,
    CONTINUAL,
    DISTANCE,
    OPENING,
    ORIGINAL,
    PLAIN,
    SERIES,
    TASKS,
    distances,
    draws,
    most,
    name_test,
    paper_scores,
    plain_scores,
    prefer_distance,
    prefer_score,
    same_encoder,
    split_by_method,
    was_measured,
    with_unit,
    zero_shot,
)
from isogloss.features.claims.checks import AS_BEFORE, HURTS, check_trend, name_comparison, with_note
from isogloss.features.claims.comparisons import rank_correlations, select_shared
from isogloss.reports.checks import HELPS, Bounds, Check, check_of, not_measured
from isogloss.reports.comparison import compare, filter_rows, row_keys
from isogloss.reports.frames import list_columns, split_by
from isogloss.reports.measurements import Measurements
from isogloss.reports.verdicts import Rule

NO_HELP: Bounds = {"below": AS_BEFORE["below"], "printed": "no statistically significant improvement"}

UNHARMED: Bounds = {**AS_BEFORE, "printed": "did not support this conjecture"}
"""Words of the paper, where it prints no bounds."""

COSINE = ("cosine", "l2")
L2 = ("l2",)
"""Measures of distance, the preferred one first."""

MIXED = {"mixed": "nli", "mixed-question": "qa", "mixed-passage": "qa"}
"""Inputs partly in the source language, and the paper's task with such inputs (Tables 2 and 4)."""


def compare_with_original(
    measurements: Measurements, tasks: Mapping[str, Bounds], *, target: str = ""
) -> list[Check]:
    """Compare the largest adjustments with the original (3a), and those from English to one language (3f)."""
    rows = plain_scores(measurements)
    ours = most(zero_shot(rows, ALL))
    ours = ours[(ours["source"] == "en") & (ours["language"] == target)] if target else ours
    if not was_measured(measurements, ADJUSTMENT) or (target and ours.empty):
        return []
    return _compare(measurements, (ours, rows[rows["role"] == ORIGINAL]), "adjusted − original", tasks)


def compare_sizes(measurements: Measurements, tasks: Mapping[str, Bounds]) -> list[Check]:
    """Compare most with fewest translations, and correlate their number with scores (3b, 3h)."""
    rows = zero_shot(plain_scores(measurements), ALL)
    rows = rows[rows["task"].isin(list(tasks))]
    several = rows.groupby(SERIES)["size"].transform("nunique") > 1
    ends = most(rows[several]), most(rows[several], "min")
    checks = _compare(measurements, ends, "most − fewest translations", tasks, ("test", "setting"))
    draw_rows = rows[several].assign(unit=draws(rows[several]))
    for (task, original, *_), series in split_by(draw_rows, ["task", "original", "test", "setting"]):
        means = series.groupby([*SERIES, "unit", "size"])["score"].mean().reset_index()
        rhos = rank_correlations(means, "size", "score", ["unit"], ["encoder.pairs"])
        label = f"{_on(task, original)}: ρ of translations and score"
        if len(rhos):
            trend = check_trend(rhos, means["size"].nunique(), label, tasks[task], ADJUSTING_SEED)
            checks += _name_comparisons([trend], series, f"{task} ρ of translations and score")
    return checks if was_measured(measurements, ADJUSTMENT) else []


def compare_distances(measurements: Measurements) -> list[Check]:
    """Compare distances in models of the original encoder with those in the encoder itself (3c)."""
    rows = distances(measurements, *COSINE)
    pair = ["encoder.run", "first", "second", *DISTANCE]
    rows = rows[rows["role"] == ORIGINAL]
    start_means = rows[rows["kind"] == "encoder"].groupby(pair)[["related_mean", "unrelated_mean"]].mean()
    pair_rows = rows[rows["method"] == PLAIN].join(start_means.add_suffix(".before"), on=pair, how="inner")
    pair_rows = pair_rows.reset_index(drop=True)  # Without rows the keys would be index and columns.
    tuned_rows = plain_scores(measurements).query("role == @ALL")
    pair_rows = (
        pair_rows[pair_rows["way"].isin(tuned_rows["way"])]
        if pair_rows["way"].isin(tuned_rows["way"]).any()
        else pair_rows
    )
    if pair_rows.empty or not (
        was_measured(measurements, ADJUSTMENT) or was_measured(measurements, CONTINUAL)
    ):
        return []
    checks_of_tasks: dict[str, list[Check]] = {}
    for (task, original, *_), group in split_by(pair_rows, ["task", "original", *DISTANCE]):
        for words in ("related", "unrelated"):
            end = group[f"{words}_mean"]
            start = group[f"{words}_mean.before"]
            label = (
                f"{_on(task, original)}: {words} words {start.mean():.2f} → {end.mean():.2f}, mean distance"
            )
            values = (end - start).groupby(group["seed"]).mean()
            checks_of_tasks.setdefault(task, []).extend(
                name_comparison(
                    [check_of(values, label, HURTS)],
                    f"{task} {original} distances",
                    statement=f"{task}, {words} words",
                    preference=prefer_distance(group, COSINE),
                )
            )
    notes = [
        check.text for task in sorted(set(checks_of_tasks) - set(TASKS)) for check in checks_of_tasks[task]
    ]
    return with_note(
        [check for task in TASKS for check in checks_of_tasks.get(task) or [not_measured(task)]], notes
    )


def continual(
    measurements: Measurements, tasks: Mapping[str, Bounds], separation: Iterable[str]
) -> list[Check]:
    """Compare continual with source-only models of one adjusted encoder: AUC of tasks, score (3d, 3j)."""
    if not was_measured(measurements, CONTINUAL):
        return []
    checks = _continual(measurements, ALL, tasks, separation)
    if not any(check.values for check in checks):
        missing = "no continual model of an adjusted encoder, the paper's system, next to a source-only one"
        checks = [Check(about=f"{missing}, in {', '.join(TASKS)}")]
    original_checks = [
        check
        for check in _continual(measurements, ORIGINAL, dict.fromkeys(TASKS, HELPS), TASKS)
        if check.values
    ]
    return with_note(
        checks,
        ["on the original encoder", *(check.text for check in original_checks)] if original_checks else [],
    )


def _continual(
    measurements: Measurements, role: str, tasks: Mapping[str, Bounds], separation: Iterable[str]
) -> list[Check]:
    rows = distances(measurements, *L2)
    pair = ["task", "trained", "encoder.run", "source", "first", "second", "seed", *DISTANCE]
    tuned_rows, plain_rows = split_by_method(rows[rows["role"] == role])
    pair_rows = tuned_rows.join(
        plain_rows.groupby(pair)["auc"].mean().rename("auc.plain"), on=pair, how="inner"
    )
    pair_rows = pair_rows.reset_index(drop=True)  # Without rows the keys would be index and columns.
    all_checks = []
    for task in separation:
        checks = []
        for (original, way, *_), group in split_by(
            pair_rows[pair_rows["task"] == task], ["original", "way", *DISTANCE]
        ):
            means = f"{group['auc.plain'].mean():.3f} fine-tuned, {group['auc'].mean():.3f} continual"
            label = f"{_on(task, original)}: AUC {means}, by"
            values = (group["auc"] - group["auc.plain"]).groupby(group["seed"]).mean()
            checks += name_comparison(
                [check_of(values, label, HELPS)],
                f"{task} {original} {way} distances",
                statement=f"{task}, distances",
                preference=prefer_distance(group, L2),
            )
        all_checks += checks or [not_measured(f"{task}, distances")]
    rows = paper_scores(measurements)
    sides = split_by_method(zero_shot(rows[rows["inputs"] == ""], role))
    return [
        *all_checks,
        *_compare(measurements, sides, "continual − source-only", tasks, ("test", "encoder")),
    ]


def compare_mixed_inputs(measurements: Measurements) -> list[Check]:
    """Compare the gain on inputs in two languages with that on plain ones (3e)."""
    rows = paper_scores(measurements)
    all_checks = list[Check]()
    rows = rows[rows["method"] == PLAIN]
    rows = rows.assign(start=rows["encoder.seed"].astype(object).map(str))
    test = ["test", "inputs", "language", "seed", "start"]
    base = rows[rows["role"] == ORIGINAL].groupby(test)["score"].mean().rename("base")
    ours = most(zero_shot(rows, ALL)).join(base, on=test)
    ours = ours.assign(gain=ours["score"] - ours["base"])
    for form, task in MIXED.items() if ours["inputs"].isin(list(MIXED)).any() else ():
        checks = []
        for _, group in ours[ours["task"] == task].groupby(["test", "setting", "way"]):
            language_gains = group.assign(unit=draws(group)).pivot_table(
                index=["unit", "language"], columns="inputs", values="gain"
            )
            complete = language_gains.reindex(columns=[form, ""]).dropna()
            gain = pd.DataFrame(complete.unstack("language")).dropna()
            if len(gain):
                means = [100 * gain[inputs].to_numpy().mean() for inputs in (form, "")]
                gains = f"gain {means[0]:+.1f} {form}, {means[1]:+.1f} plain"
                label = f"{_describe(group, ours)}: {gains}, difference"
                values = pd.DataFrame(gain[form] - gain[""]).mean(axis=1)
                bounds = {**HELPS, "scale": 100, "digits": 1}
                check = check_of(values, label, bounds, ADJUSTING_SEED)
                checks += _name_comparisons([check], group, f"{task}, {form}")
        all_checks += checks or [not_measured(f"{task}, {form}")]
    return all_checks


def _is_trained_language(method: str, language: str, source: str, target: str) -> bool:
    return language == {PLAIN: source, "target-only": target}.get(method)


def compare_within_language(measurements: Measurements) -> list[Check]:
    """Compare models trained and tested in one language with models of the original encoder (3g)."""
    rows = paper_scores(measurements)
    rows = filter_rows(
        rows[rows["inputs"] == ""],
        _is_trained_language,
        *("method", "language", "source", "target"),
    )
    ours = most(rows[rows["role"] == ALL])
    originals = rows[rows["role"] == ORIGINAL]
    if ours.empty:
        return []
    tasks = [task for task in TASKS if task == "qa" or task in set(ours["task"])]
    bounds = dict.fromkeys(tasks, UNHARMED)
    pairs = ours.groupby("encoder.pairs")
    return [
        check
        for _, pair_rows in pairs
        for check in _compare(measurements, (pair_rows, originals), "adjusted − original", bounds)
    ]


def compare_with_cls_alone(measurements: Measurements) -> list[Check]:
    """Compare encoders that aligned all words with those that aligned [CLS] alone (3i)."""
    rows = plain_scores(measurements)
    tasks = dict.fromkeys(("nli", "ner"), HELPS)
    sides = most(zero_shot(rows, ALL)), zero_shot(rows, OPENING)
    checks = _compare(measurements, sides, "all words − [CLS] alone", tasks, ("test", "setting", "size"))
    return checks if was_measured(measurements, ADJUSTMENT) else []


def _compare(
    measurements: Measurements,
    sides: tuple[pd.DataFrame, pd.DataFrame],
    difference: str,
    tasks: Mapping[str, Bounds],
    equal_columns: Sequence[str] = ("test",),
) -> list[Check]:
    """Compare each setting of one side with the rows of the other that are equal in some columns."""
    ours, theirs = sides
    all_checks = []
    ids = row_keys(theirs, equal_columns)
    for task, bounds in tasks.items():
        checks = []
        for _, group in ours[ours["task"] == task].groupby([*equal_columns, "setting", "way"]):
            shared = select_shared(
                "encoder.seed", group, theirs[ids == row_keys(group, equal_columns).iloc[0]]
            )
            if not len(shared[1]):
                continue
            ours_drawn, theirs_drawn = with_unit(*shared)
            if result := compare(measurements, ours_drawn, theirs_drawn, unit="unit"):
                label = _describe(group[group["language"].isin(result.languages)], ours)
                unit = "seed" if same_encoder(*shared) else ADJUSTING_SEED
                check = check_of(result, f"{label}: {difference}", bounds, unit)
                checks += _name_comparisons([check], group, f"{task}, {difference}")
        all_checks += checks or [not_measured(task)]
    return all_checks


def _name_comparisons(checks: Sequence[Check], group: pd.DataFrame, statement: str) -> list[Check]:
    """Add to checks the statement they test, and their comparison without split and metric."""
    columns = [name for name in ("setting", "way", "encoder.pairs") if name in group]
    system = " ".join([name_test(group), *(str(group[name].iloc[0]) for name in columns)])
    split = str(group["split"].iloc[0])
    return name_comparison(checks, system, statement=statement, split=split, preference=prefer_score(group))


def _describe(rows: pd.DataFrame, among: pd.DataFrame) -> str:
    """Return task, corpus and languages, and the fields in which systems differ from the others."""
    columns = [
        name
        for name in list_columns(rows)
        if "encoder.adjusted." in name or ("method." in name and "encoder." not in name)
    ]
    varying_names = [name for name in columns if among[name].astype(object).map(str).nunique() > 1]
    fields = [f"{name.split('.')[-1]} {rows[name].iloc[0]}" for name in varying_names]
    languages = " ".join(sorted(set(rows["language"])))
    label = f"{rows['task'].iloc[0]} {rows['corpus'].iloc[0]} {languages}"
    return ", ".join([_on(label, rows["original"].iloc[0]), *fields])


def _on(label: str, original: str) -> str:
    """Return the name of the original encoder in words, if a claim has several."""
    return f"{label}, {original}" if original else label


RULES: Mapping[str, Rule] = {
    "3a": partial(compare_with_original, tasks={"nli": HELPS, "ner": HELPS, "qa": NO_HELP}),
    "3b": partial(compare_sizes, tasks={"nli": HELPS, "ner": HELPS}),
    "3c": compare_distances,
    "3d": partial(continual, tasks={"nli": HELPS}, separation=TASKS),
    "3e": compare_mixed_inputs,
    "3f": partial(compare_with_original, tasks={"ner": NO_HELP, "qa": NO_HELP}, target="es"),
    "3g": compare_within_language,
    "3h": partial(compare_sizes, tasks={"qa": HURTS}),
    "3i": compare_with_cls_alone,
    "3j": partial(continual, tasks={"ner": NO_HELP, "qa": NO_HELP}, separation=("ner", "qa")),
}
"""The function that checks each claim of the paper (``claims.toml``)."""
