"""Claims of the second paper about X-Mixup: the rule of each and the function that checks it.

Paper: Yang et al. (2022), "Enhancing Cross-lingual Transfer by Manifold Mixup". Which systems count, and what
they are compared to, is in ``mixup_comparisons``.
"""

from collections.abc import Mapping
from dataclasses import replace

import pandas as pd

from isogloss.features.claims.checks import FEWEST_LANGUAGES, HURTS, check_correlation, name_comparison
from isogloss.features.claims.comparisons import drop_strays, labelled_groups, replicates
from isogloss.features.claims.mixup_comparisons import (
    CLASSIFICATION,
    MIXING_ALONE,
    NO_MIXUP,
    OF_SYSTEM,
    MixupComparison,
    ablations,
    cka_of,
    mixup_comparisons,
    mixup_scores,
    paper_systems,
    pivot_by_unit,
    scored_mixups,
    select_ways,
    source_cka,
    target_means,
)
from isogloss.reports.checks import HELPS, UNITS, Check, check_of, not_measured, without_judgement
from isogloss.reports.comparison import TEST_SET, model_languages
from isogloss.reports.frames import add_map_languages
from isogloss.reports.measurements import Measurements
from isogloss.reports.verdicts import Rule

LEAST_SPREAD = 0.1
"""λ varies over examples if its standard deviation is this share of its mean. The paper gives no bound."""

UNCORRELATED = 0.5
"""Correlations within ± this are negligible. The paper gives no bound."""

QUALITY = "the translation quality modeling in the mixup process"
"""Words of the paper on λ, of whose spread it prints nothing."""

STATES = ("", "paired")
"""Inputs of models whose states are compared."""


def compare_to_baselines(measurements: Measurements) -> list[Check]:
    """Compare X-Mixup with translate-train, and each translate-train once with zero-shot (2a)."""
    checks: dict[object, Check] = {}
    for comparison in scored_mixups(measurements):
        step = comparison.group, *comparison.trained["way"].unique()
        checks[comparison.name] = comparison.check(
            comparison.full, comparison.trained, "x-mixup − translate-train"
        )
        checks[step] = comparison.check(comparison.trained, comparison.plain, "translate-train − source-only")
    return list(checks.values())


def compare_cka(measurements: Measurements) -> list[Check]:
    """Compare the CKA of X-Mixup models with the CKA of translate-train models (2b)."""
    checks = []
    bounds = {**HELPS, "scale": 1, "digits": 3}
    for comparison in mixup_comparisons(measurements, source_cka(measurements), inputs=STATES):
        remark = _remark(
            ("− source-only", comparison.check(comparison.full, comparison.plain, "", "target", bounds))
        )
        words = "CKA, x-mixup − translate-train"
        check = comparison.check(comparison.full, comparison.trained, f"{words}{remark}", "target", bounds)
        checks.append(comparison.name_check(check, words))
    return checks


def correlate_cka_with_scores(measurements: Measurements) -> list[Check]:
    """Correlate a language's CKA with the source and its score (2c)."""
    rows = mixup_scores(measurements)
    checks = []
    rows = rows[rows["method"].isin(["source-only", "translate-train"]) & (rows["inputs"] == "")]
    baselines = [
        side for comparison in scored_mixups(measurements) for side in (comparison.plain, comparison.trained)
    ]
    rows = select_ways(rows, baselines)
    for label, system in labelled_groups(measurements, rows, [*TEST_SET, "encoder", "way"]):
        _, (group,) = replicates(system)
        scores = target_means(group)
        min_languages = FEWEST_LANGUAGES if group["target"].any() else 1
        for _, states in cka_of(measurements, group).groupby("layer"):
            correlation = check_correlation(
                f"{label}: ρ of CKA and score",
                target_means(states),
                scores,
                HELPS,
                min_languages=min_languages,
            )
            checks += name_comparison(
                correlation,
                _name_system(group),
                statement="ρ of CKA and score",
                split=group["split"].iloc[0],
                preference=[-float(states["layer"].iloc[0])],
            )
    return checks


def _name_system(group: pd.DataFrame) -> str:
    """Name the system of a group of rows, without the split."""
    columns = (name for name in (*TEST_SET, "encoder", "way", "inputs.translator") if name != "split")
    return " ".join(str(group[name].iloc[0]) for name in columns)


def compare_ablations(measurements: Measurements) -> list[Check]:
    """Compare the full X-Mixup with each ablation, and with itself without translations (2d)."""
    checks = []
    for comparison in scored_mixups(measurements):
        parts = {**ablations(comparison), "unmixed at inference": comparison.unmixed}
        for name, rows in parts.items():
            check = comparison.check(comparison.full, rows, f"whole − {name}")
            checks += [without_judgement(check) if name == MIXING_ALONE else check] if len(rows) else []
        if MIXING_ALONE in parts and NO_MIXUP not in parts:
            missing = not_measured(f"{comparison.name}: whole − {NO_MIXUP}, read without translations")
            checks.append(comparison.name_check(missing, f"whole − {NO_MIXUP}"))
    return checks


def compare_unmixed(measurements: Measurements) -> list[Check]:
    """Compare X-Mixup without translations at inference with training without mixup (2j)."""
    checks = []
    for comparison in scored_mixups(measurements):
        plain_rows = ablations(comparison).get(NO_MIXUP, comparison.rows.iloc[:0])
        sides = {NO_MIXUP: plain_rows, "translate-train": comparison.trained}
        ours, theirs = (
            comparison.check(comparison.unmixed, rows, f"unmixed at inference, x-mixup − {name}")
            for name, rows in sides.items()
        )
        checks += [ours, without_judgement(theirs)]
    return checks


def compare_unseen_languages(measurements: Measurements) -> list[Check]:
    """Compare X-Mixup with translate-train on languages without translations in training (2e)."""
    checks = []
    for comparison in scored_mixups(measurements):
        is_translated = comparison.rows["inputs.translator"] == comparison.full["inputs.translator"].iloc[0]
        is_translated &= (comparison.rows["inputs"] == "translated") & (
            comparison.rows["method"] == "source-only"
        )
        remark = _remark(
            (
                "of it without translations at inference",
                comparison.check(comparison.unmixed, comparison.trained, role="unseen"),
            ),
            (
                "x-mixup − translate-test",
                comparison.check(comparison.full, comparison.rows[is_translated], role="unseen"),
            ),
        )
        words = "unseen languages, x-mixup − translate-train"
        check = comparison.check(comparison.full, comparison.trained, f"{words}{remark}", "unseen")
        checks.append(comparison.name_check(check, words))
    return checks


def check_ratio_spread(measurements: Measurements) -> list[Check]:
    """Check the standard deviation of λ over examples relative to its mean (2f)."""
    rows = paper_systems(measurements.frame("mixup-ratio"))
    rows = model_languages(rows[(rows["method"] == "x-mixup") & (rows["without"] == "")])
    rows = rows.assign(metric="λ", score=rows["std"].astype(float) / rows["mean"])
    checks = []
    rows = select_ways(rows, [comparison.full for comparison in scored_mixups(measurements)])
    for label, system in labelled_groups(
        measurements, rows, [*TEST_SET, "encoder", "way", "inputs.translator"]
    ):
        unit, (group,) = replicates(system)
        words = f"{label}: std of λ over examples in percent of its mean, {group['mean'].mean():.3f}"
        means = pivot_by_unit(group, unit).dropna().mean(axis=1)
        bounds = {"above": LEAST_SPREAD, "printed": QUALITY, "scale": 100, "digits": 2, "of_median": True}
        check = check_of(means, words, bounds, UNITS[unit])
        checks += name_comparison(
            [check], _name_system(group), statement="spread of λ", split=group["split"].iloc[0]
        )
    return checks


def compare_gaps(measurements: Measurements) -> list[Check]:
    """Compare the gap between source and targets of X-Mixup and translate-train (2g)."""
    checks = []
    bounds = {**HELPS, "scale": 100, "digits": 1}
    for comparison in scored_mixups(measurements):
        unit, (full_rows, unmixed_rows, trained_rows) = replicates(
            comparison.full, comparison.unmixed, comparison.trained
        )
        gains = [
            pivot_by_unit(comparison.on(rows, role), unit)
            - pivot_by_unit(comparison.on(trained_rows, role), unit)
            for role, rows in {"target": full_rows, "source": unmixed_rows}.items()
        ]
        target, source = (gain.dropna(axis="columns", how="all").dropna().mean(axis=1) for gain in gains)
        words = "gap of translate-train − of x-mixup"
        check = check_of((target - source).dropna(), f"{comparison.name}: {words}", bounds, UNITS[unit])
        checks.append(comparison.name_check(check, words))
    return checks


def compare_sources(measurements: Measurements) -> list[Check]:
    """Compare the unpaired source score of X-Mixup with translate-train (2h)."""
    label = "source, x-mixup − translate-train"
    return [
        comparison.check(comparison.unmixed, comparison.trained, label, "source")
        for comparison in scored_mixups(measurements)
    ]


def compare_kl_with_mse(measurements: Measurements) -> list[Check]:
    """Compare ablations of MSE and of KL, in classification (2i)."""
    return [
        comparison.check(left["without MSE"], left["without KL"], "without MSE − without KL")
        for comparison in scored_mixups(measurements)
        if {"without MSE", "without KL"} <= (left := ablations(comparison)).keys()
    ]


def compare_layers(measurements: Measurements) -> list[Check]:
    """Compare mixing in each layer with translate-train.

    In classification only the lower layers count (2k).
    """
    stacks: dict[object, list[MixupComparison]] = {}
    for comparison in mixup_comparisons(measurements, mixup_scores(measurements), layers=True):
        key = comparison.group, comparison.full["split"].iloc[0], comparison.full["inputs.translator"].iloc[0]
        stacks.setdefault(key, []).append(comparison)
    checks = []
    for stack in stacks.values():
        *_, highest = layers = sorted(stack, key=_layer)
        classifies = highest.full["task"].iloc[0] in CLASSIFICATION
        if _layer(layers[0]) < _layer(highest):
            for comparison in layers[: (len(layers) + 1) // 2] if classifies else layers:
                checks.append(
                    comparison.check(
                        comparison.full, comparison.trained, f"layer {_layer(comparison)} − translate-train"
                    )
                )
            if classifies:
                label = f"layer {_layer(layers[0])} − layer {_layer(highest)}"
                checks.append(layers[0].check(layers[0].full, highest.full, label))
    return checks


def compare_centroids(measurements: Measurements) -> list[Check]:
    """Compare the share of variance between the languages' centroids with translate-train (2l).

    The share depends on the languages, so only maps of the same languages are compared.
    """
    rows = paper_systems(measurements.frame("representation-map"))
    rows = add_map_languages(rows[rows["what"] == "centroid"])
    rows = rows.drop_duplicates(["model", "corpus", "inputs", "layer", "languages"])
    rows = drop_strays(rows, OF_SYSTEM, ["corpus", "inputs", "layer"])
    first_sources = rows["source"].str.split("+").str[0]
    rows = rows.assign(score=rows["between"], language=first_sources, metric="between", split="")
    checks = list[Check]()
    further_checks = list[Check]()
    for comparison in mixup_comparisons(measurements, rows, inputs=STATES):
        name, theirs = (
            ("translate-train", comparison.trained)
            if len(comparison.trained)
            else ("source-only", comparison.plain)
        )
        for languages, full_rows in comparison.full.groupby("languages"):
            label = f"variance between languages in percent, x-mixup − {name}"
            comparable = theirs[theirs["languages"] == languages]
            map_comparison = replace(comparison, systems=f"{comparison.systems} {languages}")
            check = map_comparison.check(full_rows, comparable, label, "source", HURTS)
            (checks if len(comparable) or theirs.empty else further_checks).append(check)
    return checks or further_checks


def correlate_gains(measurements: Measurements) -> list[Check]:
    """Correlate the gains over translate-train in CKA and in score, over languages (2m).

    Models with too few targets are ignored if other models have enough.
    """
    bounds = {"above": -UNCORRELATED, "below": UNCORRELATED, "printed": "no obvious correlation"}
    checks = list[Check]()
    words = "ρ of gains in CKA and in score"
    for comparison in scored_mixups(measurements):
        if len(comparison.trained):
            _, sides = replicates(comparison.full, comparison.trained)
            full_means, baseline = (target_means(comparison.on(rows, "target")) for rows in sides)
            score = full_means - baseline
            states = [cka_of(measurements, rows) for rows in sides]
            for layer in sorted(set(states[0]["layer"]) & set(states[1]["layer"])):
                full_means, baseline = (target_means(rows[rows["layer"] == layer]) for rows in states)
                label = f"{comparison.name}: {words}"
                layer_comparison = replace(comparison, preference=(-float(layer),))
                for check in check_correlation(label, full_means - baseline, score, bounds):
                    checks.append(layer_comparison.name_check(check, words))
    return [check for check in checks if check.values] or checks


def _layer(comparison: MixupComparison) -> int:
    return int(comparison.full["method.layer"].iloc[0])


def _remark(*checks: tuple[str, Check]) -> str:
    """Write numbers that are reported and not judged."""
    texts = [f"{name} {check.written(check.estimate.mean)}" for name, check in checks if check.values]
    return f" ({', '.join(texts)})" if texts else ""


RULES: Mapping[str, Rule] = {
    "2a": compare_to_baselines,
    "2b": compare_cka,
    "2c": correlate_cka_with_scores,
    "2d": compare_ablations,
    "2e": compare_unseen_languages,
    "2f": check_ratio_spread,
    "2g": compare_gaps,
    "2h": compare_sources,
    "2i": compare_kl_with_mse,
    "2j": compare_unmixed,
    "2k": compare_layers,
    "2l": compare_centroids,
    "2m": correlate_gains,
}
"""The function that checks each claim of the paper (``claims.toml``)."""
