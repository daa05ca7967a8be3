"""Scores along paths and planes between models, and the distances between models.

Paper: "Zero-shot Cross-lingual Transfer is Under-specified Optimization", Section 4, Figs 2 to 10. Mean and
variance over seeds are divided by the mean score of the model at α = 1, in the paper the bilingual one.
Paths, planes and deltas of different models, parts or test sets never share a line.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from isogloss.core.languages import language_name
from isogloss.metrics.estimates import mean_std
from isogloss.reports import drawing
from isogloss.reports.comparison import row_keys
from isogloss.reports.drawing import (
    FAINT,
    FEWEST_CURVES,
    MARK,
    MARKERS,
    PALETTE,
    TINT,
    Figure,
    FigureText,
    Lines,
)
from isogloss.reports.measurements import Measurements
from isogloss.reports.names import and_list, count, distinguishing_names, encoder_names, slug, way_names
from isogloss.reports.parts import Part, summary_parts

if TYPE_CHECKING:
    from matplotlib.axes import Axes

DIGITS = 6
"""Grid values are compared after rounding, so that 0.1 + 0.2 equals 0.3."""

ABOUT_EQUAL = (0.8, 1.25)
"""Norm ratios that count as about equal."""

PAPER_ANGLE = 55
"""Angle of the two deltas in the paper, in degrees (Appendix B)."""

WEIGHTS = {
    "all": "encoder and head together",
    "encoder": "the encoder only",
    "head": "the head only",
    "factors": "the adapters before they are merged, and the head",
}
ALPHA = "α: 0 is the start, 1 the end"
ALONG = Lines(x="alpha", y="mean", color="whose", tint=(0, 1))

TEST = ["corpus", "treebank", "inputs", "inputs.translator", "task", "metric"]
ABOUT = [*TEST, "encoder.label", "part", "split"]
SETTING = [*ABOUT, "encoder"]
ENDS = ["start.way", "start.name", "way", "end.name", "path"]
SURFACE = ["source", "target", "language", "role"]
PATHS = ["encoder", "encoder.label", "split", "source", *ENDS]
CORNERS = {"origin": "way", "first": "first.way", "second": "second.way"}
TRIPLE = [*CORNERS.values(), *(f"{corner}.name" for corner in CORNERS)]

AGGREGATES = {
    "normalised_mean": ("path-aggregate", "Mean over pairs along the path", "mean over seeds"),
    "normalised_variance": ("path-variance", "Variance along the path", "variance over seeds"),
}


def path_figures(measurements: Measurements) -> list[Figure]:
    """Return figures of means over pairs (Fig. 2) and by task (Figs 6–9), variance (Fig. 5), and pairs."""
    points = path_points(measurements)
    path_rows = curves(measurements)
    if path_rows.empty:
        return []
    pairs = (rows for _, rows in path_rows.groupby(SETTING, dropna=False, sort=False))
    figures = [figure for rows in pairs for figure in _pair_figure(rows, points)]
    return [*figures, *aggregate_figures(path_rows)]


def path_points(measurements: Measurements) -> pd.DataFrame:
    """Return every score on a path, with the path's name and the role of the language."""
    rows = _name_corners(measurements, "interpolation", {"end": "way", "start": "start.way"})
    if rows.empty:
        return rows
    end_text = " to " + rows["end.name"] if rows["end.name"].nunique() > 1 else ""
    path = "from " + rows["start.name"] + end_text
    return rows.assign(alpha=rows["alpha"].round(DIGITS), path=path, whose=rows["role"] + " language")


def curves(measurements: Measurements) -> pd.DataFrame:
    """Return every path's scores over seeds by α, raw and divided by the scores of its end (``by``)."""
    rows = path_points(measurements)
    if rows.empty:
        return rows
    keys = [*SETTING, *ENDS, *SURFACE]
    groups = rows.groupby([*keys, "alpha"], sort=False, dropna=False)["score"]
    curve = groups.agg(seeds="count", mean="mean", std="std").reset_index()
    ends = curve["mean"].where((curve["alpha"] == 1) & (curve["mean"] > 0))
    group_maxima = ends.groupby([curve[name] for name in keys], dropna=False).transform("max")
    curve = curve.assign(by=group_maxima, whose=curve["role"] + " language")
    return curve.assign(
        normalised_mean=curve["mean"] / group_maxima, normalised_variance=curve["std"] ** 2 / group_maxima
    )


def aggregate_figures(path_rows: pd.DataFrame) -> list[Figure]:
    """Return figures of aggregates over pairs. Different test sets of a task are never averaged."""
    models = path_rows[(path_rows["part"] == "all") & path_rows["by"].notna()]
    tests = models[TEST].drop_duplicates()
    groupings_by_task = [[*PATHS, *TEST]] if len(tests) > 1 else []
    groupings = groupings_by_task if tests["task"].duplicated().any() else [PATHS, *groupings_by_task]
    means = [aggregate(models, "normalised_mean", columns) for columns in groupings]
    variance = aggregate(models, "normalised_variance", groupings[0])
    row_groups = [*(rows for rows in means if rows["curves"].max() > 1), variance]
    return [figure for rows in row_groups if len(rows) for figure in _aggregate_figure(rows, models)]


def aggregate(path_rows: pd.DataFrame, measure: str, columns: list[str]) -> pd.DataFrame:
    """Return mean and 95 % interval (Student's t) over curves at each α."""
    keys = [*columns, "role", "whose", "alpha"]
    groups = path_rows.dropna(subset=[measure]).groupby(keys, sort=False, dropna=False)[measure]
    summaries = [(key, mean_std([float(score) for score in values])) for key, values in groups]
    return pd.DataFrame(
        [
            (measure, *key, estimate.n, estimate.mean, estimate.low, estimate.high)
            for key, estimate in summaries
        ],
        columns=["measure", *keys, "curves", "mean", "low", "high"],
    )


def _aggregate_figure(rows: pd.DataFrame, path_rows: pd.DataFrame) -> list[Figure]:
    measure = rows["measure"].iloc[0]
    name, title, measure_words = AGGREGATES[measure]
    grouping_words = ["by task"] if "task" in rows else []
    further_columns = rows.columns.intersection([*TEST, "source", "encoder.label", "split"])
    most_curves = int(rows["curves"].max())
    words = {
        "name": slug(name, *grouping_words),
        "title": ", ".join([title, *grouping_words]),
        "caption": (
            f"The {measure_words} on the paths {and_list(rows['path'].unique())} (Eqs 1 and 2), divided by "
            f"the mean score of the model at the end: mean of up to {count(most_curves, 'curve')} of pairs "
            f"and tasks; {_spread('its 95 % interval (Student)', most_curves)}."
        ),
        "alt": f"Line plot of the normalised {measure_words}: {_ends(rows)}.",
    }
    rows = rows.assign(
        panel=distinguishing_names(rows, ["path", *further_columns]), half=rows["high"] - rows["mean"]
    )
    style = replace(ALONG, labels=(ALPHA, f"{measure_words.split(' over')[0]} / score at α 1"), least=0.0)
    if rows["curves"].max() >= FEWEST_CURVES:
        return drawing.line_figure(words, rows, replace(style, half="half"))
    keys = [name for name in rows if name in path_rows and name not in ("mean", "half")]
    panel_rows = path_rows.merge(rows[[*keys, "panel"]], on=keys)
    panel_rows = panel_rows.assign(curve=row_keys(panel_rows, [*TEST, *ENDS, *SURFACE]))
    return drawing.line_figure(words, panel_rows, replace(style, y=measure, curve="curve"), rows)


def _spread(band: str, curves: int) -> str:
    """Return the kind of spread that is drawn around a mean of a number of curves."""
    return f"bands: {band}" if curves >= FEWEST_CURVES else "thin lines: each of them"


def _pair_figure(rows: pd.DataFrame, points: pd.DataFrame) -> list[Figure]:
    """Return a figure with a panel per pair of languages and of models. The CSV has normalised scores."""
    rows = rows.sort_values(["source", "target"], kind="stable")
    first_row = rows.iloc[0]
    words = {
        "name": slug("path", "raw", *first_row[ABOUT]),
        "title": f"{_where(first_row)}: {first_row['metric']}",
        "caption": (
            f"Percent, on paths {and_list(rows['path'].unique())} (Eqs 1 and 2; {_mixed_part(rows)}; "
            f"{_spread('± one standard deviation', int(rows['seeds'].max()))}). Outside the tinted strip the "
            "path is prolonged."
        ),
        "alt": f"Line plot, mean {first_row['metric']} of all panels in percent: {_ends(rows, scale=100)}.",
    }
    source, target = (rows[side].map(language_name) for side in ("source", "target"))
    pair = (source + " → " + target).where(target != "", source)
    rows = rows.assign(panel=distinguishing_names(rows.assign(pair=pair), ["pair", "path"]))
    keys = [*SETTING, *ENDS, *SURFACE, "alpha"]
    panel_rows = points.merge(rows[[*keys, "panel"]], on=keys)
    panel_rows = panel_rows.assign(curve=row_keys(panel_rows, [*SURFACE, "seed", "encoder.run"]))
    style = replace(ALONG, y="score", curve="curve", band=True, scale=100)
    return drawing.line_figure(
        words, panel_rows, replace(style, labels=(ALPHA, f"{first_row['metric']}, percent")), rows
    )


def _where(first_row: pd.Series) -> str:
    return " ".join(
        text for text in first_row[["corpus", "treebank", "inputs", "task", "encoder.label", "split"]] if text
    )


def _mixed_part(rows: pd.DataFrame) -> str:
    part = rows["part"].iloc[0]
    return f"{WEIGHTS.get(part, part)}; mean over {count(int(rows['seeds'].max()), 'seed')}"


def _ends(rows: pd.DataFrame, scale: float = 1) -> str:
    columns = ["role", "path", *rows.columns.intersection(["task"]), "alpha"]
    means = scale * rows.groupby(columns, sort=False)["mean"].mean().unstack()
    complete = means.reindex(columns=[0, 1]).dropna().iterrows()
    ends = [f"{_join_key(key)} {row[0]:.3g} at α 0, {row[1]:.3g} at α 1" for key, row in complete]
    return "; ".join(ends) or "no path covers α 0 to 1"


def _join_key(key: object) -> str:
    parts = key if isinstance(key, tuple) else (key,)
    return " ".join(str(part) for part in parts if part)


def plane_figures(measurements: Measurements) -> list[Figure]:
    """Return contour plots of the planes through three models (Figs 3 and 10)."""
    rows = _name_corners(measurements, "plane", CORNERS)
    if rows.empty:
        return []
    groups = [_surfaces(group) for _, group in rows.groupby([*SETTING, *TRIPLE], sort=False, dropna=False)]
    return [_plane_figure(group) for group in groups if len(group)]


def _surfaces(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the mean over seeds on the grid of each pair and language, without incomplete grids."""
    rows = rows.assign(**rows[["alpha_first", "alpha_second"]].round(DIGITS))
    keys = [*SETTING, *TRIPLE, *SURFACE, "alpha_first", "alpha_second"]
    groups = rows.groupby(keys, sort=False, dropna=False)
    surfaces = groups.agg(seeds=("origin", "nunique"), mean=("score", "mean")).reset_index()
    is_origin = (surfaces["alpha_first"] == 0) & (surfaces["alpha_second"] == 0) & (surfaces["mean"] > 0)
    reference = (
        surfaces["mean"].where(is_origin).groupby([surfaces[name] for name in SURFACE]).transform("max")
    )
    names = {side: surfaces[side].map(language_name) for side in ("source", "target", "language")}
    pair = surfaces.assign(**names, pair=names["source"] + " → " + names["target"])
    panel = distinguishing_names(pair, ["pair", "role", "language"])
    surfaces = surfaces.assign(normalised_mean=surfaces["mean"] / reference, panel=panel)
    sides = surfaces.groupby(SURFACE)[["alpha_first", "alpha_second"]].transform("nunique").min(axis=1)
    return surfaces[sides > 1].sort_values([*SURFACE, "alpha_first", "alpha_second"])


def _plane_figure(rows: pd.DataFrame) -> Figure:
    from matplotlib.ticker import MultipleLocator

    values = rows["normalised_mean"].fillna(rows["mean"])
    levels = plane_levels(values.to_numpy())
    corners = [rows[f"{corner}.name"].iloc[0] for corner in CORNERS]
    corner_of = dict(zip(((0, 0), (1, 0), (0, 1)), corners, strict=True))

    def draw(axis: "Axes", group: pd.DataFrame) -> None:
        grid = group.assign(shown=values).pivot(index="alpha_second", columns="alpha_first", values="shown")
        _draw_plane(axis, grid, levels)
        axis.plot((1, 0, 0), (0, 0, 1), color=MARK, linewidth=0.8, linestyle="dotted")
        for (place, name), marker in zip(corner_of.items(), "os^", strict=True):
            axis.plot(*place, marker, color="white", mec=MARK, ms=6, label=f"{name} model")
        axis.xaxis.set_major_locator(MultipleLocator(0.5))
        axis.yaxis.set_major_locator(MultipleLocator(0.5))

    labels = (f"α₁: towards the {corners[1]} model", f"α₂: towards the {corners[2]} model")
    return drawing.panel_figure(_plane_words(rows, corner_of), rows, draw, labels=labels, height=2.0)


def plane_levels(
    values: npt.NDArray[np.float64],
) -> npt.NDArray[np.float64]:
    """Return about twelve levels in steps of 0.01, between which lie equally many points.

    Equal steps would give one colour to the wide areas near the models, and most colours to few far points.
    """
    inside = np.round(np.nanquantile(values, np.linspace(0, 1, 13)[1:-1]), 2)
    low = np.floor(100 * np.nanmin(values)) / 100
    high = np.ceil(100 * np.nanmax(values)) / 100
    return np.unique([low, *inside, high if high > low else low + 0.01])


def _plane_words(rows: pd.DataFrame, corners: Mapping[tuple[int, int], str]) -> FigureText:
    first_row = rows.iloc[0]
    heights = [
        f"{panel} {100 * mean:.1f} at the {corners[x, y]} model"
        for panel, x, y, mean in rows[["panel", "alpha_first", "alpha_second", "mean"]].to_numpy()
        if (x, y) in corners
    ]
    return {
        "name": slug("plane", *first_row[ABOUT], *corners.values()),
        "title": f"{_where(first_row)}: the plane through {and_list(corners.values())}",
        "caption": (
            f"{first_row['metric']} at θ₀ + α₁δ₁ + α₂δ₂ (Eq. 3; {_mixed_part(rows)}), divided by that of the "
            f"{corners[0, 0]} model. One scale for all, on which each colour covers equally many points; the "
            "numbers are the heights. Dotted: paths."
        ),
        "alt": f"Contour plots. {'; '.join(heights) or 'No model lies on the grid'}.",
    }


def _draw_plane(axis: "Axes", grid: pd.DataFrame, levels: npt.NDArray[np.float64]) -> None:
    import matplotlib as mpl
    from matplotlib.patheffects import withStroke

    colors = mpl.colormaps["cividis"](np.linspace(0, 1, len(levels) - 1))
    x = grid.columns
    y = grid.index
    heights = np.ma.masked_invalid(grid.to_numpy())
    axis.contourf(x, y, heights, levels=levels, colors=colors)
    crossing_levels = [level for level in levels if heights.min() < level < heights.max()]
    if crossing_levels:
        lines = axis.contour(x, y, heights, levels=crossing_levels, colors=MARK, linewidths=0.4)
        label_levels = crossing_levels[:: max(1, len(crossing_levels) // 5)]
        for text in axis.clabel(lines, label_levels, fontsize=6, fmt="%.2f", inline_spacing=2):
            label_x, label_y = axis.transAxes.inverted().transform(
                axis.transData.transform(text.get_position())
            )
            text.set_path_effects([withStroke(linewidth=1.5, foreground="white")])
            text.set_visible(
                bool(0.06 < label_x < 0.94 and 0.04 < label_y < 0.96)
            )  # The frame would cut others.
    axis.grid(visible=False)


def delta_figures(measurements: Measurements) -> list[Figure]:
    """Return plots of the ratio of two deltas' norms against their angle (Fig. 4), for each three models."""
    rows = named_deltas(measurements).dropna(subset=["ratio", "angle"])
    return [_delta_figure(group) for _, group in rows.groupby(TRIPLE, sort=False)] if len(rows) else []


def _delta_figure(rows: pd.DataFrame) -> Figure:
    label = distinguishing_names(rows, ["corpus", "task", "encoder.label", "part"])

    def draw(axis: "Axes", group: pd.DataFrame) -> None:
        axis.axvspan(*ABOUT_EQUAL, color=TINT, linewidth=0, zorder=0)
        axis.axvline(1, color=FAINT, linewidth=0.8)
        axis.axhline(PAPER_ANGLE, color=FAINT, linewidth=0.8)
        groups = group.groupby(label)
        for i, (name, marks) in enumerate(
            groups
        ):  # Hollow and ever smaller, so that equal points stay visible.
            look: dict[str, Any] = {"edgecolors": PALETTE[i % 8], "marker": MARKERS[(i + i // 8) % 8]}
            size = 18 + 30 * (1 - i / len(groups))
            axis.scatter(marks["ratio"], marks["angle"], s=size, facecolors="none", label=name, **look)
        low = min(0.75, *group["ratio"])
        high = max(1.3, *group["ratio"])
        axis.set(xlim=(0.95 * low, 1.05 * high), ylim=(0, max(95, *group["angle"] + 5)))
        axis.text(0.955 * low, PAPER_ANGLE + 1, f"{PAPER_ANGLE}° in the paper", color=MARK, fontsize=7)

    origin, first_name, second_name = names = [rows[f"{corner}.name"].iloc[0] for corner in CORNERS]
    words = {
        "name": slug("deltas", *names),
        "title": f"Norm ratio against angle, {origin} to {first_name} and {second_name}",
        "caption": (
            f"One mark for each pair and seed; δ₁ leads from the {origin} model to {first_name}, δ₂ to "
            f"{second_name} (Eq. 3). Grey lines: equal norms, and the paper's {PAPER_ANGLE}°; tinted: about "
            f"equal norms."
        ),
        "alt": f"Dots: mean ratio {rows['ratio'].mean():.2f}, mean angle {rows['angle'].mean():.0f}°.",
    }
    labels = ("‖δ₁‖ / ‖δ₂‖", "angle in degrees")
    return drawing.panel_figure(words, rows.assign(panel=""), draw, labels=labels, height=2.4)


def named_deltas(measurements: Measurements) -> pd.DataFrame:
    """Return the deltas, with the names of their models."""
    return _name_corners(measurements, "deltas", CORNERS)


def _name_corners(measurements: Measurements, frame: str, ways: Mapping[str, str]) -> pd.DataFrame:
    """Add names of the models' ways of training (``start.name`` …), and ``encoder.label``."""
    rows = measurements.frame(frame)
    if rows.empty:
        return rows
    is_shown = measurements.models["way"].isin(rows[list(ways.values())].to_numpy().ravel())
    method_names = way_names(measurements.models[is_shown], measurements.display_names)
    names = {
        f"{corner}.name": rows[way]
        .map(method_names)
        .astype(object)
        .fillna(rows[way.replace("way", "method")])
        for corner, way in ways.items()
    }
    return rows.assign(
        **names, **{"encoder.label": rows["encoder"].map(encoder_names(rows, measurements.display_names))}
    )


PARTS: Sequence[Part] = (
    ("paths", path_figures),
    ("plane", plane_figures),
    ("deltas", delta_figures),
    *summary_parts(__file__, {"deltas-by-pair": {"frame": named_deltas}}),
)
"""Figures and tables of this feature, by the section of a report that shows them."""
