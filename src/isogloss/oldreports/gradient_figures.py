"""Figures of gradient conflict: over the steps of a training, over layers, and languages by languages."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from statistics import fmean
from typing import TYPE_CHECKING

import numpy as np

from isogloss.core.records import Row
from isogloss.oldreports.drawing import (
    MARK,
    Figure,
    Words,
    axis_labels,
    colours,
    drawn,
    head,
    legend,
    panels,
    whole_numbers,
)
from isogloss.oldreports.gather import Run
from isogloss.oldreports.gradients import (
    WHOLE,
    Conflict,
    ConflictStep,
    Over,
    draws_told,
    number,
    over_draws,
    steps_of,
    title_of,
)
from isogloss.oldreports.paths import grouped
from isogloss.oldreports.training_figures import without_seed
from isogloss.oldreports.words import joined, slug

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Canvas

PANELS = 12
"""Panels of one figure; what is more is in the CSV."""

WINDOWS = 25
"""A curve is smoothed over this part of its points: single batches are noisy."""

FEWEST = 3
"""Languages that make a map of pairs worth drawing."""

KINDS = ("attention", "feed-forward")


def conflict_figures(trainings: Mapping[str, Sequence[Run]], rows: Sequence[Conflict]) -> list[Figure]:
    """Draw conflict over the steps of each kind of training, by layer, and between all languages."""
    models = grouped(rows, lambda row: row.about)
    return [
        *(figure for kind, runs in trainings.items() for figure in _curves(kind, runs)),
        *(figure for about, own in models.items() for figure in _map(about, own)),
        *(figure for about, own in models.items() for figure in _layers(about, own)),
    ]


def _curves(kind: str, runs: Sequence[Run]) -> list[Figure]:
    """Draw the cosine of whole gradients by step; the seeds of one training share a panel."""
    found = [(run, steps_of(run)[0]) for run in runs]
    curves = [
        (run, [row for row in rows if row.module == WHOLE and row.layer is None]) for run, rows in found
    ]
    curves = [(run, rows) for run, rows in curves if rows]
    titles = dict(list(grouped(curves, lambda curve: without_seed(curve[0].title)).items())[:PANELS])
    if not titles:
        return []
    labels = [_pair(row) for _, rows in curves for row in rows]
    colour = colours(labels)
    words = Words(
        name=slug("gradient-conflict", kind),
        title=f"Cosine of gradients while {kind}",
        caption=(
            "Cosine between the gradients of two batches, of two languages (solid) and of one language "
            f"(dashed), all parameters; smoothed over a {WINDOWS}th of the points, which are shown faintly. "
            f"Solid below dashed: the languages pull the weights apart."
        ),
        alt=f"Line plots; mean over steps: {'; '.join(_told(run, rows) for run, rows in curves)}.",
    )

    def paint() -> "Canvas":
        canvas, axes = panels(len(titles), height=1.9, labels=list(colour))
        for axis, (title, seeds) in zip(axes, titles.items(), strict=True):
            for _, rows in seeds:
                _draw_steps(axis, rows, colour)
            head(axis, title)
        legend(canvas, axes)
        axis_labels(canvas, "step", "cosine")
        return canvas

    data: list[Row] = [
        {"run": run.id, "title": run.title, **asdict(row)} for run, rows in found for row in rows
    ]
    return [drawn(words, data, paint)]


def _draw_steps(axis: "Axes", rows: Sequence[ConflictStep], colour: dict[str, str]) -> None:
    for name, line in grouped(rows, _pair).items():
        there = [row for row in line if row.cosine is not None]
        steps, values = [row.step for row in there], [row.cosine or 0.0 for row in there]
        style = "--" if line[0].first == line[0].second else "-"
        axis.plot(steps, values, color=colour[name], alpha=0.2, linewidth=0.6)
        axis.plot(
            steps,
            smoothed(values),
            style,
            color=colour[name],
            label=name,
            marker="." if len(steps) == 1 else "",
        )
    axis.axhline(0, color=MARK, linewidth=0.5)


def smoothed(values: Sequence[float]) -> list[float]:
    """Return each value's mean with its neighbours on both sides, as many on either as there are on both."""
    half = len(values) // WINDOWS // 2
    return [
        fmean(values[place - reach : place + reach + 1])
        for place in range(len(values))
        for reach in [min(half, place, len(values) - 1 - place)]
    ]


def _pair(row: ConflictStep | Over) -> str:
    return f"{row.first}–{row.second}"


def _told(run: Run, rows: Sequence[ConflictStep]) -> str:
    means = [
        f"{name} {number(fmean(row.cosine or 0.0 for row in line))}"
        for name, line in grouped(rows, _pair).items()
    ]
    return f"{run.title}: {joined(means)}"


def _map(about: Sequence[str], rows: Sequence[Conflict]) -> list[Figure]:
    """Draw the cosines of all languages as a square map, where there are enough of them."""
    codes = list(dict.fromkeys(code for row in rows for code in (row.first, row.second)))
    whole = [one for one in over_draws(rows) if (one.layer, one.module) == (None, WHOLE)]
    if len(codes) < FEWEST or not whole:
        return []
    square = np.full((len(codes), len(codes)), np.nan)
    for one in whole:
        x, y = codes.index(one.first), codes.index(one.second)
        square[x, y] = square[y, x] = one.cosine
    words = Words(
        name=slug("gradient-conflict-languages", *about),
        title=f"Languages by languages, {title_of(about)}",
        caption=(
            f"Cosine between gradients of all parameters, mean over {draws_told(rows)}; on the diagonal two "
            f"batches of one language."
        ),
        alt=f"Square map: {', '.join(f'{_pair(one)} {number(one.cosine)}' for one in whole)}.",
    )

    def paint() -> "Canvas":
        canvas, (axis,) = panels(1, height=0.4 * len(codes))
        axis.pcolormesh(np.ma.masked_invalid(square), cmap="cividis", edgecolors="white", linewidth=0.5)
        middle = (np.nanmin(square) + np.nanmax(square)) / 2
        for (y, x), value in np.ndenumerate(square):
            if np.isfinite(value):
                shade = "black" if value > middle else "white"
                axis.text(x + 0.5, y + 0.5, number(float(value)), ha="center", va="center", color=shade)
        places = [place + 0.5 for place in range(len(codes))]
        axis.set_xticks(places, labels=codes)
        axis.set_yticks(places, labels=codes)
        axis.invert_yaxis()
        axis.set_aspect("equal", anchor="W")
        axis.grid(visible=False)
        return canvas

    return [drawn(words, [asdict(one) for one in whole], paint)]


def _layers(about: Sequence[str], rows: Sequence[Conflict]) -> list[Figure]:
    """Draw the cosine by layer, attention and feed-forward apart, a panel for each pair of languages."""
    over = [one for one in over_draws(rows) if one.layer and one.module in KINDS]
    pairs = [item for item in grouped(over, _pair).items() if item[1][0].first != item[1][0].second][:PANELS]
    if not pairs or len({one.layer for one in over}) < 2:
        return []
    colour = colours(KINDS)
    own = {(one.first, one.module, one.layer): one.cosine for one in over if one.first == one.second}
    words = Words(
        name=slug("gradient-conflict-layers", *about),
        title=f"Cosine of gradients by layer, {title_of(about)}",
        caption=(
            f"Between two languages (solid), and the mean of the two languages' own cosines (dashed), which "
            f"is what noise leaves of 1; mean over {draws_told(rows)}. The farther solid lies below dashed, "
            f"the less the layer is shared."
        ),
        alt=f"Line plots by layer; mean over layers: {'; '.join(_mean_told(*pair) for pair in pairs)}.",
    )

    def paint() -> "Canvas":
        canvas, axes = panels(len(pairs), labels=[*KINDS, *(f"{kind}, within" for kind in KINDS)])
        for axis, (name, members) in zip(axes, pairs, strict=True):
            for kind, line in grouped(members, lambda one: one.module).items():
                at = sorted(line, key=lambda one: one.layer or 0)
                layers = [one.layer or 0 for one in at]
                controls = [
                    fmean(own.get((code, kind, one.layer), np.nan) for code in (one.first, one.second))
                    for one in at
                ]
                axis.plot(layers, [one.cosine for one in at], "-o", ms=3, color=colour[kind], label=kind)
                axis.plot(layers, controls, "--", color=colour[kind], label=f"{kind}, within")
            axis.axhline(0, color=MARK, linewidth=0.5)
            head(axis, name)
        legend(canvas, axes)
        whole_numbers(axes)
        axis_labels(canvas, "layer", "cosine")
        return canvas

    return [drawn(words, [asdict(one) for one in over], paint)]


def _mean_told(name: str, members: Sequence[Over]) -> str:
    kinds = grouped(members, lambda one: one.module)
    return f"{name} " + joined(
        f"{kind} {number(fmean(one.cosine for one in line))}" for kind, line in kinds.items()
    )
