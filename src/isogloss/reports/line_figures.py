"""Line figures of one frame over steps, epochs, layers, ratios or sizes, with the spread over seeds."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import pandas as pd

from isogloss.reports import drawing
from isogloss.reports.drawing import MARKERS, MOST_PANELS, SOURCE, TARGET, Figure, FigureLayout, Lines
from isogloss.reports.frames import list_rows, split_by
from isogloss.reports.measurements import Measurements
from isogloss.reports.names import and_list, count, distinguishing_names, language, name_systems, slug
from isogloss.reports.summaries import spreads, with_role

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Canvas

MOST_ENDS = 12
"""Lines whose last points the alternative text of a figure lists."""

TEST = ("corpus", "treebank", "inputs", "task", "encoder.label", "split", "metric")


def _keep_rows(_: Measurements, rows: pd.DataFrame) -> pd.DataFrame:
    return rows


@dataclass(frozen=True, kw_only=True)
class LineFigure:
    """A line figure of one frame, for each value of ``group_by``. Seeds are averaged."""

    section: str
    """The section of the page that shows it (``sections``)."""
    frame: str
    name: str
    title: str
    caption: str
    panels: tuple[str, ...]
    """Columns from which panels are named, by those that differ."""
    lines: Lines
    choose: Callable[[Measurements, pd.DataFrame], pd.DataFrame] = _keep_rows
    """Selects the rows and adds columns. Default: all rows."""
    group_by: tuple[str, ...] = ()

    def show(self, measurements: Measurements) -> list[Figure]:
        """Return the figures. Empty if nothing was measured."""
        rows = measurements.frame(self.frame)
        rows = self.choose(measurements, rows) if len(rows) else rows
        if rows.empty:
            return []
        rows = name_systems(rows, measurements.display_names)
        groups = (
            rows.groupby(list(self.group_by), sort=False, dropna=False) if self.group_by else [((), rows)]
        )
        return [figure for key, group in groups for figure in self._figure(key, group)]

    def _figure(self, key: tuple[object, ...], rows: pd.DataFrame) -> list[Figure]:
        parts = [str(part) for part in key if part]
        rows = rows.assign(panel=distinguishing_names(rows, self.panels))
        words = {
            "name": slug(self.name, *parts),
            "title": ", ".join([self.title, *parts]),
            "caption": self.caption,
            "alt": f"Line plots; the last point of each line: {self._ends(rows)}.",
        }
        return drawing.line_figure(words, rows, self.lines)

    def _ends(self, rows: pd.DataFrame) -> str:
        style = self.lines
        keys = list(dict.fromkeys(column for column in ["panel", style.color, style.dash] if column))
        means = style.scale * rows.groupby([*keys, style.x], sort=False)[style.y].mean()
        last_points = means.sort_index(level=style.x, kind="stable", sort_remaining=False).groupby(
            keys, sort=False
        )
        ends = [
            " ".join([*(text for text in (str(part) for part in key) if text), _short(line.iloc[-1])])
            for key, line in last_points
        ]
        more = [f"{count(len(ends) - MOST_ENDS, 'line')} more"] if len(ends) > MOST_ENDS else []
        return and_list([*ends[:MOST_ENDS], *more])


def _short(value: float) -> str:
    """Write a number with three digits, or all before the point, and without a power of ten."""
    return f"{value:.3g}" if abs(value) < 999.5 else f"{value:.0f}"


DEV = Lines(x="epoch", y="score", color="system", dash="whose", band=True, integer_x=True, marker=".")
LOSS = Lines(x="step", y="loss", color="encoder.label", labels=("step", "loss"), marker=".")
SCORE = replace(DEV, dash="", band=False, scale=100, marker="o")


LINE_FIGURES = (
    LineFigure(
        section="training",
        frame="epochs",
        name="fine-tuning",
        title="Fine-tuning",
        caption="Dev score of each training language, mean over seeds; the CSV has the epoch kept (chosen).",
        panels=("corpus", "task", "encoder.label", "source", "target", "metric"),
        lines=replace(DEV, labels=("epoch", "dev score, percent"), scale=100, height=1.2),
        choose=lambda _, rows: with_role(rows).assign(whose=lambda r: r["role"].replace("source", "")),
    ),
)


def seed_figures(measurements: Measurements) -> list[Figure]:
    """Return a figure of the standard deviation over seeds of every system and language, by role."""
    rows = name_systems(spreads(measurements), measurements.display_names)
    if rows.empty:
        return []
    rows = rows.assign(
        panel=distinguishing_names(rows, ["corpus", "treebank", "task", "encoder.label", "metric"])
    )
    groups = [(panel, group) for (panel,), group in split_by(rows, ["panel"], sort=False)]
    names = list(dict.fromkeys(rows["system"]))

    codes = list(rows["language"].drop_duplicates())
    several = codes if len(codes) <= len(MARKERS) else []

    def paint(layout: FigureLayout) -> "Canvas":
        canvas, axes = drawing.panels(layout, len(groups[:MOST_PANELS]), height=0.35 + 0.4 * len(names))
        canvas.subplots_adjust(left=1.6 / canvas.get_figwidth())
        for axis, (name, group) in zip(axes, groups, strict=False):
            for (role, name_of_language), marks in split_by(group, ["role", "language"], sort=False):
                is_source = role == "source"
                heights = [names.index(system) + (-0.17 if is_source else 0.17) for system in marks["system"]]
                look: dict[str, Any] = {"edgecolors": SOURCE if is_source else TARGET, "facecolors": "none"}
                if several:
                    look["marker"] = MARKERS[codes.index(name_of_language)]
                    look["label"] = f"{language(name_of_language)}, {role}"
                else:
                    look["marker"] = "o" if is_source else "D"
                    look["label"] = f"{role} language"
                axis.scatter(100 * marks["std"], heights, s=20, **look)
            drawing.panel_title(axis, name)
            axis.set_yticks(range(len(names)), names)
            axis.set(ylim=(len(names) - 0.5, -0.5), xlim=(0, None))
        drawing.legend(canvas, axes)
        drawing.axis_labels(canvas, "standard deviation, points", "")
        return canvas

    means = rows.groupby(["system", "role"], sort=False)["std"].mean().reset_index()
    texts = [f"{row['system']}, {row['role']} language {100 * row['std']:.1f}" for row in list_rows(means)]
    words = {
        "name": "seeds",
        "title": "Spread over seeds",
        "caption": f"Unbiased, over up to {count(int(rows['seeds'].max()), 'seed')}; one mark per language.",
        "alt": f"Dot plot. Mean standard deviation in points: {'; '.join(texts)}.",
    }
    return [drawing.figure(words, len(groups), rows, paint)]
