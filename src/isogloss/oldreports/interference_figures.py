"""What encoders win and lose against the joint one: within languages to the right, zero-shot upwards."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import cycle
from statistics import fmean
from typing import TYPE_CHECKING

from isogloss.core.records import Row
from isogloss.metrics.spread import Spread, spread
from isogloss.oldreports.drawing import (
    FAINT,
    MARKERS,
    Figure,
    Words,
    axis_labels,
    colours,
    drawn,
    head,
    legend,
    panels,
)
from isogloss.oldreports.interference import Column, Line, Study
from isogloss.oldreports.paths import grouped
from isogloss.oldreports.words import joined

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Canvas


@dataclass(frozen=True)
class Point:
    """One line of the table in one task: mean differences from the joint encoder over seeds, in points."""

    task: str
    name: str
    within: Spread | None
    zero_shot: Spread | None


def interference_figure(study: Study | None) -> list[Figure]:
    """Draw a panel for each task; nothing without zero-shot scores of two encoders."""
    points = points_of(study) if study else []
    if study is None or not any(one.within and one.zero_shot for one in points):
        return []
    by_task = grouped(points, lambda one: one.task)
    names = list(dict.fromkeys(one.name for one in points))
    colour, marker = colours(names), dict(zip(names, cycle(MARKERS), strict=False))
    joint = study.joint.label

    def paint() -> "Canvas":
        canvas, axes = panels(len(by_task), height=2.4, labels=names)
        for axis, (task, own) in zip(axes, by_task.items(), strict=True):
            axis.axhline(0, color=FAINT, linewidth=0.8)
            axis.axvline(0, color=FAINT, linewidth=0.8)
            for one in own:
                _draw(axis, one, colour[one.name], marker[one.name])
            head(axis, task)
        legend(canvas, axes)
        axis_labels(canvas, f"within languages, points above {joint}", "zero-shot, points")
        return canvas

    words = Words(
        name="interference",
        title=f"Within languages and zero-shot, against {joint}",
        caption=(
            f"Mean difference from {joint} with the same seed, in points; bars: standard deviation over "
            f"seeds. To the right: better within languages; upwards: better zero-shot. Dashed: encoders that "
            f"do not transfer, within languages alone."
        ),
        alt=f"Scatter plots. {joined(map(_in_words, points))}.",
    )
    return [drawn(words, [_row(one) for one in points], paint)]


def points_of(study: Study) -> list[Point]:
    """Return every line but the joint encoder's in every task."""
    tasks = grouped(study.columns, lambda column: f"{column.corpus} {column.task}")
    found = [
        Point(
            task,
            line.name,
            _difference(study, line, [one for one in columns if one.within]),
            _difference(study, line, [one for one in columns if not one.within]),
        )
        for task, columns in tasks.items()
        for line in study.lines
        if study.joint not in line.encoders
    ]
    return [one for one in found if one.within or one.zero_shot]


def _difference(study: Study, line: Line, columns: Sequence[Column]) -> Spread | None:
    """Return the differences over seeds, each the mean over the columns that both have."""
    by_seed: dict[int, list[float]] = {}
    for column in columns:
        encoder = line.of(column.language)
        ours = study.scores.get((encoder.label, column), {}) if encoder else {}
        theirs = study.scores.get((study.joint.label, column), {})
        for seed in ours.keys() & theirs.keys():
            by_seed.setdefault(seed, []).append(100 * (ours[seed] - theirs[seed]))
    most = max(map(len, by_seed.values()), default=0)
    values = [fmean(own) for own in by_seed.values() if len(own) == most]
    return spread(values) if values else None


def _draw(axis: "Axes", one: Point, colour: str, marker: str) -> None:
    if one.within and one.zero_shot:
        bars = [None if over.n < 2 else over.std for over in (one.within, one.zero_shot)]
        axis.errorbar(
            *([one.within.mean], [one.zero_shot.mean]),
            xerr=bars[0],
            yerr=bars[1],
            color=colour,
            marker=marker,
            linestyle="none",
            markersize=4.5,
            elinewidth=0.7,
            label=one.name,
        )
    elif one.within:
        axis.axvline(one.within.mean, color=colour, linestyle=(0, (4, 1.5)), linewidth=1, label=one.name)


def _in_words(one: Point) -> str:
    parts = [
        f"{over.mean:+.1f} points {name}".replace("-", "−")
        for over, name in ((one.within, "within"), (one.zero_shot, "zero-shot"))
        if over
    ]
    return f"{one.task}, {one.name}: {' and '.join(parts)}"


def _row(one: Point) -> Row:
    found: dict[str, str | float | None] = {"task": one.task, "encoder": one.name}
    for name, over in (("within", one.within), ("zero_shot", one.zero_shot)):
        found |= {
            name: over.mean if over else None,
            f"{name}_std": over.std if over else None,
            "seeds": over.n if over else None,
        }
    return dict(found)
