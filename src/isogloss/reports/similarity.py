"""Similarity of two languages in each part of a model: gradients, gates and sentence states (CKA).

"On Negative Interference in Multilingual Models", Section 3.4, Figs 3 and 4; X-Mixup, Tables 2 and 7. Noise
lowers the similarity of two languages, and equally of two measurements of one language. Dividing by the
geometric mean of the within-language similarities corrects for it (Spearman 1904). Each seed is corrected
before seeds are averaged.
"""

from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import pandas as pd

from isogloss.reports.drawing import Lines
from isogloss.reports.line_figures import LineFigure
from isogloss.reports.measurements import Measurements
from isogloss.reports.names import name_systems, slug
from isogloss.reports.tables import Number, Summary

NOISE = 0.05
"""Similarities within languages below this are too noisy to divide by."""


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


BY_LAYER = Lines(x="layer", y="cka", color="system", dash="stage", band=True, integer_x=True, marker="o")


def show_table(measure: SimilarityColumn) -> Summary:
    """Return the table of a similarity, by pair of languages and part."""
    return Summary(
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


def show_layers(measure: SimilarityColumn) -> LineFigure:
    """Return the figure of a similarity by layer."""
    return LineFigure(
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
