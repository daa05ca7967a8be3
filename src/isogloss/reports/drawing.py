"""Drawing of figures: one style, no global state, equal bytes on every call.

A figure is drawn for a layout: for a page or a phone, where panels are stacked, for the columns of a paper,
or for slides. The type is always of 8 points, so that figures of one layout match whatever their panels.
"""

import io
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import ceil, inf
from textwrap import wrap
from typing import TYPE_CHECKING, Any

import pandas as pd

if TYPE_CHECKING:  # matplotlib takes half a second to import, so only drawing pays for it
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Canvas

SOURCE, TARGET, MARK, FAINT, TINT = "#0072b2", "#d55e00", "#222222", "#8a8a8a", "#f4f4f0"
"""Okabe and Ito's colours for colour-blind readers. Source and target have the same colours in all figures.
"""

PALETTE = (SOURCE, TARGET, "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#7f7f7f", "#000000")
"""Colours of other series: languages, methods, tasks."""

Dashes = str | tuple[int, tuple[float, ...]]

ROLES: Mapping[str, tuple[str, Dashes]] = {
    "source language": (SOURCE, (0, (4, 1.5))),
    "target language": (TARGET, "solid"),
}
"""Lines with fixed colour and dashes, which are also distinct in black and white."""

DASHES: tuple[Dashes, ...] = ("solid", (0, (4, 1.5)), "dotted", "dashdot")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")

STYLE: dict[Any, Any] = {
    **{"font.size": 8, "axes.titlesize": 8, "axes.labelsize": 8, "legend.fontsize": 8},
    **{"xtick.labelsize": 7, "ytick.labelsize": 7, "xtick.major.size": 2.5, "ytick.major.size": 2.5},
    **{"axes.edgecolor": "#555555", "axes.linewidth": 0.6, "axes.spines.top": False},
    **{"axes.spines.right": False, "axes.grid": True, "grid.color": "#e6e6e6", "grid.linewidth": 0.5},
    **{"axes.axisbelow": True, "lines.linewidth": 1.4, "legend.frameon": False},
    **{"figure.facecolor": "white", "svg.hashsalt": "isogloss", "pdf.fonttype": 42, "text.parse_math": False},
    "savefig.dpi": 400,
}
"""Labels have no mathematics ("$" is a dollar). A fixed salt makes element ids reproducible."""

MOST_PANELS = 24
"""Maximum panels of a figure. The caption counts the omitted panels."""

FEWEST_CURVES = 4
"""With fewer curves, the curves themselves are drawn, because a band over two or three hides them."""


@dataclass(frozen=True, slots=True)
class FigureLayout:
    """Layout of a medium: width of figures in inches, maximum panels per row, and typeface."""

    width: float
    columns: int
    families: tuple[str, ...] = ("DejaVu Sans",)
    outlined: bool = True
    """Whether an SVG draws letters as shapes, for programs without the typeface. On a page letters are text.
    """


PAGE = FigureLayout(8.6, 4, outlined=False)
PHONE = FigureLayout(3.7, 1, outlined=False)
SERIF = ("STIXGeneral", "DejaVu Serif")
STYLES: Mapping[str, Mapping[str, FigureLayout]] = {
    "acl": {"column": FigureLayout(3.03, 2, SERIF), "text": FigureLayout(6.3, 4, SERIF)},
    "slides": {"half": FigureLayout(3.0, 1), "full": FigureLayout(5.6, 3)},
}
"""Layouts of papers and slides: column and text width of ACL's style. Slides enlarge theirs twice."""

LEFT, RIGHT, TOP, BOTTOM, GAP_X, GAP_Y = 0.62, 0.16, 0.64, 0.5, 0.3, 0.42

LEGEND_ROW, LEGEND_HANDLE = 0.18, 0.62
"""Inches of a legend: height of a row, width of an entry's handle and gap."""

LETTERS = {"DejaVu Sans": 0.068, "STIXGeneral": 0.055}
"""Inches of a letter of 8 points."""


def letters(inches: float) -> int:
    """Return the number of letters of the current typeface that fit into a width in inches."""
    import matplotlib as mpl

    return max(2, int(inches / LETTERS.get(mpl.rcParams["font.family"][0], max(LETTERS.values()))))


@dataclass(frozen=True, kw_only=True)
class Figure:
    """A figure with title, caption, alternative text and data. It is drawn on first access."""

    name: str
    title: str
    caption: str
    alt: str
    """Text for readers who cannot see it."""
    data: pd.DataFrame
    paint: Callable[[FigureLayout], "Canvas"]

    @property
    def svg(self) -> str:
        """The figure for a page."""
        return self._of_page["svg"].decode()

    @property
    def pdf(self) -> bytes:
        """The same to print."""
        return self._of_page["pdf"]

    @cached_property
    def _of_page(self) -> dict[str, bytes]:
        return self.drawn(PAGE, "svg", "pdf")

    def drawn(self, layout: FigureLayout, *formats: str) -> dict[str, bytes]:
        """Draw it with the house style as files of these formats: svg, pdf, png."""
        _find_fonts()
        import matplotlib as mpl

        with mpl.rc_context():
            mpl.rcdefaults()  # A user's matplotlibrc must not change the figures.
            mpl.rcParams.update(STYLE | {"font.family": list(layout.families)})
            mpl.rcParams["svg.fonttype"] = "path" if layout.outlined else "none"
            canvas = self.paint(layout)
            return {name: _save_canvas(canvas, name) for name in formats}


def _save_canvas(canvas: "Canvas", form: str) -> bytes:
    no_dates = {"svg": {"Date": None}, "pdf": {"CreationDate": None}, "png": {"Software": None}}
    file = io.BytesIO()
    canvas.savefig(file, format=form, metadata=no_dates[form])
    return file.getvalue()


def _find_fonts() -> None:
    """Make matplotlib find its fonts, once on each machine, without its messages about time and cache."""
    log = logging.getLogger("matplotlib")
    level = log.level
    log.setLevel(logging.ERROR)
    try:
        import matplotlib.font_manager  # noqa: F401 (importing it is the search)
    finally:
        log.setLevel(level)  # Warnings about a user's other figures must not be hidden.


FigureText = Mapping[str, str]
"""The texts of a figure: name (of its file), title, caption, and alt."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lines:
    """The style of a line plot, by columns of a frame. Each value of the column "panel" has a panel.

    Values with the same ``x`` in a line are averaged. ``band`` adds one standard deviation to means of
    FEWEST_CURVES or more.
    """

    x: str
    y: str
    color: str
    dash: str = ""
    """A column whose values determine the dashes. "" is solid."""
    band: bool = False
    half: str = ""
    """A column with half the width of the band, instead of the standard deviation."""
    curve: str = ""
    """A column that separates the curves of a mean. Fewer than FEWEST_CURVES are drawn as thin lines."""
    least: float = -inf
    """The smallest possible value, below which no band is drawn."""
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


def line_figure(
    words: FigureText, rows: pd.DataFrame, style: Lines, data: pd.DataFrame | None = None
) -> list[Figure]:
    """Return a figure of a frame as panels of lines, or no figure for an empty frame.

    Its numbers are ``data``. Default: the rows.
    """
    rows = rows.dropna(subset=[style.x, style.y])
    if rows.empty:
        return []
    hue = colours(rows[style.color].astype(str))
    dash_values = sorted(rows[style.dash].drop_duplicates(), key=bool) if style.dash else []
    dash = dict(zip(dash_values, 10 * DASHES, strict=False))

    def draw(axis: "Axes", group: pd.DataFrame) -> None:
        for key, line in group.groupby(
            [style.color, *(column for column in [style.dash] if column)], sort=False
        ):
            look = ROLES.get(str(key[0]), (hue[str(key[0])], dash.get(key[-1], "solid")))
            _draw_line(
                axis, line, style, (*look, ", ".join(text for text in (str(part) for part in key) if text))
            )

    figure = panel_figure(words, rows, draw, labels=style.labels, height=style.height)
    return [figure if data is None else replace(figure, data=data)]


def _draw_line(axis: "Axes", rows: pd.DataFrame, style: Lines, look: tuple[str, Dashes, str]) -> None:
    from matplotlib.ticker import LogFormatter, MaxNLocator

    points = rows.groupby(style.x)[style.y].agg(["mean", "std", "count"])
    color, dash, label = look
    means = points["mean"] * style.scale
    axis.plot(points.index, means, color=color, linestyle=dash, label=label, marker=style.marker, ms=3)
    half_widths = rows.groupby(style.x)[style.half].mean() if style.half else points["std"]
    half_widths = style.scale * half_widths.where(points["count"].ge(FEWEST_CURVES) | bool(style.half))
    if (style.band or style.half) and half_widths.notna().any():
        low, high = (means + side * half_widths.fillna(0.0) for side in (-1, 1))
        axis.fill_between(
            points.index, low.clip(lower=style.least), high, color=color, alpha=0.15, linewidth=0
        )
    elif style.curve:
        for _, curve in rows.sort_values(style.x).groupby(style.curve):
            axis.plot(curve[style.x], curve[style.y] * style.scale, color=color, linewidth=0.5, alpha=0.7)
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

    def paint(layout: FigureLayout) -> "Canvas":
        canvas, axes = panels(layout, len(groups[:MOST_PANELS]), height=height)
        for axis, (name, group) in zip(axes, groups, strict=False):
            panel_title(axis, str(name))
            draw(axis, group)
        legend(canvas, axes)
        axis_labels(canvas, *labels)
        return canvas

    return figure(words, len(groups), rows, paint)


def figure(
    words: FigureText, panels: int, data: pd.DataFrame, paint: Callable[[FigureLayout], "Canvas"]
) -> Figure:
    """Return a figure whose caption counts the omitted panels."""
    more = f" Drawn: the first {MOST_PANELS} of {panels} panels; the CSV has all."
    texts = {**words, "caption": words["caption"] + more * (panels > MOST_PANELS)}
    return Figure(**texts, data=data, paint=paint)


def panels(layout: FigureLayout, count: int, *, height: float = 1.6) -> tuple["Canvas", list["Axes"]]:
    """Return a canvas with ``count`` panels that share their axes. Sizes in inches need no layout pass.

    All figures of a layout have its width. Rows of panels are as even as possible.
    """
    from matplotlib.figure import Figure as Canvas

    row_count = ceil(count / layout.columns)
    column_count = ceil(count / row_count)
    width = layout.width
    panel_width = (width - LEFT - RIGHT - (column_count - 1) * GAP_X) / column_count
    tall = TOP + BOTTOM + row_count * height + (row_count - 1) * GAP_Y
    canvas = Canvas(figsize=(width, tall))
    axes = list(canvas.subplots(row_count, column_count, sharex=True, sharey=True, squeeze=False).flat)
    canvas.subplots_adjust(LEFT / width, BOTTOM / tall, 1 - RIGHT / width, 1 - TOP / tall)
    canvas.subplots_adjust(wspace=GAP_X / panel_width, hspace=GAP_Y / height)
    for index, extra in enumerate(axes[count:], start=count):
        extra.set_visible(False)
        axes[index - column_count].tick_params(labelbottom=True)
    return canvas, axes[:count]


def panel_title(axis: "Axes", text: str) -> None:
    """Set the title of a panel, truncated to two lines. The CSV has the full title."""
    inches = axis.get_position().width * axis.get_figure(root=True).get_figwidth()  # type: ignore[union-attr]
    lines = wrap(text, letters(inches), max_lines=2, placeholder="…")
    axis.set_title("\n".join(lines), loc="left")


def legend(canvas: "Canvas", axes: Sequence["Axes"]) -> None:
    """Add one legend for all panels at the top left, with room for its rows. Equal labels appear once."""
    handles: dict[str, Artist] = {}
    for panel in axes:
        for handle, label in zip(*panel.get_legend_handles_labels(), strict=True):
            handles.setdefault(str(label), handle)
    if not handles:
        return
    longest = max((len(labels) for labels in handles), default=0)
    entry = LEGEND_HANDLE + longest / letters(1000) * 1000
    columns = max(1, int(canvas.get_figwidth() / entry))
    old_height, margins = canvas.get_figheight(), canvas.subplotpars
    height = old_height + LEGEND_ROW * max(0, ceil(len(handles) / columns) - 1)
    canvas.set_figheight(height)
    canvas.subplots_adjust(top=margins.top * old_height / height, bottom=margins.bottom * old_height / height)
    look: dict[str, Any] = {"loc": "upper left", "bbox_to_anchor": (0.0, 1 - 0.02 / height), "ncols": columns}
    canvas.legend(list(handles.values()), list(handles), handlelength=2.4, columnspacing=1.6, **look)


def axis_labels(canvas: "Canvas", x: str, y: str) -> None:
    """Label both axes once for all panels, at a fixed distance from the edge, in lines that fit."""
    height, width = canvas.get_figheight(), canvas.get_figwidth()
    margins = canvas.subplotpars
    lines = wrap(y, max(8, letters((margins.top - margins.bottom) * height)))
    canvas.subplots_adjust(left=margins.left + 0.14 * max(0, len(lines) - 1) / width)
    canvas.text((margins.left + margins.right) / 2, 0.08 / height, x, ha="center", va="bottom")
    text = canvas.text(
        0.06 / width, (margins.top + margins.bottom) / 2, "\n".join(lines), ha="left", va="center"
    )
    text.set(rotation=90, linespacing=1.0)


def colours(names: Iterable[str]) -> dict[str, str]:
    """Return a colour for each name, in order of appearance. Past the palette, colours repeat."""
    return {name: PALETTE[i % len(PALETTE)] for i, name in enumerate(dict.fromkeys(names))}
