"""The opening of a page: the answer, what the experiment was, and the paths between models to move along."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import cast

import pandas as pd

from isogloss.core.languages import is_built_in, language_name
from isogloss.reports.checks import UNITS
from isogloss.reports.comparison import SYSTEM, main_scores, row_keys
from isogloss.reports.frames import list_rows
from isogloss.reports.landscapes import ENDS, SETTING, path_points
from isogloss.reports.measurements import Measurements
from isogloss.reports.names import and_list, count, language, percent
from isogloss.reports.path_sentences import (
    ComparedSentence,
    ShownSentence,
    compare_seeds,
    sentences_of_seeds,
    shown_sentences,
)
from isogloss.reports.run_facts import ZERO_SHOT
from isogloss.reports.scores import ScoredSet, key_of, scored_sets, values_of

MOST_OTHER_BASELINES = 2
"""Baselines other than the first whose sentences open a page; the tables have all comparisons."""

MOST_PANELS = 4
"""Pairs of languages whose paths open a page; the section on paths has all."""

TASK_NAMES = {
    **{
        "upos": "POS tagging",
        "ner": "NER",
        "nli": "NLI",
        "qa": "Question answering",
        "lemmas": "Lemmatization",
    },
    **{"parsing": "Dependency parsing", "paraphrase": "Paraphrase identification"},
    **{"text-classification": "Text classification", "span-tagging": "Span tagging"},
    **{"word-tagging": "Word tagging", "multiple-choice": "Multiple choice", "regression": "Regression"},
    **{"pair-classification": "Classification of pairs", "pair-regression": "Semantic similarity"},
    "multi-label-classification": "Multi-label classification",
}
"""Names of tasks in headlines. Tasks of other packages have their own."""

METRIC_NAMES = {
    "f1": "F1",
    "las": "LAS",
    "micro_f1": "micro-F1",
    "span_f1": "span F1",
    "spearman": "Spearman's ρ",
}
"""Names of metrics in headlines, where they differ from those in rows."""

CORPUS_NAMES = {"ud": "Universal Dependencies", "xnli": "XNLI", "panx": "WikiANN", "sib200": "SIB-200"}
"""Names of corpora in headlines, where they differ from those in recipes."""

ARTIFICIAL = "of a family of nine that comes with isogloss, generated from a seed"
"""The built-in languages, in a clause."""


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

    def range_at(self, alpha: float) -> str:
        """Return the least and the greatest score of several curves in percent; empty for one."""
        scores = [curve.scores[curve.alphas.index(alpha)] for curve in self.curves if alpha in curve.alphas]
        ends = list(dict.fromkeys(percent(end / 100) for end in (min(scores), max(scores)))) if scores else []
        return "–".join(ends) if len(ends) > 1 else ""

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
    high: int
    """The greatest score of the axis; a multiple of ten."""
    pairs: int
    """Pairs of languages measured. Those with the lowest target scores have panels."""
    panels: Sequence[PathPanel]
    sentences: Sequence[ShownSentence]
    """Some whose predictions change, where their path stored them."""
    of_seeds: Sequence[ShownSentence]
    """One of each further seed."""
    compared: Sequence[ComparedSentence]
    """One of each panel that several seeds stored."""


@dataclass(frozen=True)
class HeadlinePart:
    """A part of the headline, and the role of the languages that it is about: source, target or none."""

    text: str
    role: str = ""


@dataclass(frozen=True, kw_only=True)
class Opening:
    """The answer as a headline, the experiment and the main results in words, and the paths."""

    headline: Sequence[HeadlinePart]
    experiment: str
    results: str
    figure: PathFigure | None

    @property
    def answer(self) -> str:
        """The headline as text."""
        return "".join(phrase.text for phrase in self.headline)


def opening_of(m: Measurements) -> Opening:
    """Return the opening of a page; its headline is the study's title where no transfer was measured."""
    best = main_scores(m.frame("scores")).index
    main = (test_set for test_set in scored_sets(m) if test_set.rows.index.isin(best).all())
    transfer = next(filter(None, map(_transfer, main)), None)
    if transfer is None:
        return Opening(
            headline=[HeadlinePart(m.title)], experiment="", results=_nothing_found(m), figure=path_figure(m)
        )
    rows = _opening_paths(m, transfer)
    return Opening(
        headline=_headline(transfer, rows),
        experiment=_experiment(transfer),
        results=_found(transfer),
        figure=_figure_of(m, rows),
    )


def _nothing_found(m: Measurements) -> str:
    scores, free = m.frame("scores"), m.frame("label-free")
    scored = count(len(scores), "score")
    text = f"These runs have {scored}, none of a source-only model on its source and targets."
    if lacking := sorted({*free["language"]} - {*scores["language"]}) if len(free) and len(scores) else []:
        text += (
            f" Without a score: {and_list(map(language, lacking))}; the choice without labels ranks their "
            f"models."
        )
    return text


@dataclass(frozen=True, kw_only=True)
class Transfer:
    """The systems on one test set, with the baseline that opens the page: trained on the source alone."""

    scored: ScoredSet
    systems: pd.DataFrame
    """A row for each system: facts, number of units, mean scores on sources (high) and targets (low)."""
    base: pd.Series
    of_base: pd.DataFrame
    """Scores of the baseline, by unit and language."""


def _transfer(scored: ScoredSet) -> Transfer | None:
    """Return the transfer on a test set; None without a baseline on source and targets."""
    values = values_of(scored)
    by_system = values.groupby(SYSTEM)
    sides = {"high": scored.sources, "low": scored.targets}
    means = by_system.mean().reindex(columns=[*scored.sources, *scored.targets])
    systems = pd.DataFrame(scored.systems).set_index(SYSTEM, drop=False).assign(units=by_system.size())
    systems = systems.assign(
        **{side: means[[*languages]].mean(axis=1, skipna=False) for side, languages in sides.items()}
    )
    compared = systems.dropna(subset=["high", "low"])
    plain = compared["reference"].eq(ZERO_SHOT) & (compared[["encoder.adjusted", "inputs"]] == "").all(axis=1)
    if not plain.any():
        return None
    base = _most_compared_with(scored, compared[plain])
    of_base = pd.DataFrame(values.loc[base.name]) if isinstance(base.name, tuple) else values
    return Transfer(
        scored=scored, systems=systems, base=base, of_base=of_base[[*scored.sources, *scored.targets]]
    )


def _most_compared_with(scored: ScoredSet, baselines: pd.DataFrame) -> pd.Series:
    """Return the most frequent baseline of the systems; among several, the first in the order of tables."""
    compared_with = [key_of(baseline) for baseline in scored.references.values()]
    counts = [compared_with.count(key_of(row)) for row in list_rows(baselines)]
    return baselines.iloc[counts.index(max(counts))]


def _opening_paths(m: Measurements, transfer: Transfer) -> pd.DataFrame:
    """Return the points of the paths that open a page, from the baseline's models if these were measured.

    Of several splits, the one of the scores is preferred.
    """
    about, base = transfer.scored.about, transfer.base
    rows = _merged_paths(m)
    if rows.empty:
        return rows
    same_test = rows[["corpus", "task", "metric"]].eq([about[name] for name in ("corpus", "task", "metric")])
    of_base = same_test.all(axis=1) & rows["start.way"].eq(base["way"]) & rows["encoder"].eq(base["encoder"])
    preferred = rows[of_base] if of_base.any() else rows
    same_split = preferred["split"] == about["split"]
    return _first_setting(preferred[same_split] if same_split.any() else preferred)


def _headline(transfer: Transfer, paths: pd.DataFrame) -> list[HeadlinePart]:
    """Write in a sentence what the baseline scores in the source, and in the lowest target by seed.

    The numbers are those of the figure where its paths start at the baseline's models, for all languages and
    seeds; else those of the table.
    """
    scored = transfer.scored
    on_paths = _scores_at_start(transfer, paths)
    values, split = (transfer.of_base, scored.about["split"]) if on_paths is None else on_paths
    lowest = str(values[[*scored.targets]].mean().idxmin())
    metric = METRIC_NAMES.get(scored.about["metric"], scored.about["metric"])
    source_score = f"{percent(values[[*scored.sources]].mean(axis=1).mean())}\N{NO-BREAK SPACE}% {metric}"
    least = values[lowest].min()
    most = values[lowest].max()
    units = len(values)
    unit = UNITS[scored.unit]
    by_unit = (
        f", depending on the {unit}" if percent(least) != percent(most) else f" with {count(units, unit)}"
    )
    between = "and" if units == 2 else "to"
    ends = [percent(least)] if percent(least) == percent(most) else [percent(least), percent(most)]
    several = f", the lowest of {len(scored.targets)} targets" if len(scored.targets) > 1 else ""
    data = " ".join(filter(None, [_data_name(scored), scored.about["treebank"], split]))
    return [
        HeadlinePart(f"{_task_name(scored)}: models trained on labels in "),
        HeadlinePart(and_list(map(language_name, scored.sources)), "source"),
        HeadlinePart(" reach "),
        HeadlinePart(source_score, "source"),
        HeadlinePart(" there and "),
        HeadlinePart(f"{f' {between} '.join(ends)}\N{NO-BREAK SPACE}%", "target"),
        HeadlinePart(" in "),
        HeadlinePart(language_name(lowest), "target"),
        HeadlinePart(f"{several}{by_unit} ({data} split)."),
    ]


def _task_name(scored: ScoredSet) -> str:
    task = scored.about["task"]
    return TASK_NAMES.get(task, task[:1].upper() + task[1:])


def _data_name(scored: ScoredSet) -> str:
    """Return the corpus, as artificial where all of its languages are."""
    artificial = all(map(is_built_in, (*scored.sources, *scored.targets)))
    name = scored.about["corpus"]
    return "artificial languages," if artificial else f"{CORPUS_NAMES.get(name, name)},"


def _scores_at_start(transfer: Transfer, paths: pd.DataFrame) -> tuple[pd.DataFrame, str] | None:
    """Return the scores of the baseline's models at α = 0 by unit and language, and their split.

    None unless paths start at all of them, and are measured in all languages.
    """
    base, unit = transfer.base, transfer.scored.unit
    if paths.empty or paths["start.way"].iloc[0] != base["way"] or unit not in paths:
        return None
    start = paths[(paths["alpha"] == 0) & (paths["encoder"] == base["encoder"])]
    start = start[start["metric"] == transfer.scored.about["metric"]]
    values = start.groupby([unit, "language"])["score"].mean().unstack("language")
    if {*values.index} != {*transfer.of_base.index} or not {*transfer.of_base.columns} <= {*values.columns}:
        return None
    values = values[[*transfer.of_base.columns]]
    return None if values.isna().any(axis=None) else (values, str(start["split"].iloc[0]))


def _experiment(transfer: Transfer) -> str:
    """Write what was trained on what, and tested where."""
    scored, base = transfer.scored, transfer.base
    others = [name for name in transfer.systems["name"].unique() if name != base["name"]]
    listed = and_list([*others[:5], *([f"{len(others) - 5} others"] if len(others) > 5 else [])])
    next_to = f" Next to them: {listed}." if others else ""
    chosen_by = {*scored.targets} & {*base["read.dev"].split("+")}
    use = "choose their epoch and train nothing" if chosen_by else "they never see"
    artificial = all(map(is_built_in, (*scored.sources, *scored.targets)))
    made = f" The languages are artificial: {ARTIFICIAL}." if artificial else ""
    return (
        f"Models trained on labels in {and_list(map(language, scored.sources))} alone ({base['name']}, "
        f"{count(base['units'], UNITS[scored.unit])}, encoder {base['encoder.label']}) are tested in "
        f"{and_list(map(language, scored.targets))}, whose labels {use}.{next_to}{made}"
    )


def _found(transfer: Transfer) -> str:
    """Write the transfer gap, and the largest gains with target labels and without."""
    scored, base, systems = transfer.scored, transfer.base, transfer.systems
    described = {name: text for name, text in scored.about.items() if text}
    test_set = " ".join(
        described[name] for name in ("corpus", "treebank", "task", "split") if name in described
    )
    plain = systems[systems["reference"].eq(ZERO_SHOT) & systems["inputs"].eq("")]
    plain = plain[plain["encoder"] == base["encoder"]]
    which = f" ({base['name']})" if len(plain) > 1 else ""
    transferred = (
        f"Trained on {and_list(map(language, described['source'].split('+')))} alone{which}, models score "
        f"{percent(base['high'])} percent on the source language and {percent(base['low'])} on the targets, "
        f"a gap of {percent(base['high'] - base['low'])} points ({described['metric']} on {test_set}, mean "
        f"over {count(base['units'], UNITS[scored.unit])})."
    )
    return " ".join([transferred, *_gains(scored, base, systems)])


def _gains(scored: ScoredSet, base: pd.Series, systems: pd.DataFrame) -> list[str]:
    """Write the largest gains over the base, and over each other baseline of the tables."""
    keys = [key_of(row) for row in list_rows(systems)]
    baselines = pd.Series(
        [key_of(scored.references[key]) if key in scored.references else None for key in keys],
        index=systems.index,
        dtype=object,
    )
    rows = systems.assign(baseline=baselines, labelled=_read_target_labels(scored, systems))
    rows = rows[rows["baseline"].notna()]
    lows = dict(zip(keys, systems["low"], strict=True))
    rows = rows.assign(gain=rows["low"] - rows["baseline"].map(lows).astype(float)).dropna(subset="gain")
    base_key = key_of(cast("dict[str, object]", base.to_dict()))
    is_base = pd.Series([key == base_key for key in rows["baseline"]], index=rows.index, dtype=bool)
    texts = [_largest_gain(group, bool(labels)) for labels, group in rows[is_base].groupby("labelled")]
    names = dict(zip(keys, systems["name"], strict=True))
    by_baseline = [*rows[~is_base].groupby("baseline", sort=False)][:MOST_OTHER_BASELINES]
    return [*texts, *(_gain_over(names[baseline], group) for baseline, group in by_baseline)]


def _read_target_labels(scored: ScoredSet, systems: pd.DataFrame) -> "pd.Series[bool]":
    """Return a mask of systems that read labels of a target, in training or to choose an epoch."""
    rows = list_rows(scored.rows.drop_duplicates(["model", *SYSTEM]))
    targets = {*scored.targets}
    labelled = {
        key_of(row) for row in rows if targets & {*row["read.labels"].split("+"), *row["read.dev"].split("+")}
    }
    keys = [key_of(row) for row in list_rows(systems)]
    return pd.Series([key in labelled for key in keys], index=systems.index)


def _largest_gain(others: pd.DataFrame, labels: bool) -> str:
    """Describe the largest gain over the base among systems with or without target labels."""
    best, number = others.nlargest(1, "gain").iloc[0], count(len(others), "other system")
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


def path_figure(m: Measurements) -> PathFigure | None:
    """Return the paths of the first setting, preferably from source-only models; None without paths."""
    rows = _merged_paths(m)
    return _figure_of(m, rows if rows.empty else _first_setting(rows))


def _merged_paths(m: Measurements) -> pd.DataFrame:
    """Return the points of paths on which encoder and head move together."""
    points = path_points(m)
    return points.loc[points["part"] == "all"] if len(points) else points


def _first_setting(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the points of the first setting and ends, preferably from source-only models."""
    preferred = rows[rows["start.reference"] == ZERO_SHOT]
    rows = preferred if len(preferred) else rows
    keys = row_keys(rows, [*SETTING, *ENDS])
    first: pd.DataFrame = rows[keys == keys.iloc[0]]
    return first


def _figure_of(m: Measurements, rows: pd.DataFrame) -> PathFigure | None:
    """Return the figure of paths, lowest target first; None without points."""
    if rows.empty:
        return None
    alphas, first = sorted(rows["alpha"].unique()), rows.iloc[0]
    zero = min(alphas, key=abs)
    by_pair = [group for _, group in rows.groupby(["source", "target"], sort=False)]
    pairs = sorted(by_pair, key=lambda pair: _target_score(pair, zero))[:MOST_PANELS]
    scores = pd.concat(pairs)["score"]
    return PathFigure(
        **{name: first[f"{name}.name"] for name in ("start", "end")},
        **{name: first[name] for name in ("metric", "split")},
        alphas=alphas,
        zero=zero,
        low=10 * math.floor(10 * min(0.9, scores.min())),
        high=10 * math.ceil(10 * max(0.1, scores.max())),
        pairs=len(by_pair),
        panels=[_panel(pair) for pair in pairs],
        sentences=shown_sentences(m, pairs, alphas),
        of_seeds=sentences_of_seeds(m, pairs, alphas),
        compared=compare_seeds(m, pairs, alphas),
    )


def _target_score(pair: pd.DataFrame, alpha: float) -> float:
    """Return the mean score in the target at a point; infinite where none was measured."""
    scores = pair[(pair["alpha"] == alpha) & (pair["role"] == "target")]["score"]
    return float(scores.mean()) if len(scores) else math.inf


def _panel(pair: pd.DataFrame) -> PathPanel:
    """Return the curves of a pair of languages."""
    curves = pair.assign(curve=row_keys(pair, ["seed", "encoder.run"]))
    scores = curves.groupby(["role", "language", "curve", "alpha"])["score"].mean()
    groups = cast("Iterator[tuple[tuple[str, str], pd.Series[float]]]", iter(scores.groupby(level=[0, 1])))
    sides = [_side(role, code, of_side) for (role, code), of_side in groups]
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
    return Side(
        role=role,
        name=language_name(code),
        curves=curves,
        means=cast("dict[float, float]", wide.mean().to_dict()),
    )


def _ends(side: Side) -> str:
    """Write the means at both models, or at the ends of a path that reaches neither."""
    at_models = [alpha for alpha in (0.0, 1.0) if alpha in side.means]
    alphas = at_models or [min(side.means), max(side.means)]
    return ", ".join(f"{side.mean_at(alpha)} at α {alpha:g}" for alpha in alphas)
