"""The opening of a page: the answer, what the experiment was, and the paths between models to move along."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pandas as pd

from isogloss.core.languages import language_name
from isogloss.reports.checks import UNITS
from isogloss.reports.comparison import SYSTEM, main_scores, row_keys
from isogloss.reports.landscapes import ENDS, SETTING, path_points
from isogloss.reports.measurements import Measurements
from isogloss.reports.names import and_list, count, language, percent
from isogloss.reports.path_sentences import ShownSentence, shown_sentences
from isogloss.reports.run_facts import ZERO_SHOT
from isogloss.reports.scores import ScoredSet, key_of, scored_sets, values_of

MOST_OTHER_BASELINES = 2
"""Baselines other than the first whose sentences open a page; the tables have all comparisons."""

MOST_PANELS = 4
"""Pairs of languages whose paths open a page; the section on paths has all."""


@dataclass(frozen=True)
class Curve:
    """The scores of one seed along a path, in percent, at the values of α that were measured."""

    alphas: Sequence[float]
    scores: Sequence[float]


@dataclass(frozen=True, kw_only=True)
class Side:
    """The scores in one language along a path: a curve for each seed, and their mean by α."""

    role: str
    name: str
    curves: Sequence[Curve]
    means: Mapping[float, float]
    """Scores of 0 to 1."""

    def mean_at(self, alpha: float) -> str:
        """Return the mean over seeds in percent; a dash where none was measured."""
        return percent(self.means.get(alpha, math.nan))


@dataclass(frozen=True, kw_only=True)
class PathPanel:
    """The paths of one pair of languages; the side that ends higher is the first."""

    title: str
    alt: str
    sides: Sequence[Side]


@dataclass(frozen=True, kw_only=True)
class PathFigure:
    """Paths from one method's models to another's, with a panel per pair of languages and shared axes."""

    start: str
    end: str
    metric: str
    split: str
    alphas: Sequence[float]
    """Every value at which a panel was measured; another panel may lack it."""
    zero: float
    """The α nearest to 0, the initial position of the figure."""
    low: int
    """The least score of the axis, in percent; a multiple of ten."""
    panels: Sequence[PathPanel]
    sentences: Sequence[ShownSentence]
    """Some whose predictions change, where their path stored them."""


@dataclass(frozen=True, kw_only=True)
class Opening:
    """The answer as a headline, the experiment and the main results in words, and the paths."""

    answer: str
    experiment: str
    results: str
    figure: PathFigure | None


def opening_of(measurements: Measurements) -> Opening:
    """Return the opening of a page; its answer is the study's title where no transfer was measured."""
    best = main_scores(measurements.frame("scores")).index
    main = (test_set for test_set in scored_sets(measurements) if test_set.rows.index.isin(best).all())
    answer, experiment, results = next(
        filter(None, map(_transfer, main)), (measurements.title, "", _nothing_found(measurements))
    )
    return Opening(answer=answer, experiment=experiment, results=results, figure=path_figure(measurements))


def _nothing_found(measurements: Measurements) -> str:
    scores = measurements.frame("scores")
    free = measurements.frame("label-free")
    score_count = count(len(scores), "score")
    text = f"These runs have {score_count}, none of a source-only model on its source and targets."
    if lacking := sorted({*free["language"]} - {*scores["language"]}) if len(free) and len(scores) else []:
        text += (
            f" Without a score: {and_list(map(language, lacking))}; the choice without labels ranks their "
            f"models."
        )
    return text


def _transfer(test_set: ScoredSet) -> tuple[str, str, str] | None:
    """Return answer, experiment and results on a test set; None without a baseline on source and targets."""
    values = values_of(test_set)
    by_system = values.groupby(SYSTEM)
    sides = {"high": test_set.sources, "low": test_set.targets}
    means = by_system.mean().reindex(columns=[*test_set.sources, *test_set.targets])
    systems = pd.DataFrame(test_set.systems).set_index(SYSTEM, drop=False).assign(units=by_system.size())
    systems = systems.assign(
        **{side: means[[*languages]].mean(axis=1, skipna=False) for side, languages in sides.items()}
    )
    tested_systems = systems.dropna(subset=["high", "low"])
    plain = tested_systems["reference"].eq(ZERO_SHOT) & tested_systems[["encoder.adjusted", "inputs"]].eq(
        ""
    ).all(axis=1)
    if not plain.any():
        return None
    base = _most_compared_with(test_set, tested_systems[plain])
    of_base = values.loc[base.name] if isinstance(base.name, tuple) else values
    return (
        _answer(test_set, base, of_base[[*test_set.targets]]),
        _experiment(test_set, base, systems),
        _found(test_set, base, systems),
    )


def _most_compared_with(test_set: ScoredSet, baselines: pd.DataFrame) -> pd.Series:
    """Return the most frequent baseline of the systems; among several, the first in the order of tables."""
    compared_with = [key_of(baseline) for baseline in test_set.references.values()]
    counts = [compared_with.count(key_of(row)) for row in baselines.to_dict("records")]
    return baselines.iloc[counts.index(max(counts))]


def _answer(test_set: ScoredSet, base: pd.Series, on_targets: pd.DataFrame) -> str:
    """Write the source score, the lowest score of a target, and its spread over seeds."""
    lowest = str(on_targets.mean().idxmin())
    text = (
        f"{and_list(map(language_name, test_set.sources))} {percent(base['high'])} → "
        f"{language_name(lowest)} {percent(on_targets[lowest].mean())}"
    )
    spread = on_targets[lowest].std()
    return text if math.isnan(spread) else f"{text}; ±{percent(spread)} by {UNITS[test_set.unit]} alone"


def _experiment(test_set: ScoredSet, base: pd.Series, systems: pd.DataFrame) -> str:
    """Write what was trained on what, and tested where."""
    others = [name for name in systems["name"].unique() if name != base["name"]]
    name_list = and_list([*others[:5], *([f"{len(others) - 5} others"] if len(others) > 5 else [])])
    next_to = f" Next to them: {name_list}." if others else ""
    chosen_by = {*test_set.targets} & {*base["read.dev"].split("+")}
    use = "choose their epoch and train nothing" if chosen_by else "they never see"
    lowest = " The headline shows the lowest target." if len(test_set.targets) > 1 else ""
    return (
        f"Models trained on labels in {and_list(map(language, test_set.sources))} alone ({base['name']}, "
        f"{count(base['units'], UNITS[test_set.unit])}, encoder {base['encoder.label']}) are tested in "
        f"{and_list(map(language, test_set.targets))}, whose labels {use}.{next_to}{lowest}"
    )


def _found(scored_set: ScoredSet, base: pd.Series, systems: pd.DataFrame) -> str:
    """Write the transfer gap, and the largest gains with target labels and without."""
    facts = {name: text for name, text in scored_set.about.items() if text}
    test_set = " ".join(facts[name] for name in ("corpus", "treebank", "task", "split") if name in facts)
    plain = systems[systems["reference"].eq(ZERO_SHOT) & systems["inputs"].eq("")]
    plain = plain[plain["encoder"] == base["encoder"]]
    which = f" ({base['name']})" if len(plain) > 1 else ""
    transfer = (
        f"Trained on {and_list(map(language, facts['source'].split('+')))} alone{which}, models score "
        f"{percent(base['high'])} percent on the source language and {percent(base['low'])} on the targets, "
        f"a gap of {percent(base['high'] - base['low'])} points ({facts['metric']} on {test_set}, mean "
        f"over {count(base['units'], UNITS[scored_set.unit])})."
    )
    return " ".join([transfer, *_gains(scored_set, base, systems)])


def _gains(test_set: ScoredSet, base: pd.Series, systems: pd.DataFrame) -> list[str]:
    """Write the largest gains over the base, and over each other baseline of the tables."""
    keys = [key_of(row) for row in systems.to_dict("records")]
    baselines = pd.Series(
        [key_of(test_set.references[key]) if key in test_set.references else None for key in keys],
        index=systems.index,
        dtype=object,
    )
    rows = systems.assign(baseline=baselines, labelled=_read_target_labels(test_set, systems))
    rows = rows[rows["baseline"].notna()]
    lows = dict(zip(keys, systems["low"], strict=True))
    rows = rows.assign(gain=rows["low"] - rows["baseline"].map(lows).astype(float)).dropna(subset="gain")
    base_key = key_of(base.to_dict())
    is_base = pd.Series([key == base_key for key in rows["baseline"]], index=rows.index, dtype=bool)
    texts = [_largest_gain(group, bool(labels)) for labels, group in rows[is_base].groupby("labelled")]
    names = dict(zip(keys, systems["name"], strict=True))
    by_baseline = [*rows[~is_base].groupby("baseline", sort=False)][:MOST_OTHER_BASELINES]
    return [*texts, *(_gain_over(names[baseline], group) for baseline, group in by_baseline)]


def _read_target_labels(test_set: ScoredSet, systems: pd.DataFrame) -> "pd.Series[bool]":
    """Return a mask of systems that read labels of a target, in training or to choose an epoch."""
    rows = test_set.rows.drop_duplicates(["model", *SYSTEM]).to_dict("records")
    targets = {*test_set.targets}
    labelled_keys = {
        key_of(row) for row in rows if targets & {*row["read.labels"].split("+"), *row["read.dev"].split("+")}
    }
    keys = [key_of(row) for row in systems.to_dict("records")]
    return pd.Series([key in labelled_keys for key in keys], index=systems.index)


def _largest_gain(others: pd.DataFrame, labels: bool) -> str:
    """Describe the largest gain over the base among systems with or without target labels."""
    best = others.nlargest(1, "gain").iloc[0]
    number = count(len(others), "other system")
    which = "with" if labels else "without"
    if best["gain"] <= 0:
        return f"None of {number} {which} target labels scores higher there."
    name = f"{best['name']}, the best of {number}" if len(others) > 1 else best["name"]
    return f"{which.capitalize()} target labels ({name}) targets gain {percent(best['gain'])} points."


def _gain_over(baseline: str, others: pd.DataFrame) -> str:
    """Describe the largest gain over a baseline among the systems compared with it."""
    best = others.nlargest(1, "gain").iloc[0]
    number = count(len(others), "system")
    if best["gain"] <= 0:
        return f"None of {number} compared with {baseline} scores higher there."
    name = f"{best['name']}, the best of {number}," if len(others) > 1 else best["name"]
    return f"Over {baseline}, {name} gains {percent(best['gain'])} points there."


def path_figure(measurements: Measurements) -> PathFigure | None:
    """Return the paths of the first setting, preferably from source-only models; None without paths."""
    points = path_points(measurements)
    whole_points = points[points["part"] == "all"] if len(points) else points
    if whole_points.empty:
        return None
    zero_shot_points = whole_points[whole_points["start.reference"] == ZERO_SHOT]
    rows = zero_shot_points if len(zero_shot_points) else whole_points
    keys = row_keys(rows, [*SETTING, *ENDS])
    rows = rows[keys == keys.iloc[0]]
    pairs = [group for _, group in rows.groupby(["source", "target"], sort=False)][:MOST_PANELS]
    alphas = sorted(rows["alpha"].unique())
    first = rows.iloc[0]
    return PathFigure(
        **{name: first[f"{name}.name"] for name in ("start", "end")},
        **{name: first[name] for name in ("metric", "split")},
        alphas=alphas,
        zero=min(alphas, key=abs),
        low=10 * math.floor(10 * min(0.9, *(pair["score"].min() for pair in pairs))),
        panels=[_panel(pair) for pair in pairs],
        sentences=shown_sentences(measurements, pairs, alphas),
    )


def _panel(pair: pd.DataFrame) -> PathPanel:
    """Return the curves of a pair of languages."""
    curves = pair.assign(curve=row_keys(pair, ["seed", "encoder.run"]))
    scores = curves.groupby(["role", "language", "curve", "alpha"])["score"].mean()
    sides = [_side(str(role), str(code), of_side) for (role, code), of_side in scores.groupby(level=[0, 1])]
    sides = sorted(sides, key=lambda side: [*side.means.values()][-1], reverse=True)
    names = [language_name(code) for code in pair.iloc[0][["source", "target"]] if code]
    texts = [f"{side.name} ({side.role}) {_ends(side)}" for side in sides]
    alt = f"Line plot, a line per seed and language: {'; '.join(texts)}."
    return PathPanel(title=" → ".join(names), alt=alt, sides=sides)


def _side(role: str, code: str, scores: "pd.Series[float]") -> Side:
    """Return the curves in one language from its scores by curve and α."""
    wide = scores.droplevel([0, 1]).unstack("alpha")
    curves = [
        Curve([*curve.index], [*(100 * curve)]) for curve in (row.dropna() for _, row in wide.iterrows())
    ]
    return Side(role=role, name=language_name(code), curves=curves, means=wide.mean().to_dict())


def _ends(side: Side) -> str:
    """Write the means at both models, or at the ends of a path that reaches neither."""
    at_models = [alpha for alpha in (0.0, 1.0) if alpha in side.means]
    alphas = at_models or [min(side.means), max(side.means)]
    return ", ".join(f"{side.mean_at(alpha)} at α {alpha:g}" for alpha in alphas)
