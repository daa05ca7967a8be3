"""Claims of the fourth paper about negative interference: the rule of each and the function that checks it.

"On Negative Interference in Multilingual Models", Sections 3 and 4. Encoders are compared, so the unit of
replication is the pretraining seed; fine-tuning seeds are averaged within it. Two encoders of equal seeds are
independent draws, so they are not paired. If several encoders have a number for one seed, their mean counts.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import permutations, product

import numpy as np
import pandas as pd

from isogloss.features.claims.checks import (
    AS_BEFORE,
    HURTS,
    check_independent,
    check_trend,
    name_comparison,
    with_note,
)
from isogloss.features.claims.comparisons import rank_correlations
from isogloss.features.claims.interference_rows import (
    EMBEDDING,
    OWN,
    WITHIN,
    ZERO_SHOT,
    bilingual,
    closer_pairs,
    memorised_encoders,
    paper_scores,
    perplexity_rows,
    reading,
    similar_parts,
    steps_times,
    stopped_encoders,
)
from isogloss.reports.checks import HELPS, Bounds, Check, check_of, not_measured
from isogloss.reports.comparison import compare, filter_rows, row_keys
from isogloss.reports.measurements import Measurements
from isogloss.reports.verdicts import Rule

BOTH: Mapping[str, Bounds] = {WITHIN: HELPS, ZERO_SHOT: HELPS}

UNMOVED: Bounds = {**AS_BEFORE, "printed": "neither … substantially impacts negative interference"}
UNHELPED: Bounds = {**AS_BEFORE, "printed": "similar within-language performance"}
"""Words of the paper, where it prints no bounds."""

SEED = "encoder.seed"
UNIT = "pretraining seed"
check_seeds = partial(check_of, unit=UNIT)


def compare_mono_with_joint(measurements: Measurements) -> list[Check]:
    """Compare monolingual with joint encoders (4a)."""
    rows = paper_scores(measurements)
    has_memorised = rows["encoder"].isin(memorised_encoders(measurements))
    mono = rows[rows["role"] == "mono"]
    joint = bilingual(rows[rows["role"] == "joint"])
    if mono.empty or joint.empty:
        return []
    sides = mono[~has_memorised[mono.index]], joint
    checks = _compare(measurements, sides, "alone − joint", {WITHIN: HELPS}, ("lines", "steps"))
    memorised_rows = mono[has_memorised[mono.index]].drop_duplicates("encoder")
    notes = [
        f"{name} left out, learned by heart"
        for name in memorised_rows["encoder.languages"] + " " + memorised_rows["lines"]
    ]
    equal_exposure = sides[0].assign(steps=steps_times(sides[0], 2)), joint
    exposure_checks = _compare(
        measurements, equal_exposure, "at equal exposure, alone − joint", {WITHIN: HELPS}, ("lines", "steps")
    )
    return with_note(checks, [*notes, *(check.text for check in exposure_checks if check.values)])


def compare_learned_modules(measurements: Measurements, halves: Mapping[str, Bounds]) -> list[Check]:
    """Compare encoders with modules of each language's own with joint ones, once they have learned (4d)."""
    rows = paper_scores(measurements)
    has_stopped = stopped_encoders(measurements)
    encoders = rows[rows["role"].isin((*OWN, "joint"))].drop_duplicates("encoder")
    early = encoders[[has_stopped.get(encoder) is False for encoder in encoders["encoder"]]]
    settled_encoders = {encoder for encoder, is_settled in has_stopped.items() if is_settled}
    checks = compare_modules(
        measurements, OWN, ["joint"], halves, rows[rows["encoder"].isin(settled_encoders)]
    )
    if not compare_modules(measurements, OWN, ["joint"], halves, rows):
        return []
    if not checks:
        return [
            Check(about="no pair of encoders has stopped learning by its held-out perplexity, not tested")
        ]
    return with_note(checks, [f"{role} left out, still learning" for role in dict.fromkeys(early["role"])])


def compare_modules(
    measurements: Measurements,
    ours: Sequence[str],
    theirs: Sequence[str],
    halves: Mapping[str, Bounds] = BOTH,
    rows: pd.DataFrame | None = None,
) -> list[Check]:
    """Compare encoders with some modules with others of the same languages and steps (4d, 4e, 4g, 4h, 4j)."""
    rows, matching_columns = (
        paper_scores(measurements) if rows is None else rows,
        ("languages", "lines", "steps", EMBEDDING),
    )
    if not all(rows["role"].isin(roles).any() for roles in (ours, theirs)):
        return []
    checks = []
    for role, baseline in product(ours, theirs):
        sides = rows[rows["role"] == role], rows[rows["role"] == baseline]
        checks += _compare(measurements, sides, f"{role} − {baseline}", halves, matching_columns)
    return checks


def compare_gradients(measurements: Measurements) -> list[Check]:
    """Compare gradients between languages with those within, and close with distant pairs (4b)."""
    finished_rows, training = (
        rows[rows["layer"].isna() & (rows["module"] == "all")]
        for rows in (
            similar_parts(measurements, "gradient-conflict"),
            similar_parts(measurements, "training-conflict"),
        )
    )
    texts = [
        "{:.2f} between, {:.2f} within".format(*rows[["cosine", "within"]].mean())
        if len(rows)
        else "between, within"
        for rows in (finished_rows, training)
    ]
    conflict = (training["cosine"] - training["within"]).groupby(training[SEED]).mean()
    checks = [
        check_seeds(
            conflict.dropna(),
            f"cosine in training: {texts[1]}, difference",
            {**HURTS, "of_median": True},
        ),
        check_seeds(
            closer_pairs(measurements, training),
            "closer − more distant pairs, corrected cosine",
            {**HELPS, "of_median": True},
        ),
    ]
    notes = [f"finished encoder: {texts[0]}"] if len(finished_rows) else []
    return with_note(checks, notes) if len(finished_rows) or len(training) else []


def compare_layers(measurements: Measurements, frame: str, *further_measures: str) -> list[Check]:
    """Correlate layer and similarity, and compare attention with feed-forward (4c, 4f).

    ``others`` are similarities that only make notes.
    """
    checks = _layer_checks(similar_parts(measurements, frame))
    notes = [
        f"by {name}, {check.text}"
        for name in further_measures
        for check in _layer_checks(similar_parts(measurements, frame, name))
        if check.values
    ]
    return with_note(checks, notes) if checks else []


def _layer_checks(rows: pd.DataFrame) -> list[Check]:
    """Check layers over all modules (else each kind), and kinds of modules over all layers."""
    rows = rows.dropna(subset=["corrected"])
    layers = rows[rows["layer"] >= 1]
    whole_layers = layers["module"] == "all"
    layers = layers[whole_layers] if whole_layers.any() else layers
    rhos = rank_correlations(layers, "layer", "corrected", [SEED], ["encoder", "first", "second", "module"])
    modules = rows[rows["layer"].isna()].pivot_table(
        index=[SEED, "encoder", "first", "second"], columns="module", values="corrected"
    )
    modules = modules.reindex(columns=["attention", "feed-forward"])
    label = "attention {:.2f}, feed-forward {:.2f}, difference".format(*modules.mean())
    difference = (modules["attention"] - modules["feed-forward"]).dropna().groupby(level=SEED).mean()
    trend = check_trend(rhos, layers["layer"].nunique(), "ρ of layer and similarity", HURTS, UNIT)
    checks = [trend, check_seeds(difference, label, HELPS)]
    return checks if len(rows) else []


def compare_learning_speed(measurements: Measurements) -> list[Check]:
    """Compare held-out perplexity at equal steps: adapters, joint, meta-learned adapters (4i)."""
    rows = perplexity_rows(measurements)
    matching_columns = ["shape", "languages", "lines", "steps", "encoder.seed", "language", "split", "step"]
    logs = np.log(rows.groupby(["role", *matching_columns])["score"].mean()).unstack("role")
    logs = logs.reindex(columns=["adapter", "joint", "meta-adapter"])
    checks = []
    for role, baseline, bounds in (("adapter", "joint", HELPS), ("meta-adapter", "adapter", HURTS)):
        label = f"{role} − {baseline}, log perplexity over training"
        means = (
            logs[[role, baseline]].groupby(level=[name for name in matching_columns if name != SEED]).mean()
        )
        shared = logs.index.droplevel(SEED).isin(means.dropna().index)
        ours, theirs = (
            logs.loc[shared, side].dropna().groupby(level=SEED).mean() for side in (role, baseline)
        )
        checks.append(
            check_independent(ours, theirs, label, {"scale": 1, "digits": 2, **bounds}, UNIT)
            if len(ours) and len(theirs)
            else not_measured(label)
        )
    return checks if any(check.values for check in checks) else []


def _is_cut(language: str, lines: str) -> bool:
    return language in dict(json.loads(lines))


def compare_little_text(measurements: Measurements) -> list[Check]:
    """Compare joint encoders with little text of a language with mono ones, and with all text (4k).

    The paper makes no claim about languages whose monolingual encoder does not overfit.
    """
    rows = paper_scores(measurements)
    joint = bilingual(rows[rows["role"] == "joint"])
    mono = rows[rows["role"] == "mono"]
    little = joint[joint["lines"] != ""]
    all_text = joint[joint["lines"] == ""]
    if little.empty:
        return []
    mono = mono[mono["encoder"].isin(memorised_encoders(measurements))]
    if mono.empty:
        return [Check(about="no encoder alone has learned its little text by heart, not tested")]
    little = little[little["lines"].isin(mono["lines"])]
    cut = filter_rows(little, _is_cut, "language", "lines")
    checks = _compare(
        measurements, (cut, mono), "little text, joint − alone", {WITHIN: HELPS}, ("lines", "steps")
    )
    sides = (little.drop(cut.index), all_text)
    matching_columns = ("languages", "steps")
    return [
        *checks,
        *_compare(
            measurements, sides, "the other language, little − all text", {WITHIN: UNMOVED}, matching_columns
        ),
    ]


def compare_language_pairs(measurements: Measurements) -> list[Check]:
    """Compare joint encoders of two language pairs that share a language, the closer pair first (4l)."""
    conflicts = measurements.frame("gradient-conflict")
    overlaps = conflicts[conflicts["kind"] == "encoder"].groupby("encoder")["overlap"].mean()
    checks = []
    rows = paper_scores(measurements).query("role == 'joint' and lines == ''")
    for ours, theirs in permutations(rows.groupby("encoder"), 2):
        our_codes, their_codes = (set(rows["languages"].iloc[0].split("+")) for _, rows in (ours, theirs))
        closer = overlaps.get(ours[0], 0) > overlaps.get(theirs[0], np.inf)
        if closer and len(our_codes) == len(their_codes) == 2 and len(our_codes & their_codes) == 1:
            label = f"with {' '.join(our_codes - their_codes)} − with {' '.join(their_codes - our_codes)}"
            checks += _compare(measurements, (ours[1], theirs[1]), label, {WITHIN: HELPS}, ("steps",))
    return _drop_missing(checks)


def compare_three_with_two(measurements: Measurements) -> list[Check]:
    """Compare joint encoders of three languages with joint encoders of two of them (4m)."""
    rows = paper_scores(measurements)
    checks = []
    halves = {WITHIN: UNHELPED, ZERO_SHOT: HELPS}
    for ours, theirs in permutations(rows[rows["role"] == "joint"].groupby("encoder"), 2):
        our_codes, their_codes = (set(rows["languages"].iloc[0].split("+")) for _, rows in (ours, theirs))
        if len(our_codes) == 3 and len(their_codes) == 2 and their_codes < our_codes:
            checks += _compare(
                measurements, (ours[1], theirs[1]), "three − two languages", halves, ("lines", "steps")
            )
    return _drop_missing(checks)


def _drop_missing(checks: Sequence[Check]) -> list[Check]:
    """Drop measurements that some pairs of encoders lack."""
    measured_checks = [check for check in checks if check.values]
    missing = {check.about.removesuffix(": not measured"): check for check in checks if not check.values}
    missing_checks = [
        check
        for subject, check in missing.items()
        if not any(measured_check.about.startswith(subject) for measured_check in measured_checks)
    ]
    return [*measured_checks, *missing_checks]


def _compare(
    measurements: Measurements,
    sides: tuple[pd.DataFrame, pd.DataFrame],
    difference: str,
    halves: Mapping[str, Bounds],
    matching_columns: Sequence[str],
) -> list[Check]:
    """Compare encoders with others that are equal in some columns, by task, on the mean over languages."""
    all_checks = []
    for subset, bounds in halves.items():
        ours, theirs = (side[side["half"] == subset] for side in sides)
        ids = row_keys(theirs, ("test", *matching_columns))
        checks = []
        for _, group in ours.groupby(["test", *matching_columns, "steps", "system"]):
            for _, baseline_rows in theirs[
                ids == row_keys(group, ("test", *matching_columns)).iloc[0]
            ].groupby("encoder"):
                if result := compare(measurements, group, baseline_rows, unit=SEED, is_paired=False):
                    label = f"{group['task'].iloc[0]} {' '.join(result.languages)}"
                    label = f"{difference}, {subset}{reading(group, baseline_rows)}: {label}"
                    checks += name_comparison(
                        [check_seeds(result, label, bounds)],
                        "\n".join(
                            str(value)
                            for value in group.iloc[0][["place", *matching_columns, "steps", "system"]]
                        )
                        + str(baseline_rows["encoder"].iloc[0]),
                        statement=f"{difference}, {subset}",
                        split=str(group["split"].iloc[0]),
                    )
        missing = replace(not_measured(f"{difference}, {subset}"), statement=f"{difference}, {subset}")
        all_checks += checks or [missing]
    return all_checks


RULES: Mapping[str, Rule] = {
    "4a": compare_mono_with_joint,
    "4b": compare_gradients,
    "4c": partial(compare_layers, frame="gradient-conflict"),
    "4d": partial(compare_learned_modules, halves={WITHIN: HELPS, ZERO_SHOT: HURTS}),
    "4e": partial(compare_modules, ours=["meta-adapter"], theirs=["joint"]),
    "4f": lambda m: compare_layers(m, "language-gates", "correlation"),
    "4g": partial(compare_modules, ours=["meta-adapter"], theirs=["adapter", "shared-adapter"]),
    "4h": partial(compare_modules, ours=["feed-forward"], theirs=["attention"], halves={WITHIN: HELPS}),
    "4i": compare_learning_speed,
    "4j": partial(compare_modules, ours=["shared-adapter"], theirs=["joint"]),
    "4k": compare_little_text,
    "4l": compare_language_pairs,
    "4m": compare_three_with_two,
}
"""The function that checks each claim of the paper (``claims.toml``)."""
