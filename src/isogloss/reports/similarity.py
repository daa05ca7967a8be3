"""Similarity of two languages in each part of a model: gradients, gates and sentence states (CKA).

"On Negative Interference in Multilingual Models", Section 3.4, Figs 3 and 4; X-Mixup, Tables 2 and 7. Noise
lowers the similarity of two languages, and equally of two measurements of one language. Dividing by the
geometric mean of the within-language similarities corrects for it (Spearman 1904). Each seed is corrected
before seeds are averaged.
"""

from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd

from isogloss.core.errors import StorageError
from isogloss.data.result_files import ENDING, LOG_ALPHA, MASKS, read_tensors
from isogloss.metrics.ranks import bootstrap_interval, spearman
from isogloss.reports.comparison import (
    FEWEST,
    SYSTEM,
    TEST_SET,
    main_scores,
    model_languages,
    rows_of,
    where_any,
)
from isogloss.reports.drawing import Lines
from isogloss.reports.frames import split_by
from isogloss.reports.line_figures import LineFigure
from isogloss.reports.measurements import Measurements
from isogloss.reports.names import name_systems, slug
from isogloss.reports.summaries import with_role
from isogloss.reports.tables import Number, Summary, summaries_of

NOISE = 0.05
"""Similarities within languages below this are too noisy to divide by."""

WINDOWS = 25
"""Curves are smoothed over this fraction (1/n) of their points, because single batches are noisy."""

FARTHEST = 200
"""Gates shown of each language."""

WHOLE = "all"
MODULES = ("attention", "feed-forward")
UNIT = ["run", "model"]
PART = ["layer", "module"]
ABOUT = ("corpus", "treebank", "inputs", "task", "source", "target", "batch")


@dataclass(frozen=True, slots=True)
class SimilarityColumn:
    """A similarity of languages in a part of a model: its frame and column, and its names."""

    frame: str
    column: str
    title: str
    text: str


MEASURES = (
    SimilarityColumn(
        "gradient-conflict", "cosine", "Cosine of gradients", "Cosine of the gradients of two batches"
    ),
    SimilarityColumn(
        "language-gates", "cosine", "Cosine of masks", "Cosine of two languages' gates π (log α)"
    ),
    SimilarityColumn(
        "language-gates", "correlation", "Correlation of masks", "Cosine of π less each mask's mean"
    ),
)


def noise_corrected(rows: pd.DataFrame, value: str) -> pd.DataFrame:
    """Return each model's mean similarity over draws, by pair of languages and part, corrected for noise.

    ``own`` is the arithmetic mean of the similarities within the two languages. ``within`` is the geometric
    mean: nan if a similarity is not positive, or for one language. ``corrected`` is nan if ``within`` is
    noise.
    """
    rows = rows.dropna(subset=[value])
    part_of_model = [*UNIT, *PART]
    groups = rows.groupby([*part_of_model, "first", "second"], sort=False, dropna=False)[value]
    means = (
        groups.agg(["mean", "std", "count"]).rename(columns={"mean": value, "count": "draws"}).reset_index()
    )
    own_means = means.loc[means["first"] == means["second"], [*part_of_model, "first", value]]
    sides = [
        means.merge(
            own_means.set_axis([*part_of_model, side, "alone"], axis=1), how="left", on=[*part_of_model, side]
        )["alone"]
        for side in ("first", "second")
    ]
    within_means = pd.Series(np.sqrt(sides[0].where(sides[0] > 0) * sides[1].where(sides[1] > 0)))
    within_means = within_means.where(means["first"] != means["second"])
    true_means = means[value] / within_means.where(within_means >= NOISE)
    pair = means["first"] + "–" + means["second"]
    means = means.assign(own=(sides[0] + sides[1]) / 2, within=within_means, corrected=true_means, pair=pair)
    other_columns = rows.columns.difference(means.columns, sort=False)
    return means.merge(rows.drop_duplicates(UNIT)[[*UNIT, *other_columns]], on=UNIT)


def similarities(measure: SimilarityColumn, measurements: Measurements) -> pd.DataFrame:
    """Return a measure of all systems, corrected. ``about`` names the system over its seeds."""
    rows = measurements.frame(measure.frame).dropna(subset=[measure.column])
    if rows.empty:
        return rows
    rows = noise_corrected(name_systems(rows, measurements.display_names), measure.column)
    differ = [name for name in ABOUT if name in rows and rows[name].nunique(dropna=False) > 1]
    parts = rows[["name", *differ]].astype(object).fillna("").astype(str).itertuples(index=False, name=None)
    rows = rows.assign(about=[" ".join(name for name in part if name) for part in parts])
    return rows.sort_values(["about", *PART], kind="stable", na_position="first")


SIMILARITY_TABLES = tuple(
    Summary(
        section="similarity",
        frame=partial(similarities, measure),
        name=slug(measure.frame, measure.column),
        title=measure.title,
        caption=(
            f"{measure.text}, mean ± standard deviation over models, next to the mean of the two languages' "
            "own; corrected for noise: divided by the geometric mean of these."
        ),
        by=("about", "layer", "module", "pair"),
        keep=("layer", "module", "pair"),
        values={
            measure.column: Number(column=measure.column),
            "of one language": Number(column="own"),
            "corrected": Number(column="corrected"),
        },
        over="models",
    )
    for measure in MEASURES
)


def _layers(measure: SimilarityColumn, measurements: Measurements, _: pd.DataFrame) -> pd.DataFrame:
    """Return attention and feed-forward by layer, and the mean similarity within the two languages."""
    rows = similarities(measure, measurements)
    if rows.empty:
        return rows
    rows_across = rows[(rows["layer"] > 0) & rows["module"].isin(MODULES) & (rows["first"] != rows["second"])]
    rows_across = rows_across[rows_across.groupby("about")["layer"].transform("nunique") > 1]
    lines = [
        rows_across.assign(y=rows_across[measure.column], line=""),
        rows_across.assign(y=rows_across["own"], line="within"),
    ]
    return pd.concat(lines)


def _cosines_in_training(_: Measurements, rows: pd.DataFrame) -> pd.DataFrame:
    """Return the cosine of whole gradients by step of pretraining and fine-tuning."""
    rows = rows[(rows["module"] == WHOLE) & rows["layer"].isna()].dropna(subset=["cosine"])
    rows = rows.sort_values("step", kind="stable")
    return rows.assign(
        pair=rows["first"] + "–" + rows["second"],
        smooth=rows.groupby(["run", "first", "second"])["cosine"].transform(smooth),
        line=(rows["first"] == rows["second"]).map({True: "within", False: ""}),
        stage=rows["kind"].map({"encoder": "pretraining", "model": "fine-tuning"}),
    )


def _cka(_: Measurements, rows: pd.DataFrame) -> pd.DataFrame:
    """Return CKA of models, with CKA of their bare encoders for every task. Empty for one layer."""
    rows = rows.dropna(subset=["cka"])
    rows = rows.assign(pair=rows["first"] + "–" + rows["second"])
    is_bare_encoder, models = (rows[(rows["way"] == "") == is_bare] for is_bare in (True, False))
    if len(models):
        tasks = models[["encoder", "corpus", "task"]].drop_duplicates()
        is_bare_encoder = is_bare_encoder.drop(columns="task").merge(tasks, on=["encoder", "corpus"])
    rows = pd.concat([is_bare_encoder.assign(stage="before fine-tuning"), models.assign(stage="")])
    return rows if rows["layer"].nunique() > 1 else rows[:0]


def _ranked_gates(measurements: Measurements, rows: pd.DataFrame) -> pd.DataFrame:
    """Return π of the gates that are farthest from 0 in a language, in their order, and each other one's."""
    folders = {run.id: run.folder for run in measurements.runs}
    gate_frames = [rows[:0]]
    for run, group in rows.groupby("run", sort=False):
        gates = _gates(folders[str(run)] / f"{MASKS}{ENDING}") if run in folders else {}
        for first_language, pi in gates.items():
            farthest = np.argsort(-np.abs(pi), kind="stable")[:FARTHEST]
            order = farthest[np.argsort(pi[farthest], kind="stable")]
            facts = group.iloc[:1].drop(columns=["mask", "draw", *PART]).assign(by=first_language)
            for language, other_gates in gates.items():
                values = pd.DataFrame({"rank": np.arange(1, len(order) + 1), "pi": other_gates[order]})
                gate_frames.append(facts.merge(values.assign(whose=language), how="cross"))
    return pd.concat(gate_frames)


def _gates(path: Path) -> dict[str, "np.ndarray[tuple[int], np.dtype[np.float64]]"]:
    """Return each language's π, the mean over draws. Empty if the file is missing or damaged."""
    try:
        tensors, _ = read_tensors(path)
    except StorageError:
        return {}
    draws: dict[str, dict[str, list[np.ndarray]]] = {}
    for name in sorted(tensors):
        kind, _, remaining_name = name.partition("/")
        if kind == LOG_ALPHA:
            language, draw, _ = remaining_name.split("/", 2)
            draws.setdefault(language, {}).setdefault(draw, []).append(tensors[name].ravel())
    language_gates = {
        language_code: [np.concatenate(parts) for parts in draw_parts.values()]
        for language_code, draw_parts in draws.items()
    }
    return {
        language_code: np.mean(vectors, axis=0, dtype=np.float64)
        for language_code, vectors in language_gates.items()
    }


GATES_FIGURE = LineFigure(
    section="similarity",
    frame="language-gates-kept",
    name="language-gates-ranked",
    title="Gates by one language's π",
    caption=(
        f"π (log α, mean over draws) of the {FARTHEST} gates farthest from 0 in a language, from its most "
        "pruned to its most kept, and π of the same gates in the other languages (paper 4, Fig. 4b)."
    ),
    panels=("by",),
    lines=Lines(x="rank", y="pi", color="whose", labels=("gate, by rank", "π")),
    choose=_ranked_gates,
    group_by=("name",),
)

BY_LAYER = Lines(x="layer", y="cka", color="system", dash="stage", band=True, integer_x=True, marker="o")

CKA_FIGURE = LineFigure(
    section="cka",
    frame="cka",
    name="cka",
    title="CKA by layer",
    caption="CKA of sentences and translations; layer 0: the embeddings; dashed: before fine-tuning.",
    panels=("pair",),
    lines=replace(BY_LAYER, labels=("layer", "CKA")),
    choose=_cka,
    group_by=("corpus", "encoder.label", "task"),
)

SIMILARITY_FIGURES = (
    LineFigure(
        section="similarity",
        frame="training-conflict",
        name="gradient-conflict",
        title="Cosine of gradients",
        caption=(
            "Cosine of the gradients of two batches, of two languages (solid) and of one (dashed); smoothed "
            f"over a {WINDOWS}th of the points, mean over seeds, band: one standard deviation."
        ),
        panels=("name", "corpus", "task", "source", "target"),
        lines=Lines(x="step", y="smooth", color="pair", dash="line", band=True, labels=("step", "cosine")),
        choose=_cosines_in_training,
        group_by=("stage",),
    ),
    *(
        LineFigure(
            section="similarity",
            frame=measure.frame,
            name=slug(measure.frame, measure.column, "layers"),
            title=f"{measure.title} by layer",
            caption=f"{measure.text} (solid); dashed: mean of both languages' own, what noise leaves of 1.",
            panels=("pair",),
            lines=replace(BY_LAYER, y="y", color="module", dash="line", labels=("layer", measure.column)),
            choose=partial(_layers, measure),
            group_by=("about",),
        )
        for measure in MEASURES
    ),
)


def smooth(values: pd.Series) -> pd.Series:
    """Return each value's mean with its neighbours, equally many on both sides."""
    sums = np.concatenate(([0.0], np.cumsum(values)))
    positions = np.arange(len(values))
    last_index = len(values) - 1
    reach = np.minimum(len(values) // WINDOWS // 2, np.minimum(positions, last_index - positions))
    return pd.Series((sums[positions + reach + 1] - sums[positions - reach]) / (2 * reach + 1), values.index)


def average_draws(rows: pd.DataFrame) -> pd.DataFrame:
    """Average the perplexities over the draws of masks, so that deviations are over seeds."""
    keys = [*UNIT, "language", "mask"]
    return rows.assign(perplexity=rows.groupby(keys)["perplexity"].transform("mean")).drop_duplicates(keys)


def _mean_of_all(values: "pd.Series[float]") -> float:
    return values.mean(skipna=False)


def with_mean(rows: pd.DataFrame) -> pd.DataFrame:
    """Add the mean over the other languages where all have a CKA."""
    keys = [*UNIT, "first", "layer"]
    means = rows.groupby(keys)["cka"].transform(_mean_of_all)
    mean = rows.assign(second="mean", cka=means, debiased=np.nan).drop_duplicates(keys)
    return pd.concat([rows, mean], ignore_index=True)


def transfer_correlations(measurements: Measurements) -> pd.DataFrame:
    """Return Spearman's ρ of CKA with the source and score over target languages, for each layer (Table 7).

    CKA of a bare encoder is correlated with the scores of every method trained on it, CKA of models with
    their scores. CKA on the scored corpus is preferred to CKA on other corpora, because labelled text is
    seldom parallel. CKA of states mixed like the scored inputs is preferred to unmixed states.
    """
    cka = measurements.frame("cka").dropna(subset=["cka"])
    scores = measurements.frame("scores")
    if cka.empty or scores.empty:
        return pd.DataFrame()
    cka = model_languages(cka.assign(language=cka["second"]))
    scores = with_role(name_systems(model_languages(main_scores(scores)), measurements.display_names))
    training_columns = ["encoder", "way", "task", "source"]
    keys = [*TEST_SET, *SYSTEM, "encoder.label", "system"]
    correlations = []
    for key, group in split_by(scores[scores["role"] == "target"], keys, sort=False, dropna=False):
        system = dict(zip(keys, key, strict=True))
        similar = cka[(cka["encoder"] == system["encoder"]) & cka["first"].isin(system["source"].split("+"))]
        models = rows_of(similar, {name: system[name] for name in training_columns})
        models = where_any(models, "corpus", system["corpus"])
        models = where_any(where_any(models, "inputs", system["inputs"]), "inputs", "")
        states = {"encoder": similar[similar["way"] == ""], "model": models}
        language_scores = group.groupby("language", sort=False)["score"].mean()
        for (states_name, layer), rows in pd.concat(states, names=["states"]).groupby(["states", "layer"]):
            means = rows.groupby("second")["cka"].mean().reindex(language_scores.index).dropna()
            if len(means) >= FEWEST:
                correlations.append(
                    {**system, "states": states_name, "layer": layer, **_correlate(means, language_scores)}
                )
    return pd.DataFrame(correlations)


def _correlate(cka: pd.Series, scores: pd.Series) -> dict[str, object]:
    x = list(cka)
    y = list(scores[cka.index])
    result = spearman(x, y)
    (low, high) = bootstrap_interval(x, y)
    counts = {"languages": " ".join(cka.index), "points": len(x)}
    return {**counts, "rho": result.rho, "p_value": result.p_value, "low": low, "high": high}


def _select_whole(rows: pd.DataFrame) -> pd.DataFrame:
    return rows[rows["layer"].isna() & (rows["module"] == WHOLE)]


*GATE_TABLES, CKA_TABLE, CORRELATION_TABLE = summaries_of(
    Path(__file__).with_name("similarity.toml"),
    {
        "language-gates-perplexity": {"choose": average_draws},
        "language-gates-kept": {"choose": _select_whole},
        "language-gates-specific": {
            "choose": lambda rows: rows.assign(share=rows["gates"] / rows["of"])[rows["layer"].isna()]
        },
        "cka": {"choose": with_mean},
        "likeness-and-transfer": {"frame": transfer_correlations},
    },
).values()
