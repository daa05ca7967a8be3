"""What is claimed of pulling translated words together, each claim tested on the measurements at hand.

"The Impact of Cross-Lingual Adjustment of Contextual Word Representations on Zero-Shot Transfer", Sections
5.2 to 5.4 and Appendix A. Only the paper's adjustment and tasks decide; what else there is, is said beside.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from functools import partial

import numpy as np
import pandas as pd

from isogloss.reports.comparison import PLACE, alike, best_split, compare, ranked, where
from isogloss.reports.measurements import Measurements
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

HOW, PLAIN, CONTINUAL = "cross-lingual-adjustment", "source-only", "source-only + alignment-loss"

TASKS = ("nli", "ner", "qa")
"""The paper's; no other task decides."""

NO_HELP: Bounds = {"below": AS_BEFORE["below"]}

MIXED = {"mixed": "nli", "mixed-question": "qa", "mixed-passage": "qa"}
"""Inputs partly in the source language, with the task of the paper that has them (Tables 2 and 4)."""

MAIN = {"encoder.adjusted": HOW, "encoder.adjusted.word": "average", "encoder.depth": 1}
"""How encoders are adjusted in the paper (Section 3, Appendix A.1)."""

PULLED = "encoder.adjusted.pulled"

ORIGINAL, ALL, OPENING = "original", "all", "opening"
"""An encoder's role: not adjusted, or adjusted as in the paper, by all words or (Table 7) by [CLS] alone."""


def gains(m: Measurements, tasks: Mapping[str, Bounds], *, to: str = "") -> list[Check]:
    """Hold the largest adjustments against the original (3a); from English to one language alone (3f)."""
    rows = _plain(m)
    ours = _most(_aimed(rows, ALL))
    ours = ours[(ours["source"] == "en") & (ours["language"] == to)] if to else ours
    if not _has(m, HOW) or (to and ours.empty):
        return []
    return _held(m, (ours, rows[rows["role"] == ORIGINAL]), "adjusted − original", tasks)


def sizes(m: Measurements, tasks: Mapping[str, Bounds]) -> list[Check]:
    """Hold most against fewest translations, and rank scores by their number (3b, 3h)."""
    rows = _aimed(_plain(m), ALL)
    rows = rows[rows["task"].isin([*tasks])]
    several = rows.groupby(ADJUSTMENT)["size"].transform("nunique") > 1
    ends = _most(rows[several]), _most(rows[several], "min")
    found = _held(m, ends, "most − fewest translations", tasks, ("place", "setting"))
    means = rows[several].groupby(["task", *ADJUSTMENT, "seed", "size"])["score"].mean().reset_index()
    for (task, *_), own in means.groupby(["task", "place", "setting"]):
        rhos = ranked(own, "size", "score", ["seed"], ["encoder.pairs"])
        found += [check_of(rhos, f"{task}: ρ of translations and score", tasks[task])] if len(rhos) else []
    return found if _has(m, HOW) else []


def drawn_together(m: Measurements) -> list[Check]:
    """Hold distances in models of the original encoder against those in the encoder itself (3c)."""
    rows, pair = _distances(m), ["encoder.run", "first", "second"]
    rows = rows[rows["role"] == ORIGINAL]
    before = rows[rows["kind"] == "encoder"].groupby(pair)[["related_mean", "unrelated_mean"]].mean()
    both = rows[rows["method"] == PLAIN].join(before.add_suffix(".before"), on=pair, how="inner")
    if both.empty or not (_has(m, HOW) or _has(m, CONTINUAL)):
        return []
    found: dict[str, list[Check]] = {}
    for task, own in both.groupby("task"):
        for words in ("related", "unrelated"):
            after, start = own[f"{words}_mean"], own[f"{words}_mean.before"]
            about = f"{task}: {words} words {start.mean():.2f} → {after.mean():.2f}, mean distance"
            values = (after - start).groupby(own["seed"]).mean()
            found.setdefault(task, []).append(check_of(values, about, HURTS))
    beside = [one.told for task in sorted({*found} - {*TASKS}) for one in found[task]]
    return with_beside([one for task in TASKS for one in found.get(task) or [not_measured(task)]], beside)


def continual(m: Measurements, tasks: Mapping[str, Bounds], apart: Iterable[str]) -> list[Check]:
    """Hold continual models against source-only ones of the same adjusted encoder: AUC, score (3d, 3j)."""
    if not _has(m, CONTINUAL):
        return []
    found = _continual(m, ALL, tasks, apart)
    if not any(one.values for one in found):
        about = "no continual model of an adjusted encoder, the paper's system, beside a source-only one"
        found = [Check(about=about)]
    other = [one for one in _continual(m, ORIGINAL, dict.fromkeys(TASKS, HELPS), TASKS) if one.values]
    return with_beside(found, ["on the original encoder", *(one.told for one in other)] if other else [])


def _continual(m: Measurements, role: str, tasks: Mapping[str, Bounds], apart: Iterable[str]) -> list[Check]:
    rows, pair = _distances(m), ["task", "encoder.run", "source", "first", "second", "seed"]
    tuned, plain = _both(rows[rows["role"] == role])
    both = tuned.join(plain.groupby(pair)["auc"].mean().rename("auc.plain"), on=pair, how="inner")
    found = []
    for task in apart:
        checks = []
        for _, own in both[both["task"] == task].groupby("way"):
            about = (
                f"{task}: AUC {own['auc.plain'].mean():.3f} fine-tuned, {own['auc'].mean():.3f} continual, by"
            )
            values = (own["auc"] - own["auc.plain"]).groupby(own["seed"]).mean()
            checks.append(check_of(values, about, HELPS))
        found += checks or [not_measured(f"{task}, distances")]
    rows = _scores(m)
    sides = _both(_aimed(rows[rows["inputs"] == ""], role))
    return [*found, *_held(m, sides, "continual − source-only", tasks, ("place", "encoder"))]


def mixed_gains_more(m: Measurements) -> list[Check]:
    """Hold the gain on inputs in two languages against that on plain ones (3e)."""
    rows, found = _scores(m), []
    rows = rows[rows["method"] == PLAIN]
    test = ["place", "inputs", "language", "seed"]
    base = rows[rows["role"] == ORIGINAL].groupby(test)["score"].mean().rename("base")
    ours = _most(_aimed(rows, ALL)).join(base, on=test)
    ours = ours.assign(gain=ours["score"] - ours["base"])
    for how, task in MIXED.items() if ours["inputs"].isin([*MIXED]).any() else ():
        checks = []
        for _, own in ours[ours["task"] == task].groupby(["place", "setting", "way"]):
            gain = own.pivot_table(index=["seed", "language"], columns="inputs", values="gain")
            gain = gain.reindex(columns=[how, ""]).dropna().unstack().dropna()
            if len(gain):
                means = [100 * gain[one].mean(axis=None) for one in (how, "")]
                about = f"{_told(own, ours)}: gain {means[0]:+.1f} {how}, {means[1]:+.1f} plain, difference"
                values = (gain[how] - gain[""]).mean(axis=1)
                checks.append(check_of(values, about, {**HELPS, "scale": 100, "digits": 1}))
        found += checks or [not_measured(f"{task}, {how}")]
    return found


def kept_within_language(m: Measurements) -> list[Check]:
    """Hold models trained and tested in one language against those of the original encoder (3g)."""
    rows = _scores(m)
    rows = where(
        rows[rows["inputs"] == ""],
        lambda method, code, source, target: code == {PLAIN: source, "target-only": target}.get(method),
        *("method", "language", "source", "target"),
    )
    ours = _most(rows[rows["role"] == ALL])
    tasks = [task for task in TASKS if task == "qa" or task in set(ours["task"])]
    sides = ours, rows[rows["role"] == ORIGINAL]
    return _held(m, sides, "adjusted − original", dict.fromkeys(tasks, AS_BEFORE)) if len(ours) else []


def opening_alone_is_worse(m: Measurements) -> list[Check]:
    """Hold encoders that pulled all words together against those that pulled [CLS] alone (3i)."""
    rows = _plain(m)
    sides, tasks = (_most(_aimed(rows, ALL)), _aimed(rows, OPENING)), dict.fromkeys(("nli", "ner"), HELPS)
    found = _held(m, sides, "all words − [CLS] alone", tasks, ("place", "setting", "size"))
    return found if _has(m, HOW) else []


# The rows that claims are about.

ADJUSTMENT = ["place", "setting", "encoder.pairs"]
"""An adjustment, on however many translations, and where its models are tested."""


def _scores(m: Measurements) -> pd.DataFrame:
    """Return scores on the paper's tasks by its metrics, with ids of test set, setting and size."""
    rows = m.frame("scores")
    rows = rows[(rows["kind"] == "model") & rows["task"].isin(TASKS)]
    by_word = (rows["metric"] == "word_f1") & (rows["task"] == "ner")
    has = by_word.groupby([rows["corpus"], rows["task"]]).transform("any").astype(bool)
    rows = _with_role(best_split(rows[by_word | (rows["main"].astype(bool) & ~has)]))
    trained = [one for one in rows if "optimization." in one]
    setting = [one for one in rows if "encoder.adjusted." in one and one not in (*MAIN, PULLED)]
    return rows.assign(
        place=alike(rows, [*PLACE, "encoder.original", *trained]),
        setting=alike(rows, setting),
        size=rows["encoder.size"].astype(float).fillna(math.inf),
    )


def _plain(m: Measurements) -> pd.DataFrame:
    rows = _scores(m)
    return rows[(rows["inputs"] == "") & (rows["method"] == PLAIN)]


def _distances(m: Measurements) -> pd.DataFrame:
    """Return L2 distances in the last layer, as in Figs 1 and 2."""
    rows = m.frame("word-distance")
    rows = _with_role(rows[rows["distance"] == "l2"])
    return rows[rows["layer"] == (-1 if (rows["layer"] == -1).any() else rows["layer"].max())]


def _with_role(rows: pd.DataFrame) -> pd.DataFrame:
    """Say which role an encoder has; "" for ablations and others' adjustments, which do not decide."""
    papers = [rows[name] == value for name, value in MAIN.items() if name in rows]
    role = np.where(np.logical_and.reduce(papers), rows.get(PULLED, ALL), "")
    return rows.assign(role=np.where(rows["encoder.adjusted"] == "", ORIGINAL, role))


def _has(m: Measurements, one: str) -> bool:
    """Tell whether an adjustment or a method was measured."""
    frames = [m.frame(name)[["encoder.adjusted", "method"]] for name in ("scores", "word-distance")]
    return any((rows == one).any(axis=None) for rows in frames)


def _both(rows: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    return rows[rows["method"] == CONTINUAL], rows[rows["method"] == PLAIN]


def _aimed(rows: pd.DataFrame, role: str) -> pd.DataFrame:
    """Keep encoders of a role in the languages they were adjusted to (the original: all), but the source."""
    return where(
        rows[rows["role"] == role],
        lambda code, pairs, source: (
            code != source and (not pairs or code in {one.split("-")[-1] for one in pairs.split("+")})
        ),
        *("language", "encoder.pairs", "source"),
    )


def _most(rows: pd.DataFrame, end: str = "max") -> pd.DataFrame:
    """Keep the encoder of each adjustment that saw the most translations, or the fewest."""
    return rows[rows["size"] == rows.groupby(ADJUSTMENT)["size"].transform(end)]


# Checks.


def _held(
    m: Measurements,
    sides: tuple[pd.DataFrame, pd.DataFrame],
    what: str,
    tasks: Mapping[str, Bounds],
    same: Sequence[str] = ("place",),
) -> list[Check]:
    """Hold one side against the rows of the other alike in some columns; several settings each by itself."""
    ours, theirs = sides
    found, ids = [], alike(theirs, same)
    for task, bounds in tasks.items():
        checks = []
        for _, own in ours[ours["task"] == task].groupby([*same, "setting", "way"]):
            held = compare(m, own, theirs[ids == alike(own, same).iloc[0]])
            if held:
                about = f"{_told(own[own['language'].isin(held.languages)], ours)}: {what}{_one_encoder(own)}"
                checks.append(check_of(held, about, bounds))
        found += checks or [not_measured(task)]
    return found


def _told(own: pd.DataFrame, among: pd.DataFrame) -> str:
    """Say task, corpus and languages, and the fields in which systems are not as the others."""
    about = [one for one in own if "encoder.adjusted." in one or ("method." in one and "encoder." not in one)]
    varied = [one for one in about if among[one].astype(object).map(str).nunique() > 1]
    fields = [f"{one.split('.')[-1]} {own[one].iloc[0]}" for one in varied]
    languages = " ".join(sorted(set(own["language"])))
    return ", ".join([f"{own['task'].iloc[0]} {own['corpus'].iloc[0]} {languages}", *fields])


def _one_encoder(rows: pd.DataFrame) -> str:
    """Say where all seeds start from one adjusted encoder."""
    many = rows[rows["role"] != ORIGINAL].groupby("encoder")[["seed", "encoder.run"]].nunique()
    one = ((many["encoder.run"] == 1) & (many["seed"] > 1)).any()
    return " (one adjusted encoder: its own variance is not in it)" if one else ""


TESTS: Mapping[str, Test] = {
    "3a": partial(gains, tasks={"nli": HELPS, "ner": HELPS, "qa": NO_HELP}),
    "3b": partial(sizes, tasks={"nli": HELPS, "ner": HELPS}),
    "3c": drawn_together,
    "3d": partial(continual, tasks={"nli": HELPS}, apart=TASKS),
    "3e": mixed_gains_more,
    "3f": partial(gains, tasks={"ner": NO_HELP, "qa": NO_HELP}, to="es"),
    "3g": kept_within_language,
    "3h": partial(sizes, tasks={"qa": HURTS}),
    "3i": opening_alone_is_worse,
    "3j": partial(continual, tasks={"ner": NO_HELP, "qa": NO_HELP}, apart=("ner", "qa")),
}
