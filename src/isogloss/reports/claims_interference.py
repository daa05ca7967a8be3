"""What is claimed of languages that fight for an encoder, each claim tested on the measurements at hand.

"On Negative Interference in Multilingual Models", Sections 3 and 4. The encoders themselves are compared, so
another pretraining seed is what a finding must survive; seeds of fine-tuning are averaged within it.
"""

import json
from collections.abc import Mapping, Sequence
from functools import partial
from itertools import permutations, product

import numpy as np
import pandas as pd

from isogloss.reports.comparison import alike, best_split, compare, ranked, where
from isogloss.reports.measurements import Measurements
from isogloss.reports.similarity import corrected
from isogloss.reports.verdicts import (
    AS_BEFORE,
    HELPS,
    HURTS,
    Bounds,
    Check,
    Test,
    check_of,
    not_measured,
    with_beside,
)

MASKED, META = "masked-language-modelling", "meta-learning"

OWN = ("feed-forward", "attention", "adapter")
"""Kinds of modules that each language has for itself, each judged by itself."""

ROLES = {
    **{(MASKED, True, modules): modules for modules in (*OWN, "shared-adapter")},
    **{(MASKED, True, ""): "joint", (MASKED, False, ""): "mono", (META, True, "adapter"): "meta-adapter"},
}
"""What an encoder is for the paper, by method, whether it has several languages, and modules."""

OURS = {"inner_step": "preconditioned", "second_order": "first-order", "mixed": True, "translation": True}
"""Options of pretraining that the paper does not have: what was trained with one decides nothing."""

WITHIN, ZERO_SHOT = "within languages", "zero-shot"

TASKS = {WITHIN: ("ner", "upos", "qa"), ZERO_SHOT: ("ner", "upos", "qa", "nli")}
"""The paper's (Tables 2, 3, 6, 7)."""

SHAPE = ("family", "layers", "dim", "heads", "feed_forward", "vocabulary", "positions", "dropout", "text")
PACE = ("method.steps", "method.batch_subwords", "method.block")

RISE = 1.05
"""How many times its lowest perplexity an encoder ends at, from which on it learned by heart."""

BY_SEED = ["encoder", "encoder.seed"]

check_seeds = partial(check_of, unit="pretraining seed")


def alone_beats_joint(m: Measurements) -> list[Check]:
    """Hold encoders of one language against those that several share (4a)."""
    rows, ends = _scores(m), _known(m.frame("perplexity")).sort_values("step")
    ends = ends[ends["lines"] != ""].groupby(["encoder", "encoder.run", "language"])["score"]
    every = (ends.last() >= RISE * ends.min()).groupby(level="encoder").all()
    alone, heart = rows[rows["role"] == "mono"], rows["encoder"].isin(every[every].index)
    sides = alone[~heart[alone.index]], rows[rows["role"] == "joint"]
    if alone.empty or sides[1].empty:
        return []
    out = alone[heart[alone.index]].drop_duplicates("encoder")
    beside = [f"{one} left out, learned by heart" for one in out["encoder.languages"] + " " + out["lines"]]
    return with_beside(_held(m, sides, "alone − joint", {WITHIN: HELPS}, ("lines",)), beside)


def against(
    m: Measurements, ours: Sequence[str], theirs: Sequence[str], halves: Mapping[str, Bounds]
) -> list[Check]:
    """Hold encoders by their modules against others of the same languages and steps (4d, 4e, 4g, 4h, 4j)."""
    rows, same = _scores(m), ("languages", "lines", "steps")
    if not all(rows["role"].isin(roles).any() for roles in (ours, theirs)):
        return []
    found = []
    for one, other in product(ours, theirs):
        sides = rows[rows["role"] == one], rows[rows["role"] == other]
        found += _held(m, sides, f"{one} − {other}", halves, same)
    return found


def gradients_conflict(m: Measurements) -> list[Check]:
    """Hold gradients of two languages against those of one, and of close against distant ones (4b)."""
    finished, training = (
        rows[rows["layer"].isna() & (rows["module"] == "all")]
        for rows in (_similar(m, "gradient-conflict"), _similar(m, "training-conflict"))
    )
    told = [
        "{:.2f} between, {:.2f} within".format(*rows[["cosine", "within"]].mean())
        if len(rows)
        else "between, within"
        for rows in (finished, training)
    ]
    conflict = (training["cosine"] - training["within"]).groupby([training[one] for one in BY_SEED]).mean()
    found = [
        check_seeds(conflict.dropna(), f"cosine in training: {told[1]}, difference", HURTS),
        check_seeds(_closer(m, training), "closer − more distant pairs, corrected cosine", HELPS),
    ]
    beside = [f"finished encoder: {told[0]}"] if len(finished) else []
    return with_beside(found, beside) if len(finished) or len(training) else []


def _closer(m: Measurements, training: pd.DataFrame) -> pd.Series:
    """Return by seed the corrected cosine of the pairs above the median overlap minus that of those below."""
    pair = ["encoder", "first", "second"]
    overlap = m.frame("gradient-conflict").groupby(pair)["overlap"].mean()
    rows = training.dropna(subset=["corrected"]).drop(columns="overlap", errors="ignore")
    rows = rows.join(overlap, on=pair)
    median = rows.drop_duplicates(pair)["overlap"].median()
    close, distant = (
        rows[side].groupby("encoder.seed")["corrected"].mean()
        for side in (rows["overlap"] > median, rows["overlap"] < median)
    )
    return (close - distant).dropna()


def lower_parts_shared(m: Measurements, frame: str, *beside: str) -> list[Check]:
    """Rank layers by how alike languages are in them, and hold attention against feed-forward (4c, 4f)."""
    found = _shared(_similar(m, frame))
    told = [
        f"by {name}, {one.told}" for name in beside for one in _shared(_similar(m, frame, name)) if one.values
    ]
    return with_beside(found, told) if found else []


def _shared(rows: pd.DataFrame) -> list[Check]:
    """Check layers of all their modules, or else of each kind, and modules of all layers together."""
    rows = rows.dropna(subset=["corrected"])
    layers = rows[rows["layer"] >= 1]
    every = layers["module"] == "all"
    layers = layers[every] if every.any() else layers
    rhos = ranked(layers, "layer", "corrected", BY_SEED, ["first", "second", "module"])
    modules = rows[rows["layer"].isna()].pivot_table(
        index=[*BY_SEED, "first", "second"], columns="module", values="corrected"
    )
    modules = modules.reindex(columns=["attention", "feed-forward"])
    about = "attention {:.2f}, feed-forward {:.2f}, difference".format(*modules.mean())
    apart = (modules["attention"] - modules["feed-forward"]).dropna().groupby(level=BY_SEED).mean()
    found = check_seeds(rhos, "ρ of layer and similarity", HURTS), check_seeds(apart, about, HELPS)
    return [*found] if len(rows) else []


def own_modules_learn_slower(m: Measurements) -> list[Check]:
    """Hold held-out perplexity at equal steps: adapters, joint, meta-learned adapters (4i)."""
    rows = _known(m.frame("perplexity"))
    place = ["shape", "languages", "lines", "steps", "encoder.seed", "language", "split", "step"]
    logs = np.log(rows.groupby(["role", *place])["score"].mean()).unstack("role")
    logs = logs.reindex(columns=["adapter", "joint", "meta-adapter"])
    found = []
    for one, other, bounds in (("adapter", "joint", HELPS), ("meta-adapter", "adapter", HURTS)):
        values = (logs[one] - logs[other]).dropna().groupby(level="encoder.seed").mean()
        found.append(check_seeds(values, f"{one} − {other}, log perplexity over training", bounds))
    return found if any(check.values for check in found) else []


def little_text_turns_it(m: Measurements) -> list[Check]:
    """Hold joint encoders of a cut-down language against that language alone, and against all text (4k)."""
    rows = _scores(m)
    joint, alone = rows[rows["role"] == "joint"], rows[rows["role"] == "mono"]
    little, full = joint[joint["lines"] != ""], joint[joint["lines"] == ""]
    if little.empty:
        return []
    cut = where(little, lambda code, lines: code in dict(json.loads(lines)), "language", "lines")
    found = _held(m, (cut, alone), "little text, joint − alone", {WITHIN: HELPS}, ("lines",))
    sides, same = (little.drop(cut.index), full), ("languages", "steps")
    return [*found, *_held(m, sides, "the other language, little − all text", {WITHIN: AS_BEFORE}, same)]


def closer_interfere_less(m: Measurements) -> list[Check]:
    """Hold joint encoders that share a language against each other, the closer pair first (4l)."""
    near = m.frame("gradient-conflict")
    near = near[near["kind"] == "encoder"].groupby("encoder")["overlap"].mean()
    found, rows = [], _scores(m)
    rows = rows[(rows["role"] == "joint") & (rows["lines"] == "")]
    for one, other in permutations(rows.groupby("encoder"), 2):
        ours, theirs = _languages(one[1]), _languages(other[1])
        closer = near.get(one[0], 0) > near.get(other[0], np.inf)
        if closer and len(ours) == len(theirs) == 2 and len(ours & theirs) == 1:
            about = f"with {' '.join(ours - theirs)} − with {' '.join(theirs - ours)}"
            found += _held(m, (one[1], other[1]), about, {WITHIN: HELPS}, ("steps",))
    return found


def third_language_helps_zero_shot(m: Measurements) -> list[Check]:
    """Hold joint encoders of three languages against those of two of them (4m)."""
    rows, found, halves = _scores(m), [], {WITHIN: AS_BEFORE, ZERO_SHOT: HELPS}
    for (_, one), (_, other) in permutations(rows[rows["role"] == "joint"].groupby("encoder"), 2):
        if len(_languages(one)) == 3 and len(_languages(other)) == 2 and _languages(other) < _languages(one):
            found += _held(m, (one, other), "three − two languages", halves, ("lines", "steps"))
    return found


def _languages(rows: pd.DataFrame) -> set[str]:
    return {*rows["languages"].iloc[0].split("+")}


def _known(rows: pd.DataFrame) -> pd.DataFrame:
    """Keep pretrained encoders with the paper's part to play, and ids of what must be the same."""
    rows = rows[(rows["encoder.kind"] == "pretrain") & (rows["encoder.adjusted"] == "")]
    for name, option in OURS.items():
        own = rows.get(f"encoder.method.{name}", pd.Series(index=rows.index, dtype=object))
        rows = rows[~(own.fillna(0).astype(bool) if option is True else own == option)]
    languages = ["+".join(sorted(one.split("+"))) for one in rows["encoder.languages"]]
    about = zip(
        rows["encoder.method"], ["+" in one for one in languages], rows["encoder.modules"], strict=True
    )
    rows = rows.assign(
        role=[ROLES.get(one, "") for one in about],
        languages=languages,
        lines=rows.reindex(columns=["encoder.lines"])["encoder.lines"].fillna("").astype(object),
        shape=alike(rows, [f"encoder.{name}" for name in SHAPE if f"encoder.{name}" in rows]),
        steps=alike(rows, [f"encoder.{name}" for name in PACE if f"encoder.{name}" in rows]),
    )
    return rows[rows["role"] != ""]


def _similar(m: Measurements, frame: str, value: str = "cosine") -> pd.DataFrame:
    """Return how alike two languages are in parts of encoders that several languages share whole."""
    rows = m.frame(frame)
    rows = _known(rows[rows["kind"] == "encoder"])
    found = corrected(rows[rows["role"] == "joint"].assign(model=rows.get("model", rows["run"])), value)
    return found[found["first"] != found["second"]]


def _scores(m: Measurements) -> pd.DataFrame:
    """Return scores on the paper's tasks, with the half of its tables that each belongs to."""
    rows = m.frame("scores")
    rows = _known(rows[(rows["inputs"] == "") & (rows["kind"] == "model")])
    rows = best_split(rows[rows["main"].astype(bool)])
    rows = where(rows, lambda code, languages: code in languages.split("+"), "language", "languages")
    about = zip(*(rows[name] for name in ("method", "language", "source", "target")), strict=True)
    rows = rows.assign(half=pd.Series([_half(*one) for one in about], index=rows.index, dtype=object))
    rows = where(rows, lambda task, half: task in TASKS.get(half, ()), "task", "half")
    rows = rows.assign(start=rows["source"].where(rows["half"] == ZERO_SHOT, ""))
    trained = [one for one in rows if "optimization." in one]
    place = alike(rows, ["corpus", "task", "split", "metric", "start", "shape", *trained])
    return rows.assign(place=place, system=rows["encoder"].where(rows["role"] != "mono", "alone"))


def _half(method: str, language: str, source: str, target: str) -> str:
    if language == {"source-only": source, "target-only": target}.get(method):
        return WITHIN
    return ZERO_SHOT if method == "source-only" and "+" not in source else ""


def _held(
    m: Measurements,
    sides: tuple[pd.DataFrame, pd.DataFrame],
    what: str,
    halves: Mapping[str, Bounds],
    same: Sequence[str],
) -> list[Check]:
    """Hold encoders against others that agree in some columns, task by task, mean over languages."""
    found = []
    for half, bounds in halves.items():
        ours, theirs = (side[side["half"] == half] for side in sides)
        ids, checks = alike(theirs, ("place", *same)), []
        for _, own in ours.groupby(["place", *same, "steps", "system"]):
            for _, other in theirs[ids == alike(own, ("place", *same)).iloc[0]].groupby("encoder"):
                if held := compare(m, own, other, unit="encoder.seed"):
                    about = (
                        f"{what}, {half}{_pace(own, other)}: {own['task'].iloc[0]} {' '.join(held.languages)}"
                    )
                    checks.append(check_seeds(held, about, bounds))
        found += checks or [not_measured(f"{what}, {half}")]
    return found


def _pace(own: pd.DataFrame, other: pd.DataFrame) -> str:
    """Say when an encoder of one language had as many steps, so that it read more of it."""
    if own["role"].iloc[0] != "mono":
        return ""
    equal = own["steps"].iloc[0] == other["steps"].iloc[0]
    return " (equal steps: alone it saw its language more often)" if equal else " (other steps)"


BOTH: Mapping[str, Bounds] = {WITHIN: HELPS, ZERO_SHOT: HELPS}

TESTS: Mapping[str, Test] = {
    "4a": alone_beats_joint,
    "4b": gradients_conflict,
    "4c": partial(lower_parts_shared, frame="gradient-conflict"),
    "4d": partial(against, ours=OWN, theirs=["joint"], halves={WITHIN: HELPS, ZERO_SHOT: HURTS}),
    "4e": partial(against, ours=["meta-adapter"], theirs=["joint"], halves=BOTH),
    "4f": lambda m: lower_parts_shared(m, "language-gates", "correlation"),
    "4g": partial(against, ours=["meta-adapter"], theirs=["adapter", "shared-adapter"], halves=BOTH),
    "4h": partial(against, ours=["feed-forward"], theirs=["attention"], halves={WITHIN: HELPS}),
    "4i": own_modules_learn_slower,
    "4j": partial(against, ours=["shared-adapter"], theirs=["joint"], halves=BOTH),
    "4k": little_text_turns_it,
    "4l": closer_interfere_less,
    "4m": third_language_helps_zero_shot,
}
