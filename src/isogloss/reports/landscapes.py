"""Scores along paths and planes between models, and how far apart these lie.

Paper: "Zero-shot Cross-lingual Transfer is Under-specified Optimization", Section 4, Figs 2 to 10. Mean and
variance over seeds are divided by the mean score of the model at α = 1, in the paper the bilingual one.
Paths, planes and deltas of other models, weights or test sets never share a line.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from isogloss.metrics.spread import spread
from isogloss.reports import drawing
from isogloss.reports.drawing import FAINT, MARK, MARKERS, MOST_PANELS, SOURCE, TARGET, TINT, Figure, Words
from isogloss.reports.measurements import Measurements
from isogloss.reports.names import count, encoder_names, joined, slug, told_by, way_names
from isogloss.reports.tables import Summary, Table, heads, numbers

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.colors import Colormap
    from matplotlib.figure import Figure as Canvas

DIGITS = 6
"""Grid values are compared after rounding, so that 0.1 + 0.2 meets 0.3."""

ABOUT_EQUAL = (0.8, 1.25)
"""Norm ratios that count as about equal."""

PAPER_ANGLE = 55
"""Degrees between the two deltas in the paper (Appendix B)."""

LEVELS = 12
ALPHA = "α: 0 is the model at the start, 1 the one at the end"
WEIGHTS = {"all": "encoder and head together", "encoder": "the encoder only", "head": "the head only"}
ROLES: dict[str, tuple[str, Any]] = {"source": (SOURCE, (0, (4, 1.5))), "target": (TARGET, "solid")}
"""Colour and dashes: the roles differ in print without colour too."""

TEST = ["corpus", "treebank", "inputs", "inputs.translator", "task", "metric"]
SETTING = [*TEST, "encoder", "encoder.label", "part", "split"]
ENDS = ["start.way", "start.name", "way", "end.name"]
CURVE = [*SETTING, *ENDS, "source", "target", "language", "role"]
PATHS = ["encoder", "encoder.label", "split", "source", *ENDS]
TRIPLE = ["way", "origin.name", "first.way", "first.name", "second.way", "second.name"]
CORNERS = {"origin": "way", "first": "first.way", "second": "second.way"}

PAIR = ("source", "target", "origin.name", "first.name", "second.name", "part")

AGGREGATES = {
    "normalised_mean": ("path-aggregate", "All pairs and tasks together", "mean over seeds"),
    "normalised_variance": (
        "path-variance",
        "Variance over seeds along the path",
        "unbiased variance over seeds",
    ),
}


def path_figures(m: Measurements) -> list[Figure]:
    """Draw means over pairs and tasks (Fig. 2), by task, the variance (Fig. 5), each pair (Figs 6–9)."""
    along = curves(m)
    if along.empty:
        return []
    groups = [group for _, group in along.groupby(SETTING, sort=False, dropna=False)]
    divided = [group for group in (one.dropna(subset=["by"]) for one in groups) if len(group)]
    raw = [_pair_figure(group, normalised=False) for group in groups]
    return [*aggregate_figures(along), *raw, *(_pair_figure(group, normalised=True) for group in divided)]


def curves(m: Measurements) -> pd.DataFrame:
    """Return every path's scores over seeds by α, as they are and divided by those of its end (``by``)."""
    rows = m.frame("interpolation")
    if rows.empty:
        return rows
    rows = _named(m, rows, {"end": "way", "start": "start.way"}).assign(alpha=rows["alpha"].round(DIGITS))
    over = rows.groupby([*CURVE, "alpha"], sort=False, dropna=False)["score"]
    found = over.agg(seeds="count", mean="mean", std="std").reset_index()
    ends = found["mean"].where((found["alpha"] == 1) & (found["mean"] > 0))
    by = ends.groupby([found[name] for name in CURVE], dropna=False).transform("max")
    return found.assign(by=by, normalised_mean=found["mean"] / by, normalised_variance=found["std"] ** 2 / by)


def aggregate_figures(along: pd.DataFrame) -> list[Figure]:
    """Draw what all pairs have in common, where there are several."""
    whole = along[(along["part"] == "all") & along["by"].notna()]
    if whole.empty:
        return []
    tests = whole[TEST].drop_duplicates()
    together = PATHS if not tests["task"].duplicated().any() else [*PATHS, *TEST]
    wanted = [("normalised_mean", together), ("normalised_variance", together)]
    if len(tests) > 1 and together == PATHS:
        wanted.insert(1, ("normalised_mean", [*PATHS, *TEST]))
    found = [(measure, by, aggregate(whole, measure, by)) for measure, by in wanted]
    return [
        _aggregate_figure(rows, measure, by_task="task" in by)
        for measure, by, rows in found
        if len(rows) and (rows["curves"].max() > 1 or measure == "normalised_variance")
    ]


def aggregate(along: pd.DataFrame, measure: str, by: list[str]) -> pd.DataFrame:
    """Return mean and 95 % interval (Student's t) over curves at each α."""
    keys = [*by, "role", "alpha"]
    groups = along.dropna(subset=[measure]).groupby(keys, sort=False, dropna=False)[measure]
    over = [(key, spread([float(one) for one in values])) for key, values in groups]
    return pd.DataFrame(
        [(measure, *key, one.n, one.mean, one.low, one.high) for key, one in over],
        columns=["measure", *keys, "curves", "mean", "low", "high"],
    )


def _aggregate_figure(rows: pd.DataFrame, measure: str, *, by_task: bool) -> Figure:
    name, title, what = AGGREGATES[measure]
    over = "pair" if by_task else "curve"
    each = "" if by_task else ", one for each pair and task"
    ends = _ends(rows, ["role", "start.name", "end.name", *(["task"] if by_task else [])], "mean", "{:.3g}")
    words = Words(
        name=slug(name, "by-task" if by_task else ""),
        title=f"{title}, by task" if by_task else title,
        caption=(
            f"The {what} at each point of the paths of Eq. 1 and Eq. 2, divided by the mean score of the "
            "matching model at the end, then averaged over up to "
            f"{count(int(rows['curves'].max()), over)}{each}; bands: 95 % interval of that mean (Student's "
            "t)."
        ),
        alt=f"Line plot of the normalised {what}: {ends}.",
    )
    bands = rows.assign(
        panel=_path_names(rows, ["source", *TEST, "encoder.label", "split"] if by_task else PATHS),
        middle=rows["mean"],
        low=rows["low"].fillna(rows["mean"]),
        high=rows["high"].fillna(rows["mean"]),
    )
    return _band_figure(words, rows, bands, f"{what} / score at α 1")


def _pair_figure(rows: pd.DataFrame, *, normalised: bool) -> Figure:
    """Draw a panel for each pair of languages and of models."""
    rows = rows.sort_values(["source", "target"], kind="stable")
    first, kind = rows.iloc[0], "normalised" if normalised else "raw"
    scale = 1 / rows["by"] if normalised else pd.Series(100.0, rows.index)
    what = "divided by the mean score of the model at the end" if normalised else "in percent"
    words = Words(
        name=slug("path", kind, *(first[name] for name in SETTING if name != "encoder")),
        title=f"{_where(first)}: {first['metric']} on {first['split']}, {kind}",
        caption=(
            "Each panel walks straight from one model to another of the same seed (Eqs 1 and 2), "
            f"{WEIGHTS.get(first['part'], first['part'])}. Lines: mean {first['metric']} on the "
            f"{first['split']} sets, {what}; bands: ± one standard deviation over "
            f"{count(int(rows['seeds'].max()), 'seed')}. The tinted strip lies between the two models; "
            "outside it the path is prolonged."
        ),
        alt=f"Line plot, means over the panels: {_ends(rows, ['role', 'start.name'], 'mean', '{:.1%}')}.",
    )
    middle, half = rows["mean"] * scale, rows["std"].fillna(0) * scale
    pair = (rows["source"] + " → " + rows["target"]).where(rows["target"] != "", rows["source"])
    bands = rows.assign(
        panel=pair + ", " + pd.Series(_path_names(rows, []), rows.index),
        middle=middle,
        low=middle - half,
        high=middle + half,
    )
    label = f"{first['metric']} / that at α 1" if normalised else f"{first['metric']}, percent"
    return _band_figure(words, rows, bands, label)


def _where(first: pd.Series) -> str:
    about = [first[name] for name in ("corpus", "treebank", "inputs", "task") if first[name]]
    return f"{' '.join(about)}, {first['encoder.label']}"


def _path_names(rows: pd.DataFrame, others: list[str]) -> list[str]:
    """Name where each path starts, ends where several do, and what else differs."""
    several = rows["end.name"].nunique() > 1
    to = " to " + rows["end.name"] if several else ""
    shown = [name for name in others if name not in (*ENDS, "encoder") and rows[name].nunique() > 1]
    named = rows.assign(path="from " + rows["start.name"] + to)[["path", *shown]]
    return [", ".join(filter(None, parts)) for parts in named.itertuples(index=False, name=None)]


def _band_figure(words: Words, data: pd.DataFrame, rows: pd.DataFrame, label: str) -> Figure:
    """Draw lines of each role by α with the bands given, a panel for each name."""
    names = list(rows["panel"].drop_duplicates())

    def paint() -> "Canvas":
        canvas, axes = drawing.panels(len(names[:MOST_PANELS]))
        for axis, name in zip(axes, names, strict=False):
            axis.axvspan(0, 1, color=TINT, linewidth=0, zorder=0)
            own = rows[rows["panel"] == name].sort_values("alpha", kind="stable")
            keys = ["role", *(["language"] if "language" in own else [])]
            for (role, *_), line in own.groupby(keys, sort=False):
                colour, dashes = ROLES.get(role, (FAINT, "dotted"))
                axis.fill_between(line["alpha"], line["low"], line["high"], color=colour, alpha=0.2, lw=0)
                axis.plot(line["alpha"], line["middle"], color=colour, ls=dashes, label=f"{role} language")
            axis.margins(x=0.01)
            drawing.head(axis, name)
        drawing.legend(canvas, axes)
        drawing.half_steps((axis.xaxis for axis in axes), list(rows["alpha"]))
        drawing.axis_labels(canvas, ALPHA, label)
        return canvas

    return drawing.drawn(drawing.capped(words, len(names)), data, paint)


def _ends(rows: pd.DataFrame, by: list[str], value: str, form: str) -> str:
    """Say in words where each kind of line starts and ends, on average."""
    at = rows[rows["alpha"].isin([0, 1])].groupby([*by, "alpha"], sort=False)[value].mean().unstack()
    if not {0, 1} <= {*at}:
        return "no path covers α 0 to 1"
    told = [
        f"{' '.join(filter(None, key))} {form.format(line[0])} at α 0, {form.format(line[1])} at α 1"
        for key, line in at.dropna().iterrows()
    ]
    return "; ".join(told).replace("%", " percent")


def plane_figures(m: Measurements) -> list[Figure]:
    """Draw lines of equal score in the plane through each three models (Figs 3 and 10)."""
    rows = m.frame("plane")
    if rows.empty:
        return []
    rows = _named(m, rows, CORNERS)
    groups = [_surfaces(group) for _, group in rows.groupby([*SETTING, *TRIPLE], sort=False, dropna=False)]
    return [_plane_figure(group) for group in groups if len(group)]


def _surfaces(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the mean over seeds on the grid of each pair and language; what is no grid is left out."""
    rows = rows.assign(**rows[["alpha_first", "alpha_second"]].round(DIGITS))
    panel = ["source", "target", "language", "role"]
    keys = [*SETTING, *TRIPLE, *panel, "alpha_first", "alpha_second"]
    over = rows.groupby(keys, sort=False, dropna=False)
    found = over.agg(seeds=("origin", "nunique"), mean=("score", "mean")).reset_index()
    at_origin = (found["alpha_first"] == 0) & (found["alpha_second"] == 0) & (found["mean"] > 0)
    by = found["mean"].where(at_origin).groupby([found[name] for name in panel]).transform("max")
    found = found.assign(normalised_mean=found["mean"] / by)
    sides = found.groupby(panel)[["alpha_first", "alpha_second"]].transform("nunique").min(axis=1)
    return found[sides > 1].sort_values([*panel, "alpha_first", "alpha_second"])


def _plane_figure(rows: pd.DataFrame) -> Figure:
    first = rows.iloc[0]
    corners = dict(zip(CORNERS, (first[f"{one}.name"] for one in CORNERS), strict=True))
    rows = rows.assign(shown=rows["normalised_mean"].fillna(rows["mean"]))
    keys = ["source", "target", "language", "role"]
    surfaces = [(key, own) for key, own in rows.groupby(keys, sort=False)][:MOST_PANELS]

    def paint() -> "Canvas":
        canvas, axes = drawing.panels(len(surfaces), height=2.0)
        levels = _levels(rows["shown"])
        for axis, ((source, target, language, role), own) in zip(axes, surfaces, strict=True):
            _draw_plane(axis, own.pivot(index="alpha_second", columns="alpha_first", values="shown"), levels)
            for (x, y), name, marker in zip(((0, 0), (1, 0), (0, 1)), corners.values(), "os^", strict=True):
                axis.plot(x, y, marker, color="white", mec=MARK, ms=6, label=f"{name} model")
            code = language if "+" in source + target else ""
            drawing.head(axis, f"{source} → {target}, {role} language {code}".rstrip())
        drawing.legend(canvas, axes[:1])
        drawing.half_steps((axis.xaxis for axis in axes), list(rows["alpha_first"]))
        drawing.half_steps((axis.yaxis for axis in axes), list(rows["alpha_second"]))
        towards = [f"towards the {corners[one]} model" for one in ("first", "second")]
        drawing.axis_labels(canvas, f"α₁: {towards[0]}", f"α₂: {towards[1]}")
        return canvas

    words = drawing.capped(_plane_words(rows, corners), rows[keys].drop_duplicates().shape[0])
    return drawing.drawn(words, rows.drop(columns="shown"), paint)


def _plane_words(rows: pd.DataFrame, corners: Mapping[str, str]) -> Words:
    first = rows.iloc[0]
    places = {(0, 0): corners["origin"], (1, 0): corners["first"], (0, 1): corners["second"]}
    at = [
        f"{row['source']} → {row['target']} {row['role']} language {100 * row['mean']:.1f} at the "
        f"{places[row['alpha_first'], row['alpha_second']]} model"
        for row in rows.to_dict("records")
        if (row["alpha_first"], row["alpha_second"]) in places
    ]
    about = [first[name] for name in SETTING if name != "encoder"]
    return Words(
        name=slug("plane", *about, *corners.values()),
        title=f"{_where(first)}: the plane through {joined(corners.values())}",
        caption=(
            f"{first['metric']} on the {first['split']} sets of θ(α₁, α₂) = θ₀ + α₁δ₁ + α₂δ₂ (Eq. 3, the "
            f"directions as they are; {WEIGHTS.get(first['part'], first['part'])}), mean over "
            f"{count(int(rows['seeds'].max()), 'seed')}, divided by the score of the {corners['origin']} "
            "model. All panels share one scale; lines that lie close together mean a steep surface."
        ),
        alt=f"Contour plots. {'; '.join(at) or 'No model lies on the grid'}.",
    )


def _levels(values: pd.Series) -> "np.ndarray[Any, Any]":
    """Return round levels that cover every surface of a figure."""
    from matplotlib.ticker import MaxNLocator

    low, high = float(values.min()), float(values.max())
    return np.asarray(MaxNLocator(LEVELS).tick_values(low, high if high > low else low + 0.01))


def _draw_plane(axis: "Axes", grid: pd.DataFrame, levels: "np.ndarray[Any, Any]") -> None:
    masked = np.ma.masked_invalid(grid.to_numpy())
    axis.contourf(grid.columns, grid.index, masked, levels=levels, cmap=_light_map())
    crossed = [level for level in levels if masked.min() < level < masked.max()]
    if crossed:
        lines = axis.contour(grid.columns, grid.index, masked, levels=crossed, colors=MARK, linewidths=0.4)
        axis.clabel(lines, crossed[:: max(1, len(crossed) // 5)], fontsize=6, fmt="%.2f", inline_spacing=2)
    axis.grid(visible=False)


def _light_map() -> "Colormap":
    """Return the lighter part of a map even to colour-blind readers: dark numbers stay readable."""
    import matplotlib as mpl
    from matplotlib.colors import ListedColormap

    return ListedColormap(mpl.colormaps["cividis"](np.linspace(0.35, 1.0, 256)))


def delta_figures(m: Measurements) -> list[Figure]:
    """Draw the ratio of two deltas' norms against their angle (Fig. 4), for each three models."""
    rows = m.frame("deltas").dropna(subset=["ratio", "angle"])
    if rows.empty:
        return []
    rows = _named(m, rows, CORNERS)
    return [_delta_figure(group) for _, group in rows.groupby(TRIPLE, sort=False)]


def _delta_figure(rows: pd.DataFrame) -> Figure:
    test = (rows["corpus"] + " " + rows["task"]).str.strip()
    shape = pd.Series(told_by(rows, ["encoder.label", "part"]), rows.index)
    colour, shapes = drawing.colours(test), list(dict.fromkeys(shape))

    def paint() -> "Canvas":
        labels = sorted({f"{a}, {b}" for a, b in zip(test, shape, strict=True)})
        canvas, (axis,) = drawing.panels(1, height=2.4, labels=labels)
        axis.axvspan(*ABOUT_EQUAL, color=TINT, linewidth=0, zorder=0)
        axis.axvline(1, color=FAINT, linewidth=0.8)
        axis.axhline(PAPER_ANGLE, color=FAINT, linewidth=0.8)
        for (one, shaped), own in rows.groupby([test, shape], sort=False):
            marker, label = MARKERS[shapes.index(shaped) % len(MARKERS)], f"{one}, {shaped}"
            look: dict[str, Any] = {"color": colour[one], "marker": marker, "alpha": 0.75, "label": label}
            axis.scatter(own["ratio"], own["angle"], s=20, **look)
        axis.set_xlim(0.95 * min(0.75, rows["ratio"].min()), 1.05 * max(1.3, rows["ratio"].max()))
        axis.set_ylim(0, max(95.0, rows["angle"].max() + 5))
        drawing.legend(canvas, [axis])
        drawing.axis_labels(canvas, "‖δ₁‖ / ‖δ₂‖", "angle in degrees")
        return canvas

    return drawing.drawn(_delta_words(rows), rows, paint)


def _delta_words(rows: pd.DataFrame) -> Words:
    first = rows.iloc[0]
    origin, one, other = (first[f"{name}.name"] for name in CORNERS)
    return Words(
        name=slug("deltas", origin, one, other),
        title=f"Norm ratio against angle, {origin} to {one} and {other}",
        caption=(
            f"Each mark is one pair and seed: ‖δ₁‖ / ‖δ₂‖ against the angle between δ₁, from the {origin} "
            f"model to {one}, and δ₂, to {other} (Eq. 3). Grey lines: equal norms, and the paper's "
            f"{PAPER_ANGLE}°; tinted: ratios that count as about equal."
        ),
        alt=(
            f"Scatter plot of {count(len(rows), 'mark')}: mean norm ratio {rows['ratio'].mean():.2f}, mean "
            f"angle {rows['angle'].mean():.0f} degrees."
        ),
    )


def delta_tables(m: Measurements) -> list[Table]:
    """Return norms, ratio and angle of each pair, over seeds."""
    summary = Summary(
        frame="deltas",
        name="deltas-by-pair",
        title="Lengths and angle, pair by pair",
        caption="Mean ± standard deviation over seeds of ‖δ₁‖, ‖δ₂‖, their ratio and the angle in degrees.",
        by=heads("corpus", "task", "encoder.label", *PAIR),
        keep=PAIR,
        values={
            **numbers(**{"‖δ₁‖": "norm_first", "‖δ₂‖": "norm_second", "ratio": "ratio"}),
            **numbers(1, angle="angle"),
        },
        choose=lambda rows: _named(m, rows, CORNERS),
        apart=("treebank", "encoder", *CORNERS.values()),
    )
    return summary.tables(m)


def _named(m: Measurements, rows: pd.DataFrame, ways: Mapping[str, str]) -> pd.DataFrame:
    """Add the name of the way each model was trained (``start.name`` …), and ``encoder.label``."""
    seen = pd.unique(rows[list(ways.values())].to_numpy().ravel())
    known = way_names(m.models[m.models["way"].isin(seen)])
    methods = {way: rows[way.replace("way", "method")] for way in ways.values()}
    names = {
        f"{one}.name": rows[way].map(known).astype(object).fillna(methods[way]) for one, way in ways.items()
    }
    return rows.assign(**names, **{"encoder.label": rows["encoder"].map(encoder_names(rows, m.labels))})
