"""How alike two languages are in each part of a model: gradients, gates and sentence states (CKA).

"On Negative Interference in Multilingual Models", Section 3.4, Figs 3 and 4; X-Mixup, Tables 2 and 7. Noise
lowers the similarity of two languages as it lowers that of two measurements of one language; divided by the
geometric mean of the two languages' own it is corrected for that (Spearman 1904). Each seed is measured by
itself, then seeds are averaged.
"""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from isogloss.metrics.correlation import bootstrap_interval, spearman
from isogloss.reports.comparison import best_split, spoken_for
from isogloss.reports.drawing import Figure, Lines, Words, line_figure
from isogloss.reports.measurements import Measurements
from isogloss.reports.names import joined, name_systems, plus_minus, slug, told_by
from isogloss.reports.tables import Summary, Table, cells, heads, numbers, percents

NOISE = 0.05
"""Nothing is divided by the similarity of a language with itself where it is below this."""

FEWEST = 3
"""Languages a correlation is computed from; fewer always give 1 or -1."""

WINDOWS = 25
"""A curve is smoothed over this part of its points: single batches are noisy."""

WHOLE, MODULES = "all", ("attention", "feed-forward")
UNIT, PART = ["run", "model"], ["layer", "module"]
PLACE = ["corpus", "treebank", "inputs", "inputs.translator"]
ABOUT = [*PLACE, "task", "source", "target", "encoder", "way", "name"]
"""What the seeds of one system share."""


Measure = tuple[str, str, str, str]
"""Frame, column, and what it is called, in a title and at length."""

MEASURES: tuple[Measure, ...] = (
    ("gradient-conflict", "cosine", "Cosine of gradients", "Cosine of the gradients of two batches"),
    (
        "language-gates",
        "cosine",
        "Cosine of masks",
        "Cosine of the parameters π (log α) of two languages' gates",
    ),
    (
        "language-gates",
        "correlation",
        "Correlation of masks",
        "Cosine of π after each mask's mean is taken off",
    ),
)


def corrected(rows: pd.DataFrame, value: str) -> pd.DataFrame:
    """Return each measured model's similarity over draws, by pair of languages and part, corrected for noise.

    ``own`` is the arithmetic mean of the two languages' own similarities, ``within`` the geometric one: nan
    where one is not positive, or for one language. Nothing is corrected by what is noise itself.
    """
    rows = rows.dropna(subset=[value])
    place = [*UNIT, *PART]
    over = rows.groupby([*place, "first", "second"], sort=False, dropna=False)[value]
    found = over.agg(**{value: "mean", "std": "std", "draws": "count"}).reset_index()
    alone = found.loc[found["first"] == found["second"], [*place, "first", value]]
    sides = [
        found.merge(alone.set_axis([*place, side, "alone"], axis=1), how="left", on=[*place, side])["alone"]
        for side in ("first", "second")
    ]
    within = np.sqrt(sides[0].where(sides[0] > 0) * sides[1].where(sides[1] > 0))
    within = within.where(found["first"] != found["second"])
    true = found[value] / within.where(within >= NOISE)
    pair = found["first"] + "–" + found["second"]
    found = found.assign(own=(sides[0] + sides[1]) / 2, within=within, corrected=true, pair=pair)
    others = rows.columns.difference(found.columns, sort=False)
    return found.merge(rows.drop_duplicates(UNIT)[[*UNIT, *others]], on=UNIT)


def similarity_tables(m: Measurements) -> list[Table]:
    """Return languages by languages, and parts by pairs, for each measure and system."""
    systems = _systems(m)
    return [table(*one) for one in systems for table in (_languages_table, _parts_table)]


def similarity_figures(m: Measurements) -> list[Figure]:
    """Draw each measure by layer for each system, and conflict over the steps of trainings."""
    by_layer = [figure for one in _systems(m) for figure in _layers_figure(*one)]
    return [*_training_figures(m), *by_layer]


def _systems(m: Measurements) -> list[tuple[Measure, pd.DataFrame]]:
    found = []
    for measure in MEASURES:
        rows = m.frame(measure[0]).dropna(subset=[measure[1]])
        if len(rows):
            named = corrected(name_systems(rows, m.labels), measure[1])
            by = [*ABOUT, *(["batch"] if "batch" in named else [])]
            found += [(measure, own) for _, own in named.groupby(by, sort=False, dropna=False)]
    return found


def _called(measure: Measure, rows: pd.DataFrame) -> tuple[str, str]:
    """Return file name and title of what is said of a system."""
    first = rows.iloc[0]
    about = [first["name"]]
    if first["task"]:
        about += [first[name] for name in ("task", "source", "target", "corpus", "treebank", "inputs")]
    text = " ".join(filter(None, about))
    batch = first["batch"] if "batch" in rows else ""
    return slug(measure[0], measure[1], text, batch), f"{measure[2]}, {text}"


def _languages_table(measure: Measure, rows: pd.DataFrame) -> Table:
    name, title = _called(measure, rows)
    whole = rows[rows["layer"].isna() & (rows["module"] == WHOLE)]
    turned = whole.rename(columns={"first": "second", "second": "first"})
    both = pd.concat([whole, turned]).drop_duplicates([*UNIT, "first", "second"])
    codes = list(whole[["first", "second"]].stack().drop_duplicates())
    texts = _texts(both, measure, ["first"], "second").reindex(index=codes, columns=codes)
    caption = (
        f"{measure[3]}, of all parameters, {_over(rows)}. On the diagonal one language twice: what noise "
        "leaves of 1. In brackets, divided by the geometric mean of the two languages' own: corrected for "
        "noise."
    )
    return _matrix(Words(name=name, title=title, caption=caption, alt=""), texts.rename_axis(""), rows)


def _parts_table(measure: Measure, rows: pd.DataFrame) -> Table:
    name, title = _called(measure, rows)
    rows = rows.sort_values(PART, kind="stable", na_position="first")
    layer = rows["layer"].map("{:g}".format, na_action="ignore").fillna("")
    texts = _texts(rows.assign(layer=layer), measure, PART, "pair")
    words = Words(
        name=slug(name, "parts"),
        title=f"{title}, by layer and module",
        caption="As above, for each part of the model; without a layer: those of all layers together.",
        alt="",
    )
    return _matrix(words, texts, rows, folded=True)


def _texts(rows: pd.DataFrame, measure: Measure, down: list[str], across: str) -> pd.DataFrame:
    """Write mean ± deviation, over models where there are several, else over draws; corrected in brackets."""
    found = []
    for key, own in rows.groupby([*down, across], sort=False):
        std = own[measure[1]].std() if len(own) > 1 else own["std"].mean()
        text = plus_minus(own[measure[1]].mean(), std, scale=1, digits=2)
        true = own["corrected"].mean()
        found.append((*key, text if pd.isna(true) else f"{text} ({_number(true)})"))
    texts = pd.DataFrame(found, columns=[*down, across, "text"]).set_index([*down, across])["text"]
    return texts.unstack(sort=False)


def _matrix(words: Words, texts: pd.DataFrame, data: pd.DataFrame, *, folded: bool = False) -> Table:
    shown = texts.reset_index().fillna("–").astype(str)
    return Table(
        name=words.name,
        title=words.title,
        caption=words.caption,
        header=cells(*map(str, shown.columns)),
        align="l" * texts.index.nlevels + "r" * len(texts.columns),
        rows=tuple(cells(*row) for row in shown.itertuples(index=False)),
        data=data,
        folded=folded,
    )


def _over(rows: pd.DataFrame) -> str:
    models = len(rows[UNIT].drop_duplicates())
    return f"mean ± standard deviation over {f'{models} seeds' if models > 1 else 'draws'}"


def _layers_figure(measure: Measure, rows: pd.DataFrame) -> list[Figure]:
    """Draw attention and feed-forward by layer, a panel for each pair; dashed: each language with itself."""
    over = rows[(rows["layer"] > 0) & rows["module"].isin(MODULES) & (rows["first"] != rows["second"])]
    if over["layer"].nunique() < 2:
        return []
    name, title = _called(measure, rows)
    words = Words(
        name=slug(name, "layers"),
        title=f"{title}, by layer",
        caption=(
            f"{measure[3]} (solid), and the mean of the two languages' own (dashed), which is what noise "
            f"leaves of 1; {_over(rows)}. The farther solid lies below dashed, the less the layer is shared."
        ),
        alt=f"Line plots by layer; mean over layers: {_told(over, ['pair', 'module'], measure[1])}.",
    )
    lines = [over.assign(y=over[measure[1]], line=""), over.assign(y=over["own"], line="within")]
    how = Lines(
        x="layer", y="y", panel="pair", color="module", dash="line", band=True, whole=True, marker="o",
        labels=("layer", measure[1])
    )  # fmt: skip
    return line_figure(words, pd.concat(lines), how)


def _training_figures(m: Measurements) -> list[Figure]:
    """Draw the cosine of whole gradients by step, a figure for pretraining and one for fine-tuning."""
    rows = m.frame("training-conflict").dropna(subset=["cosine"])
    rows = rows[(rows["module"] == WHOLE) & rows["layer"].isna()].sort_values("step", kind="stable")
    if rows.empty:
        return []
    rows = name_systems(rows, m.labels).assign(
        pair=rows["first"] + "–" + rows["second"],
        smooth=rows.groupby(["run", "first", "second"])["cosine"].transform(smoothed),
        line=(rows["first"] == rows["second"]).map({True: "within", False: ""}),
    )
    kinds = {"encoder": "pretraining", "model": "fine-tuning"}
    return [figure for kind in kinds for figure in _training_figure(kinds[kind], rows[rows["kind"] == kind])]


def _training_figure(name: str, rows: pd.DataFrame) -> list[Figure]:
    rows = rows.assign(panel=told_by(rows, ["name", "corpus", "task", "source", "target"]))
    words = Words(
        name=slug("gradient-conflict", name),
        title=f"Cosine of gradients while {name}",
        caption=(
            "Cosine between the gradients of two batches, of two languages (solid) and of one language "
            f"(dashed), all parameters; smoothed over a {WINDOWS}th of the points, mean over seeds, the band "
            "one standard deviation. Solid below dashed: the languages pull the weights apart."
        ),
        alt=f"Line plots; mean over steps: {_told(rows, ['panel', 'pair'], 'cosine')}.",
    )
    labels = ("step", "cosine")
    how = Lines(
        x="step", y="smooth", panel="panel", color="pair", dash="line", band=True, labels=labels, height=1.9
    )
    return line_figure(words, rows, how)


def smoothed(values: pd.Series) -> pd.Series:
    """Return each value's mean with its neighbours on both sides, as many on either as there are on both."""
    sums = np.concatenate(([0.0], np.cumsum(values)))
    places, last = np.arange(len(values)), len(values) - 1
    reach = np.minimum(len(values) // WINDOWS // 2, np.minimum(places, last - places))
    return pd.Series((sums[places + reach + 1] - sums[places - reach]) / (2 * reach + 1), values.index)


def _told(rows: pd.DataFrame, by: list[str], value: str) -> str:
    means = rows.groupby(by, sort=False)[value].mean()
    return joined(f"{' '.join(filter(None, key))} {_number(mean)}" for key, mean in means.items())


def _number(value: float) -> str:
    return plus_minus(value, np.nan, scale=1, digits=2)


def over_draws(rows: pd.DataFrame) -> pd.DataFrame:
    """Average the perplexities under a language's masks, so that the spread is one over seeds."""
    keys = [*UNIT, "language", "mask"]
    return rows.assign(perplexity=rows.groupby(keys)["perplexity"].transform("mean")).drop_duplicates(keys)


GATE_TABLES = (
    Summary(
        frame="language-gates-perplexity",
        title="Perplexity under masks",
        caption=(
            "Perplexity of masked language modelling on held-out text of each language, mean over draws, ± "
            "standard deviation over seeds: whole (no mask), and of what each language's mask keeps. A "
            "language that suffers more under another's mask than under its own needs parameters that the "
            "other does not."
        ),
        by=heads("encoder.label", "corpus", "mask"),
        keep=("mask",),
        pivot="language",
        values=numbers(1, perplexity="perplexity"),
        choose=over_draws,
        apart=("encoder",),
    ),
    Summary(
        frame="language-gates-kept",
        title="What masks keep",
        caption="Percent of the parameters with gates that a mask keeps, and that its π keep on average.",
        by=heads("encoder.label", "corpus", "mask"),
        keep=("mask",),
        values=percents(kept="kept", expected="expected"),
        over="masks",
        choose=lambda rows: rows[rows["layer"].isna() & (rows["module"] == WHOLE)],
        apart=("encoder",),
    ),
    Summary(
        frame="language-gates-specific",
        title="Gates that only one language keeps",
        caption=(
            "Gates that every mask of the one language keeps and every mask of the other prunes, percent of "
            "all, and the parameters they have; mean ± standard deviation over seeds. The file of masks says "
            "which they are."
        ),
        by=heads("encoder.label", "corpus", "keeps", "prunes", "module"),
        keep=("keeps", "prunes", "module"),
        values={**numbers(0, gates="gates", parameters="parameters"), **percents(percent="share")},
        choose=lambda rows: rows[rows["layer"].isna()].assign(share=rows["gates"] / rows["of"]),
        apart=("encoder",),
    ),
)


def with_mean(rows: pd.DataFrame) -> pd.DataFrame:
    """Add the mean over the other languages, where each has a CKA."""
    keys = [*UNIT, "first", "layer"]
    means = rows.groupby(keys)["cka"].transform(lambda values: values.mean(skipna=False))
    mean = rows.assign(second="mean", cka=means, debiased=np.nan).drop_duplicates(keys)
    return pd.concat([rows, mean], ignore_index=True)


CKA_TABLE = Summary(
    frame="cka",
    title="CKA of languages' sentence states",
    caption=(
        "Linear CKA of the mean-pooled states of sentences and of their translations, by layer (0: the "
        "embeddings); mean ± standard deviation over seeds. 1: equal up to rotation and scale. With fewer "
        "sentences than dimensions it comes out too high; the CSV has the debiased form beside it."
    ),
    by=heads("corpus", "first", "task", "name", "target", "layer", "sentences"),
    keep=("first", "name", "layer"),
    pivot="second",
    values=numbers(cka="cka"),
    choose=with_mean,
    apart=("encoder", "way", "source", "inputs", "treebank"),
)


def cka_figures(m: Measurements) -> list[Figure]:
    """Draw CKA by layer, a panel for each pair of languages, a line for each system, per task and encoder."""
    rows = m.frame("cka").dropna(subset=["cka"])
    if rows["layer"].nunique() < 2:
        return []
    bare = rows["way"] == ""
    rows = name_systems(rows, m.labels).assign(
        pair=rows["first"] + "–" + rows["second"], stage=bare.map({True: "before fine-tuning", False: ""})
    )
    models, encoders = rows[~bare], rows[bare].assign(system="")
    keys = ["encoder", "corpus", "encoder.label", "task"]
    found = []
    for key, own in (models if len(models) else encoders).groupby(keys, sort=False):
        same = encoders[(encoders[["encoder", "corpus"]] == list(key[:2])).all(axis=1)]
        found += _cka_figure(key[1:], pd.concat([same, own[own["way"] != ""]]))
    return found


def _cka_figure(about: Sequence[str], rows: pd.DataFrame) -> list[Figure]:
    last = rows[rows["layer"] == rows["layer"].max()]
    words = Words(
        name=slug("cka", *about),
        title=f"CKA by layer: {' '.join(filter(None, about))}",
        caption=(
            "Linear CKA of sentences and their translations, mean over seeds, the band one standard "
            "deviation, for each layer; 0 is the embeddings. Dashed: the encoder before fine-tuning. Higher: "
            "the two languages' states are more alike, up to rotation and scale."
        ),
        alt=f"Line plot by layer; at the last: {_told(last, ['stage', 'system'], 'cka')}.",
    )
    how = Lines(
        x="layer", y="cka", panel="pair", color="system", dash="stage", band=True, whole=True, marker="o",
        labels=("layer", "CKA")
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
    scores = name_systems(spoken_for(best_split(scores[scores["main"].astype(bool)])), m.labels)
    away = [one not in of.split("+") for one, of in zip(scores["language"], scores["source"], strict=True)]
    trained = ["encoder", "way", "task", "source"]
    keys = [*PLACE, *trained, "encoder.label", "system", "metric", "split"]
    found = []
    for key, own in scores[away].groupby(keys, sort=False, dropna=False):
        about = dict(zip(keys, key, strict=True))
        alike = cka[(cka["encoder"] == about["encoder"]) & cka["first"].isin(about["source"].split("+"))]
        alike = spoken_for(alike.assign(language=alike["second"]))
        models = alike[(alike[trained] == [about[name] for name in trained]).all(axis=1)]
        here = models[models["corpus"] == about["corpus"]]
        states = {"encoder": alike[alike["way"] == ""], "model": here if len(here) else models}
        reached = own.groupby("language", sort=False)["score"].mean()
        found += [
            {**about, "states": one, **row} for one in states for row in _correlated(states[one], reached)
        ]
    return pd.DataFrame(found)


def _correlated(cka: pd.DataFrame, reached: pd.Series) -> list[dict[str, object]]:
    """Correlate each layer's CKA, a mean over seeds, with the scores of the languages that have both."""
    found = []
    for layer, rows in cka.groupby("layer"):
        alike = rows.groupby("second")["cka"].mean().reindex(reached.index).dropna()
        if len(alike) >= FEWEST:
            x, y = list(alike), list(reached[alike.index])
            over, (low, high) = spearman(x, y), bootstrap_interval(x, y)
            about = {"layer": layer, "languages": " ".join(alike.index), "points": len(alike)}
            found.append({**about, "rho": over.rho, "p_value": over.p_value, "low": low, "high": high})
    return found


CORRELATION_TABLE = Summary(
    frame=transfer_correlations,
    name="likeness-and-transfer",
    title="Does CKA go with transfer?",
    caption=(
        "Spearman's ρ of CKA with the source language and the score over the target languages, each a mean "
        "over seeds; the source itself, whose CKA is 1, is left out. States: of the encoder before "
        "fine-tuning, or within the model. p: two-sided, exact up to 7 languages, not corrected for the "
        "number of layers. From, to: 95 %, bootstrap over languages; rough with few."
    ),
    by=heads("corpus", "inputs", "task", "encoder.label", "system", "states", "layer", "points"),
    keep=("states", "layer", "points"),
    values={**numbers(**{"ρ": "rho", "from": "low", "to": "high"}), **numbers(3, p="p_value")},
    over="tests",
    apart=("encoder", "way", "source", "treebank", "inputs.translator", "metric"),
)
