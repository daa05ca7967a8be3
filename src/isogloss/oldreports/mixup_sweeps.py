"""Trained X-Mixup models that mix more, less or elsewhere at inference: curves over λ₀, and their ends."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from statistics import fmean
from typing import TYPE_CHECKING

from isogloss.metrics.spread import spread
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
    what_differs,
)
from isogloss.oldreports.paths import grouped
from isogloss.oldreports.rows import SweepPoint
from isogloss.oldreports.tables import Table, cells
from isogloss.oldreports.words import count, language, percent, plus_minus, slug

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Canvas

PANELS = 16
"""Panels of one figure; what is more is in the CSV."""

Key = tuple[str, str, str, str, str]
"""Corpus, task, encoder, split, metric."""


def sweep_figures(rows: Sequence[SweepPoint]) -> list[Figure]:
    """Draw the score by λ₀: a panel for each method and language, a line for each layer, per task."""
    return [_figure(key, group) for key, group in grouped(rows, _key).items() if _is_curve(group)]


def _key(row: SweepPoint) -> Key:
    return row.corpus, row.task, row.encoder, row.split, row.metric


def _is_curve(rows: Sequence[SweepPoint]) -> bool:
    return len({row.ratio for row in rows}) > 1


def _figure(key: Key, rows: Sequence[SweepPoint]) -> Figure:
    groups = list(grouped(rows, lambda row: (row.method, row.language)).items())[:PANELS]
    layers = sorted({row.layer for row in rows})
    colour = colours([_layer(layer) for layer in layers])
    names = what_differs([(method, language(code)) for (method, code), _ in groups])

    def paint() -> "Canvas":
        canvas, axes = panels(len(groups), labels=list(colour))
        for axis, name, (_, members) in zip(axes, names, groups, strict=True):
            _draw(axis, members, colour)
            head(axis, name)
        legend(canvas, axes)
        axis_labels(canvas, "λ₀", f"{key[-1]}, %")
        return canvas

    return drawn(_words(key, groups), [asdict(row) for row in rows], paint)


def _layer(layer: int) -> str:
    return f"layer {layer}"


def _draw(axis: "Axes", rows: Sequence[SweepPoint], colour: Mapping[str, str]) -> None:
    for layer, members in sorted(grouped(rows, lambda row: row.layer).items()):
        at = {ratio: 100 * score for ratio, score in _means(members).items()}
        name = _layer(layer)
        axis.plot(list(at), list(at.values()), "-o", ms=3, color=colour[name], label=name)
        for ratio in {row.ratio for row in members if row.trained}:
            axis.plot([ratio], [at[ratio]], "D", ms=6, color=colour[name], markeredgecolor=MARK, zorder=3)


def _means(rows: Sequence[SweepPoint]) -> dict[float, float]:
    """Return the mean score over seeds by ratio, in rising order."""
    groups = grouped(sorted(rows, key=lambda row: row.ratio), lambda row: row.ratio)
    return {ratio: fmean(row.score for row in members) for ratio, members in groups.items()}


def _words(key: Key, groups: Sequence[tuple[tuple[str, str], Sequence[SweepPoint]]]) -> Words:
    ends = [
        f"{method} {code}, {_layer(layer)}: {percent(min(means.values()))} to {percent(max(means.values()))}"
        for (method, code), members in groups
        for layer, own in sorted(grouped(members, lambda row: row.layer).items())
        if (means := _means(own))
    ]
    return Words(
        name=slug("mixup-sweep", *key),
        title=" ".join(("Mixing at inference:", *key[:4])),
        caption=(
            "Score of trained models whose largest mixing ratio λ₀, or layer, is changed at inference, mean "
            "over seeds; nothing is trained again. Diamonds: as trained. At 0 nothing is mixed."
        ),
        alt=f"Line plots ({count(len(groups), 'panel')}) of the score over λ₀. Ranges: {'; '.join(ends)}.",
    )


def sweep_tables(rows: Sequence[SweepPoint]) -> list[Table]:
    """Return, for each model, language and layer, the score unmixed, as trained, and at the best λ₀."""
    groups = grouped(rows, lambda row: (*_key(row), row.method, row.source, row.language, row.layer))
    shown = tuple(
        cells(
            *(corpus, task, encoder, method, source, language(code), split, str(layer)),
            *_ends(members),
            str(len({row.seed for row in members})),
        )
        for (corpus, task, encoder, split, _, method, source, code, layer), members in groups.items()
    )
    table = Table(
        name="mixup-sweep",
        title="Mixing more, less, or elsewhere at inference",
        caption=(
            "Score in percent, mean ± standard deviation over seeds: with nothing mixed (λ₀ 0), as trained, "
            "and at the λ₀ whose mean is highest. That one is chosen on the very examples it is scored on, "
            "so it flatters. A dash: not tried."
        ),
        header=cells(
            *("corpus", "task", "encoder", "method", "source", "language", "split", "layer"),
            *("unmixed", "as trained", "best", "at λ₀", "seeds"),
        ),
        align="lllllllrrrrrr",
        rows=shown,
        data=[asdict(row) for row in rows],
        folded=len(shown) > 12,
    )
    return [table] if shown else []


def _ends(rows: Sequence[SweepPoint]) -> tuple[str, str, str, str]:
    means = _means(rows)
    best = max(means, key=means.__getitem__)  # The smallest of several.
    return (
        _over([row.score for row in rows if row.ratio == 0]),
        _over([row.score for row in rows if row.trained]),
        _over([row.score for row in rows if row.ratio == best]),
        f"{best:g}",
    )


def _over(scores: Sequence[float]) -> str:
    if not scores:
        return "–"
    over = spread(scores)
    return plus_minus(over.mean, over.std)
