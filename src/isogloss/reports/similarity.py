"""How alike two languages are in each part of a model: gradients, gates and sentence states (CKA).

"On Negative Interference in Multilingual Models", Section 3.4, Figs 3 and 4; X-Mixup, Tables 2 and 7. Noise
lowers the similarity of two languages as it lowers that of two measurements of one language; divided by the
geometric mean of the two languages' own it is corrected for that (Spearman 1904). Seeds of one system are
measured one by one, then averaged.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from isogloss.metrics.correlation import bootstrap_interval, spearman
from isogloss.reports.comparison import best_split, spoken_for
from isogloss.reports.drawing import Figure, Lines, Words, line_figure
from isogloss.reports.measurements import Measurements
from isogloss.reports.names import joined, language, name_systems, plus_minus, slug, told_by
from isogloss.reports.tables import POINTS, Cell, Number, Summary, Table, cells

NOISE = 0.05
"""Nothing is divided by the similarity of a language with itself where it is below this."""

WHOLE = "all"
MODULES = ("attention", "feed-forward")

FEWEST = 3
"""Languages a correlation is computed from; fewer always give 1 or -1."""

WINDOWS = 25
"""A curve is smoothed over this part of its points: single batches are noisy."""

UNIT, PART = ["run", "model"], ["layer", "module"]
PLACE = ["corpus", "treebank", "inputs", "inputs.translator"]
ABOUT = [*PLACE, "task", "source", "target", "encoder", "way", "name"]
"""What the seeds of one system share."""


@dataclass(frozen=True, kw_only=True)
class Measure:
    """A similarity of two languages in each part of a model, by a column of a frame."""

    frame: str
    column: str
    what: str
    how: str
    module_tables: tuple[str, ...] = (WHOLE,)


MEASURES = (
    Measure(
        frame="gradient-conflict",
        column="cosine",
        what="Cosine of gradients",
        how="Gradients of two batches of text",
    ),
    Measure(
        frame="language-gates",
        column="cosine",
        what="Cosine of masks",
        how="Parameters π (log α) of two languages' gates",
        module_tables=(WHOLE, *MODULES),
    ),
    Measure(
        frame="language-gates",
        column="correlation",
        what="Correlation of masks",
        how="As the cosine, after each mask's mean is taken off, which all gates share whatever the language",
    ),
)


def corrected(rows: pd.DataFrame, value: str) -> pd.DataFrame:
    """Return each measured model's similarity over draws, by pair of languages and part, corrected for noise.

    ``within`` is the geometric mean of the two languages' own similarities, nan where one is not positive or
    for one language; ``own`` their arithmetic mean.
    """
    rows = rows.dropna(subset=[value])
    keys = [*UNIT, *PART, "first", "second"]
    over = rows.groupby(keys, sort=False, dropna=False)[value].agg(["mean", "std", "count"])
    found = over.rename(columns={"mean": value, "count": "draws"}).reset_index()
    alone = found.loc[found["first"] == found["second"], [*UNIT, *PART, "first", value]]
    sides = []
    for side in ("first", "second"):
        own = alone.rename(columns={"first": side, value: "own"})
        sides.append(found[[*UNIT, *PART, side]].merge(own, how="left", on=[*UNIT, *PART, side])["own"])
    within = np.sqrt(sides[0].where(sides[0] > 0) * sides[1].where(sides[1] > 0))
    within = within.where(found["first"] != found["second"])
    true = found[value] / within.where(within >= NOISE)
    found = found.assign(own=(sides[0] + sides[1]) / 2, within=within, corrected=true)
    facts = rows.drop_duplicates(UNIT)
    pair = found["first"] + "–" + found["second"]
    facts = facts[[*UNIT, *facts.columns.difference(found.columns, sort=False)]]
    return found.assign(pair=pair).merge(facts, on=UNIT)


def similarity_tables(m: Measurements) -> list[Table]:
    """Return languages by languages, and parts by pairs, for each measure and system."""
    found = []
    for measure, rows in _systems(m):
        found += [_languages_table(measure, rows, module) for module in measure.module_tables]
        found.append(_parts_table(measure, rows))
    return [table for table in found if table.rows]


def similarity_figures(m: Measurements) -> list[Figure]:
    """Draw each measure by layer for each system, and conflict over the steps of trainings."""
    by_layer = [figure for measure, rows in _systems(m) for figure in _layers_figure(measure, rows)]
    return [*_training_figures(m), *by_layer, *cka_figures(m)]


def _systems(m: Measurements) -> list[tuple[Measure, pd.DataFrame]]:
    found = []
    for measure in MEASURES:
        rows = m.frame(measure.frame)
        if rows[measure.column].notna().any():
            named = corrected(name_systems(rows, m.labels), measure.column)
            by = [*ABOUT, *(["batch"] if "batch" in named else [])]
            found += [(measure, own) for _, own in named.groupby(by, sort=False, dropna=False)]
    return found


def _title(measure: Measure, rows: pd.DataFrame) -> tuple[str, tuple[object, ...]]:
    """Return a title and the parts of a file name."""
    first = rows.iloc[0]
    about = [
        first[name] for name in ("task", "source", "target", "corpus", "treebank", "inputs") if first[name]
    ]
    told = [first["name"], *(about if first["task"] else [])]
    batch = (f"batch {first['batch']:g}",) if "batch" in rows else ()
    return f"{measure.what}, {' '.join(told)}", (measure.frame, measure.column, *told, *batch)


def _languages_table(measure: Measure, rows: pd.DataFrame, module: str) -> Table:
    whole = rows[rows["layer"].isna() & (rows["module"] == module)]
    codes = list(
        dict.fromkeys(code for pair in zip(whole["first"], whole["second"], strict=True) for code in pair)
    )
    title, name = _title(measure, rows)
    there = {
        frozenset(pair): _written(own, measure.column) for pair, own in whole.groupby(["first", "second"])
    }
    return Table(
        name=slug(*name, "" if module == WHOLE else module),
        title=title if module == WHOLE else f"{title}, {module} alone",
        caption=(
            f"{measure.how}, of {'all parameters' if module == WHOLE else module}, {_spread_words(rows)}. On the "
            f"diagonal one language twice: what noise leaves of 1. In brackets, divided by the geometric mean of "
            f"the two languages' own: corrected for noise."
        ),
        header=cells("", *map(language, codes)),
        align="l" + "r" * len(codes),
        rows=tuple(
            (
                Cell(language(one)),
                *(
                    Cell(there.get(frozenset((one, other)), "–"), "source" if one == other else "")
                    for other in codes
                ),
            )
            for one in codes
        ),
        data=whole,
        folded=module != WHOLE,
    )


def _parts_table(measure: Measure, rows: pd.DataFrame) -> Table:
    pairs = list(rows["pair"].drop_duplicates())
    ordered = rows.sort_values(PART, kind="stable", na_position="first")
    title, name = _title(measure, rows)
    return Table(
        name=slug(*name, "parts"),
        title=f"{title}, by layer and module",
        caption="As above, for each part of the model; without a layer: those of all layers together.",
        header=cells("layer", "module", *pairs),
        align="rl" + "r" * len(pairs),
        rows=tuple(
            cells(
                "" if pd.isna(layer) else f"{layer:g}",
                module,
                *(_written(own[own["pair"] == pair], measure.column) for pair in pairs),
            )
            for (layer, module), own in ordered.groupby(PART, sort=False, dropna=False)
        ),
        data=ordered,
        folded=True,
    )


def _written(rows: pd.DataFrame, value: str) -> str:
    """Write mean ± deviation, over models where there are several, else over draws; corrected in brackets."""
    std = rows[value].std() if len(rows) > 1 else rows["std"].mean()
    text = plus_minus(rows[value].mean(), std, scale=1, digits=2)
    true = rows["corrected"].mean()
    return text if pd.isna(true) else f"{text} ({plus_minus(true, np.nan, scale=1, digits=2)})"


def _spread_words(rows: pd.DataFrame) -> str:
    models = len(rows[UNIT].drop_duplicates())
    return f"mean ± standard deviation over {f'{models} seeds' if models > 1 else 'draws'}"


def _layers_figure(measure: Measure, rows: pd.DataFrame) -> list[Figure]:
    """Draw attention and feed-forward by layer, a panel for each pair; dashed: each language with itself."""
    over = rows[(rows["layer"] > 0) & rows["module"].isin(MODULES)]
    between = over[over["first"] != over["second"]]
    if between["layer"].nunique() < 2:
        return []
    title, name = _title(measure, rows)
    means = between.groupby(["pair", "module"], sort=False)[measure.column].mean()
    words = Words(
        name=slug(*name, "layers"),
        title=f"{title}, by layer",
        caption=(
            f"{measure.how}: between two languages (solid), and the mean of the two languages' own (dashed), "
            f"which is what noise leaves of 1; {_spread_words(rows)} (band: over seeds). The farther solid lies "
            f"below dashed, the less the layer is shared."
        ),
        alt=f"Line plots by layer; mean over layers: {_told(means)}.",
    )
    lines = [
        between.assign(y=between[measure.column], line=""),
        between.assign(y=between["own"], line="within"),
    ]
    how = Lines(
        x="layer", y="y", panel="pair", color="module", dash="line", band=True, whole=True, marker="o",
        labels=("layer", measure.column),
    )  # fmt: skip
    return line_figure(words, pd.concat(lines), how)


def _training_figures(m: Measurements) -> list[Figure]:
    """Draw the cosine of whole gradients by step, a figure for pretraining and one for fine-tuning."""
    rows = m.frame("training-conflict").dropna(subset=["cosine"])
    rows = rows[(rows["module"] == WHOLE) & rows["layer"].isna()]
    if rows.empty:
        return []
    rows = name_systems(rows, m.labels).sort_values("step", kind="stable")
    pair = rows["first"] + "–" + rows["second"]
    smooth = rows.groupby(["run", "first", "second"])["cosine"].transform(smoothed)
    same = (rows["first"] == rows["second"]).map({True: "within", False: ""})
    rows = rows.assign(pair=pair, smooth=smooth, line=same)
    return [figure for kind, own in rows.groupby("kind") for figure in _training_figure(str(kind), own)]


def _training_figure(kind: str, rows: pd.DataFrame) -> list[Figure]:
    name = {"encoder": "pretraining", "model": "fine-tuning"}[kind]
    rows = rows.assign(panel=told_by(rows, ["name", "corpus", "task", "source", "target"]))
    words = Words(
        name=slug("gradient-conflict", name),
        title=f"Cosine of gradients while {name}",
        caption=(
            "Cosine between the gradients of two batches, of two languages (solid) and of one language (dashed), "
            f"all parameters; smoothed over a {WINDOWS}th of the points, mean over seeds, the band one standard "
            "deviation. Solid below dashed: the languages pull the weights apart."
        ),
        alt=f"Line plots; mean over steps: {_told(rows.groupby(['panel', 'pair'], sort=False)['cosine'].mean())}.",
    )
    how = Lines(
        x="step", y="smooth", panel="panel", color="pair", dash="line", band=True, height=1.9,
        labels=("step", "cosine"),
    )  # fmt: skip
    return line_figure(words, rows, how)


def smoothed(values: pd.Series) -> pd.Series:
    """Return each value's mean with its neighbours on both sides, as many on either as there are on both."""
    sums = np.concatenate(([0.0], np.cumsum(values)))
    places, last = np.arange(len(values)), len(values) - 1
    reach = np.minimum(len(values) // WINDOWS // 2, np.minimum(places, last - places))
    return pd.Series((sums[places + reach + 1] - sums[places - reach]) / (2 * reach + 1), values.index)


def _told(means: pd.Series) -> str:
    return joined(
        f"{' '.join(filter(None, key))} {plus_minus(value, np.nan, scale=1, digits=2)}"
        for key, value in means.items()
    )


def _over_draws(rows: pd.DataFrame) -> pd.DataFrame:
    groups = rows.groupby(["run", "model", "language", "mask"], dropna=False)["perplexity"]
    return rows.assign(perplexity=groups.transform("mean")).drop_duplicates(
        ["run", "model", "language", "mask"]
    )


GATE_TABLES = (
    Summary(
        frame="language-gates-perplexity",
        title="Perplexity under masks",
        caption=(
            "Perplexity of masked language modelling on held-out text of each language, mean over draws, ± "
            "standard deviation over seeds: of the whole encoder (no mask), and of what each language's mask "
            "keeps of it. A language that suffers more under another's mask than under its own needs parameters "
            "that the other does not. Gates are learned on text like the one held out, so a mask may even help."
        ),
        by={"encoder.label": "encoder", "corpus": "corpus", "mask": "pruned for"},
        keep=("mask",),
        pivot="language",
        values={"perplexity": Number(column="perplexity", digits=1)},
        choose=_over_draws,
        apart=("encoder",),
    ),
    Summary(
        frame="language-gates-kept",
        title="What masks keep",
        caption="Percent of the parameters with gates that a mask keeps, and that it keeps on average by its π.",
        by={"encoder.label": "encoder", "corpus": "corpus", "mask": "mask of"},
        keep=("mask",),
        values={"kept": Number(column="kept", **POINTS), "expected": Number(column="expected", **POINTS)},
        over="masks",
        choose=lambda rows: rows[rows["layer"].isna() & (rows["module"] == WHOLE)],
        apart=("encoder",),
    ),
    Summary(
        frame="language-gates-specific",
        title="Gates that only one language keeps",
        caption=(
            "Gates that every mask of the first language keeps and every mask of the second prunes, and percent of "
            "all; the parameters they have; mean ± standard deviation over seeds. Which they are stands in the "
            "file of masks beside the record."
        ),
        by={"encoder.label": "encoder", "corpus": "corpus", "keeps": "kept by", "prunes": "pruned by", "module": "module"},
        keep=("keeps", "prunes", "module"),
        values={
            "gates": Number(column="gates", digits=0),
            "percent": Number(column="share", **POINTS),
            "parameters": Number(column="parameters", digits=0),
        },
        choose=lambda rows: rows[rows["layer"].isna()].assign(share=rows["gates"] / rows["of"]),
        apart=("encoder",),
    ),
)  # fmt: skip


def _with_mean(rows: pd.DataFrame) -> pd.DataFrame:
    """Add the mean over the other languages, where each has a CKA."""
    keys = ["run", "model", "first", "layer"]
    means = rows.groupby(keys)["cka"].transform(lambda values: values.mean(skipna=False))
    mean = rows.assign(second="mean", cka=means, debiased=np.nan).drop_duplicates(keys)
    return pd.concat([rows, mean], ignore_index=True)


CKA_TABLE = Summary(
    frame="cka",
    title="CKA of languages' sentence states",
    caption=(
        "Linear CKA of the mean-pooled states of sentences and of their translations, by layer (0: the embeddings); "
        "mean ± standard deviation over seeds. 1: equal up to rotation and scale. With fewer sentences than "
        "dimensions it comes out too high; the CSV has the debiased form beside it."
    ),
    by={"corpus": "corpus", "first": "with", "task": "task", "name": "model", "target": "target", "layer": "layer", "sentences": "sentences"},
    keep=("first", "name", "layer"),
    pivot="second",
    values={"cka": Number(column="cka")},
    choose=_with_mean,
    apart=("encoder", "way", "inputs", "treebank"),
)  # fmt: skip


def cka_figures(m: Measurements) -> list[Figure]:
    """Draw CKA by layer, a panel for each pair of languages and a line for each system, per task and encoder."""
    rows = m.frame("cka").dropna(subset=["cka"])
    if rows["layer"].nunique() < 2:
        return []
    rows = name_systems(rows, m.labels)
    before = rows["way"] == ""
    rows = rows.assign(
        pair=rows["first"] + "–" + rows["second"],
        line=rows["system"].where(~before, ""),
        stage=before.map({True: "before fine-tuning", False: ""}),
    )
    models = rows[~before]
    keys = [*PLACE, "encoder", "encoder.label", "task"]
    found = []
    for key, own in (models if len(models) else rows).groupby(keys, sort=False, dropna=False):
        same = (
            before & (rows["encoder"] == own["encoder"].iloc[0]) & (rows["corpus"] == own["corpus"].iloc[0])
        )
        found += _cka_figure(
            [key[0], key[-1], key[-2]],
            pd.concat([rows[same], models.loc[models.index.intersection(own.index)]]),
        )
    return found


def _cka_figure(about: Sequence[str], rows: pd.DataFrame) -> list[Figure]:
    last = rows[rows["layer"] == rows["layer"].max()].groupby(["stage", "line"], sort=False)["cka"].mean()
    words = Words(
        name=slug("cka", *about),
        title=f"CKA by layer: {' '.join(filter(None, about))}",
        caption=(
            "Linear CKA of sentences and their translations, mean over seeds, the band one standard deviation, for "
            "each layer; 0 is the embeddings. Dashed: the encoder before fine-tuning. Higher: the two languages' "
            "states are more alike, up to rotation and scale."
        ),
        alt=f"Line plot by layer; at the last layer, mean over languages: {_told(last)}.",
    )
    how = Lines(
        x="layer", y="cka", panel="pair", color="line", dash="stage", band=True, whole=True, marker="o", labels=("layer", "CKA"),
    )  # fmt: skip
    return line_figure(words, rows, how)


def transfer_correlations(m: Measurements) -> pd.DataFrame:
    """Return Spearman's ρ of CKA with the source and score over target languages, for each layer (Table 7).

    CKA of a bare encoder is set against the scores of every method trained on it; CKA within models against
    those models' own: on the corpus that was scored or, where there is none, on any, since labelled text is
    seldom parallel.
    """
    cka, scores = m.frame("cka").dropna(subset=["cka"]), m.frame("scores")
    if cka.empty or scores.empty:
        return pd.DataFrame()
    scores = name_systems(spoken_for(best_split(scores[scores["main"]])), m.labels)
    away = [
        code not in sources.split("+")
        for code, sources in zip(scores["language"], scores["source"], strict=True)
    ]
    keys = [*PLACE, "task", "encoder", "encoder.label", "way", "system", "source", "metric", "split"]
    found = []
    for key, own in scores[away].groupby(keys, sort=False, dropna=False):
        about = dict(zip(keys, key, strict=True))
        reached = own.groupby("language", sort=False)["score"].mean()
        alike = cka[(cka["encoder"] == about["encoder"]) & cka["first"].isin(about["source"].split("+"))]
        trained = (
            alike[["way", "task", "source"]] == [about[name] for name in ("way", "task", "source")]
        ).all(axis=1)
        of_models = spoken_for(alike.assign(language=alike["second"])[trained])
        here = of_models[of_models["corpus"] == about["corpus"]]
        states = {"encoder": alike[alike["way"] == ""], "model": here if len(here) else of_models}
        for name, rows in states.items():
            found += [{**about, "states": name, **one} for one in _correlated(rows, reached)]
    return pd.DataFrame(found)


def _correlated(cka: pd.DataFrame, reached: pd.Series) -> list[dict[str, object]]:
    """Correlate each layer's CKA, a mean over seeds, with the scores of the languages that have both."""
    found = []
    for layer, rows in cka.groupby("layer"):
        both = pd.concat([rows.groupby("second")["cka"].mean(), reached], axis=1, join="inner")
        both = both.reindex([code for code in reached.index if code in both.index])
        if len(both) >= FEWEST:
            x, y = list(both["cka"]), list(both["score"])
            over, (low, high) = spearman(x, y), bootstrap_interval(x, y)
            about = {"layer": layer, "languages": " ".join(both.index), "points": len(both)}
            found.append({**about, "rho": over.rho, "p_value": over.p_value, "low": low, "high": high})
    return found


CORRELATION_TABLE = Summary(
    frame=transfer_correlations,
    name="likeness-and-transfer",
    title="Does CKA go with transfer?",
    caption=(
        "Spearman's ρ of CKA with the source language and the score over the target languages, each a mean over "
        "seeds; the source itself, whose CKA is 1, is left out. States: of the encoder before fine-tuning, or "
        "within the fine-tuned model. p: two-sided, exact up to 7 languages, not corrected for the number of "
        "layers. Interval: 95 %, bootstrap over languages; rough with few."
    ),
    by={"corpus": "corpus", "inputs": "inputs", "task": "task", "encoder.label": "encoder", "system": "method", "states": "states", "layer": "layer", "points": "languages"},
    keep=("states", "layer", "points"),
    values={"ρ": Number(column="rho"), "from": Number(column="low"), "to": Number(column="high"), "p": Number(column="p_value", digits=3)},
    over="tests",
    apart=("encoder", "way", "source", "treebank", "inputs.translator", "metric"),
)  # fmt: skip
