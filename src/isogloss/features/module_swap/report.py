"""Heat maps and a table of module swaps: how much each part changes the score in source and targets."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from isogloss.features.module_swap.part_names import ALL, ATTENTION, EMBEDDINGS, FEED_FORWARD, HEAD, NORMS
from isogloss.reports import drawing
from isogloss.reports.drawing import Figure
from isogloss.reports.measurements import Measurements
from isogloss.reports.names import count, slug, way_names
from isogloss.reports.parts import Part, summary_parts

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SETTING = ["corpus", "treebank", "inputs", "task", "metric", "split", "start.way", "way"]
COLUMNS = (ATTENTION, FEED_FORWARD, NORMS, ALL)
"""Columns of a heat map: parts of a layer, and the whole layer."""

SWAP, RANDOM = "swap", "random"
VALUES = {
    ("start", SWAP, "target"): "target_gain",
    ("start", SWAP, "source"): "source_gain",
    ("end", SWAP, "target"): "target_loss",
    ("end", SWAP, "source"): "source_loss",
    ("start", RANDOM, "target"): "random_gain",
    ("end", RANDOM, "target"): "random_loss",
}
"""Columns of the table, by changed model, change and role of the language."""

STRIPPED = "strip"


def part_changes(measurements: Measurements) -> pd.DataFrame:
    """Return the change of each score by a change of a part, in points, with the names of both models."""
    rows = measurements.frame("module-swap")
    if rows.empty:
        return rows
    is_shown = measurements.models["way"].isin(rows[["way", "start.way"]].to_numpy().ravel())
    names = way_names(measurements.models[is_shown], measurements.display_names)
    return rows.assign(
        points=rows["score"] - rows["before"],
        name=rows["start.way"].map(names) + " → " + rows["way"].map(names),
        start_name=rows["start.way"].map(names),
        end_name=rows["way"].map(names),
    )


def changes_by_part(measurements: Measurements) -> pd.DataFrame:
    """Return a row for each part and pair of models, with the changes in source and targets as columns."""
    rows = part_changes(measurements)
    if rows.empty:
        return rows
    keys = [*SETTING, "name", "encoder", "source", "target", "seed", "start", "end", "part"]
    kinds = list(zip(rows["changed"], rows["change"], rows["role"], strict=True))
    rows = rows.assign(value=[VALUES.get(kind, "") for kind in kinds])
    wide = (
        rows[rows["value"] != ""]
        .pivot_table(index=keys, columns="value", values="points", dropna=False, sort=False, observed=True)
        .dropna(how="all")
        .reset_index()
    )
    return wide.reindex(columns=[*keys, *VALUES.values()])


def swap_figures(measurements: Measurements) -> list[Figure]:
    """Return heat maps of parts by layer, a figure for each pair of methods and each changed model."""
    rows = part_changes(measurements)
    if rows.empty:
        return []
    rows = rows[rows["change"] == SWAP]
    groups = rows.groupby([*SETTING, "changed"], sort=False, dropna=False)
    return [_heat_map(group) for _, group in groups]


def _heat_map(rows: pd.DataFrame) -> Figure:
    first_row = rows.iloc[0]
    changed, given = (
        (first_row["start_name"], first_row["end_name"])
        if first_row["changed"] == "start"
        else (first_row["end_name"], first_row["start_name"])
    )
    layers = sorted(int(layer) for layer in rows["layer"].dropna().unique())
    places = ["0", *(str(layer) for layer in layers), HEAD]
    means = (
        rows.assign(
            panel=rows["role"] + " language",
            row=rows["layer"]
            .map("{:.0f}".format)
            .where(rows["layer"].notna(), rows["part"].replace(EMBEDDINGS, "0")),
            column=rows["module"].where(rows["layer"].notna(), ALL),
        )
        .query("row in @places and column in @COLUMNS")
        .groupby(["panel", "row", "column"], sort=False)["points"]
        .agg(mean="mean", std="std", models="count")
        .reset_index()
    )
    largest = 100 * float(means["mean"].abs().max() or 1)

    def draw(axis: "Axes", group: pd.DataFrame) -> None:
        grid = 100 * group.pivot(index="row", columns="column", values="mean").reindex(places)
        grid = grid.reindex(columns=[column for column in COLUMNS if column in grid])
        axis.imshow(grid.to_numpy(), cmap="RdBu", vmin=-largest, vmax=largest, aspect="auto")
        axis.set_xticks(range(grid.shape[1]), list(grid.columns), fontsize=7)
        axis.set_yticks(range(len(places)), places, fontsize=7)
        for (row, column), value in np.ndenumerate(grid.to_numpy()):
            if not np.isnan(value):
                color = "white" if abs(value) > largest / 2 else "black"
                axis.text(column, row, f"{value:+.1f}", ha="center", va="center", fontsize=7, color=color)
        axis.grid(visible=False)

    target_means = means[means["panel"] == "target language"].sort_values("mean", ascending=False)
    texts = [
        f"layer {row}, {column}, {100 * mean:+.1f} in the targets"
        for row, column, mean in target_means[["row", "column", "mean"]].head(1).to_numpy()
    ]
    test = " ".join(text for text in first_row[["corpus", "task", "inputs", "split"]] if text)
    words = {
        "name": slug("module-swap", *first_row[SETTING[:6]], changed, given),
        "title": f"{test}: parts of {given} in {changed}",
        "caption": (
            f"Change of {first_row['metric']} in points when the {changed} model takes one part of the "
            f"{given} model; mean over {count(rows['end'].nunique(), 'pair')} of models. Changes of parts do "
            "not sum to the change of the whole layer."
        ),
        "alt": f"Heat maps, one for source and targets. Largest: {'; '.join(texts) or 'none'}.",
    }
    return drawing.panel_figure(
        words, means, draw, labels=("part of a layer", "layer (0: embeddings)"), height=2.2
    )


PARTS: Sequence[Part] = (
    ("module-swap", swap_figures),
    *summary_parts(__file__, {"module-swap": {"frame": changes_by_part}}),
)
"""Figures and tables of this feature, by the section of a report that shows them."""
