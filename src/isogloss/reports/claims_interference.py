"""What is claimed of languages that fight for an encoder, each claim tested on the measurements at hand.

"On Negative Interference in Multilingual Models", Sections 3 and 4. The encoders themselves are compared, so
another pretraining seed is what a finding must survive; seeds of fine-tuning are averaged within it.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import permutations
from typing import Any

import numpy as np
import pandas as pd

from isogloss.metrics.correlation import spearman
from isogloss.reports.comparison import alike, best_split, compare, where
from isogloss.reports.measurements import Measurements
from isogloss.reports.verdicts import Check, Claim, check_of, check_over, missing, with_beside

MASKED, META, UNIT = "masked-language-modelling", "meta-learning", "pretraining seed"

OWN = ("feed-forward", "attention", "adapter")
"""Kinds of modules that each language has for itself, each judged by itself."""

WITHIN, ZERO_SHOT = "within languages", "zero-shot"

TASKS = {WITHIN: ("ner", "upos", "qa"), ZERO_SHOT: ("ner", "upos", "qa", "nli")}
"""The paper's (Tables 2, 3, 6, 7)."""

SHAPE = ("family", "layers", "dim", "heads", "feed_forward", "vocabulary", "positions", "dropout", "text")
PACE = ("method.steps", "method.batch_subwords", "method.block")

RISE = 1.05
"""How many times its lowest perplexity an encoder ends at, from which on it learned by heart."""

NOISE = 0.05
"""Nothing is divided by the similarity of a language to itself where that is below this."""

Bounds = Mapping[str, Any]
HELPS: Bounds = {"above": 0.0}
HURTS: Bounds = {"below": 0.0}
AS_BEFORE: Bounds = {"above": -0.01, "below": 0.01}
"""Within a point, said beforehand."""

Sides = tuple[pd.DataFrame, pd.DataFrame]


def alone_beats_joint(m: Measurements) -> list[Check]:
    """Hold encoders of one language against those that several share (4a)."""
    rows = _scores(m)
    alone, heart = rows[rows["role"] == "mono"], _learned_by_heart(m)
    sides = alone[~alone["encoder"].isin(heart)], rows[rows["role"] == "joint"]
    if alone.empty or sides[1].empty:
        return []
    out = alone[alone["encoder"].isin(heart)].drop_duplicates("encoder")
    beside = [f"{one} left out, learned by heart" for one in out["encoder.languages"] + " " + out["lines"]]
    return with_beside(_held(m, sides, "alone − joint", {WITHIN: HELPS}, ("shape", "lines")), beside)


def against(
    m: Measurements, ours: Sequence[str], theirs: Sequence[str], halves: Mapping[str, Bounds]
) -> list[Check]:
    """Hold encoders by their modules against others of the same languages and steps (4d, 4e, 4g, 4h, 4j)."""
    rows = _scores(m)
    own, others = (rows[rows["role"].isin(roles)] for roles in (ours, theirs))
    if own.empty or others.empty:
        return []
    return [
        check
        for one in ours
        for other in theirs
        for check in _held(
            m, (own[own["role"] == one], others[others["role"] == other]), f"{one} − {other}", halves
        )
    ]


def gradients_conflict(m: Measurements) -> list[Check]:
    """Hold gradients of two languages against those of one, and of close against distant ones (4b)."""
    finished, training = (
        _whole(corrected(_joint(m.frame(name)), "cosine"))
        for name in ("gradient-conflict", "training-conflict")
    )
    means = finished[["cosine", "own"]].mean()
    words = f"finished encoder: {means['cosine']:.2f} between, {means['own']:.2f} within"
    beside = [words] if len(finished) else []
    if training.empty:
        return with_beside(missing("in training"), beside) if beside else []
    means = training[["cosine", "own"]].mean()
    about = (
        f"in training: cosine {means['cosine']:.2f} between languages, {means['own']:.2f} within, difference"
    )
    values = (training["cosine"] - training["own"]).groupby(_unit(training)).mean().dropna()
    closer = _closer(training, finished)
    distance = check_over("closer − more distant pairs, corrected cosine", closer, unit=UNIT, **HELPS)
    found = check_over(about, values, unit=UNIT, **HURTS) or missing("in training, beyond noise")
    return with_beside([*found, *(distance or missing("pairs of languages, not equally close"))], beside)


def lower_parts_shared(m: Measurements, frame: str, *beside: str) -> list[Check]:
    """Rank layers by how alike languages are in them, and hold attention against feed-forward (4c, 4f)."""
    rows = _joint(m.frame(frame))
    told = [
        f"by {value}, {one.about} {one.written(one.estimate.mean)}"
        for value in beside
        for one in _shared(corrected(rows, value))
        if one.values
    ]
    return with_beside(_shared(corrected(rows, "cosine")), told) if len(rows) else []


def own_modules_learn_slower(m: Measurements) -> list[Check]:
    """Hold held-out perplexity at equal steps: adapters, joint, meta-learned adapters (4i)."""
    rows = _known(m.frame("perplexity"))
    found = []
    for one, other, bounds in (("adapter", "joint", HELPS), ("meta-adapter", "adapter", HURTS)):
        place = ["shape", "languages", "lines", "steps", "encoder.seed", "language", "split", "step"]
        ours, theirs = (
            np.log(rows[rows["role"] == role].groupby(place, dropna=False)["score"].mean())
            for role in (one, other)
        )
        values = (ours - theirs).dropna().groupby(level="encoder.seed").mean()
        about = f"{one} − {other}, log perplexity over training"
        found += check_over(about, values, unit=UNIT, **bounds) or missing(about)
    return found if any(check.values for check in found) else []


def little_text_turns_it(m: Measurements) -> list[Check]:
    """Hold joint encoders of a cut-down language against that language alone, and against all text (4k)."""
    rows = _scores(m)
    little = rows[(rows["role"] == "joint") & (rows["lines"] != "")]
    if little.empty:
        return []
    full = rows[(rows["role"] == "joint") & (rows["lines"] == "")]
    cut = where(little, lambda code, lines: code in dict(json.loads(lines)), "language", "lines")
    sides = cut, rows[rows["role"] == "mono"]
    found = _held(m, sides, "little text, joint − alone", {WITHIN: HELPS}, ("shape", "lines"))
    sides, same = (little.drop(cut.index), full), ("shape", "languages", "steps")
    return [*found, *_held(m, sides, "the other language, little − all text", {WITHIN: AS_BEFORE}, same)]


def closer_interfere_less(m: Measurements) -> list[Check]:
    """Hold joint encoders that share a language against each other, the closer pair first (4l)."""
    near = _joint(m.frame("gradient-conflict")).groupby("encoder")["overlap"].mean()
    rows = _scores(m).assign(near=lambda one: one["encoder"].map(near))
    found = []
    for one, other in _pairs(rows[(rows["role"] == "joint") & (rows["lines"] == "")]):
        ours, theirs = _languages(one), _languages(other)
        closer = one["near"].iloc[0] > other["near"].iloc[0]
        if closer and len(ours) == len(theirs) == 2 and len(ours & theirs) == 1:
            about = f"with {' '.join(ours - theirs)} − with {' '.join(theirs - ours)}"
            found += _held(m, (one, other), about, {WITHIN: HELPS}, ("shape", "steps"))
    return found


def third_language_helps_zero_shot(m: Measurements) -> list[Check]:
    """Hold joint encoders of three languages against those of two of them (4m)."""
    rows = _scores(m)
    found, halves = [], {WITHIN: AS_BEFORE, ZERO_SHOT: HELPS}
    for one, other in _pairs(rows[rows["role"] == "joint"]):
        if len(_languages(one)) == 3 and len(_languages(other)) == 2 and _languages(other) < _languages(one):
            found += _held(m, (one, other), "three − two languages", halves, ("shape", "lines", "steps"))
    return found


# The encoders that are compared.


def _known(rows: pd.DataFrame) -> pd.DataFrame:
    """Keep pretrained encoders with the paper's part to play, and ids of what must be the same."""
    rows = rows[(rows["encoder.kind"] == "pretrain") & (rows["encoder.adjusted"] == "")]
    facts = ["languages", "modules", "method", "method.inner_step", "method.second_order"]
    facts += ["method.mixed", "method.translation"]
    about = rows.reindex(columns=[f"encoder.{name}" for name in facts])
    roles = [_role(*one) for one in about.itertuples(index=False)]
    shape, pace = (
        [f"encoder.{name}" for name in names if f"encoder.{name}" in rows] for names in (SHAPE, PACE)
    )
    rows = rows.assign(
        role=pd.Series(roles, index=rows.index, dtype=object),
        languages=["+".join(sorted(one.split("+"))) for one in rows["encoder.languages"]],
        lines=rows.reindex(columns=["encoder.lines"])["encoder.lines"].fillna("").astype(object),
        shape=alike(rows, shape),
        steps=alike(rows, pace),
    )
    return rows[rows["role"] != ""]


def _role(languages: str, modules: str, method: str, *others: Any) -> str:
    """Say what an encoder is for the paper; "" for what is not in it."""
    inner, second, mixed, translation = others
    if method == META:
        paper = inner != "preconditioned" and second != "first-order"
        return "meta-adapter" if modules == "adapter" and paper else ""
    if method != MASKED or mixed is True or translation > 0:
        return ""
    if "+" in languages:
        return modules or "joint"
    return "" if modules else "mono"


def _scores(m: Measurements) -> pd.DataFrame:
    rows = m.frame("scores")
    rows = _known(rows[(rows["inputs"] == "") & (rows["kind"] == "model")])
    rows = where(best_split(rows[rows["main"].astype(bool)]), _seen, "language", "languages")
    columns = ("method", "language", "source", "target")
    half = [_half(*one) for one in rows[list(columns)].itertuples(index=False)]
    rows = rows.assign(half=pd.Series(half, index=rows.index, dtype=object))
    rows = where(rows, lambda task, half: task in TASKS.get(half, ()), "task", "half")
    trained = [one for one in rows if "optimization." in one]
    start = rows["source"].where(rows["half"] == ZERO_SHOT, "")
    place = alike(rows.assign(start=start), ["corpus", "task", "split", "metric", "start", *trained])
    return rows.assign(place=place, system=rows["encoder"].where(rows["role"] != "mono", "alone"))


def _seen(language: str, languages: str) -> bool:
    return language in languages.split("+")


def _half(method: str, language: str, source: str, target: str) -> str:
    if (method, language) in (("source-only", source), ("target-only", target)):
        return WITHIN
    return ZERO_SHOT if method == "source-only" and "+" not in source else ""


def _learned_by_heart(m: Measurements) -> set[str]:
    """Return the encoders of cut-down text that, with every seed, end well above their lowest perplexity."""
    rows = _known(m.frame("perplexity"))
    rows = rows[rows["lines"] != ""].sort_values("step")
    score = rows.groupby(["encoder", "encoder.run", "language"])["score"]
    rises = score.last() >= RISE * score.min()
    every = rises.groupby(level="encoder").all()
    return {*every[every].index}


def _languages(rows: pd.DataFrame) -> set[str]:
    return {*rows["languages"].iloc[0].split("+")}


def _pairs(rows: pd.DataFrame) -> Iterator[Sides]:
    """Give each two encoders, either way round."""
    yield from permutations([own for _, own in rows.groupby("encoder")], 2)


def _held(
    m: Measurements,
    sides: Sides,
    what: str,
    halves: Mapping[str, Bounds],
    same: Sequence[str] = ("shape", "languages", "lines", "steps"),
) -> list[Check]:
    """Hold encoders against others that agree in some columns, task by task, mean over languages."""
    found = []
    for half, bounds in halves.items():
        ours, theirs = (side[side["half"] == half] for side in sides)
        ids, checks = alike(theirs, ("place", *same)), []
        for _, own in ours.groupby(["place", *same, "steps", "system"]):
            for _, other in theirs[ids == alike(own, ("place", *same)).iloc[0]].groupby("encoder"):
                held = compare(m, own, other, unit="encoder.seed")
                if held:
                    about = (
                        f"{what}, {half}{_pace(own, other)}: {own['task'].iloc[0]} {' '.join(held.languages)}"
                    )
                    checks.append(check_of(held, about, unit=UNIT, **bounds))
        found += checks or missing(f"{what}, {half}")
    return found


def _pace(own: pd.DataFrame, other: pd.DataFrame) -> str:
    """Say when an encoder of one language had as many steps, so that it read more of it."""
    if own["role"].iloc[0] != "mono":
        return ""
    equal = own["steps"].iloc[0] == other["steps"].iloc[0]
    return " (equal steps: alone it saw its language more often)" if equal else " (other steps)"


# How alike languages are in parts of an encoder.


def corrected(rows: pd.DataFrame, value: str) -> pd.DataFrame:
    """Return the similarity of each two languages, draws averaged, with ``own`` and ``corrected``.

    ``own`` is the geometric mean of the two languages' similarity to themselves; ``corrected`` is divided by
    it (Spearman 1904), and missing where that is nearly 0: there only noise was measured.
    """
    part = ["encoder", "encoder.run", "encoder.seed", "layer", "module"]
    means = rows.dropna(subset=[value]).groupby([*part, "first", "second"], dropna=False)
    columns = [value, *(["overlap"] if "overlap" in rows else [])]
    found = means[columns].mean().reset_index()
    own = found.loc[found["first"] == found["second"], [*part, "first", value]]
    for side in ("first", "second"):
        named = own.set_axis([*part, side, f"own.{side}"], axis=1)
        found = found.merge(named, on=[*part, side], how="left")
    noisy = found[["own.first", "own.second"]].min(axis=1) <= 0
    found["own"] = np.sqrt((found["own.first"] * found["own.second"]).mask(noisy))
    found["corrected"] = found[value] / found["own"].where(found["own"] >= NOISE)
    return found[found["first"] != found["second"]].drop(columns=["own.first", "own.second"])


def _joint(rows: pd.DataFrame) -> pd.DataFrame:
    """Keep rows of encoders themselves that several languages share whole."""
    rows = _known(rows[rows["kind"] == "encoder"])
    return rows[rows["role"] == "joint"]


def _whole(rows: pd.DataFrame) -> pd.DataFrame:
    return rows[rows["layer"].isna() & (rows["module"] == "all")]


def _unit(rows: pd.DataFrame) -> list[pd.Series]:
    """Return what to group by: each encoder, and each of its seeds."""
    return [rows["encoder"], rows["encoder.seed"]]


def _closer(training: pd.DataFrame, finished: pd.DataFrame) -> pd.Series:
    """Return by seed the corrected cosine in the closer half of the pairs minus that in the other half."""
    pair = ["encoder", "first", "second"]
    overlap = finished.reindex(columns=[*pair, "overlap"]).groupby(pair)["overlap"].mean()
    rows = training.dropna(subset=["corrected"]).drop(columns="overlap", errors="ignore")
    rows = rows.join(overlap, on=pair).dropna(subset=["overlap"])
    near = rows.groupby(pair)["overlap"].first().rank(method="first")
    half = len(near) // 2
    if not half or rows["overlap"].nunique() < 2:
        return pd.Series(dtype=float)
    rank = rows.join(near.rename("rank"), on=pair)["rank"]
    sides = [rows[rank > len(near) - half], rows[rank <= half]]
    close, distant = (side.groupby("encoder.seed")["corrected"].mean() for side in sides)
    return (close - distant).dropna()


def _rhos(rows: pd.DataFrame) -> pd.Series:
    """Return ρ of layer and corrected similarity for each encoder and seed, mean over pairs and modules."""
    groups = rows.dropna(subset=["corrected"]).groupby(
        ["encoder", "encoder.seed", "first", "second", "module"]
    )
    found = [
        (*key[:2], spearman([*own["layer"]], [*own["corrected"]]).rho) for key, own in groups if len(own) > 2
    ]
    table = pd.DataFrame(found, columns=["encoder", "seed", "rho"]).fillna({"rho": 0.0})
    return table.groupby(["encoder", "seed"])["rho"].mean()


def _attention(rows: pd.DataFrame) -> pd.Series:
    """Return attention minus feed-forward for each encoder and seed, mean over pairs."""
    table = rows.pivot_table(
        index=["encoder", "encoder.seed", "first", "second"], columns="module", values="corrected"
    ).reindex(columns=["attention", "feed-forward"])
    return (table["attention"] - table["feed-forward"]).dropna().groupby(level=[0, 1]).mean()


def _shared(rows: pd.DataFrame) -> list[Check]:
    """Check layers of all their modules, or else of each kind, and modules of all layers together."""
    layers = rows[rows["layer"] >= 1]
    rhos = _rhos(layers[layers["module"] == "all"] if (layers["module"] == "all").any() else layers)
    whole = rows[rows["layer"].isna()]
    means = whole.groupby("module")["corrected"].mean().reindex(["attention", "feed-forward"])
    about = "attention {:.2f}, feed-forward {:.2f}, difference".format(*means)
    return [
        *(check_over("ρ of layer and similarity", rhos, unit=UNIT, **HURTS) or missing("three layers")),
        *(check_over(about, _attention(whole), unit=UNIT, **HELPS) or missing("modules")),
    ]


FAIR = (
    "Encoders of one architecture, text, languages and number of steps; task by task, mean over languages. "
    "Unit: pretraining seed (seeds of fine-tuning averaged), crossed with examples. Within languages: "
    "trained and tested in one, NER, POS, QA; zero-shot: NLI too. "
)
JOINT = "Minus the joint encoder (rows JointPair of Tables 2, 3, 6, 7): "


def _claim(name: str, where: str, says: str, rule: str, test: Callable[[Measurements], list[Check]]) -> Claim:
    return Claim(id=name, paper=4, where=where, says=says, rule=rule, needs=(), test=test)


CLAIMS = (
    _claim(
        "4a",
        "Tables 2 and 3, Fig. 1",
        "Within a language, an encoder of it alone beats one that shares all with others, unless it has "
        "little text and learns it by heart.",
        f"{FAIR}{JOINT}above 0. Left out: cut-down text whose perplexity ends at {RISE} times its lowest or "
        "more. Steps may differ and are told: with equal ones, an encoder alone saw its language more often.",
        alone_beats_joint,
    ),
    _claim(
        "4b",
        "Fig. 3, Section 3.4",
        "Gradients of two languages are less alike than those of one, and those of distant ones least.",
        "Joint encoders in training, all parameters, mean over looks and pairs. Cosine minus the geometric "
        "mean of the languages' own: below 0. Cosine divided by it, of the half of the pairs that share more "
        "subwords minus the other half, by seed: above 0. Unit: pretraining seed. Baseline: En-En of Fig. 3.",
        gradients_conflict,
    ),
    _claim(
        "4c",
        "Fig. 4a, Section 3.4",
        "Lower layers are shared more than upper ones, attention more than feed-forward: by gradients.",
        "Finished joint encoders; cosine divided by the geometric mean of the languages' own (none below "
        f"{NOISE}). Spearman's ρ with the layer, mean over pairs: below 0; attention minus feed-forward: "
        "above 0. Unit: encoder and pretraining seed, draws averaged. The paper has gates (4f).",
        lambda m: lower_parts_shared(m, "gradient-conflict"),
    ),
    _claim(
        "4d",
        "Tables 2, 3, 6 and 7: ffn, attn, adpt",
        "Modules of each language's own help within languages and hurt zero-shot transfer.",
        f"{FAIR}Each kind by itself. {JOINT}above 0 within languages, below 0 zero-shot.",
        lambda m: against(m, OWN, ("joint",), {WITHIN: HELPS, ZERO_SHOT: HURTS}),
    ),
    _claim(
        "4e",
        "Tables 2, 3, 6 and 7: meta adpt",
        "Meta-learned adapters help both within languages and zero-shot.",
        f"{FAIR}Algorithm 1 with its second-order term; no other inner step decides. {JOINT}above 0 in both.",
        lambda m: against(m, ("meta-adapter",), ("joint",), {WITHIN: HELPS, ZERO_SHOT: HELPS}),
    ),
    _claim(
        "4f",
        "Fig. 4a, Section 3.4",
        "Lower layers are shared more than upper ones, attention more than feed-forward: by gates.",
        "As claim 4c, by the cosine of two languages' gate parameters as in the paper, layers of attention "
        "and of feed-forward apart; by correlation, free of their mean, beside.",
        lambda m: lower_parts_shared(m, "language-gates", "correlation"),
    ),
    _claim(
        "4g",
        "Tables 2, 3, 6 and 7: meta adpt, adpt, share adpt",
        "Meta-learned adapters beat plain and shared adapters, within languages and zero-shot.",
        f"{FAIR}Minus plain adapters (row adpt), and minus shared ones (row share adpt): above 0 in both.",
        lambda m: against(
            m, ("meta-adapter",), ("adapter", "shared-adapter"), {WITHIN: HELPS, ZERO_SHOT: HELPS}
        ),
    ),
    _claim(
        "4h",
        "Tables 2 and 3: ffn, attn",
        "Within languages, own feed-forward layers gain more than own attention.",
        f"{FAIR}Feed-forward minus attention (row attn): above 0.",
        lambda m: against(m, ("feed-forward",), ("attention",), {WITHIN: HELPS}),
    ),
    _claim(
        "4i",
        "Fig. 4c",
        "Plain adapters learn slower than the joint encoder, meta-learned ones faster than plain ones.",
        "Log of held-out perplexity, mean over equal steps of training and over languages: adapter minus "
        "joint above 0, meta-learned minus plain adapter below 0. Unit: pretraining seed. (Fig. 4c: loss.)",
        own_modules_learn_slower,
    ),
    _claim(
        "4j",
        "Tables 2, 3, 6 and 7: share adpt",
        "Adapters that languages share help both within languages and zero-shot.",
        f"{FAIR}{JOINT}above 0 in both.",
        lambda m: against(m, ("shared-adapter",), ("joint",), {WITHIN: HELPS, ZERO_SHOT: HELPS}),
    ),
    _claim(
        "4k",
        "Table 5, Section 3.3",
        "Little text of a language turns interference into transfer for it, and leaves the other as it was.",
        f"{FAIR}In the cut-down language, joint minus alone on the same little text: above 0; in the other, "
        "joint with little minus with all text: within 1 point.",
        little_text_turns_it,
    ),
    _claim(
        "4l",
        "Table 5",
        "The closer the other language, the less it interferes.",
        f"{FAIR}Two encoders of two languages that share one; in it, the pair with more subwords in common "
        "minus the other: above 0.",
        closer_interfere_less,
    ),
    _claim(
        "4m",
        "Table 4",
        "A third, similar language helps zero-shot transfer alone.",
        f"{FAIR}Joint encoder of three languages minus that of two of them: within 1 point within languages, "
        "above 0 zero-shot. That the third is similar is taken for granted.",
        third_language_helps_zero_shot,
    ),
)
