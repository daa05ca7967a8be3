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
from isogloss.reports.names import and_list, count, list_languages, percent
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
"""Maximum number of further baselines whose sentences open a page. The tables have all comparisons."""

MOST_PANELS = 4
"""Maximum number of pairs of languages whose paths open a page. The section on paths has all."""

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
        """Return the lowest and the highest score of several curves in percent. Empty for one curve."""
        scores = [curve.scores[curve.alphas.index(alpha)] for curve in self.curves if alpha in curve.alphas]
        ends = list(dict.fromkeys(percent(end / 100) for end in (min(scores), max(scores)))) if scores else []
        return "–".join(ends) if len(ends) > 1 else ""

    def mean_at(self, alpha: float) -> str:
        """Return the mean over seeds in percent. A dash without a measurement."""
        return percent(self.means.get(alpha, math.nan))


@dataclass(frozen=True, kw_only=True)
class PathPanel:
    """The paths of one pair of languages. The first side is the one that ends higher."""

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
    """Every α at which a panel was measured. Other panels may lack it."""
    zero: float
    """The α nearest to 0, the initial position of the figure."""
    low: int
    """Lower end of the axis in percent, a multiple of ten."""
    high: int
    """Upper end of the axis in percent, a multiple of ten."""
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


def write_opening(measurements: Measurements) -> Opening:
    """Return the opening of a page. Its headline is the study's title if no transfer was measured."""
    main_sets = main_scores(measurements.frame("scores")).index
    main = (test_set for test_set in scored_sets(measurements) if test_set.rows.index.isin(main_sets).all())
    transfer = next(filter(None, map(_transfer, main)), None)
    if transfer is None:
        return Opening(
            headline=[HeadlinePart(measurements.title)],
            experiment="",
            results=_nothing_found(measurements),
            figure=path_figure(measurements),
        )
    rows = _opening_paths(measurements, transfer)
    return Opening(
        headline=_headline(transfer, rows),
        experiment=_experiment(transfer),
        results=_write_findings(transfer),
        figure=_figure_of(measurements, rows),
    )


def _nothing_found(measurements: Measurements) -> str:
    scores = measurements.frame("scores")
    label_free = measurements.frame("label-free")
    score_text = count(len(scores), "score")
    text = f"These runs have {score_text}, none of a source-only model on its source and targets."
    if (
        lacking := sorted(set(label_free["language"]) - set(scores["language"]))
        if len(label_free) and len(scores)
        else []
    ):
        text += f" Without a score: {list_languages(lacking)}; the choice without labels ranks their models."
    return text


@dataclass(frozen=True, kw_only=True)
class Transfer:
    """The systems on one test set, with the baseline that opens the page: trained only on the source."""

    scored: ScoredSet
    systems: pd.DataFrame
    """A row for each system: facts, number of units, mean scores on sources (high) and targets (low)."""
    base: pd.Series
    of_base: pd.DataFrame
    """Scores of the baseline, by unit and language."""


def _transfer(scored_set: ScoredSet) -> Transfer | None:
    """Return the transfer on a test set. None without a baseline on source and targets."""
    values = values_of(scored_set)
    system_values = values.groupby(SYSTEM)
    sides = {"high": scored_set.sources, "low": scored_set.targets}
    means = system_values.mean().reindex(columns=[*scored_set.sources, *scored_set.targets])
    systems = (
        pd.DataFrame(scored_set.systems).set_index(SYSTEM, drop=False).assign(units=system_values.size())
    )
    systems = systems.assign(
        **{side: means[list(languages)].mean(axis=1, skipna=False) for side, languages in sides.items()}
    )
    compared_systems = systems.dropna(subset=["high", "low"])
    is_plain = compared_systems["reference"].eq(ZERO_SHOT) & (
        compared_systems[["encoder.adjusted", "inputs"]] == ""
    ).all(axis=1)
    if not is_plain.any():
        return None
    base = _most_compared_with(scored_set, compared_systems[is_plain])
    base_values = pd.DataFrame(values.loc[base.name]) if isinstance(base.name, tuple) else values
    return Transfer(
        scored=scored_set,
        systems=systems,
        base=base,
        of_base=base_values[[*scored_set.sources, *scored_set.targets]],
    )


def _most_compared_with(scored_set: ScoredSet, baselines: pd.DataFrame) -> pd.Series:
    """Return the most frequent baseline of the systems. Among several, the first in the order of tables."""
    compared_with = [key_of(baseline) for baseline in scored_set.references.values()]
    counts = [compared_with.count(key_of(row)) for row in list_rows(baselines)]
    return baselines.iloc[counts.index(max(counts))]


def _opening_paths(measurements: Measurements, transfer: Transfer) -> pd.DataFrame:
    """Return the points of the paths that open a page, from the baseline's models if these were measured.

    If there are several splits, the split of the scores is preferred.
    """
    set_facts, base = transfer.scored.about, transfer.base
    rows = _merged_paths(measurements)
    if rows.empty:
        return rows
    same_test = rows[["corpus", "task", "metric"]].eq(
        [set_facts[name] for name in ("corpus", "task", "metric")]
    )
    starts_at_base = (
        same_test.all(axis=1) & rows["start.way"].eq(base["way"]) & rows["encoder"].eq(base["encoder"])
    )
    preferred_rows = rows[starts_at_base] if starts_at_base.any() else rows
    same_split = preferred_rows["split"] == set_facts["split"]
    return _first_setting(preferred_rows[same_split] if same_split.any() else preferred_rows)


def _headline(transfer: Transfer, paths: pd.DataFrame) -> list[HeadlinePart]:
    """Write a sentence with the baseline's score in the source, and in the lowest target by seed.

    The numbers are from the figure if its paths start at the baseline's models, for all languages and seeds.
    Otherwise they are from the table.
    """
    scored_set = transfer.scored
    path_scores = _scores_at_start(transfer, paths)
    values, split = (transfer.of_base, scored_set.about["split"]) if path_scores is None else path_scores
    lowest = str(values[list(scored_set.targets)].mean().idxmin())
    metric = METRIC_NAMES.get(scored_set.about["metric"], scored_set.about["metric"])
    source_score = (
        f"{percent(values[list(scored_set.sources)].mean(axis=1).mean())}\N{NO-BREAK SPACE}% {metric}"
    )
    lowest_score = values[lowest].min()
    highest_score = values[lowest].max()
    units = len(values)
    unit = UNITS[scored_set.unit]
    unit_scores = (
        f", depending on the {unit}"
        if percent(lowest_score) != percent(highest_score)
        else f" with {count(units, unit)}"
    )
    conjunction = "and" if units == 2 else "to"
    ends = (
        [percent(lowest_score)]
        if percent(lowest_score) == percent(highest_score)
        else [percent(lowest_score), percent(highest_score)]
    )
    several = f", the lowest of {len(scored_set.targets)} targets" if len(scored_set.targets) > 1 else ""
    data = " ".join(name for name in [_data_name(scored_set), scored_set.about["treebank"], split] if name)
    return [
        HeadlinePart(f"{_task_name(scored_set)}: models trained on labels in "),
        HeadlinePart(list_languages(scored_set.sources), "source"),
        HeadlinePart(" reach "),
        HeadlinePart(source_score, "source"),
        HeadlinePart(" there and "),
        HeadlinePart(f"{f' {conjunction} '.join(ends)}\N{NO-BREAK SPACE}%", "target"),
        HeadlinePart(" in "),
        HeadlinePart(language_name(lowest), "target"),
        HeadlinePart(f"{several}{unit_scores} ({data} split)."),
    ]


def _task_name(scored_set: ScoredSet) -> str:
    task = scored_set.about["task"]
    return TASK_NAMES.get(task, task[:1].upper() + task[1:])


def _data_name(scored_set: ScoredSet) -> str:
    """Return the corpus, as artificial where all of its languages are."""
    artificial = all(
        is_built_in(language_code) for language_code in (*scored_set.sources, *scored_set.targets)
    )
    name = scored_set.about["corpus"]
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
    if set(values.index) != set(transfer.of_base.index) or not set(transfer.of_base.columns) <= set(
        values.columns
    ):
        return None
    values = values[list(transfer.of_base.columns)]
    return None if values.isna().any(axis=None) else (values, str(start["split"].iloc[0]))


def _experiment(transfer: Transfer) -> str:
    """Write what was trained on what, and tested where."""
    scored_set, base = transfer.scored, transfer.base
    other_names = [name for name in transfer.systems["name"].unique() if name != base["name"]]
    name_list = and_list(
        [*other_names[:5], *([f"{len(other_names) - 5} others"] if len(other_names) > 5 else [])]
    )
    next_to = f" Next to them: {name_list}." if other_names else ""
    chosen_by = set(scored_set.targets) & set(base["read.dev"].split("+"))
    use = "choose their epoch and train nothing" if chosen_by else "they never see"
    artificial = all(
        is_built_in(language_code) for language_code in (*scored_set.sources, *scored_set.targets)
    )
    artificial_text = f" The languages are artificial: {ARTIFICIAL}." if artificial else ""
    return (
        f"Models trained on labels in {list_languages(scored_set.sources)} alone ({base['name']}, "
        f"{count(base['units'], UNITS[scored_set.unit])}, encoder {base['encoder.label']}) are tested in "
        f"{list_languages(scored_set.targets)}, whose labels {use}.{next_to}{artificial_text}"
    )


def _write_findings(transfer: Transfer) -> str:
    """Write the transfer gap, and the largest gains with target labels and without."""
    scored_set, base, systems = transfer.scored, transfer.base, transfer.systems
    set_facts = {name: text for name, text in scored_set.about.items() if text}
    test_set = " ".join(
        set_facts[name] for name in ("corpus", "treebank", "task", "split") if name in set_facts
    )
    plain_systems = systems[systems["reference"].eq(ZERO_SHOT) & systems["inputs"].eq("")]
    plain_systems = plain_systems[plain_systems["encoder"] == base["encoder"]]
    system_text = f" ({base['name']})" if len(plain_systems) > 1 else ""
    sentence = (
        f"Trained on {list_languages(set_facts['source'].split('+'))} alone{system_text}, models score "
        f"{percent(base['high'])} percent on the source language and {percent(base['low'])} on the targets, "
        f"a gap of {percent(base['high'] - base['low'])} points ({set_facts['metric']} on {test_set}, mean "
        f"over {count(base['units'], UNITS[scored_set.unit])})."
    )
    return " ".join([sentence, *_gains(scored_set, base, systems)])


def _gains(scored_set: ScoredSet, base: pd.Series, systems: pd.DataFrame) -> list[str]:
    """Write the largest gains over the base, and over each other baseline of the tables."""
    keys = [key_of(row) for row in list_rows(systems)]
    baselines = pd.Series(
        [key_of(scored_set.references[key]) if key in scored_set.references else None for key in keys],
        index=systems.index,
        dtype=object,
    )
    rows = systems.assign(baseline=baselines, labelled=_read_target_labels(scored_set, systems))
    rows = rows[rows["baseline"].notna()]
    lows = dict(zip(keys, systems["low"], strict=True))
    rows = rows.assign(gain=rows["low"] - rows["baseline"].map(lows).astype(float)).dropna(subset="gain")
    base_key = key_of(cast("dict[str, object]", base.to_dict()))
    is_base = pd.Series([key == base_key for key in rows["baseline"]], index=rows.index, dtype=bool)
    texts = [_largest_gain(group, bool(labels)) for labels, group in rows[is_base].groupby("labelled")]
    names = dict(zip(keys, systems["name"], strict=True))
    baseline_groups = list(rows[~is_base].groupby("baseline", sort=False))[:MOST_OTHER_BASELINES]
    return [
        *texts,
        *(_gain_over(names[cast("tuple[str, ...]", baseline)], group) for baseline, group in baseline_groups),
    ]


def _read_target_labels(scored_set: ScoredSet, systems: pd.DataFrame) -> "pd.Series[bool]":
    """Return a mask of systems that read labels of a target, in training or to choose an epoch."""
    rows = list_rows(scored_set.rows.drop_duplicates(["model", *SYSTEM]))
    targets = set(scored_set.targets)
    is_labelled = {
        key_of(row) for row in rows if targets & {*row["read.labels"].split("+"), *row["read.dev"].split("+")}
    }
    keys = [key_of(row) for row in list_rows(systems)]
    return pd.Series([key in is_labelled for key in keys], index=systems.index)


def _largest_gain(other_systems: pd.DataFrame, labels: bool) -> str:
    """Describe the largest gain over the base among systems with or without target labels."""
    best_system = other_systems.nlargest(1, "gain").iloc[0]
    count_text = count(len(other_systems), "other system")
    preposition = "with" if labels else "without"
    if best_system["gain"] <= 0:
        return f"None of {count_text} {preposition} target labels scores higher there."
    name = (
        f"{best_system['name']}, the best of {count_text}" if len(other_systems) > 1 else best_system["name"]
    )
    gain = percent(best_system["gain"])
    return f"{preposition.capitalize()} target labels ({name}) targets gain {gain} points."


def _gain_over(baseline: str, other_systems: pd.DataFrame) -> str:
    """Describe the largest gain over a baseline among the systems compared with it."""
    best_system = other_systems.nlargest(1, "gain").iloc[0]
    count_text = count(len(other_systems), "system")
    if best_system["gain"] <= 0:
        return f"None of {count_text} compared with {baseline} scores higher there."
    name = (
        f"{best_system['name']}, the best of {count_text}," if len(other_systems) > 1 else best_system["name"]
    )
    return f"Over {baseline}, {name} gains {percent(best_system['gain'])} points there."


def path_figure(measurements: Measurements) -> PathFigure | None:
    """Return the paths of the first setting, preferably from source-only models. None without paths."""
    rows = _merged_paths(measurements)
    return _figure_of(measurements, rows if rows.empty else _first_setting(rows))


def _merged_paths(measurements: Measurements) -> pd.DataFrame:
    """Return the points of paths on which encoder and head move together."""
    points = path_points(measurements)
    return points.loc[points["part"] == "all"] if len(points) else points


def _first_setting(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the points of the first setting and ends, preferably from source-only models."""
    preferred_rows = rows[rows["start.reference"] == ZERO_SHOT]
    rows = preferred_rows if len(preferred_rows) else rows
    keys = row_keys(rows, [*SETTING, *ENDS])
    setting_rows: pd.DataFrame = rows[keys == keys.iloc[0]]
    return setting_rows


def _figure_of(measurements: Measurements, rows: pd.DataFrame) -> PathFigure | None:
    """Return the figure of paths, lowest target first. None without points."""
    if rows.empty:
        return None
    alphas = sorted(rows["alpha"].unique())
    first_row = rows.iloc[0]
    zero = min(alphas, key=abs)
    pair_groups = [group for _, group in rows.groupby(["source", "target"], sort=False)]
    pairs = sorted(pair_groups, key=lambda pair: _target_score(pair, zero))[:MOST_PANELS]
    scores = pd.concat(pairs)["score"]
    return PathFigure(
        **{name: first_row[f"{name}.name"] for name in ("start", "end")},
        **{name: first_row[name] for name in ("metric", "split")},
        alphas=alphas,
        zero=zero,
        low=10 * math.floor(10 * min(0.9, scores.min())),
        high=10 * math.ceil(10 * max(0.1, scores.max())),
        pairs=len(pair_groups),
        panels=[_panel(pair) for pair in pairs],
        sentences=shown_sentences(measurements, pairs, alphas),
        of_seeds=sentences_of_seeds(measurements, pairs, alphas),
        compared=compare_seeds(measurements, pairs, alphas),
    )


def _target_score(pair: pd.DataFrame, alpha: float) -> float:
    """Return the mean score in the target at a point. Infinite without a measurement."""
    scores = pair[(pair["alpha"] == alpha) & (pair["role"] == "target")]["score"]
    return float(scores.mean()) if len(scores) else math.inf


def _panel(pair: pd.DataFrame) -> PathPanel:
    """Return the curves of a pair of languages."""
    curves = pair.assign(curve=row_keys(pair, ["seed", "encoder.run"]))
    scores = curves.groupby(["role", "language", "curve", "alpha"])["score"].mean()
    groups = cast("Iterator[tuple[tuple[str, str], pd.Series[float]]]", iter(scores.groupby(level=[0, 1])))
    sides = [_side(role, language_code, side_scores) for (role, language_code), side_scores in groups]
    sides = sorted(sides, key=lambda side: list(side.means.values())[-1], reverse=True)
    names = [
        language_name(language_code) for language_code in pair.iloc[0][["source", "target"]] if language_code
    ]
    texts = [f"{side.name} ({side.role}) {_ends(side)}" for side in sides]
    alt = f"Line plot, a line per seed and language: {'; '.join(texts)}."
    return PathPanel(title=" → ".join(names), alt=alt, sides=sides)


def _side(role: str, language_code: str, scores: "pd.Series[float]") -> Side:
    """Return the curves in one language from its scores by curve and α."""
    wide = scores.droplevel([0, 1]).unstack("alpha")
    curves = [
        Curve(list(curve.index), list(100 * curve)) for curve in (row.dropna() for _, row in wide.iterrows())
    ]
    return Side(
        role=role,
        name=language_name(language_code),
        curves=curves,
        means=cast("dict[float, float]", wide.mean().to_dict()),
    )


def _ends(side: Side) -> str:
    """Write the means at both models, or at the ends of a path that reaches neither."""
    end_alphas = [alpha for alpha in (0.0, 1.0) if alpha in side.means]
    alphas = end_alphas or [min(side.means), max(side.means)]
    return ", ".join(f"{side.mean_at(alpha)} at α {alpha:g}" for alpha in alphas)
