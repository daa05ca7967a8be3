"""Curves of training: the loss of pretraining and of adjusting, the dev score of fine-tuning by epoch."""

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from isogloss.core.records import Row, Value
from isogloss.oldreports.adjusted import Encoders
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
from isogloss.oldreports.gather import Run, run_rows
from isogloss.oldreports.paths import grouped
from isogloss.oldreports.rows import AdjustStep, Epoch, PretrainStep
from isogloss.oldreports.words import count, joined, percent, slug

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Canvas

PANELS = 20
"""Panels of one figure; more models go on in a next one."""

_SEED = re.compile(r"[\s,;·:(\[-]*\bseed\s*=?\s*\d+[)\]]?", re.IGNORECASE)

ALL = "all languages"


def without_seed(title: str) -> str:
    """Return a run's title without its seed, so that the seeds of one setting share a panel."""
    return _SEED.sub("", title).strip() or title


def pretrain_figure(runs: Sequence[Run]) -> list[Figure]:
    """Draw the loss of each pretraining by step, one line per language; seeds share a panel."""
    curves = [(run, rows) for run in runs if (rows := run_rows(run, PretrainStep)[0])]
    if not curves:
        return []
    colour = colours([row.language or ALL for _, rows in curves for row in rows])
    lasts = [f"{run.title} ends at {rows[-1].loss:.2f} after {rows[-1].step} steps" for run, rows in curves]
    words = Words(
        name="pretraining",
        title="Pretraining",
        caption="Loss of masked language modelling (mean cross-entropy in nats per masked subword) by step.",
        alt=f"Line plot: {joined(lasts)}.",
    )

    titles = grouped(curves, lambda curve: curve[0].title)

    def paint() -> "Canvas":
        canvas, axes = panels(len(titles), height=1.9, labels=list(colour))
        for axis, (title, seeds) in zip(axes, titles.items(), strict=True):
            for rows in (rows for _, rows in seeds):
                for language, line in grouped(rows, lambda row: row.language or ALL).items():
                    steps, losses = [row.step for row in line], [row.loss for row in line]
                    axis.plot(steps, losses, color=colour[language], label=language)
            head(axis, title)
        legend(canvas, axes)
        axis_labels(canvas, "step", "loss")
        return canvas

    return [drawn(words, [_with_run(run, row) for run, _ in curves for row in _raw(run)], paint)]


def adjust_figures(runs: Sequence[Run], encoders: Encoders) -> list[Figure]:
    """Draw the loss of each adjustment by step, a figure for each way of adjusting: losses differ in kind."""
    ways = grouped(runs, _way)
    return [figure for way, members in ways.items() for figure in _adjust_figure(way, members, encoders)]


def _adjust_figure(way: str, runs: Sequence[Run], encoders: Encoders) -> list[Figure]:
    curves = [(run, rows) for run in runs if (rows := run_rows(run, AdjustStep)[0])]
    if not curves:
        return []
    made = encoders.by_run(run.id for run, _ in curves)
    names = encoders.names(one.label for one in made.values())
    titles = {run.id: names[made[run.id].label] if run.id in made else run.title for run, _ in curves}
    lasts = [
        f"{titles[run.id]} ends at {rows[-1].loss:.4g} after {rows[-1].step} steps" for run, rows in curves
    ]
    colour = colours(list(titles.values()))
    words = Words(
        name=slug("adjusting", way),
        title=f"Adjusting, {way}",
        caption="Loss by step (logarithmic), one line per encoder; different sums are no better or worse.",
        alt=f"Line plot: {joined(lasts)}.",
    )

    def paint() -> "Canvas":
        canvas, (axis,) = panels(1, height=2.1, labels=list(colour))
        for run, rows in curves:
            steps, losses = [row.step for row in rows], [row.loss for row in rows]
            name = titles[run.id]
            axis.plot(steps, losses, marker="." * (len(rows) == 1), color=colour[name], label=name)
        axis.set_xscale("log")
        axis.xaxis.set_major_formatter("{x:,.0f}")
        axis.minorticks_off()
        legend(canvas, [axis])
        axis_labels(canvas, "step", "loss")
        return canvas

    return [drawn(words, [_with_run(run, row) for run, _ in curves for row in _raw(run)], paint)]


def _way(run: Run) -> str:
    """Name how an encoder was adjusted; "" where the record does not say it."""
    method = run.record.run.get("method") if run.record else None
    return str(method.get("kind", "")) if isinstance(method, Mapping) else ""


def fine_tune_figures(runs: Sequence[Run]) -> list[Figure]:
    """Draw the dev score of each fine-tuning by epoch, the seeds of one setting in one panel."""
    curves = [(run, rows) for run in runs if (rows := run_rows(run, Epoch)[0])]
    settings = list(grouped(curves, lambda curve: without_seed(curve[0].title)).items())
    parts = [settings[first : first + PANELS] for first in range(0, len(settings), PANELS)]
    return [_fine_tune_figure(part, number) for number, part in enumerate(parts, start=1)]


Setting = tuple[str, list[tuple[Run, list[Epoch]]]]


def _fine_tune_figure(settings: Sequence[Setting], number: int) -> Figure:
    runs = [run for _, members in settings for run, _ in members]
    colour = colours([row.language for _, members in settings for _, rows in members for row in rows])
    ends = [f"{title} {percent(_chosen_score(members))}" for title, members in settings]
    words = Words(
        name=f"fine-tuning-{number}",
        title="Fine-tuning",
        caption=(
            f"Score on the dev set of each training language by epoch; {count(len(runs), 'model')}, one line "
            f"per seed. Ring: the epoch that was kept."
        ),
        alt=f"Line plots. Mean dev score of the kept epochs: {joined(ends)}.",
    )

    def paint() -> "Canvas":
        canvas, axes = panels(len(settings), height=1.2, labels=list(colour))
        for axis, (title, members) in zip(axes, settings, strict=True):
            for _, rows in members:
                _draw(axis, rows, colour)
            head(axis, title)
        legend(canvas, axes)
        whole_numbers(axes)
        axis_labels(canvas, "epoch", "dev score, percent")
        return canvas

    return drawn(words, [_with_run(run, row) for run in runs for row in _raw(run)], paint)


def _draw(axis: "Axes", rows: Sequence[Epoch], colour: dict[str, str]) -> None:
    for (language, _), line in grouped(rows, lambda row: (row.language, row.metric)).items():
        scores = [100 * row.score for row in line]
        axis.plot([row.epoch for row in line], scores, color=colour[language], alpha=0.8, label=language)
    kept = [row for row in rows if row.chosen]
    where, height = [row.epoch for row in kept], [100 * row.score for row in kept]
    axis.plot(
        where, height, "o", markersize=4, markerfacecolor="none", markeredgecolor=MARK, markeredgewidth=0.8
    )


def _chosen_score(members: Sequence[tuple[Run, list[Epoch]]]) -> float:
    """Return the mean score of the kept epochs, or of the last ones where none is marked."""
    scores = [row.score for _, rows in members for row in rows if row.chosen]
    return sum(scores) / len(scores) if scores else members[0][1][-1].score


def _raw(run: Run) -> Sequence[Row]:
    return run.record.rows if run.record else ()


def _with_run(run: Run, row: Row) -> dict[str, Value]:
    return {"run": run.id, "title": run.title, **row}
