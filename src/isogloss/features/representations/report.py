"""States of languages in reports: retrieval, CKA and its correlation with transfer, anisotropy, maps.

X-Mixup, Tables 2 and 7, Figs 1 and 4; "On Negative Interference in Multilingual Models", Section 3.4.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from isogloss.features.representations.rank_intervals import bootstrap_interval
from isogloss.metrics.ranks import spearman
from isogloss.reports import drawing
from isogloss.reports.comparison import (
    FEWEST,
    SYSTEM,
    TEST_SET,
    main_scores,
    model_languages,
    rows_of,
    where_any,
)
from isogloss.reports.drawing import MARK, MARKERS, Figure
from isogloss.reports.frames import add_map_languages, split_by
from isogloss.reports.line_figures import SCORE, LineFigure
from isogloss.reports.measurements import Measurements
from isogloss.reports.names import and_list, distinguishing_names, name_systems, percent, slug
from isogloss.reports.parts import Part, summary_parts
from isogloss.reports.similarity import BY_LAYER, UNIT
from isogloss.reports.summaries import with_role

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def _retrieval_by_layer(_: Measurements, rows: pd.DataFrame) -> pd.DataFrame:
    """Return one similarity, and chance as a further line. Empty for a single layer."""
    similarity_rows = rows[rows["centred"].astype(bool) & (rows["similarity"] == "cosine")]
    rows = similarity_rows if len(similarity_rows) else rows[rows["similarity"] == rows["similarity"].iloc[0]]
    # Layers counted from the last stand after those counted from the first.
    last_layer = rows["layer"].clip(lower=-1).max() + 1
    position = rows["layer"].mask(rows["layer"] < 0, last_layer + rows["layer"] - rows["layer"].min())
    accuracy = (rows["accuracy_forward"] + rows["accuracy_backward"]) / 2
    rows = rows.assign(pair=rows["first"] + "–" + rows["second"], place=position, accuracy=accuracy)
    chance = rows.assign(pair="chance", accuracy=rows["chance"])
    return pd.concat([rows, chance], ignore_index=True) if position.nunique() > 1 else rows[:0]


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


def map_shares(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the share of variance between languages on each map, with the map's languages."""
    rows = add_map_languages(rows).dropna(subset=["between"])
    return rows.drop_duplicates(["run", "model", "layer"])


def map_figures(measurements: Measurements) -> list[Figure]:
    """Return for each encoder and task maps of the encoder and of each method's first model."""
    rows = measurements.frame("representation-map")
    if rows.empty:
        return []
    rows = name_systems(add_map_languages(rows), measurements.display_names)
    groups = rows.assign(seed=rows["seed"].fillna(0)).groupby(["corpus", "task", "encoder", "way", "target"])
    rows = rows[(rows["seed"].fillna(0) == groups["seed"].transform("min")).to_numpy()]
    encoder_rows = rows[rows["way"] == ""]
    models = rows[rows["way"] != ""]
    figures = []
    keys = ["corpus", "encoder", "task", "encoder.label"]
    for key, group in split_by(models if len(models) else rows, keys, sort=False):
        encoder = encoder_rows[(encoder_rows[["corpus", "encoder"]] == list(key[:2])).all(axis=1)]
        figures.append(_maps([key[0], *key[2:]], pd.concat([encoder, group[group["way"] != ""]])))
    return figures


def _maps(words_of: list[str], rows: pd.DataFrame) -> Figure:
    system = rows["system"].mask(rows["way"] == "", "before fine-tuning")
    about_panel = ["system", "target", "languages", "layer"]
    rows = rows.assign(panel=distinguishing_names(rows.assign(system=system), about_panel))
    codes = list(rows["language"].drop_duplicates())
    colour = drawing.colours(codes)
    limit = 1.05 * rows[["x", "y"]].abs().max().max()

    def draw(axis: "Axes", group: pd.DataFrame) -> None:
        for (label, language_code), marks in split_by(group, ["what", "language"], sort=False):
            marker_style = {"s": 60, "edgecolors": MARK, "zorder": 3, "label": language_code}
            look = marker_style if label == "centroid" else {"s": 7, "alpha": 0.4, "linewidth": 0}
            marker = MARKERS[codes.index(language_code) % len(MARKERS)]
            axis.scatter(marks["x"], marks["y"], color=colour[language_code], marker=marker, **look)
        axis.set(xlim=(-limit, limit), ylim=(-limit, limit))

    subtitles = rows.groupby("panel", sort=False)["between"].first()
    shares = [f"{name} {percent(value)}" for name, value in subtitles.dropna().items()]
    words = {
        "name": slug("map", *words_of),
        "title": f"Map of sentences: {' '.join(word for word in words_of if word)}",
        "caption": (
            "Mean-pooled states of parallel sentences on their first two principal components; large: the "
            "languages' centroids; first seed of each method. Distances compare, directions do not."
        ),
        "alt": f"Dots; percent of the variance between languages: {and_list(shares) or 'not recorded'}.",
    }
    return drawing.panel_figure(words, rows, draw, labels=("first principal component", "second"), height=2.1)


RETRIEVAL_FIGURE = LineFigure(
    section="retrieval",
    frame="retrieval",
    name="retrieval",
    title="Translation retrieval by layer",
    caption="How often the nearest sentence is the translation, mean of both directions and over seeds.",
    panels=("corpus", "name", "task", "source", "target"),
    lines=replace(SCORE, x="place", y="accuracy", color="pair", labels=("layer", "accuracy, percent")),
    choose=_retrieval_by_layer,
)

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

FUNCTIONS: Mapping[str, Mapping[str, Any]] = {
    "cka": {"choose": with_mean},
    "likeness-and-transfer": {"frame": transfer_correlations},
    "representation-map": {"choose": map_shares},
}
"""Functions that build the frame of a table, or select its rows."""

PARTS: Sequence[Part] = (
    ("retrieval", RETRIEVAL_FIGURE.show),
    ("cka", CKA_FIGURE.show),
    ("maps", map_figures),
    *summary_parts(__file__, FUNCTIONS),
)
"""Figures and tables of this feature, by the section of a report that shows them."""
