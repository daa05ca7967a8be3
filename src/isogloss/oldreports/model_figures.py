"""Figures about single models: scores and their spread over seeds, deltas (Fig. 4), retrieval by layer."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from statistics import fmean
from typing import TYPE_CHECKING

from isogloss.metrics.spread import spread
from isogloss.oldreports.claims import ABOUT_EQUAL, PAPER_ANGLE
from isogloss.oldreports.drawing import (
    FAINT,
    MARKERS,
    ROLE_STYLE,
    TINT,
    Figure,
    Words,
    axis_labels,
    colours,
    drawn,
    head,
    legend,
    panels,
    what_differs,
    whole_numbers,
)
from isogloss.oldreports.paths import grouped
from isogloss.oldreports.rows import Delta, Retrieval, SeedSpread
from isogloss.oldreports.words import count, joined, percent

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Canvas

ROLE_MARKERS = {"source": "o", "target": "D"}


def seed_figure(rows: Sequence[SeedSpread]) -> list[Figure]:
    """Draw the standard deviation over seeds of every model and language, source and target apart."""
    shown = [row for row in rows if row.seeds > 1]
    if not shown:
        return []
    groups = grouped(shown, lambda row: (row.task, row.encoder, row.corpus, row.metric))
    names = what_differs(list(groups))
    methods = list(dict.fromkeys(row.method for row in shown))

    def paint() -> "Canvas":
        canvas, axes = panels(len(groups), height=0.35 + 0.4 * len(methods))
        canvas.subplots_adjust(left=1.0 / canvas.get_figwidth())
        for axis, name, members in zip(axes, names, groups.values(), strict=True):
            _draw_spreads(axis, members, methods)
            head(axis, name)
            axis.set_yticks(range(len(methods)), methods)
            axis.set_ylim(len(methods) - 0.5, -0.5)
            axis.set_xlim(left=-3 * max(row.std for row in shown) - 0.01)
        legend(canvas, axes)
        axis_labels(canvas, "standard deviation over seeds, percentage points", "")
        return canvas

    return [drawn(_seed_words(shown), [asdict(row) for row in shown], paint)]


def _draw_spreads(axis: "Axes", rows: Sequence[SeedSpread], methods: Sequence[str]) -> None:
    for (method, role), marks in grouped(rows, lambda row: (row.method, row.role)).items():
        height = methods.index(method) + (0.17 if role == "target" else -0.17)
        values = [100 * row.std for row in marks]
        colour, marker = ROLE_STYLE.get(role, (FAINT, ""))[0], ROLE_MARKERS.get(role, "o")
        at, label = [height] * len(values), f"{role} language"
        axis.scatter(values, at, s=14, color=colour, marker=marker, alpha=0.75, label=label)
        axis.vlines(spread(values).mean, height - 0.14, height + 0.14, color=colour)


def _seed_words(rows: Sequence[SeedSpread]) -> Words:
    most = max(row.seeds for row in rows)
    return Words(
        name="seeds",
        title="Spread over seeds",
        caption=(
            f"Unbiased standard deviation over up to {count(most, 'seed')} of the {rows[0].split} score, in "
            f"percentage points. One mark per model and language: circles are the source language, diamonds "
            f"the targets; the bar is the mean of each."
        ),
        alt=f"Dot plot. {_seed_alt(rows)}",
    )


def _seed_alt(rows: Sequence[SeedSpread]) -> str:
    groups = grouped(rows, lambda row: (row.method, row.role)).items()
    parts = [
        f"{method}, {role} language {percent(spread([row.std for row in members]).mean)}"
        for (method, role), members in groups
    ]
    return f"Mean standard deviation in points: {'; '.join(parts)}."


def delta_figure(rows: Sequence[Delta]) -> list[Figure]:
    """Draw the norm ratio of the two deltas against the angle between them (Fig. 4)."""
    if not rows:
        return []
    series = grouped(rows, lambda row: (f"{row.corpus} {row.task}", row.encoder, row.part))
    labels = {key: ", ".join(key[: 2 if key[2] == "all" else 3]) for key in series}

    def paint() -> "Canvas":
        canvas, (axis,) = panels(1, height=2.4, labels=list(labels.values()))
        axis.axvspan(*ABOUT_EQUAL, color=TINT, linewidth=0, zorder=0)
        axis.axvline(1, color=FAINT, linewidth=0.8)
        axis.axhline(PAPER_ANGLE, color=FAINT, linewidth=0.8)
        _draw_deltas(axis, series, labels)
        ratios, angles = [row.ratio for row in rows], [row.angle for row in rows]
        axis.set_xlim(0.95 * min(0.75, *ratios), 1.05 * max(1.3, *ratios))
        axis.set_ylim(0, max(95.0, max(angles) + 5))
        legend(canvas, [axis])
        axis_labels(canvas, "‖δ_S‖ / ‖δ_T‖", "angle in degrees")
        return canvas

    return [drawn(_delta_words(rows), [asdict(row) for row in rows], paint)]


Key = tuple[str, str, str]
"""Corpus and task, encoder, part."""


def _draw_deltas(axis: "Axes", series: Mapping[Key, Sequence[Delta]], labels: Mapping[Key, str]) -> None:
    """Give each task a colour, each encoder and part a shape."""
    colour = colours([task for task, _, _ in series])
    shapes = list(dict.fromkeys(key[1:] for key in series))
    for key, members in series.items():
        marker = MARKERS[shapes.index(key[1:]) % len(MARKERS)]
        ratios, angles = [row.ratio for row in members], [row.angle for row in members]
        axis.scatter(ratios, angles, s=20, alpha=0.75, color=colour[key[0]], marker=marker, label=labels[key])


def _delta_words(rows: Sequence[Delta]) -> Words:
    ratio, angle = spread([row.ratio for row in rows]), spread([row.angle for row in rows])
    return Words(
        name="deltas",
        title="Norm ratio against angle",
        caption=(
            "Each mark is one pair and seed: ‖δ_S‖ / ‖δ_T‖ against the angle between δ_S = θ_S − θ_ST and "
            f"δ_T = θ_T − θ_ST, of Eq. 3. Grey lines: equal norms, and the paper's {PAPER_ANGLE}°; "
            f"tinted: ratios that count as about equal."
        ),
        alt=(
            f"Scatter plot of {count(len(rows), 'mark')}: mean norm ratio {ratio.mean:.2f}, "
            f"mean angle {angle.mean:.0f} degrees."
        ),
    )


def retrieval_figure(rows: Sequence[Retrieval]) -> list[Figure]:
    """Draw how often the translation is found, layer by layer, by one similarity."""
    if not rows or len({row.layer for row in rows}) < 2:
        return []
    best = next((row for row in rows if row.centred and row.similarity == "cosine"), rows[0])
    rows = [row for row in rows if (row.centred, row.similarity) == (best.centred, best.similarity)]
    groups = grouped(rows, lambda row: (row.encoder, row.task, row.method))
    names = what_differs(list(groups))
    colour = colours([f"{row.first}–{row.second}" for row in rows])

    def paint() -> "Canvas":
        canvas, axes = panels(len(groups), height=1.9, labels=list(colour))
        for axis, name, members in zip(axes, names, groups.values(), strict=True):
            for pair, line in grouped(members, lambda row: f"{row.first}–{row.second}").items():
                layers = sorted(grouped(line, lambda row: row.layer).items())
                found = [100 * _both_ways(same) for _, same in layers]
                axis.plot([layer for layer, _ in layers], found, "-o", ms=3, color=colour[pair], label=pair)
            axis.axhline(100 * members[0].chance, color=FAINT, linestyle="dotted", linewidth=1)
            head(axis, name)
            axis.set_ylim(0, 102)
        legend(canvas, axes)
        whole_numbers(axes)
        axis_labels(canvas, "layer", "accuracy, percent")
        return canvas

    return [drawn(_retrieval_words(rows), [asdict(row) for row in rows], paint)]


def _both_ways(rows: Sequence[Retrieval]) -> float:
    """Return the mean accuracy of both directions, over seeds."""
    return fmean((row.accuracy_forward + row.accuracy_backward) / 2 for row in rows)


def _retrieval_words(rows: Sequence[Retrieval]) -> Words:
    centred = "each language centred" if rows[0].centred else "not centred"
    return Words(
        name="retrieval",
        title="Translation retrieval by layer",
        caption=(
            f"How often the nearest sentence of the other language ({rows[0].similarity}, {centred}) is the "
            f"translation, mean of both directions and over seeds, for each layer. Dotted: chance."
        ),
        alt=f"Line plot by layer: {joined(_retrieval_best(rows))}.",
    )


def _retrieval_best(rows: Sequence[Retrieval]) -> list[str]:
    best = []
    groups = grouped(rows, lambda r: (r.encoder, r.task, r.method, r.first, r.second))
    for (*model, first, second), members in groups.items():
        layers = grouped(members, lambda row: row.layer)
        layer = max(layers, key=lambda one: _both_ways(layers[one]))
        score, name = percent(_both_ways(layers[layer])), " ".join(filter(None, model))
        best.append(f"{name}, {first} and {second}, best at layer {layer} with {score}")
    return best
