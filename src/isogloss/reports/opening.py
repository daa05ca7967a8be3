"""The opening of a page: the answer, what the experiment was, and the paths between models to move along."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

import pandas as pd

from isogloss.core.languages import is_built_in, language_name
from isogloss.reports.checks import UNITS
from isogloss.reports.comparison import SYSTEM, main_scores
from isogloss.reports.frames import list_rows
from isogloss.reports.measurements import Measurements
from isogloss.reports.names import and_list, count, list_languages, percent
from isogloss.reports.opening_figure import PathFigure, opening_paths
from isogloss.reports.run_facts import ZERO_SHOT
from isogloss.reports.scores import ScoredSet, key_of, scored_sets, values_of

MOST_OTHER_BASELINES = 2
"""Maximum number of further baselines whose sentences open a page. The tables have all comparisons."""


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
        figure=opening_paths().draw(measurements, rows),
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
    rows = opening_paths().points(measurements)
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
    return opening_paths().choose(preferred_rows[same_split] if same_split.any() else preferred_rows)


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
    paths = opening_paths()
    rows = paths.points(measurements)
    return paths.draw(measurements, rows if rows.empty else paths.choose(rows))
