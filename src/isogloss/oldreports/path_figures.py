"""Figures of the paths between models: Figs. 2 and 5 to 9 of the paper, and one panel per pair.

Paper: "Zero-shot Cross-lingual Transfer is Under-specified Optimization", Eqs. 1 and 2.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from isogloss.core.records import Row
from isogloss.metrics.spread import Spread
from isogloss.oldreports.drawing import (
    FAINT,
    ROLE_STYLE,
    TINT,
    Figure,
    Words,
    axis_labels,
    drawn,
    half_steps,
    head,
    legend,
    panels,
    what_differs,
)
from isogloss.oldreports.paths import Aggregate, Line, aggregate, grouped
from isogloss.oldreports.words import EQUATIONS, count, joined, slug

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Canvas

ALPHA = "α: 0 is the single-language model, 1 the bilingual model"
WEIGHTS = {"all": "encoder and head together", "encoder": "the encoder only", "head": "the head only"}

PANELS = 16
"""Panels of one figure; more pairs go on in a next one."""

Curve = tuple[str, Sequence[float], Sequence[float], Sequence[float], Sequence[float]]
"""Role, alphas, means, lower and upper rim of the band."""


def pair_figures(lines: Sequence[Line], *, normalised: bool) -> list[Figure]:
    """Draw one panel per pair and start, one figure per corpus, task, encoder and part."""
    wanted = [line for line in lines if not normalised or line.bilingual]
    found = []
    for key, group in grouped(wanted, _setting).items():
        paths = sorted(grouped(group, _panel).items(), key=lambda path: _by_pair(path[0]))
        for first in range(0, len(paths), PANELS):
            part = paths[first : first + PANELS]
            found.append(_pair_figure(key, part, first // PANELS, normalised=normalised))
    return found


def _setting(line: Line) -> tuple[str, ...]:
    about = line.curve
    return about.corpus, about.task, about.encoder, about.part, about.split, about.metric


def _panel(line: Line) -> tuple[str, ...]:
    return line.curve.start, line.curve.source, line.curve.target, line.curve.end


def _by_pair(panel: tuple[str, ...]) -> tuple[str, str, bool, str]:
    start, source, target, _ = panel
    return source, target, start != "source-only", start


def _pair_figure(
    key: tuple[str, ...],
    paths: Sequence[tuple[tuple[str, ...], list[Line]]],
    number: int,
    *,
    normalised: bool,
) -> Figure:
    group = [line for _, members in paths for line in members]

    def paint() -> "Canvas":
        canvas, axes = panels(len(paths))
        for axis, ((start, source, target, _), members) in zip(axes, paths, strict=True):
            _draw(axis, [_band(line, normalised=normalised) for line in members])
            head(axis, f"{source} → {target}, from {start}")
        legend(canvas, axes)
        half_steps((axis.xaxis for axis in axes), [alpha for line in group for alpha in line.alphas])
        axis_labels(canvas, ALPHA, f"{key[-1]} / bilingual" if normalised else f"{key[-1]}, percent")
        return canvas

    words = _pair_words(key, group, number, normalised=normalised)
    return drawn(words, [row for line in group for row in line.data()], paint)


def _pair_words(key: tuple[str, ...], group: Sequence[Line], number: int, *, normalised: bool) -> Words:
    corpus, task, encoder, part, split, metric = key
    kind = "normalised" if normalised else "raw"
    seeds = max(line.seeds for line in group)
    what = "divided by the bilingual model's own score" if normalised else "in percent"
    starts = joined(
        EQUATIONS.get(start, start) for start in dict.fromkeys(line.curve.start for line in group)
    )
    return Words(
        name=slug("path", kind, corpus, task, encoder, part, split, metric, str(number + 1)),
        title=f"{corpus} {task}, {encoder}: {metric} on {split}, {kind}",
        caption=(
            f"Each panel walks straight from a single-language model to the bilingual model of the same "
            f"seed, {starts}, {WEIGHTS.get(part, part)}. Lines: mean {metric} on the {split} sets, {what}; "
            f"bands: ± one standard deviation over {count(seeds, 'seed')}. The tinted strip lies between the "
            f"two models; outside it the path is prolonged."
        ),
        alt=_alt(group),
    )


def _band(line: Line, *, normalised: bool) -> Curve:
    scale = (line.bilingual or 1.0) if normalised else 0.01
    middle = [point.mean / scale for point in line.spreads]
    half = [point.std / scale if point.n > 1 else 0.0 for point in line.spreads]
    low = [m - h for m, h in zip(middle, half, strict=True)]
    high = [m + h for m, h in zip(middle, half, strict=True)]
    return line.curve.role, line.alphas, middle, low, high


def _draw(axis: "Axes", curves: Sequence[Curve]) -> None:
    axis.axvspan(0, 1, color=TINT, linewidth=0, zorder=0)
    for role, alphas, middle, low, high in curves:
        colour, dashes = ROLE_STYLE.get(role, (FAINT, "dotted"))
        axis.fill_between(alphas, low, high, color=colour, alpha=0.2, linewidth=0)
        axis.plot(alphas, middle, color=colour, linestyle=dashes, label=f"{role} language")
    axis.margins(x=0.01)


def _alt(group: Sequence[Line]) -> str:
    """Say in words what a reader would see: where each role's score starts and ends."""
    parts = []
    for (role, start), members in grouped(group, lambda line: (line.curve.role, line.curve.start)).items():
        ends = [
            (at[0.0].mean, at[1.0].mean) for at in (dict(line) for line in members) if 0.0 in at and 1.0 in at
        ]
        if ends:
            first, last = (100 * sum(side) / len(ends) for side in zip(*ends, strict=True))
            parts.append(f"{role} score from {start} {first:.1f} at α 0, {last:.1f} at α 1")
    return f"Line plot, means over the panels: {'; '.join(parts) or 'no path covers α 0 to 1'}."


def aggregate_figures(lines: Sequence[Line]) -> list[Figure]:
    """Draw the mean over pairs and tasks (Fig. 2), by task (Figs. 6 to 9), and the variance (Fig. 5)."""
    whole = [line for line in lines if line.curve.part == "all" and line.bilingual]
    tasks = len({line.curve.task for line in whole})
    found = []
    for measure, by_task in (
        ("normalised_mean", False),
        ("normalised_mean", True),
        ("normalised_variance", False),
    ):
        curves = aggregate(whole, measure, by_task=by_task)
        several = max((curve.curves for curve in curves), default=0) > 1
        if curves and (several or measure == "normalised_variance") and (tasks > 1 or not by_task):
            found.append(_aggregate_figure(curves, by_task=by_task))
    return found


_UNITS = {
    "normalised_mean": (1.0, "score / bilingual"),
    "normalised_variance": (1e-4, "variance / bilingual, 10⁻⁴"),
}
"""The unit and name of the upright axis; variances of scores are small."""

_AGGREGATE = {
    ("normalised_mean", False): ("path-aggregate", "All pairs and tasks together"),
    ("normalised_mean", True): ("path-by-task", "By task"),
    ("normalised_variance", False): ("path-variance", "Variance over seeds along the path"),
}


def _aggregate_figure(curves: Sequence[Aggregate], *, by_task: bool) -> Figure:
    unit, label = _UNITS[curves[0].measure]
    groups = grouped(curves, lambda c: (f"from {c.start}", c.source, c.task, c.encoder))
    names = what_differs(list(groups))

    def paint() -> "Canvas":
        canvas, axes = panels(len(groups))
        for axis, name, members in zip(axes, names, groups.values(), strict=True):
            _draw(axis, [(c.role, c.alphas, *_interval(c.spreads, unit)) for c in members])
            head(axis, name)
        legend(canvas, axes)
        half_steps((axis.xaxis for axis in axes), [alpha for curve in curves for alpha in curve.alphas])
        axis_labels(canvas, ALPHA, label)
        return canvas

    data: list[Row] = [row for curve in curves for row in curve.data()]
    return drawn(_aggregate_words(curves, by_task=by_task), data, paint)


def _aggregate_words(curves: Sequence[Aggregate], *, by_task: bool) -> Words:
    measure = curves[0].measure
    name, title = _AGGREGATE[measure, by_task]
    what = "mean over seeds" if measure == "normalised_mean" else "unbiased variance over seeds"
    most = max(curve.curves for curve in curves)
    over = count(most, "pair") if by_task else f"{count(most, 'curve')}, one for each pair and task"
    return Words(
        name=name,
        title=title,
        caption=(
            f"The {what} at each point of the paths of Eq. 1 and Eq. 2, divided by the score of the matching "
            f"bilingual model, then averaged over {over}; bands: 95 % interval of that mean (Student's t)."
        ),
        alt=_aggregate_alt(curves, what),
    )


def _interval(spreads: Sequence[Spread], unit: float) -> tuple[list[float], list[float], list[float]]:
    """Return mean, low and high; one curve alone has no interval, so its band has no width."""
    middle = [point.mean / unit for point in spreads]
    low = [(point.low if point.n > 1 else point.mean) / unit for point in spreads]
    high = [(point.high if point.n > 1 else point.mean) / unit for point in spreads]
    return middle, low, high


def _aggregate_alt(curves: Sequence[Aggregate], what: str) -> str:
    parts = []
    for curve in curves:
        at = dict(zip(curve.alphas, curve.spreads, strict=True))
        if 0.0 in at and 1.0 in at:
            parts.append(
                f"{curve.role} from {curve.start} {at[0.0].mean:.3g} at α 0, {at[1.0].mean:.3g} at α 1"
            )
    return f"Line plot of the normalised {what}: {'; '.join(parts)}."
