"""Drawing of figures: one style, no global state, equal bytes on every call."""

import io
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import ceil
from textwrap import wrap
from typing import TYPE_CHECKING, Any

import pandas as pd

if TYPE_CHECKING:  # matplotlib takes half a second to import, so only drawing pays for it
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Canvas

SOURCE, TARGET, MARK, FAINT, TINT = "#0072b2", "#d55e00", "#222222", "#8a8a8a", "#f4f4f0"
"""Okabe and Ito's colour-blind safe colours; source and target have the same ones in all figures."""

PALETTE = (SOURCE, TARGET, "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#7f7f7f", "#000000")
"""Colours of other series: languages, methods, tasks."""

Dashes = str | tuple[int, tuple[float, ...]]

ROLES: Mapping[str, tuple[str, Dashes]] = {
    "source language": (SOURCE, (0, (4, 1.5))),
    "target language": (TARGET, "solid"),
}
"""Lines with fixed colour and dashes, distinct in print without colour too."""

DASHES: tuple[Dashes, ...] = ("solid", (0, (4, 1.5)), "dotted", "dashdot")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")

STYLE: dict[Any, Any] = {
    **{"font.size": 8, "axes.titlesize": 8, "axes.labelsize": 8, "legend.fontsize": 8},
    **{"xtick.labelsize": 7, "ytick.labelsize": 7, "xtick.major.size": 2.5, "ytick.major.size": 2.5},
    **{"axes.edgecolor": "#555555", "axes.linewidth": 0.6, "axes.spines.top": False},
    **{"axes.spines.right": False, "axes.grid": True, "grid.color": "#e6e6e6", "grid.linewidth": 0.5},
    **{"axes.axisbelow": True, "lines.linewidth": 1.4, "legend.frameon": False},
    **{"figure.facecolor": "white", "svg.hashsalt": "isogloss", "pdf.fonttype": 42, "text.parse_math": False},
}
"""Labels have no mathematics ("$" is a dollar); a fixed salt makes element ids reproducible."""

COLUMNS = 4
MOST_PANELS = 24
"""Maximum panels of a figure; the caption says how many were left out."""

WIDTH = 9.2
"""Inches that fit a printed page or a laptop at a readable font size."""

LEFT, RIGHT, TOP, BOTTOM, GAP_X, GAP_Y = 0.62, 0.16, 0.55, 0.5, 0.3, 0.42

LEGEND_ROW, LEGEND_HANDLE, LEGEND_LETTER = 0.18, 0.62, 0.068
"""Inches of a legend: height of a row, width of an entry's handle and gap, width of a letter."""


@dataclass(frozen=True, kw_only=True)
class Figure:
    """A figure with title, caption, alternative text and data; drawn on first access."""

    name: str
    title: str
    caption: str
    alt: str
    """Text for readers who cannot see it."""
    data: pd.DataFrame
    paint: Callable[[], "Canvas"]

    @property
    def svg(self) -> str:
        """The figure for a page."""
        return self._drawn[0]

    @property
    def pdf(self) -> bytes:
        """The figure for a paper."""
        return self._drawn[1]

    @cached_property
    def _drawn(self) -> tuple[str, bytes]:
        """Draw with the house style."""
        import matplotlib as mpl

        _find_fonts()
        with mpl.rc_context():
            mpl.rcdefaults()  # A user's matplotlibrc must not change the figures.
            mpl.rcParams.update(STYLE)
            canvas = self.paint()
            svg, pdf = io.StringIO(), io.BytesIO()
            canvas.savefig(svg, format="svg", metadata={"Date": None})
            canvas.savefig(pdf, format="pdf", metadata={"CreationDate": None})
        return svg.getvalue(), pdf.getvalue()


def _find_fonts() -> None:
    """Let matplotlib look for fonts, as it does once on each machine, without saying that it takes long."""
    log = logging.getLogger("matplotlib.font_manager")
    level = log.level
    log.setLevel(logging.ERROR)
    try:
        import matplotlib.font_manager  # noqa: F401 (importing it is the search)
    finally:
        log.setLevel(level)  # What it says of a user's own figures is theirs.


FigureText = Mapping[str, str]
"""The texts of a figure: name (of its file), title, caption, and alt."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lines:
    """The style of a line plot, by columns of a frame; one panel per value of the column "panel".

    Values with the same ``x`` in a line are averaged; ``band`` adds one standard deviation.
    """

    x: str
    y: str
    color: str
    dash: str = ""
    """A column whose values determine the dashes; "" is solid."""
    band: bool = False
    half: str = ""
    """A column with half the width of the band, instead of the standard deviation."""
    labels: tuple[str, str] = ("", "")
    scale: float = 1
    height: float = 1.6
    integer_x: bool = False
    """Ticks at integers only."""
    marker: str = ""
    log: str = ""
    """The axis that is logarithmic: "x", "y" or none."""
    tint: tuple[float, float] | None = None
    """An interval of the x axis with a tinted background."""


def line_figure(words: FigureText, rows: pd.DataFrame, style: Lines) -> list[Figure]:
    """Return a figure of a frame as panels of lines; none without rows."""
    rows = rows.dropna(subset=[style.x, style.y])
    if rows.empty:
        return []
    hue = colours(rows[style.color].astype(str))
    dashed = sorted(rows[style.dash].drop_duplicates(), key=bool) if style.dash else []
    dash = dict(zip(dashed, 10 * DASHES, strict=False))

    def draw(axis: "Axes", group: pd.DataFrame) -> None:
        for key, line in group.groupby([style.color, *filter(None, [style.dash])], sort=False):
            look = ROLES.get(str(key[0]), (hue[str(key[0])], dash.get(key[-1], "solid")))
            _draw_line(axis, line, style, (*look, ", ".join(filter(None, map(str, key)))))

    return [panel_figure(words, rows, draw, labels=style.labels, height=style.height)]


def _draw_line(axis: "Axes", rows: pd.DataFrame, style: Lines, look: tuple[str, Dashes, str]) -> None:
    from matplotlib.ticker import LogFormatter, MaxNLocator

    over = rows.groupby(style.x)[style.y].agg(["mean", "std"]) * style.scale
    color, dash, label = look
    axis.plot(over.index, over["mean"], color=color, linestyle=dash, label=label, marker=style.marker, ms=3)
    half = rows.groupby(style.x)[style.half].mean() * style.scale if style.half else over["std"]
    if (style.band or style.half) and half.notna().any():
        low, high = (over["mean"] + side * half.fillna(0.0) for side in (-1, 1))
        axis.fill_between(over.index, low, high, color=color, alpha=0.15, linewidth=0)
    if style.tint:
        axis.axvspan(*style.tint, color=TINT, linewidth=0, zorder=0)
    if style.integer_x:
        axis.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
    if style.log:
        axis.set(**{f"{style.log}scale": "log"})
        scale = axis.yaxis if style.log == "y" else axis.xaxis
        scale.set_major_formatter(LogFormatter())  # Plain numbers, also between powers of ten.
        scale.set_minor_formatter(LogFormatter())


def panel_figure(
    words: FigureText,
    rows: pd.DataFrame,
    draw: Callable[["Axes", pd.DataFrame], None],
    *,
    labels: tuple[str, str],
    height: float = 1.6,
) -> Figure:
    """Return a figure with a panel per value of the column "panel", one legend, and labels of both axes."""
    groups = list(rows.groupby("panel", sort=False))

    def paint() -> "Canvas":
        canvas, axes = panels(len(groups[:MOST_PANELS]), height=height)
        for axis, (name, group) in zip(axes, groups, strict=False):
            panel_title(axis, str(name))
            draw(axis, group)
        legend(canvas, axes)
        axis_labels(canvas, *labels)
        return canvas

    return figure(words, len(groups), rows, paint)


def figure(words: FigureText, panels: int, data: pd.DataFrame, paint: Callable[[], "Canvas"]) -> Figure:
    """Return a figure whose caption says how many panels were left out."""
    more = f" Drawn: the first {MOST_PANELS} of {panels} panels; the CSV has all."
    texts = {**words, "caption": words["caption"] + more * (panels > MOST_PANELS)}
    return Figure(**texts, data=data, paint=paint)


def panels(count: int, *, height: float = 1.6) -> tuple["Canvas", list["Axes"]]:
    """Return a canvas with ``count`` panels that share their axes; sizes in inches need no layout pass."""
    from matplotlib.figure import Figure as Canvas

    across = min(count, COLUMNS)
    down = ceil(count / across)
    panel_width = min(3.8, (WIDTH - LEFT - RIGHT - (across - 1) * GAP_X) / across)
    width = LEFT + RIGHT + across * panel_width + (across - 1) * GAP_X
    tall = TOP + BOTTOM + down * height + (down - 1) * GAP_Y
    canvas = Canvas(figsize=(width, tall))
    axes = list(canvas.subplots(down, across, sharex=True, sharey=True, squeeze=False).flat)
    canvas.subplots_adjust(LEFT / width, BOTTOM / tall, 1 - RIGHT / width, 1 - TOP / tall)
    canvas.subplots_adjust(wspace=GAP_X / panel_width, hspace=GAP_Y / height)
    for index, extra in enumerate(axes[count:], start=count):
        extra.set_visible(False)
        axes[index - across].tick_params(labelbottom=True)
    return canvas, axes[:count]


def panel_title(axis: "Axes", text: str) -> None:
    """Set the title of a panel, truncated to two lines; the CSV has it in full."""
    inches = axis.get_position().width * axis.get_figure(root=True).get_figwidth()  # type: ignore[union-attr]
    lines = wrap(text, max(2, int(inches / LEGEND_LETTER)), max_lines=2, placeholder="…")
    axis.set_title("\n".join(lines), loc="left")


def legend(canvas: "Canvas", axes: Sequence["Axes"]) -> None:
    """Add one legend for all panels at the top left, with room for its rows; equal labels appear once."""
    handles: dict[str, Artist] = {}
    for panel in axes:
        for handle, label in zip(*panel.get_legend_handles_labels(), strict=True):
            handles.setdefault(str(label), handle)
    longest = max(map(len, handles), default=0)
    columns = max(1, int(canvas.get_figwidth() / (LEGEND_HANDLE + LEGEND_LETTER * longest)))
    old_height, margins = canvas.get_figheight(), canvas.subplotpars
    height = old_height + LEGEND_ROW * max(0, ceil(len(handles) / columns) - 1)
    canvas.set_figheight(height)
    canvas.subplots_adjust(top=margins.top * old_height / height, bottom=margins.bottom * old_height / height)
    look: dict[str, Any] = {"loc": "upper left", "bbox_to_anchor": (0.0, 1 - 0.02 / height), "ncols": columns}
    canvas.legend(list(handles.values()), list(handles), handlelength=2.4, columnspacing=1.6, **look)


def axis_labels(canvas: "Canvas", x: str, y: str) -> None:
    """Label both axes once for all panels, at a fixed distance from the edge."""
    height, width = canvas.get_figheight(), canvas.get_figwidth()
    canvas.text(0.5, 0.08 / height, x, ha="center", va="bottom")
    canvas.text(0.08 / width, 0.5, y, ha="left", va="center", rotation=90)


def colours(names: Iterable[str]) -> dict[str, str]:
    """Return a colour for each name, in order of appearance; past the palette colours repeat."""
    return {name: PALETTE[i % len(PALETTE)] for i, name in enumerate(dict.fromkeys(names))}
