"""Figures of sentence states: CKA by layer, and maps of sentences and centroids (X-Mixup, Figs 1 and 4)."""

from collections.abc import Sequence
from dataclasses import asdict
from statistics import fmean
from typing import TYPE_CHECKING

from isogloss.oldreports.drawing import (
    MARK,
    MARKERS,
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
from isogloss.oldreports.paths import grouped
from isogloss.oldreports.rows import Likeness, MapPoint
from isogloss.oldreports.words import count, joined, percent, slug

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Canvas

PANELS = 16
"""Panels of one figure; what is more is in the CSV."""

BEFORE = "before fine-tuning"


def likeness_figures(rows: Sequence[Likeness]) -> list[Figure]:
    """Draw CKA by layer, a panel for each pair of languages and a line for each method, per task."""
    kept = [row for row in rows if row.cka is not None]
    if len({row.layer for row in kept}) < 2:
        return []
    models = [row for row in kept if row.method]
    found = []
    for key in dict.fromkeys((row.corpus, row.task, row.encoder) for row in models or kept):
        own = [row for row in models if (row.corpus, row.task, row.encoder) == key]
        encoder = [row for row in kept if not row.method and row.encoder == key[2]]
        found.append(_likeness_figure(key, [*encoder, *own]))
    return found


def _likeness_figure(key: tuple[str, str, str], rows: Sequence[Likeness]) -> Figure:
    groups = list(grouped(rows, lambda row: (row.first, row.second)).items())[:PANELS]
    colour = colours([row.method or BEFORE for row in rows])

    def paint() -> "Canvas":
        canvas, axes = panels(len(groups), labels=list(colour))
        for axis, ((first, second), members) in zip(axes, groups, strict=True):
            for method, line in grouped(members, lambda row: row.method or BEFORE).items():
                at = sorted(_mean_by_layer(line).items())
                style = "--o" if method == BEFORE else "-o"
                axis.plot(*zip(*at, strict=True), style, ms=3, color=colour[method], label=method)
            head(axis, f"{first}–{second}")
            axis.set_ylim(0, 1.02)
        legend(canvas, axes)
        whole_numbers(axes)
        axis_labels(canvas, "layer", "CKA")
        return canvas

    return drawn(_likeness_words(key, rows), [asdict(row) for row in rows], paint)


def _likeness_words(key: tuple[str, str, str], rows: Sequence[Likeness]) -> Words:
    last = max(row.layer for row in rows)
    ends = [
        f"{method} {fmean(row.cka or 0.0 for row in members if row.layer == last):.2f}"
        for method, members in grouped(rows, lambda row: row.method or BEFORE).items()
        if any(row.layer == last for row in members)
    ]
    return Words(
        name=slug("cka", *key),
        title=" ".join(part for part in ("CKA by layer:", *key) if part),
        caption=(
            "Linear CKA of sentences and their translations, mean over seeds, for each layer; 0 is the "
            "embeddings. Dashed: the encoder before fine-tuning. Higher: the two languages' states are more "
            "alike, up to rotation and scale."
        ),
        alt=f"Line plot by layer; at the last layer, mean over languages: {'; '.join(ends)}.",
    )


def _mean_by_layer(rows: Sequence[Likeness]) -> dict[int, float]:
    return {
        layer: fmean(row.cka or 0.0 for row in members)
        for layer, members in grouped(rows, lambda row: row.layer).items()
    }


def map_figures(rows: Sequence[MapPoint]) -> list[Figure]:
    """Draw, for each encoder and task, a map of the encoder and one of each method's first model."""
    found = []
    models = [row for row in rows if row.method]
    for key in dict.fromkeys((row.corpus, row.task, row.encoder) for row in models or rows):
        own = [
            row
            for row in rows
            if row.encoder == key[2] and (not row.method or (row.corpus, row.task) == key[:2])
        ]
        found.append(_map_figure(key, own))
    return found


def _map_figure(key: tuple[str, str, str], rows: Sequence[MapPoint]) -> Figure:
    maps = _one_each(rows)[:PANELS]
    shown = [row for _, members in maps for row in members]
    names = list(dict.fromkeys(row.language for row in shown))
    colour = colours(names)

    def paint() -> "Canvas":
        canvas, axes = panels(len(maps), height=2.1, labels=names)
        for axis, (name, members) in zip(axes, maps, strict=True):
            _draw_map(axis, members, names, colour)
            head(axis, name)
        legend(canvas, axes)
        axis_labels(canvas, "first principal component", "second")
        return canvas

    return drawn(_map_words(key, maps), [asdict(row) for row in shown], paint)


def _one_each(rows: Sequence[MapPoint]) -> list[tuple[str, list[MapPoint]]]:
    """Return a map for the encoder and for each method and target: that of the lowest seed."""
    found = []
    for (method, target, layer), group in grouped(
        rows, lambda row: (row.method, row.target, row.layer)
    ).items():
        seed = min(row.seed or 0 for row in group)
        name = f"{method}, {target}" if target else method or BEFORE
        several = len({row.layer for row in rows}) > 1
        found.append(
            (f"{name}, layer {layer}" if several else name, [row for row in group if (row.seed or 0) == seed])
        )
    return found


def _draw_map(axis: "Axes", rows: Sequence[MapPoint], names: Sequence[str], colour: dict[str, str]) -> None:
    """Scatter sentences, centroids above them; each map is scaled to its own farthest point."""
    far = max((max(abs(row.x), abs(row.y)) for row in rows), default=1.0) or 1.0
    for row_of, members in grouped(rows, lambda row: (row.what, row.language)).items():
        what, language = row_of
        marker = MARKERS[names.index(language) % len(MARKERS)]
        x, y = [row.x / far for row in members], [row.y / far for row in members]
        if what == "centroid":
            axis.scatter(
                x, y, s=60, color=colour[language], marker=marker, edgecolors=MARK, zorder=3, label=language
            )
        else:
            axis.scatter(x, y, s=7, color=colour[language], marker=marker, alpha=0.4, linewidth=0)
    axis.set_xlim(-1.1, 1.1)
    axis.set_ylim(-1.1, 1.1)
    axis.set_xticks([])
    axis.set_yticks([])


def _map_words(key: tuple[str, str, str], maps: Sequence[tuple[str, list[MapPoint]]]) -> Words:
    shares = []
    for name, members in maps:
        centroid = next((row for row in members if row.between is not None), None)
        if centroid is not None:
            shares.append(f"{name} {percent(centroid.between or 0.0)}")
    return Words(
        name=slug("map", *key),
        title=" ".join(part for part in ("Map of sentences:", *key) if part),
        caption=(
            "Mean-pooled states of parallel sentences on their first two principal components, one mark for "
            "a sentence, the large ones the languages' centroids; the first seed of each method. Components "
            "are found, and each panel is scaled, for itself: directions and sizes of two do not compare."
        ),
        alt=(
            f"Scatter plots ({count(len(maps), 'map')}) of sentences by language. Percent of the variance "
            f"between languages: {joined(shares) if shares else 'not recorded'}."
        ),
    )
