"""Claims of the third paper about cross-lingual adjustment: the rule of each and the function that checks it.

"The Impact of Cross-Lingual Adjustment of Contextual Word Representations on Zero-Shot Transfer", Sections
5.2 to 5.4 and Appendix A. Only the paper's adjustment and tasks are judged; other findings become notes.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from functools import partial

import numpy as np
import pandas as pd

from isogloss.reports.checks import AS_BEFORE, HELPS, HURTS, Bounds, Check, check_of, not_measured, with_note
from isogloss.reports.comparison import (
    TEST_SET,
    best_split,
    compare,
    filter_rows,
    rank_correlations,
    row_keys,
)
from isogloss.reports.measurements import Measurements
from isogloss.reports.names import original_names
from isogloss.reports.verdicts import Claim

ADJUSTMENT, PLAIN, CONTINUAL = "cross-lingual-adjustment", "source-only", "source-only + alignment-loss"

TASKS = ("nli", "ner", "qa")
"""The paper's tasks, which alone are judged."""

NO_HELP: Bounds = {"below": AS_BEFORE["below"]}

MIXED = {"mixed": "nli", "mixed-question": "qa", "mixed-passage": "qa"}
"""Inputs partly in the source language, and the paper's task with such inputs (Tables 2 and 4)."""

MAIN = {"encoder.adjusted": ADJUSTMENT, "encoder.adjusted.word": "average", "encoder.depth": 1}
"""The paper's adjustment (Section 3, Appendix A.1)."""

ALIGNED = "encoder.adjusted.pulled"

ORIGINAL, ALL, OPENING = "original", "all", "opening"
"""Roles of encoders: not adjusted, or adjusted as in the paper by all words or (Table 7) by [CLS] alone."""


def compare_with_original(m: Measurements, tasks: Mapping[str, Bounds], *, to: str = "") -> list[Check]:
    """Compare the largest adjustments with the original (3a); from English to one language alone (3f)."""
    rows = _plain(m)
    ours = _most(_zero_shot(rows, ALL))
    ours = ours[(ours["source"] == "en") & (ours["language"] == to)] if to else ours
    if not _has(m, ADJUSTMENT) or (to and ours.empty):
        return []
    return _compare(m, (ours, rows[rows["role"] == ORIGINAL]), "adjusted − original", tasks)


def compare_sizes(m: Measurements, tasks: Mapping[str, Bounds]) -> list[Check]:
    """Compare most with fewest translations, and correlate their number with scores (3b, 3h)."""
    rows = _zero_shot(_plain(m), ALL)
    rows = rows[rows["task"].isin([*tasks])]
    several = rows.groupby(SERIES)["size"].transform("nunique") > 1
    ends = _most(rows[several]), _most(rows[several], "min")
    found = _compare(m, ends, "most − fewest translations", tasks, ("test", "setting"))
    means = rows[several].groupby(["task", "original", *SERIES, "seed", "size"])["score"].mean().reset_index()
    for (task, original, *_), own in means.groupby(["task", "original", "test", "setting"]):
        rhos = rank_correlations(own, "size", "score", ["seed"], ["encoder.pairs"])
        about = f"{_on(task, original)}: ρ of translations and score"
        found += [check_of(rhos, about, tasks[task])] if len(rhos) else []
    return found if _has(m, ADJUSTMENT) else []


def compare_distances(m: Measurements) -> list[Check]:
    """Compare distances in models of the original encoder with those in the encoder itself (3c)."""
    rows, pair = _distances(m), ["encoder.run", "first", "second"]
    rows = rows[rows["role"] == ORIGINAL]
    before = rows[rows["kind"] == "encoder"].groupby(pair)[["related_mean", "unrelated_mean"]].mean()
    both = rows[rows["method"] == PLAIN].join(before.add_suffix(".before"), on=pair, how="inner")
    if both.empty or not (_has(m, ADJUSTMENT) or _has(m, CONTINUAL)):
        return []
    found: dict[str, list[Check]] = {}
    for (task, original), own in both.groupby(["task", "original"]):
        for words in ("related", "unrelated"):
            after, start = own[f"{words}_mean"], own[f"{words}_mean.before"]
            about = (
                f"{_on(task, original)}: {words} words {start.mean():.2f} → {after.mean():.2f}, mean distance"
            )
            values = (after - start).groupby(own["seed"]).mean()
            found.setdefault(task, []).append(check_of(values, about, HURTS))
    notes = [one.text for task in sorted({*found} - {*TASKS}) for one in found[task]]
    return with_note([one for task in TASKS for one in found.get(task) or [not_measured(task)]], notes)


def continual(m: Measurements, tasks: Mapping[str, Bounds], separation: Iterable[str]) -> list[Check]:
    """Compare continual with source-only models of one adjusted encoder: AUC of tasks, score (3d, 3j)."""
    if not _has(m, CONTINUAL):
        return []
    found = _continual(m, ALL, tasks, separation)
    if not any(one.values for one in found):
        about = "no continual model of an adjusted encoder, the paper's system, beside a source-only one"
        found = [Check(about=f"{about}, in {', '.join(TASKS)}")]
    others = [one for one in _continual(m, ORIGINAL, dict.fromkeys(TASKS, HELPS), TASKS) if one.values]
    return with_note(found, ["on the original encoder", *(one.text for one in others)] if others else [])


def _continual(
    m: Measurements, role: str, tasks: Mapping[str, Bounds], separation: Iterable[str]
) -> list[Check]:
    rows, pair = _distances(m), ["task", "encoder.run", "source", "first", "second", "seed"]
    tuned, plain = _by_method(rows[rows["role"] == role])
    both = tuned.join(plain.groupby(pair)["auc"].mean().rename("auc.plain"), on=pair, how="inner")
    found = []
    for task in separation:
        checks = []
        for (original, _), own in both[both["task"] == task].groupby(["original", "way"]):
            means = f"{own['auc.plain'].mean():.3f} fine-tuned, {own['auc'].mean():.3f} continual"
            about = f"{_on(task, original)}: AUC {means}, by"
            values = (own["auc"] - own["auc.plain"]).groupby(own["seed"]).mean()
            checks.append(check_of(values, about, HELPS))
        found += checks or [not_measured(f"{task}, distances")]
    rows = _scores(m)
    sides = _by_method(_zero_shot(rows[rows["inputs"] == ""], role))
    return [*found, *_compare(m, sides, "continual − source-only", tasks, ("test", "encoder"))]


def compare_mixed_inputs(m: Measurements) -> list[Check]:
    """Compare the gain on inputs in two languages with that on plain ones (3e)."""
    rows, found = _scores(m), []
    rows = rows[rows["method"] == PLAIN]
    test = ["test", "inputs", "language", "seed"]
    base = rows[rows["role"] == ORIGINAL].groupby(test)["score"].mean().rename("base")
    ours = _most(_zero_shot(rows, ALL)).join(base, on=test)
    ours = ours.assign(gain=ours["score"] - ours["base"])
    for how, task in MIXED.items() if ours["inputs"].isin([*MIXED]).any() else ():
        checks = []
        for _, own in ours[ours["task"] == task].groupby(["test", "setting", "way"]):
            gain = own.pivot_table(index=["seed", "language"], columns="inputs", values="gain")
            gain = gain.reindex(columns=[how, ""]).dropna().unstack().dropna()
            if len(gain):
                means = [100 * gain[one].mean(axis=None) for one in (how, "")]
                about = (
                    f"{_describe(own, ours)}: gain {means[0]:+.1f} {how}, {means[1]:+.1f} plain, difference"
                )
                values = (gain[how] - gain[""]).mean(axis=1)
                checks.append(check_of(values, about, {**HELPS, "scale": 100, "digits": 1}))
        found += checks or [not_measured(f"{task}, {how}")]
    return found


def compare_within_language(m: Measurements) -> list[Check]:
    """Compare models trained and tested in one language with those of the original encoder (3g)."""
    rows = _scores(m)
    rows = filter_rows(
        rows[rows["inputs"] == ""],
        lambda method, code, source, target: code == {PLAIN: source, "target-only": target}.get(method),
        *("method", "language", "source", "target"),
    )
    ours = _most(rows[rows["role"] == ALL])
    tasks = [task for task in TASKS if task == "qa" or task in set(ours["task"])]
    sides = ours, rows[rows["role"] == ORIGINAL]
    return _compare(m, sides, "adjusted − original", dict.fromkeys(tasks, AS_BEFORE)) if len(ours) else []


def compare_with_cls_alone(m: Measurements) -> list[Check]:
    """Compare encoders that aligned all words with those that aligned [CLS] alone (3i)."""
    rows = _plain(m)
    sides, tasks = (
        (_most(_zero_shot(rows, ALL)), _zero_shot(rows, OPENING)),
        dict.fromkeys(("nli", "ner"), HELPS),
    )
    found = _compare(m, sides, "all words − [CLS] alone", tasks, ("test", "setting", "size"))
    return found if _has(m, ADJUSTMENT) else []


# The rows that claims are about.

SERIES = ["test", "setting", "encoder.pairs"]
"""Columns that identify an adjustment over all sizes of bitext, and the test set."""


def _scores(m: Measurements) -> pd.DataFrame:
    """Return scores on the paper's tasks by its metrics, with ids of test set and setting, and the size."""
    rows = m.frame("scores")
    rows = rows[(rows["kind"] == "model") & rows["task"].isin(TASKS)]
    by_word = (rows["metric"] == "word_f1") & (rows["task"] == "ner")
    has = by_word.groupby([rows["corpus"], rows["task"]]).transform("any").astype(bool)
    rows = _with_role(m, best_split(rows[by_word | (rows["main"].astype(bool) & ~has)]))
    trained = [one for one in rows if "optimization." in one or "peft" in one]
    setting = [one for one in rows if "encoder.adjusted." in one and one not in (*MAIN, ALIGNED)]
    return rows.assign(
        test=row_keys(rows, [*TEST_SET, "encoder.original", *trained]),
        setting=row_keys(rows, setting),
        size=rows["encoder.size"].astype(float).fillna(math.inf),
    )


def _plain(m: Measurements) -> pd.DataFrame:
    rows = _scores(m)
    return rows[(rows["inputs"] == "") & (rows["method"] == PLAIN)]


def _distances(m: Measurements) -> pd.DataFrame:
    """Return L2 distances in the last layer, as in Figs 1 and 2."""
    rows = m.frame("word-distance")
    rows = _with_role(m, rows[rows["distance"] == "l2"])
    return rows[rows["layer"] == (-1 if (rows["layer"] == -1).any() else rows["layer"].max())]


def _with_role(m: Measurements, rows: pd.DataFrame) -> pd.DataFrame:
    """Add the role of each encoder, "" for ablations and other adjustments, which are not judged.

    ``original`` names the original encoder where there are several.
    """
    papers = [rows[name] == value for name, value in MAIN.items() if name in rows]
    role = np.where(np.logical_and.reduce(papers), rows.get(ALIGNED, ALL), "")
    originals = rows["encoder.original"]
    names = originals.map(original_names(rows, m.labels)) if originals.nunique() > 1 else ""
    return rows.assign(role=np.where(rows["encoder.adjusted"] == "", ORIGINAL, role), original=names)


def _has(m: Measurements, name: str) -> bool:
    """Return whether an adjustment or a method was measured."""
    frames = [m.frame(name)[["encoder.adjusted", "method"]] for name in ("scores", "word-distance")]
    return any((rows == name).any(axis=None) for rows in frames)


def _by_method(rows: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    return rows[rows["method"] == CONTINUAL], rows[rows["method"] == PLAIN]


def _zero_shot(rows: pd.DataFrame, role: str) -> pd.DataFrame:
    """Return encoders of a role on the languages adjusted to (the original: all) except the source."""
    return filter_rows(
        rows[rows["role"] == role],
        lambda code, pairs, source: (
            code != source and (not pairs or code in {one.split("-")[-1] for one in pairs.split("+")})
        ),
        *("language", "encoder.pairs", "source"),
    )


def _most(rows: pd.DataFrame, end: str = "max") -> pd.DataFrame:
    """Return the encoder of each series with the most translations, or the fewest."""
    return rows[rows["size"] == rows.groupby(SERIES)["size"].transform(end)]


# Checks.


def _compare(
    m: Measurements,
    sides: tuple[pd.DataFrame, pd.DataFrame],
    what: str,
    tasks: Mapping[str, Bounds],
    same: Sequence[str] = ("test",),
) -> list[Check]:
    """Compare each setting of one side with the rows of the other that are equal in some columns."""
    ours, theirs = sides
    found, ids = [], row_keys(theirs, same)
    for task, bounds in tasks.items():
        checks = []
        for _, own in ours[ours["task"] == task].groupby([*same, "setting", "way"]):
            result = compare(m, own, theirs[ids == row_keys(own, same).iloc[0]])
            if result:
                about = _describe(own[own["language"].isin(result.languages)], ours)
                about = f"{about}: {what}{_one_encoder(own)}"
                checks.append(check_of(result, about, bounds))
        found += checks or [not_measured(task)]
    return found


def _describe(own: pd.DataFrame, among: pd.DataFrame) -> str:
    """Return task, corpus and languages, and the fields in which systems differ from the others."""
    known = [one for one in own if "encoder.adjusted." in one or ("method." in one and "encoder." not in one)]
    varied = [one for one in known if among[one].astype(object).map(str).nunique() > 1]
    fields = [f"{one.split('.')[-1]} {own[one].iloc[0]}" for one in varied]
    languages = " ".join(sorted(set(own["language"])))
    about = f"{own['task'].iloc[0]} {own['corpus'].iloc[0]} {languages}"
    return ", ".join([_on(about, own["original"].iloc[0]), *fields])


def _on(about: str, original: str) -> str:
    """Return words with the original encoder that they are about, where there are several."""
    return f"{about}, {original}" if original else about


def _one_encoder(rows: pd.DataFrame) -> str:
    """Return a remark where all seeds start from one adjusted encoder."""
    many = rows[rows["role"] != ORIGINAL].groupby("encoder")[["seed", "encoder.run"]].nunique()
    one = ((many["encoder.run"] == 1) & (many["seed"] > 1)).any()
    return " (one adjusted encoder: its own variance is not in it)" if one else ""


CLAIMS = (
    Claim(
        id="3a",
        where="Tables 2 to 4, Section 5.2",
        says="Adjusting the encoder helps zero-shot NLI and NER, but not QA.",
        rule=(
            "Zero-shot score in the languages adjusted to, NER by tokens where measured: encoders of the "
            "paper's loss, most translations, minus the original, above 0 in NLI and NER, below 1 point in "
            "QA. Unit: seed of fine-tuning."
        ),
        test=partial(compare_with_original, tasks={"nli": HELPS, "ner": HELPS, "qa": NO_HELP}),
    ),
    Claim(
        id="3b",
        where="Table 5",
        says="The more parallel text, the larger the gain in NLI and NER.",
        rule=(
            "As 3a, most minus fewest translations (row 5K), and, of three sizes, Spearman's ρ with each "
            "seed: above 0."
        ),
        test=partial(compare_sizes, tasks={"nli": HELPS, "ner": HELPS}),
    ),
    Claim(
        id="3c",
        where="Figs 1c and 2, Section 5.4",
        says="Fine-tuning alone draws related and unrelated words of two languages together.",
        rule=(
            "Mean L2 distance, last layer, in source-only models minus in the original encoder: below 0 for "
            "related and for unrelated words, in NLI, NER and QA. Not free of the scale of states."
        ),
        needs=("word-distance",),
        test=compare_distances,
    ),
    Claim(
        id="3d",
        where="Tables 2 and 3 (marks **), Figs 1e and 2",
        says="Continual learning keeps unrelated words apart from related ones, and helps NLI.",
        rule=(
            "Continual minus source-only models of one adjusted encoder: AUC of related against unrelated "
            "words, last layer, above 0 in NLI, NER and QA; NLI score in the languages adjusted to above 0."
        ),
        needs=(),
        test=partial(continual, tasks={"nli": HELPS}, separation=TASKS),
    ),
    Claim(
        id="3e",
        where="Tables 2 and 4, lower parts",
        says="Test sets that mix the two languages gain more from the adjustment than plain ones.",
        rule="The gain of 3a, on mixed minus on plain inputs: above 0 in NLI and in both kinds of QA.",
        test=compare_mixed_inputs,
    ),
    Claim(
        id="3f",
        where="Tables 3 and 4, column es",
        says="In Spanish, the adjustment helps neither NER nor QA.",
        rule="The gain of 3a from English in Spanish: below 1 point in both.",
        test=partial(compare_with_original, tasks={"ner": NO_HELP, "qa": NO_HELP}, to="es"),
    ),
    Claim(
        id="3g",
        where="Table 8, Appendix A.2",
        says="Within one language, an adjusted encoder does as well as the original.",
        rule="As 3a, tested in the one language of training: within 1 point; in NLI and NER where measured.",
        test=compare_within_language,
    ),
    Claim(
        id="3h",
        where="Table 5",
        says="QA is best after an adjustment on little parallel text, and falls with more.",
        rule=(
            "As 3a, most minus fewest translations (row 5K), and, of three sizes, Spearman's ρ with each "
            "seed: below 0."
        ),
        test=partial(compare_sizes, tasks={"qa": HURTS}),
    ),
    Claim(
        id="3i",
        where="Table 7",
        says="Pulling [CLS] alone together helps NLI and NER less than pulling all words.",
        rule=(
            "As 3a, all words minus [CLS] alone, equally many translations: above 0. QA is left out: table "
            "and text disagree."
        ),
        test=compare_with_cls_alone,
    ),
    Claim(
        id="3j",
        where="Section 5.4",
        says="Separation is no transfer: continual learning separates words, yet helps no NER and no QA.",
        rule="As 3d, in NER and QA: AUC above 0, score below 1 point.",
        needs=(),
        test=partial(continual, tasks={"ner": NO_HELP, "qa": NO_HELP}, separation=("ner", "qa")),
    ),
)
