"""How much bitext an adjustment takes: scores by the number of translations, beside the original encoder.

Paper: "The Impact of Cross-Lingual Adjustment …", Section 5.3.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import cycle
from statistics import fmean
from typing import TYPE_CHECKING

from isogloss.core.records import Row
from isogloss.metrics.spread import Spread, spread
from isogloss.oldreports.adjusted import Adjusted, Encoders, pairs_in_words
from isogloss.oldreports.drawing import (
    MARKERS,
    SOURCE,
    Figure,
    Words,
    axis_labels,
    colours,
    drawn,
    head,
    legend,
    panels,
    what_differs,
)
from isogloss.oldreports.marks import PLAIN
from isogloss.oldreports.paths import grouped
from isogloss.oldreports.rows import Score
from isogloss.oldreports.tables import Cell, Table, cells
from isogloss.oldreports.words import joined, language, percent, plus_minus, slug

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Canvas

Test = tuple[str, str, str, str, str]
"""Corpus, task, source, split, metric."""


@dataclass(frozen=True, slots=True)
class Curve:
    """One language's scores by translations, in rising order, and the original's."""

    language: str
    on_source: bool
    points: tuple[tuple[int, Spread], ...]
    original: Spread | None


@dataclass(frozen=True, slots=True)
class Panel:
    """All languages of one test set, for one way of adjusting one encoder."""

    test: Test
    how: str
    base: str
    adjusted: tuple[Adjusted, ...]
    curves: tuple[Curve, ...]


def size_panels(scores: Sequence[Score], encoders: Encoders) -> list[Panel]:
    """Return a panel for each test set and way of adjusting with several sizes, of source-only models."""
    plain = [score for score in scores if score.method == PLAIN]
    tests = grouped(plain, lambda s: (s.corpus, s.task, s.source, s.split, s.metric))
    series = [group for group in encoders.by_size() if len({one.last.translations for one in group}) > 1]
    panels_ = [_panel(test, group, rows) for group in series for test, rows in tests.items()]
    return [panel for panel in panels_ if any(len(curve.points) > 1 for curve in panel.curves)]


def _panel(test: Test, group: Sequence[Adjusted], scores: Sequence[Score]) -> Panel:
    of_source = test[2].split("+")
    languages = sorted({s.language for s in scores}, key=lambda code: (code not in of_source, code))
    curves = []
    for code in languages:
        own = [score for score in scores if score.language == code]
        points = [(one.last.translations, _over(own, one.label)) for one in group]
        there = tuple((size, over) for size, over in points if over is not None)
        if there:
            curves.append(Curve(code, code in of_source, there, _over(own, group[0].base)))
    return Panel(test, group[0].last.how, group[0].base, tuple(group), tuple(curves))


def _over(scores: Sequence[Score], encoder: str) -> Spread | None:
    by_seed = grouped([one for one in scores if one.encoder == encoder], lambda one: one.seed).values()
    return spread([fmean(one.score for one in own) for own in by_seed]) if by_seed else None


def size_figures(panels_: Sequence[Panel]) -> list[Figure]:
    """Draw a figure for each way of adjusting each encoder, one panel a test set."""
    groups = grouped(panels_, lambda panel: (panel.base, panel.how, panel.adjusted[0].series))
    return [_figure(members, number) for number, members in enumerate(groups.values(), start=1)]


def _figure(members: Sequence[Panel], number: int) -> Figure:
    names = what_differs([panel.test for panel in members])
    codes = [curve.language for panel in members for curve in panel.curves if not curve.on_source]
    colour = _colours(members, codes)
    labels = {code: language(code) + (" ★" if colour[code] == SOURCE else "") for code in colour}

    markers = dict(zip(colour, cycle(MARKERS), strict=False))

    def paint() -> "Canvas":
        canvas, axes = panels(len(members), height=2.1, labels=[*labels.values(), _ORIGINAL])
        for axis, name, panel in zip(axes, names, members, strict=True):
            for curve in panel.curves:
                code = curve.language
                _draw(axis, curve, colour[code], labels[code], markers[code])
            head(axis, name)
        _sizes(axes, [size for panel in members for curve in panel.curves for size, _ in curve.points])
        legend(canvas, axes)
        axis_labels(canvas, "translations", "score, percent")
        return canvas

    return drawn(_words(members, number), [row for panel in members for row in panel_rows(panel)], paint)


_ORIGINAL = "original encoder"


def _colours(members: Sequence[Panel], targets: Iterable[str]) -> dict[str, str]:
    """Give the source its colour, and each target one of the others."""
    sources = [curve.language for panel in members for curve in panel.curves if curve.on_source]
    found = dict.fromkeys(sources, SOURCE)
    others = list(dict.fromkeys(code for code in targets if code not in found))
    return found | {code: colours(["", *others])[code] for code in others}


def _draw(axis: "Axes", curve: Curve, colour: str, label: str, marker: str) -> None:
    sizes = [size for size, _ in curve.points]
    means = [100 * over.mean for _, over in curve.points]
    spreads = [0.0 if over.n < 2 else 100 * over.std for _, over in curve.points]
    dashes = (0, (4, 1.5)) if curve.on_source else "solid"
    axis.plot(sizes, means, marker=marker, markersize=3, color=colour, linestyle=dashes, label=label)
    low = [mean - std for mean, std in zip(means, spreads, strict=True)]
    high = [mean + std for mean, std in zip(means, spreads, strict=True)]
    axis.fill_between(sizes, low, high, color=colour, alpha=0.15, linewidth=0)
    if curve.original:
        axis.axhline(100 * curve.original.mean, color=colour, linestyle="dotted", linewidth=1)


def _sizes(axes: Sequence["Axes"], sizes: Iterable[int]) -> None:
    """Put the ticks of a logarithmic axis at the sizes themselves."""
    from matplotlib.lines import Line2D

    ticks = sorted(set(sizes))
    axes[0].add_line(Line2D([], [], color="#7f7f7f", linestyle="dotted", linewidth=1, label=_ORIGINAL))
    for axis in axes:
        axis.set_xscale("log")
        axis.set_xticks(ticks, labels=[_short(tick) for tick in ticks])
        axis.minorticks_off()


def _short(size: int) -> str:
    return f"{size // 1000}K" if size >= 1000 and size % 1000 == 0 else f"{size:,}"


def _words(members: Sequence[Panel], number: int) -> Words:
    first = members[0]
    ends = [
        f"{' '.join(panel.test[:2])}, {curve.language} {percent(curve.points[0][1].mean)} to "
        f"{percent(curve.points[-1][1].mean)}"
        for panel in members
        for curve in panel.curves
    ]
    return Words(
        name=slug("bitext-size", first.base, first.how, str(number)),
        title=f"Scores by the size of the bitext, {first.base}, {first.how}",
        caption=(
            f"Source-only models on encoders adjusted to {pairs_in_words(first.adjusted)} by the number of "
            f"translations (logarithmic); mean and standard deviation over seeds. Dotted: the original "
            f"encoder."
        ),
        alt=f"Line plot from the fewest to the most translations: {joined(ends)}.",
    )


def panel_rows(panel: Panel) -> list[Row]:
    """Return every point of a panel; the original has 0 translations."""
    about = dict(zip(("corpus", "task", "source", "split", "metric"), panel.test, strict=True))
    about |= {"encoder": panel.base, "adjustment": panel.how}
    return [
        {
            **about,
            "language": curve.language,
            "translations": size,
            "seeds": over.n,
            "mean": over.mean,
            "std": over.std,
        }
        for curve in panel.curves
        for size, over in [*([(0, curve.original)] if curve.original else []), *curve.points]
    ]


def size_tables(panels_: Sequence[Panel]) -> list[Table]:
    """Return one table of all curves: languages are rows, numbers of translations columns."""
    if not panels_:
        return []
    sizes = sorted({size for panel in panels_ for curve in panel.curves for size, _ in curve.points})
    rows = [_line(panel, curve, sizes) for panel in panels_ for curve in panel.curves]
    table = Table(
        name="bitext-size",
        title="Scores by the number of translations",
        caption=(
            "Source-only models, in percent, mean ± standard deviation over seeds; in brackets the change "
            "against the original encoder in points. ★ marks the source language."
        ),
        header=cells(
            "test set", "measure", "encoder", "language", "original", *(f"{one:,}" for one in sizes)
        ),
        align="llll" + "r" * (1 + len(sizes)),
        rows=tuple(rows),
        data=[row for panel in panels_ for row in panel_rows(panel)],
    )
    return [table]


def _line(panel: Panel, curve: Curve, sizes: Sequence[int]) -> tuple[Cell, ...]:
    corpus, task, _, split, metric = panel.test
    name = language(curve.language) + (" ★" if curve.on_source else "")
    about = cells(f"{corpus} {task} {split}", metric, f"{panel.base}, {panel.how}", name)
    original = curve.original
    there = dict(curve.points)
    shown = [_text(there.get(size), original) for size in sizes]
    return (*about, *cells(_text(original, None), *shown))


def _text(over: Spread | None, original: Spread | None) -> str:
    if over is None:
        return "–"
    change = f" ({100 * (over.mean - original.mean):+.1f})".replace("-", "−") if original else ""
    return plus_minus(over.mean, over.std) + change
