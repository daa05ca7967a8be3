"""The table of scores: systems down, test languages across, what is more than chance marked.

One table serves every use of scores: methods side by side (X-Mixup, Table 1), adjusted encoders beside the
original ("The Impact of Cross-Lingual Adjustment …", Tables 2 to 4), encoders with and without modules ("On
Negative Interference …", Table 2).
"""

from collections.abc import Sequence
from itertools import product
from math import isnan
from typing import Any

import pandas as pd

from isogloss.reports.comparison import ON_EXAMPLES, SURE, SYSTEM, TESTS, Comparison, best_split, spoken_for
from isogloss.reports.measurements import Measurements
from isogloss.reports.names import count, joined, language, percent, plus_minus, slug
from isogloss.reports.scored_sets import (
    IN_TRANSLATION,
    MEAN,
    SOURCE_ONLY,
    TARGET_ONLY,
    UNSEEN,
    ScoredSet,
    key_of,
    references_of,
    scored_sets,
    tested,
)
from isogloss.reports.tables import POINTS, Cell, Number, Summary, Table, cells
from isogloss.reports.verdicts import p_text

GAP = "gap"

UNITS = {"seed": "seed", "encoder.seed": "pretraining seed"}


def score_tables(m: Measurements) -> list[Table]:
    """Return a table for each test set and measure, and one of all tests; what is no task's own is folded."""
    sets = scored_sets(m)
    if not sets:
        return []
    best = set(best_split(m.frame("scores"))[["corpus", "task", "split"]].itertuples(index=False, name=None))
    tables = [_score_table(m, where, best) for where in sets]
    data = pd.concat([table.data for table in tables])
    return [*sorted(tables, key=lambda table: table.folded), *_significance(data[data["difference"].notna()])]


def values_of(where: ScoredSet) -> pd.DataFrame:
    """Return each system's scores with each unit, by column; the models of one unit are averaged first."""
    by = [*SYSTEM, where.unit, "language"]
    wide = spoken_for(where.rows).groupby(by)["score"].mean().unstack("language")
    means = {
        name: wide.reindex(columns=list(codes)).mean(axis=1, skipna=False)
        for name, codes in {**where.columns, "source": where.sources, "target": where.targets}.items()
    }
    means = {**means, GAP: means.pop("source") - means.pop("target")}
    order = [*(name for name in where.columns if name != UNSEEN), GAP, UNSEEN]
    return pd.DataFrame({name: means[name] for name in order if name in means}).dropna(axis=1, how="all")


def _score_table(m: Measurements, where: ScoredSet, best: set[tuple[str, ...]]) -> Table:
    data = _data(m, where)
    columns = [one for one in values_of(where) if (data["column"] == one).any()]
    shared = [] if where.rows["encoder"].nunique() > 1 else [str(where.rows["encoder.label"].iloc[0])]
    heads = [*([] if shared else ["encoder"]), "method, inputs"]
    test_set = " ".join(where.about[name] for name in ("corpus", "treebank", "task", "mixed")).split()
    about = ", ".join(
        [" ".join(test_set), *([f"source {where.about['source']}"] * bool(where.sources)), *shared]
    )
    return Table(
        name=slug("scores", *where.about.values()),
        title=f"{about}: {where.about['metric']} on {where.about['split']}",
        caption=_caption(where, data),
        header=(*cells(*heads), *(_head(where, one) for one in columns), Cell("against")),
        align="l" * len(heads) + "r" * len(columns) + "l",
        rows=(*_lines(data, columns, len(heads)), *_majority(where, columns, len(heads))),
        data=data,
        folded=not where.rows["main"].all()
        or tuple(where.about[name] for name in ("corpus", "task", "split")) not in best,
    )


def _data(m: Measurements, where: ScoredSet) -> pd.DataFrame:
    """Return a row for each system and column: the numbers, and the test against its reference."""
    systems, values = where.systems, values_of(where)
    names, references = {key_of(one): one["name"] for one in systems}, references_of(systems)
    tests = tested(m, where, references)
    over = values.groupby(SYSTEM).agg(["mean", "std", "count"])
    shown = ("encoder.label", "system", "method", *SYSTEM, "encoder.adjusted", "encoder.size")
    found = []
    for facts, column in product(systems, values):
        key = key_of(facts)
        if key not in over.index or not over.loc[key, (column, "count")]:
            continue
        numbers = dict(zip(("mean", "std", "units"), over.loc[key, column], strict=True))
        test = tests.get((key, column))
        told = {"against": names[references[key]], **numbers_of(test)} if test else {}
        own = {name: facts[name] for name in shown}
        found.append({**where.about, **own, "name": names[key], "column": column, **numbers, **told})
    return pd.DataFrame(found).reindex(columns=list(dict.fromkeys([*found[0], "against", *NUMBERS])))


NUMBERS = (
    *("score", "baseline_score", "difference", "low", "high", "effect", "examples", "test", "p_units"),
    *("p_examples", "p_value", "p_holm", "p_examples_holm", "mark", "smallest_seen", "tested_units"),
)


def numbers_of(one: Comparison) -> dict[str, Any]:
    """Return a comparison as flat numbers."""
    of_estimate = ("low", "high", "smallest_seen")
    found = {name: getattr(one.estimate if name in of_estimate else one, name) for name in NUMBERS[:-1]}
    return {**found, NUMBERS[-1]: len(one.values)}


def _lines(data: pd.DataFrame, columns: Sequence[str], heads: int) -> list[tuple[Cell, ...]]:
    rounded = data["mean"].round(3)
    best = rounded.groupby(data["column"]).agg(["max", "size"])
    found = []
    for _, own in data.groupby(SYSTEM, sort=False):
        line = own.set_index("column")
        first, against = line.iloc[0], line["against"].dropna().unique()
        shown = []
        for column in columns:
            if column not in line.index:
                shown.append(Cell("–"))
                continue
            one = line.loc[column]
            text = (
                f"{plus_minus(one['mean'], one['std'])} {one['mark'] if one['mark'] == one['mark'] else ''}"
            )
            first_of = best.loc[column, "size"] > 1 and round(one["mean"], 3) == best.loc[column, "max"]
            shown.append(Cell(text.strip(), "best" if first_of and column != GAP else ""))
        names = (first["encoder.label"], first["system"])[2 - heads :]
        found.append((*cells(*names), *shown, *cells(*(against if len(against) else ("",)))))
    return found


def _majority(where: ScoredSet, columns: Sequence[str], heads: int) -> list[tuple[Cell, ...]]:
    known = where.rows.dropna(subset=["baseline"]).groupby("language")["baseline"].first()
    if known.empty:
        return []
    shown = [percent(known[one]) if one in known.index else "–" for one in columns]
    return [tuple(Cell(text, "baseline") for text in ("majority", *([""] * (heads - 1)), *shown, ""))]


def _head(where: ScoredSet, column: str) -> Cell:
    if column in where.sources:
        return Cell(f"{language(column)} ★", "source")
    return Cell(column if column in (MEAN, GAP, UNSEEN) else language(column))


def _caption(where: ScoredSet, data: pd.DataFrame) -> str:
    units, kept = sorted({*data["units"].astype(int)}), data["test"].dropna().replace("", pd.NA).dropna()
    n = count(units[-1], UNITS[where.unit])
    parts = [
        f"{where.about['metric']} in percent, mean ± standard deviation over "
        f"{n if len(units) == 1 else f'{units[0]} to {n}'}. Bold: best of a column.",
        "★ marks the source. In a target's column a model counts only if it was made for it, or for none.",
        f"Gap: source minus mean of {joined(where.targets)}." if GAP in set(data["column"]) else "",
        f"Unseen: {joined(where.unseen)}, for which no model here was made." if where.unseen else "",
        "· paired: each input beside its translation; · translated: the translation alone."
        if where.rows["inputs"].isin(IN_TRANSLATION).any()
        else "",
        "Majority: the score of the most frequent label." if where.rows["baseline"].notna().any() else "",
        _legend(data, UNITS[where.unit], [TESTS[one] for one in kept.unique()]),
    ]
    return " ".join(part for part in parts if part)


def _legend(data: pd.DataFrame, unit: str, tests: Sequence[str]) -> str:
    """Say what the marks mean, or why there are none."""
    own = data[data["difference"].notna()]
    if own.empty:
        return "No marks: nothing here has a reference to be held against."
    many = int(own["p_value"].notna().sum())
    star = (
        f'{SURE} the difference from the system under "against" stands on {unit}s and examples: p < 0.05 by '
        f"the test that crosses both, after Holm's correction over the {count(many, 'test')} of this table."
        if many
        else f"No {SURE} is possible: one {unit} says nothing about others."
    )
    if not tests:
        return f"{star} No predictions were kept: tests know {unit}s alone."
    how = joined(tests)
    return f"{star} {ON_EXAMPLES} it stands on the examples of these {unit}s alone ({how}; Holm likewise)."


ABOUT = ("corpus", "treebank", "mixed", "task", "source", "split")

SIGNIFICANCE = (
    *("test set", "measure", "column", "system", "against", "difference", "95 % interval", "d"),
    *("p over units", "p over examples", "p", "p (Holm)", "test over examples", "units", "seen"),
)


def _significance(tests: pd.DataFrame) -> list[Table]:
    """Return all tests of all tables in one."""
    if tests.empty:
        return []
    lines = [
        cells(
            *(" ".join(one[part] for part in ABOUT if one[part]), one["metric"]),
            *(one["column"], one["name"], one["against"]),
            *(f"{100 * one['difference']:+.1f} {one['mark']}".strip(), _interval(one["low"], one["high"])),
            "–" if isnan(one["effect"]) else f"{one['effect']:.2f}",
            *(p_text(one[name]) for name in ("p_units", "p_examples", "p_value", "p_holm")),
            *(one["test"] or "–", f"{one['tested_units']:g}"),
            "–" if isnan(one["smallest_seen"]) else percent(one["smallest_seen"]),
        )
        for one in tests.to_dict("records")
    ]
    return [
        Table(
            name="significance",
            title=f"Tests of differences ({count(len(tests), 'comparison')})",
            caption=(
                "Difference of means over units (seeds) in percentage points with its 95 % interval over "
                "units and examples; Cohen's d over examples; p of the t-test over units alone, of the named "
                "test over examples alone, of the test that crosses both, and that corrected over its table. "
                "Seen: the least difference that so many units and examples show with 80 % power."
            ),
            header=cells(*SIGNIFICANCE),
            align="lllll" + "r" * 7 + "lrr",
            rows=tuple(lines),
            data=tests,
            folded=True,
        )
    ]


def _interval(low: float, high: float) -> str:
    return "–" if isnan(low) else f"{100 * low:+.1f} … {100 * high:+.1f}"


def _within_or_zero_shot(scores: pd.DataFrame) -> pd.DataFrame:
    """Keep models trained in one language, on encoders made here that have read it and the one tested."""
    rows = best_split(
        scores[scores["main"] & scores["inputs"].eq("") & scores["encoder.kind"].eq("pretrain")]
    )
    rows = rows[rows["method"].isin([SOURCE_ONLY, TARGET_ONLY])]
    trained = rows["source"].where(rows["method"] == SOURCE_ONLY, rows["target"])
    read = [
        {*languages.split("+")} >= {one, tested} and (method == SOURCE_ONLY or one == tested)
        for languages, one, tested, method in zip(
            rows["encoder.languages"], trained, rows["language"], rows["method"], strict=True
        )
    ]
    chosen = pd.Series(read, index=rows.index, dtype=bool)
    rows, trained = rows[chosen], trained[chosen]
    if rows["encoder"].nunique() < 2:
        return rows.head(0)
    within = trained == rows["language"]
    arrow = (trained + " → " + rows["language"]).where(~within, rows["language"] + " within")
    rows = rows.assign(cell=rows["task"] + " " + arrow, within=~within, plain=rows["method"] != SOURCE_ONLY)
    by = ["encoder", "encoder.seed", "seed", "corpus", "cell"]
    rows = rows.sort_values(["within", "task", "cell", "plain"], kind="stable").drop_duplicates(by)
    mean = rows.groupby(["encoder", "encoder.seed", "corpus", "cell"])["score"].transform("mean")
    return rows.assign(score=mean).drop_duplicates(["encoder", "encoder.seed", "corpus", "cell"])


INTERFERENCE = Summary(
    frame="scores",
    name="interference",
    title="One encoder for each language, one for all, and what each language has for itself",
    caption=(
        "Scores by each task's metric, percent, mean ± standard deviation over pretraining seeds. Within: "
        "trained and tested in one language; an arrow is zero-shot. Tests stand in the tables of scores."
    ),
    by={"corpus": "corpus", "encoder.label": "encoder"},
    values={"score": Number(column="score", **POINTS)},
    choose=_within_or_zero_shot,
    keep=("encoder.label",),
    pivot="cell",
)
"""Within languages and zero-shot ("On Negative Interference …", Table 2), encoder by encoder."""


def _by_size(scores: pd.DataFrame) -> pd.DataFrame:
    """Keep source-only models on encoders adjusted on several sizes of bitext, the original's beside each."""
    rows = best_split(scores[scores["main"] & scores["method"].eq(SOURCE_ONLY) & scores["inputs"].eq("")])
    made = rows[rows["encoder.adjusted"] != ""]
    sizes = made["encoder.size"].astype("string").fillna("all")
    made = made.assign(translations=sizes, order=made["encoder.size"].astype(float).fillna(float("inf")))
    by = ["encoder.original", "encoder.adjusted", "encoder.pairs"]
    found = [made.head(0)]
    for (base, how, pairs), own in made.groupby(by):
        if own["translations"].nunique() > 1:
            plain = rows[(rows["encoder"] == base) & rows["corpus"].isin(own["corpus"])]
            about = {"encoder.adjusted": how, "encoder.pairs": pairs}
            found += [plain.assign(translations="original", order=0.0, **about), own]
    return pd.concat(found).sort_values(["corpus", "task", "language", "order"], kind="stable")


BITEXT_SIZE = Summary(
    frame="scores",
    name="bitext-size",
    title="Scores by the number of translations",
    caption="Source-only models on adjusted encoders, percent, mean ± standard deviation over seeds.",
    by={
        **{"corpus": "corpus", "task": "task", "source": "source", "metric": "measure", "split": "split"},
        **{"encoder.original": "encoder", "encoder.adjusted": "adjustment", "encoder.pairs": "bitext"},
        **{"language": "language"},
    },
    values={"score": Number(column="score", **POINTS)},
    choose=_by_size,
    keep=("language",),
    pivot="translations",
)
"""How much bitext an adjustment takes ("The Impact of Cross-Lingual Adjustment …", Section 5.3)."""
