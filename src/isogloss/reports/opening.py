"""The opening of a page: the answer, what the experiment was, and the paths between models to move along."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd

from isogloss.core.languages import language_name
from isogloss.reports.checks import UNITS
from isogloss.reports.comparison import SYSTEM, main_scores, row_keys
from isogloss.reports.landscapes import ENDS, SETTING, path_points
from isogloss.reports.measurements import Measurements
from isogloss.reports.names import and_list, count, language, percent
from isogloss.reports.scores import ScoredSet, scored_sets, values_of

LABELLED = ("target-only", "bilingual", "few-shot")
"""Methods that are trained on target labels, which zero-shot transfer does without."""

MOST_PANELS = 4
"""Pairs of languages whose paths open a page; the section on paths has all."""

WIDTH, HEIGHT, LEFT, TOP, RIGHT, BOTTOM = 420, 250, 34, 14, 410, 216
"""The size of a panel in pixels, and the edges of its axes."""


CURVE = ["role", "language", "seed", "encoder.run"]
"""Columns of one curve of a pair of languages."""


@dataclass(frozen=True, kw_only=True)
class Curve:
    """The scores of one seed in one language along a path, and where they are drawn."""

    role: str
    name: str
    """Of the language."""
    seed: str
    scores: Sequence[float]
    """In percent, by α."""
    points: Sequence[tuple[float, float]]


@dataclass(frozen=True, kw_only=True)
class Label:
    """The name of a language at its lines, and the mean score of the seeds at the start of the path."""

    role: str
    name: str
    x: float
    y: float
    start: str


@dataclass(frozen=True, kw_only=True)
class PathPanel:
    """The paths of one pair of languages, a curve for each seed and language."""

    title: str
    alt: str
    curves: Sequence[Curve]
    labels: Sequence[Label]


@dataclass(frozen=True, kw_only=True)
class PathFigure:
    """Paths from one method's models to another's, with a panel per pair of languages and shared axes."""

    start: str
    end: str
    metric: str
    split: str
    alphas: Sequence[float]
    zero: int
    """The index of α = 0, where the figure stands at first."""
    panels: Sequence[PathPanel]
    x_ticks: Sequence[tuple[float, str]]
    y_ticks: Sequence[tuple[float, str]]
    strip: tuple[float, float]
    """Left edge and width of what lies between the two models."""


@dataclass(frozen=True, kw_only=True)
class Opening:
    """The answer as a headline, the experiment and the main results in words, and the paths."""

    answer: str
    experiment: str
    results: str
    figure: PathFigure | None


def opening_of(m: Measurements) -> Opening:
    """Return the opening of a page; its answer is the study's title where no transfer was measured."""
    best = main_scores(m.frame("scores")).index
    main = (test_set for test_set in scored_sets(m) if test_set.rows.index.isin(best).all())
    answer, experiment, results = next(filter(None, map(_transfer, main)), (m.title, "", _nothing_found(m)))
    return Opening(answer=answer, experiment=experiment, results=results, figure=path_figure(m))


def _nothing_found(m: Measurements) -> str:
    scores, free = m.frame("scores"), m.frame("label-free")
    scored = count(len(scores), "score")
    text = f"These runs have {scored}, none of a source-only model on its source and targets."
    if lacking := sorted({*free["language"]} - {*scores["language"]}) if len(free) and len(scores) else []:
        text += (
            f" Without a score: {and_list(map(language, lacking))}; the choice without labels estimates it."
        )
    return text


def _transfer(scored: ScoredSet) -> tuple[str, str, str] | None:
    """Return answer, experiment and results on a test set; None without a baseline on source and targets."""
    values = values_of(scored)
    by_system, sides = values.groupby(SYSTEM), {"high": scored.sources, "low": scored.targets}
    means = by_system.mean().reindex(columns=[*scored.sources, *scored.targets])
    systems = pd.DataFrame(scored.systems).set_index(SYSTEM, drop=False).assign(units=by_system.size())
    systems = systems.assign(
        **{side: means[[*languages]].mean(axis=1, skipna=False) for side, languages in sides.items()}
    )
    compared = systems.dropna(subset=["high", "low"])
    plain = compared["method"].eq("source-only") & compared[["encoder.adjusted", "inputs"]].eq("").all(axis=1)
    if not plain.any():
        return None
    base = compared[plain].iloc[0]
    of_base = values.loc[base.name] if isinstance(base.name, tuple) else values
    return (
        _answer(scored, base, of_base[[*scored.targets]]),
        _experiment(scored, base, systems),
        _found(scored, base, systems),
    )


def _answer(scored: ScoredSet, base: pd.Series, on_targets: pd.DataFrame) -> str:
    """Write the source score, the lowest score of a target, and its spread over seeds."""
    lowest = str(on_targets.mean().idxmin())
    text = (
        f"{and_list(map(language_name, scored.sources))} {percent(base['high'])} → "
        f"{language_name(lowest)} {percent(on_targets[lowest].mean())}"
    )
    spread = on_targets[lowest].std()
    return text if math.isnan(spread) else f"{text}; ±{percent(spread)} by {UNITS[scored.unit]} alone"


def _experiment(scored: ScoredSet, base: pd.Series, systems: pd.DataFrame) -> str:
    """Write what was trained on what, and tested where."""
    others = [name for name in systems["name"].unique() if name != base["name"]]
    listed = and_list([*others[:5], *([f"{len(others) - 5} others"] if len(others) > 5 else [])])
    next_to = f" Next to them: {listed}." if others else ""
    lowest = " The headline shows the lowest target." if len(scored.targets) > 1 else ""
    return (
        f"Models trained on labels in {and_list(map(language, scored.sources))} alone ({base['name']}, "
        f"{count(base['units'], UNITS[scored.unit])}, encoder {base['encoder.label']}) are tested in "
        f"{and_list(map(language, scored.targets))}, whose labels they never see.{next_to}{lowest}"
    )


def _found(scored: ScoredSet, base: pd.Series, systems: pd.DataFrame) -> str:
    """Write the transfer gap, and the largest gains with target labels and without."""
    described = {name: text for name, text in scored.about.items() if text}
    test_set = " ".join(
        described[name] for name in ("corpus", "treebank", "task", "split") if name in described
    )
    transfer = (
        f"Trained on {and_list(map(language, described['source'].split('+')))} alone, models score "
        f"{percent(base['high'])} percent on the source language and {percent(base['low'])} on the targets, "
        f"a gap of {percent(base['high'] - base['low'])} points ({described['metric']} on {test_set}, mean "
        f"over {count(base['units'], UNITS[scored.unit])})."
    )
    others = systems.drop(base.name).dropna(subset="low")
    carriers = others["method"].where(others["auxiliary"] == "", others["auxiliary.method"])
    unlabelled = others["average.of"].str.split("+").map({*LABELLED}.isdisjoint).astype(bool)
    labelled = carriers.isin(LABELLED) | ~unlabelled
    gains = others.assign(gain=others["low"] - base["low"]).groupby(labelled)
    return " ".join([transfer, *(_largest_gain(systems_of, labels) for labels, systems_of in gains)])


def _largest_gain(others: pd.DataFrame, labels: bool) -> str:
    """Return which of the systems with target labels, or of those without, gains most."""
    best, number = others.nlargest(1, "gain").iloc[0], count(len(others), "other system")
    which = "with" if labels else "without"
    if best["gain"] <= 0:
        return f"None of {number} {which} target labels scores higher there."
    name = f"{best['name']}, the best of {number}" if len(others) > 1 else best["name"]
    return f"{which.capitalize()} target labels ({name}) targets gain {percent(best['gain'])} points."


@dataclass(frozen=True)
class Scale:
    """The axes of all panels: the values of α, and the range of scores."""

    alphas: Sequence[float]
    low: float
    high: float

    def x(self, alpha: float) -> float:
        """Return the position of α in pixels."""
        span = (self.alphas[-1] - self.alphas[0]) or 1
        return round(LEFT + (alpha - self.alphas[0]) / span * (RIGHT - LEFT), 1)

    def y(self, score: float) -> float:
        """Return the position of a score in pixels."""
        return round(TOP + (self.high - score) / (self.high - self.low) * (BOTTOM - TOP), 1)

    @property
    def y_ticks(self) -> list[tuple[float, str]]:
        """Positions and texts of the scores at the axis."""
        step = 0.1 if self.high - self.low < 0.45 else 0.2
        ticks = [self.low + step * n for n in range(1 + int((self.high - self.low) / step + 1e-9))]
        return [(self.y(tick), f"{100 * tick:.0f}") for tick in ticks]

    def curve(self, seed: pd.DataFrame) -> Curve:
        """Return the scores of one seed in one language as a curve."""
        first = seed.iloc[0]
        scores = seed.groupby("alpha")["score"].mean().reindex([*self.alphas])
        scores = scores.interpolate(limit_direction="both")
        return Curve(
            role=first["role"],
            name=language_name(first["language"]),
            seed=str(first["seed"]),
            scores=[round(100 * score, 1) for score in scores],
            points=[(self.x(alpha), self.y(score)) for alpha, score in scores.items()],
        )


def path_figure(m: Measurements) -> PathFigure | None:
    """Return the paths of the first setting, from source-only models where there are any; None without."""
    points = path_points(m)
    merged = points[points["part"] == "all"] if len(points) else points
    if merged.empty:
        return None
    preferred = merged[merged["start.method"] == "source-only"]
    rows = preferred if len(preferred) else merged
    keys = row_keys(rows, [*SETTING, *ENDS])
    rows = rows[keys == keys.iloc[0]]
    pairs = [group for _, group in rows.groupby(["source", "target"], sort=False)][:MOST_PANELS]
    scores, alphas, first = pd.concat(pairs)["score"], sorted(rows["alpha"].unique()), rows.iloc[0]
    low = math.floor(10 * min(scores.min(), 0.9)) / 10
    scale = Scale(alphas, low, max(1.0, scores.max()))
    left, right = (scale.x(min(max(end, alphas[0]), alphas[-1])) for end in (0, 1))
    return PathFigure(
        start=first["start.name"],
        end=first["end.name"],
        metric=first["metric"],
        split=first["split"],
        alphas=alphas,
        zero=alphas.index(min(alphas, key=abs)),
        panels=[_panel(pair, scale) for pair in pairs],
        x_ticks=[(scale.x(alpha), f"{alpha:g}") for alpha in alphas if float(2 * alpha).is_integer()],
        y_ticks=scale.y_ticks,
        strip=(left, right - left),
    )


def _panel(pair: pd.DataFrame, scale: Scale) -> PathPanel:
    """Return the curves of a pair with a label for each language, the higher one above its lines."""
    curves = [scale.curve(seed) for _, seed in pair.groupby(CURVE, dropna=False)]
    means = pair.groupby(["role", "language", "alpha"])["score"].mean()
    at, zero = pair["alpha"].max(), min(pair["alpha"], key=abs)
    ends = means.xs(at, level="alpha").sort_values(ascending=False)
    labels: list[Label] = []
    for number, (role, code) in enumerate(ends.index):
        ys = [
            curve.points[-1][1] for curve in curves if (curve.role, curve.name) == (role, language_name(code))
        ]
        height = min(ys) - 5 if number == 0 else max(ys) + 14 * number
        start = f"{100 * means[role, code, zero]:.1f}"
        labels.append(Label(role=role, name=language_name(code), x=RIGHT, y=max(height, 10), start=start))
    texts = [
        f"{language_name(code)} ({role}) {100 * means[role, code, zero]:.1f} at α {zero:g}, "
        f"{100 * mean:.1f} at α {at:g}"
        for (role, code), mean in ends.items()
    ]
    first = pair.iloc[0]
    sides = [language_name(code) for code in (first["source"], first["target"]) if code]
    alt = f"Line plot, a line per seed and language: {'; '.join(texts)}."
    in_order = sorted(labels, key=lambda label: label.role)
    return PathPanel(title=" → ".join(sides), alt=alt, curves=curves, labels=in_order)
