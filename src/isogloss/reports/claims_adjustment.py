"""What is claimed of pulling translated words together, each claim tested on the measurements at hand.

"The Impact of Cross-Lingual Adjustment of Contextual Word Representations on Zero-Shot Transfer", Sections
5.2 to 5.4 and Appendix A. Only the paper's adjustment and tasks decide; what else there is, is said beside.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import pandas as pd

from isogloss.metrics.correlation import spearman
from isogloss.reports.comparison import PLACE, alike, best_split, compare, spoken_for, where
from isogloss.reports.measurements import Measurements
from isogloss.reports.verdicts import Check, Claim, check_of, check_over, missing, with_beside

HOW, PLAIN, CONTINUAL = "cross-lingual-adjustment", "source-only", "continual"

TASKS = ("nli", "ner", "qa")
"""The paper's; no other task decides."""

LITTLE = 0.01
"""Below a point is no help and no harm, said beforehand: what is not significant may yet be large."""

MIXED = {"mixed": "nli", "mixed-question": "qa", "mixed-passage": "qa"}
"""Inputs partly in the source language, with the task of the paper that has them (Tables 2 and 4)."""

MAIN = {"encoder.adjusted.word": "average", "encoder.adjusted.pulled": "all", "encoder.depth": 1}
"""How encoders are adjusted in the paper's main experiments (Section 3, Appendix A.1)."""

Bounds = Mapping[str, Any]
HELPS: Bounds = {"above": 0.0}
HURTS: Bounds = {"below": 0.0}
NO_HELP: Bounds = {"below": LITTLE}
AS_BEFORE: Bounds = {"above": -LITTLE, "below": LITTLE}


def gains(m: Measurements, tasks: Mapping[str, Bounds], *, to: str = "") -> list[Check]:
    """Hold the largest adjustments against the original (3a); from English to one language alone (3f)."""
    rows = _scores(m)
    ours = _largest(_targets(_adjusted(_plain(rows))))
    ours = ours[(ours["source"] == "en") & (ours["language"] == to)] if to else ours
    if not _has(m, "encoder.adjusted", HOW) or (to and ours.empty):
        return []
    return _by_task(m, (ours, _original(_plain(rows))), "adjusted − original", tasks)


def sizes(m: Measurements, tasks: Mapping[str, Bounds]) -> list[Check]:
    """Hold most against fewest translations, and rank scores by their number (3b, 3h)."""
    ours = _targets(_adjusted(_plain(_scores(m))))
    if not _has(m, "encoder.adjusted", HOW):
        return []
    size = ours.groupby(["place", "setting", "encoder.pairs"])["size"]
    ours = ours[size.transform("nunique") > 1].assign(fewest=size.transform("min"))
    ends = _largest(ours), ours[ours["size"] == ours["fewest"]]
    found = _by_task(m, ends, "most − fewest translations", tasks, ("place", "setting"))
    for (task, *_), own in ours[ours["task"].isin(list(tasks))].groupby(["task", "place", "setting"]):
        found += check_over(f"{task}: ρ of translations and score", _ranked(own), **tasks[task])
    return found


def drawn_together(m: Measurements) -> list[Check]:
    """Hold distances in models of the original encoder against those in the encoder itself (3c)."""
    rows, pair = _original(_distances(m)), ["encoder.run", "first", "second"]
    before = rows[rows["kind"] == "encoder"].groupby(pair)[["related_mean", "unrelated_mean"]].mean()
    both = rows[rows["method"] == PLAIN].join(before.add_suffix(".before"), on=pair, how="inner")
    if both.empty or not (_has(m, "encoder.adjusted", HOW) or _has(m, "method", CONTINUAL)):
        return []
    found: dict[str, list[Check]] = {}
    for task, own in both.groupby("task"):
        for words in ("related", "unrelated"):
            after, start = own[f"{words}_mean"], own[f"{words}_mean.before"]
            about = f"{task}: {words} words {start.mean():.2f} → {after.mean():.2f}, mean distance"
            values = (after - start).groupby(own["seed"]).mean()
            found.setdefault(task, []).extend(check_over(about, values, **HURTS))
    beside = [one.about for task in sorted(found.keys() - {*TASKS}) for one in found[task]]
    return with_beside([one for task in TASKS for one in found.get(task) or missing(task)], beside)


def continual(m: Measurements, tasks: Mapping[str, Bounds], apart: Iterable[str]) -> list[Check]:
    """Hold continual models against source-only ones of the same adjusted encoder: AUC, score (3d, 3j)."""
    if not _has(m, "method", CONTINUAL):
        return []
    scores, distances = _scores(m), _distances(m)
    scores = scores[scores["inputs"] == ""]
    beside = _on_the_original(m, _original(scores), _original(distances))
    scores, distances = _targets(_adjusted(scores)), _adjusted(distances)
    if not any((rows["method"] == CONTINUAL).any() for rows in (scores, distances)):
        return with_beside(
            [Check(about="no continual model of an adjusted encoder, the paper's system")], beside
        )
    found = [one for task in apart for one in _apart(task, distances) or missing(f"{task}, distances")]
    found += _by_task(m, _both(scores), "continual − adjusted", tasks, ("place", "encoder"))
    return with_beside(found, beside)


def mixed_gains_more(m: Measurements) -> list[Check]:
    """Hold the gain on inputs in two languages against that on plain ones (3e)."""
    rows = _scores(m)
    rows = rows[rows["method"] == PLAIN]
    ours, theirs, found = _largest(_targets(_adjusted(rows))), _original(rows), []
    for how, task in MIXED.items() if ours["inputs"].isin(list(MIXED)).any() else ():
        checks = []
        for (place, *_), own in ours[ours["task"] == task].groupby(["place", "setting", "way"]):
            base = theirs[theirs["place"] == place]
            sides = [[side[side["inputs"] == one] for side in (own, base)] for one in (how, "")]
            mixed, plain = (_table(side[0]) - _table(side[1]) for side in sides)
            over = (mixed - plain).dropna(axis=1, how="all").dropna()
            if not over.empty:
                means = [100 * one.loc[over.index, over.columns].mean(axis=None) for one in (mixed, plain)]
                about = f"{_told(own, ours)}: gain {means[0]:+.1f} {how}, {means[1]:+.1f} plain, difference"
                checks += check_over(about, over.mean(axis=1), **HELPS, scale=100, digits=1)
        found += checks or missing(f"{task}, {how}")
    return found


def kept_within_language(m: Measurements) -> list[Check]:
    """Hold models trained and tested in one language against those of the original encoder (3g)."""
    rows = _scores(m)
    rows = where(
        rows[rows["inputs"] == ""],
        lambda method, code, source, target: code == {PLAIN: source, "target-only": target}.get(method),
        *("method", "language", "source", "target"),
    )
    ours = _largest(_adjusted(rows))
    tasks = [task for task in TASKS if task == "qa" or task in set(ours["task"])]
    sides = ours, _original(rows)
    return _by_task(m, sides, "adjusted − original", dict.fromkeys(tasks, AS_BEFORE)) if len(ours) else []


def opening_alone_is_worse(m: Measurements) -> list[Check]:
    """Hold encoders that pulled all words together against those that pulled [CLS] alone (3i)."""
    rows = _plain(_scores(m))
    alone = _targets(_adjusted(rows, {**MAIN, "encoder.adjusted.pulled": "opening"}))
    sides = _largest(_targets(_adjusted(rows))), alone
    tasks = dict.fromkeys(("nli", "ner"), HELPS)
    return (
        _by_task(m, sides, "all words − [CLS] alone", tasks, ("place", "setting", "size"))
        if len(alone)
        else []
    )


# The rows that claims are about.


def _scores(m: Measurements) -> pd.DataFrame:
    """Return scores on the paper's tasks by its metrics, with ids of test set, setting and size."""
    rows = m.frame("scores")
    rows = rows[(rows["kind"] == "model") & rows["task"].isin(TASKS)]
    by_word = (rows["metric"] == "word_f1") & (rows["task"] == "ner")
    has = by_word.groupby([rows["corpus"], rows["task"]]).transform("any").astype(bool)
    rows = best_split(rows[by_word | (rows["main"].astype(bool) & ~has)])
    trained = [one for one in rows if "optimization." in one]
    setting = [one for one in rows if "encoder.adjusted." in one and one not in MAIN]
    return rows.assign(
        place=alike(rows, [*PLACE, "encoder.original", *trained]),
        setting=alike(rows, setting),
        size=rows["encoder.size"].astype(float).fillna(math.inf),
    )


def _distances(m: Measurements) -> pd.DataFrame:
    """Return L2 distances in the last layer, as in Figs 1 and 2."""
    rows = m.frame("word-distance")
    rows = rows[rows["distance"] == "l2"]
    return rows[rows["layer"] == (-1 if (rows["layer"] == -1).any() else rows["layer"].max())]


def _has(m: Measurements, column: str, value: str) -> bool:
    return any((m.frame(name)[column] == value).any() for name in ("scores", "word-distance"))


def _plain(rows: pd.DataFrame) -> pd.DataFrame:
    return rows[(rows["inputs"] == "") & (rows["method"] == PLAIN)]


def _both(rows: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    return rows[rows["method"] == CONTINUAL], rows[rows["method"] == PLAIN]


def _original(rows: pd.DataFrame) -> pd.DataFrame:
    return rows[rows["encoder.adjusted"] == ""]


def _adjusted(rows: pd.DataFrame, how: Mapping[str, object] = MAIN) -> pd.DataFrame:
    """Keep encoders adjusted the paper's way: ablations, and others' ways, do not decide."""
    rows = rows[rows["encoder.adjusted"] == HOW]
    for name, value in how.items():
        rows = rows[rows[name] == value] if name in rows else rows
    return rows


def _targets(rows: pd.DataFrame) -> pd.DataFrame:
    """Keep the languages an encoder was adjusted to, but its model's source."""
    return where(
        rows,
        lambda code, pairs, source: code in {one.split("-")[-1] for one in pairs.split("+")} - {source},
        *("language", "encoder.pairs", "source"),
    )


def _largest(rows: pd.DataFrame) -> pd.DataFrame:
    """Keep the encoder of each adjustment that saw the most translations."""
    return rows[rows["size"] == rows.groupby(["place", "setting", "encoder.pairs"])["size"].transform("max")]


# Checks.


def _by_task(
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
                checks.append(check_of(held, about, unit="seed", **bounds))
        found += checks or missing(task)
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
    many = rows[rows["encoder.adjusted"] != ""].groupby("encoder")[["seed", "encoder.run"]].nunique()
    one = ((many["encoder.run"] == 1) & (many["seed"] > 1)).any()
    return " (one adjusted encoder: its own variance is not in it)" if one else ""


def _table(rows: pd.DataFrame) -> pd.DataFrame:
    """Return scores [seed language]."""
    return spoken_for(rows).pivot_table(index="seed", columns="language", values="score")


def _ranked(rows: pd.DataFrame) -> pd.Series:
    """Return ρ of translations and score by seed, mean over adjustments; two sizes have but 1 or -1."""
    means = rows.groupby(["encoder.pairs", "seed", "size"])["score"].mean()
    found = [
        (seed, spearman([*range(len(own))], [*own]).rho)
        for (_, seed), own in means.groupby(level=[0, 1])
        if len(own) > 2
    ]
    return pd.DataFrame(found, columns=["seed", "rho"]).fillna(0.0).groupby("seed")["rho"].mean()


def _apart(task: str, rows: pd.DataFrame) -> list[Check]:
    """Hold AUC in continual models against that in source-only models of the same encoder."""
    pair = ["encoder.run", "source", "first", "second", "seed"]
    tuned, plain = _both(rows[rows["task"] == task])
    both = tuned.join(plain.groupby(pair)["auc"].mean().rename("auc.plain"), on=pair, how="inner")
    found = []
    for _, own in both.groupby("way"):
        values = (own["auc"] - own["auc.plain"]).groupby(own["seed"]).mean()
        about = f"{task}: AUC {own['auc.plain'].mean():.3f} fine-tuned, {own['auc'].mean():.3f} continual"
        found += check_over(about, values, **HELPS)
    return found


def _on_the_original(m: Measurements, scores: pd.DataFrame, distances: pd.DataFrame) -> list[str]:
    """Say what continual learning changes on the original encoder, which is not the paper's system."""
    scores = where(scores, lambda code, source: code != source, "language", "source")
    tests = _by_task(m, _both(scores), "continual − source-only", dict.fromkeys(TASKS, HELPS))
    said = [one.about for task in TASKS for one in _apart(task, distances)]
    said += [f"{one.about} {one.written(one.estimate.mean)}" for one in tests if one.values]
    return ["on the original encoder", *said] if said else []


ADJUSTED = (
    "Source-only models of encoders adjusted by the paper's loss, words averaged and all of them pulled, "
    "tested in the languages adjusted to (mean over these), plain inputs. Unit: seed of fine-tuning, crossed "
    "with examples; NER by token-level F1 where measured. "
)
BASELINE = "Most translations of each adjustment minus source-only on the original (row Original): "


def _claim(name: str, where: str, says: str, rule: str, test: Callable[[Measurements], list[Check]]) -> Claim:
    return Claim(id=name, paper=3, where=where, says=says, rule=rule, needs=(), test=test)


CLAIMS = (
    _claim(
        "3a",
        "Tables 2 to 4, Section 5.2",
        "Adjusting the encoder helps zero-shot NLI and NER, but not QA.",
        f"{ADJUSTED}{BASELINE}above 0 in NLI and NER, below 1 point in QA: the bound said beforehand.",
        lambda m: gains(m, {"nli": HELPS, "ner": HELPS, "qa": NO_HELP}),
    ),
    _claim(
        "3b",
        "Table 5",
        "The more parallel text, the larger the gain in NLI and NER.",
        f"{ADJUSTED}Most minus fewest translations (row 5K): above 0; with three sizes or more, Spearman's ρ "
        "of their number and the score with each seed: above 0.",
        lambda m: sizes(m, {"nli": HELPS, "ner": HELPS}),
    ),
    _claim(
        "3c",
        "Figs 1c and 2, Section 5.4",
        "Fine-tuning alone draws related and unrelated words of two languages together.",
        "Mean L2 distance, last layer, in source-only models minus in the original encoder, mean over pairs "
        "of languages: below 0 for related and for unrelated words, in NLI, NER and QA. Unit: seed of "
        "fine-tuning. Rows do not tell the norm of states, so this is not free of scale.",
        drawn_together,
    ),
    _claim(
        "3d",
        "Tables 2 and 3 (marks **), Figs 1e and 2",
        "Continual learning keeps unrelated words apart from related ones, and helps NLI.",
        "Continual models of an adjusted encoder minus source-only models of the same (row Adjusted): AUC of "
        "related against unrelated words, last layer, above 0 in NLI, NER and QA; NLI score in the languages "
        "adjusted to above 0. Unit: seed of fine-tuning. f⁰ of Eq. 1 is the encoder as fine-tuning starts.",
        lambda m: continual(m, {"nli": HELPS}, TASKS),
    ),
    _claim(
        "3e",
        "Tables 2 and 4, lower parts",
        "Test sets that mix the two languages gain more from the adjustment than plain ones.",
        f"{ADJUSTED}{BASELINE}this gain on mixed minus on plain inputs, same languages, above 0 in NLI, "
        "in QA with the question, and with the passage, in the other language. Unit: seed.",
        mixed_gains_more,
    ),
    _claim(
        "3f",
        "Tables 3 and 4, column es",
        "In Spanish, the adjustment helps neither NER nor QA.",
        f"{ADJUSTED}{BASELINE}from English, in Spanish, below 1 point in both. (That close languages gain "
        "least is no test: the paper has one.)",
        lambda m: gains(m, {"ner": NO_HELP, "qa": NO_HELP}, to="es"),
    ),
    _claim(
        "3g",
        "Table 8, Appendix A.2",
        "Within one language, an adjusted encoder does as well as the original.",
        f"Source-only models on their source, target-only ones on their target. {BASELINE}within 1 point "
        "either way; QA as in the paper, NLI and NER where measured. Unit: seed of fine-tuning.",
        kept_within_language,
    ),
    _claim(
        "3h",
        "Table 5",
        "QA is best after an adjustment on little parallel text, and falls with more.",
        f"{ADJUSTED}Most minus fewest translations (row 5K), and, with three sizes or more, Spearman's ρ: "
        "both below 0.",
        lambda m: sizes(m, {"qa": HURTS}),
    ),
    _claim(
        "3i",
        "Table 7",
        "Pulling [CLS] alone together helps NLI and NER less than pulling all words.",
        f"{ADJUSTED}All pulled minus [CLS] alone (row [CLS]), equally many translations: above 0. Of QA, "
        "table and text disagree: it does not decide.",
        opening_alone_is_worse,
    ),
    _claim(
        "3j",
        "Section 5.4",
        "Separation does not tell transfer: continual learning separates words, yet helps no NER and no QA.",
        "As claim 3d, in NER and QA: AUC above 0, score below 1 point over the row Adjusted.",
        lambda m: continual(m, {"ner": NO_HELP, "qa": NO_HELP}, ("ner", "qa")),
    ),
)
