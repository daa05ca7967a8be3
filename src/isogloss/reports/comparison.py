"""Systems held against others: the difference with each seed, its error over seeds and examples, p and marks.

Paper: "The Impact of Cross-Lingual Adjustment …", Section 5, whose tests over examples are kept; a verdict
and a star ask for more, namely that other seeds would show it too (``metrics.crossed``).
"""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from typing import Any

import numpy as np
import pandas as pd

from isogloss.metrics.correlation import spearman
from isogloss.metrics.crossed import LEVEL, Estimate, crossed
from isogloss.metrics.over_languages import error_over_languages, verdict_over_languages
from isogloss.metrics.paired import Array, Pair, System, cohens_d, per_example
from isogloss.metrics.significance import holm, paired_test
from isogloss.reports.measurements import Measurements
from isogloss.reports.names import name_systems

PLACE = ["corpus", "treebank", "task", "source", "split", "metric"]
"""Columns that say which test sets belong into one table; inputs in two languages make another."""

SYSTEM = ["encoder", "way", "inputs", "inputs.translator"]
"""Columns that say which system: the encoder (its seeds together), how it was trained, how inputs come."""

SURE, ON_EXAMPLES = "*", "°"
"""A mark that stands on seeds and examples, and one that stands on the examples of these seeds alone."""

TESTS = {
    "paired t": "paired t-test on values averaged over seeds",
    "permutation": "permutation test that swaps whole sentences of all seeds, 1,000 rounds",
    "McNemar": "McNemar's exact test",
    "paired t over languages": "t-test in which what is parallel is one example",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """A system against another on one language, or on the mean of several; scores are means over units."""

    languages: tuple[str, ...]
    score: float
    baseline_score: float
    values: tuple[float, ...]
    """The difference with each unit that both have: a seed of fine-tuning, or one of pretraining."""
    estimate: Estimate
    """The mean difference, with its error over units and, where predictions were kept, examples."""
    examples: int = 0
    """Examples whose predictions both kept; 0 for none."""
    test: str = ""
    p_examples: float = math.nan
    """By the test over examples, units averaged."""
    effect: float = math.nan
    """Cohen's d of what each example adds to the difference."""
    p_holm: float = math.nan
    """The crossed p, corrected for all tests of a table."""
    p_examples_holm: float = math.nan

    @property
    def difference(self) -> float:
        """System minus baseline."""
        return self.estimate.mean

    @property
    def p_units(self) -> float:
        """By a paired t-test over units alone; nan for one."""
        return crossed(self.values).p_value()

    @property
    def p_value(self) -> float:
        """By the test that crosses units and examples; nan for one unit."""
        return self.estimate.p_value()

    @property
    def mark(self) -> str:
        """Return the sign that a table puts beside the score."""
        if self.p_holm < LEVEL:
            return SURE
        return ON_EXAMPLES if self.p_examples_holm < LEVEL else ""


def compare(
    m: Measurements, ours: pd.DataFrame, theirs: pd.DataFrame, *, unit: str = "seed"
) -> Comparison | None:
    """Hold one system's scores against another's, on the mean of the languages that both have.

    Rows are of frame "scores", by one metric. Only units with all of these languages count, and of those
    only the ones both systems have; None where there are none.
    """
    sides = [_by_unit(spoken_for(rows), unit) for rows in (ours, theirs)]
    there = [{language for own in side.values() for language in own} for side in sides]
    languages = sorted(there[0] & there[1])
    both = sides[0].keys() & sides[1].keys()
    units = sorted(one for one in both if all(own in side[one] for side in sides for own in languages))
    if not languages or not units:
        return None
    mine, yours = ([_mean(side[one], languages) for one in units] for side in sides)
    values = tuple(a - b for a, b in zip(mine, yours, strict=True))
    found = Comparison(
        languages=tuple(languages),
        score=fmean(mine),
        baseline_score=fmean(yours),
        values=values,
        estimate=crossed(values),
    )
    pairs = _pairs(m, [[side[one] for one in units] for side in sides], languages)
    return _with_examples(found, pairs) if pairs else found


def spoken_for(scores: pd.DataFrame) -> pd.DataFrame:
    """Keep what a model speaks about: all languages, but of targets its own where it was made for some."""
    if scores.empty:
        return scores
    keep = [
        not target or language in target.split("+") or language in source.split("+")
        for language, target, source in zip(
            scores["language"], scores["target"], scores["source"], strict=True
        )
    ]
    return scores[keep]


def alike(rows: pd.DataFrame, columns: Iterable[str]) -> pd.Series:
    """Return a text for each row, the same for rows alike in these columns, missing values being alike."""
    found = pd.Series("", index=rows.index, dtype=object)
    for name in columns:
        found += "\n" + rows[name].astype(object).map(str)
    return found


def where(rows: pd.DataFrame, holds: Callable[..., bool], *columns: str) -> pd.DataFrame:
    """Keep the rows for whose values in these columns something holds."""
    keep = [holds(*values) for values in zip(*(rows[name] for name in columns), strict=True)]
    return rows[np.array(keep, dtype=bool)]


def ranked(rows: pd.DataFrame, x: str, y: str, unit: Sequence[str], apart: Sequence[str]) -> pd.Series:
    """Return Spearman's ρ of two columns for each unit, a mean over what is kept apart.

    A ρ needs three rows, as of two it is but 1 or -1; it is 0 where a column is level.
    """
    by = [*unit, *apart]
    several = rows[rows.groupby(by, dropna=False)[x].transform("size") > 2]
    if several.empty:
        return pd.Series(dtype=float)
    groups = several.groupby(by, dropna=False)[[x, y]]
    rhos = groups.apply(lambda own: np.nan_to_num(spearman([*own[x]], [*own[y]]).rho))
    return rhos.groupby(level=list(unit)).mean()


def corrected(tests: Mapping[object, Comparison]) -> dict[object, Comparison]:
    """Return the tests of one table with p-values after Holm's correction over all of them."""
    units, examples = (
        _holm({key: getattr(one, name) for key, one in tests.items()}) for name in ("p_value", "p_examples")
    )
    return {key: replace(one, p_holm=units[key], p_examples_holm=examples[key]) for key, one in tests.items()}


def _holm(p_values: Mapping[object, float]) -> dict[object, float]:
    """Correct those that are known; nan for the others."""
    known = {key: value for key, value in p_values.items() if not math.isnan(value)}
    found = holm(list(known.values())) if known else []
    return {**dict.fromkeys(p_values, math.nan), **dict(zip(known, found, strict=True))}


def unit_of(*frames: pd.DataFrame) -> str:
    """Return what replicates a comparison: encoders' seeds where they were pretrained here, else seeds."""
    kinds = {kind for frame in frames for kind in frame["encoder.kind"].unique()}
    several = {encoder for frame in frames for encoder in frame["encoder"].unique()}
    return "encoder.seed" if kinds == {"pretrain"} and len(several) > 1 else "seed"


def boards(m: Measurements, rows: pd.DataFrame, by: Sequence[str]) -> Iterator[tuple[str, pd.DataFrame]]:
    """Give the rows that belong together, in the order of ``by``, with words for what tells them apart.

    Rows have the names of ``names.name_systems`` added.
    """
    if rows.empty:
        return
    named = name_systems(rows, m.labels)
    shown = {"task": "task", "source": "source", "encoder": "encoder.label", "way": "system"}
    shown |= {name: name for name in ("corpus", "treebank", "split", "metric")}
    own = [shown[name] for name in shown if name in by]
    telling = [name for name in own if name in ("task", "source") or named[name].nunique() > 1]
    for _, group in named.groupby(list(by), dropna=False):
        yield " ".join(str(group[name].iloc[0]) for name in telling if group[name].iloc[0]), group


def best_split(frame: pd.DataFrame) -> pd.DataFrame:
    """Keep the test split of each corpus and task, or, where it was not measured, the dev split."""
    order = frame["split"].map({"test": 0, "dev": 1}).fillna(2)
    return frame[order == order.groupby([frame["corpus"], frame["task"]]).transform("min")]


Model = tuple[str, str, str, float]
"""One model on one language: its score run, the language, the metric and the score."""

Scored = dict[str, list[Model]]
"""The models of one unit, by language."""


def _by_unit(rows: pd.DataFrame, unit: str) -> dict[Any, Scored]:
    """Return the scores of each unit; a loop, as a report asks this of many small frames."""
    found: dict[Any, Scored] = {}
    columns = [rows[name] for name in (unit, "run", "language", "metric", "score")]
    for one, *scored in zip(*columns, strict=True):
        if not pd.isna(one):
            found.setdefault(one, {}).setdefault(scored[1], []).append((*scored,))
    return found


def _mean(scored: Scored, languages: Sequence[str]) -> float:
    return fmean(fmean(one[-1] for one in scored[language]) for language in languages)


Contribution = tuple[Sequence[str], Array, Array]
"""Ids of examples, and part and whole of each [example]."""


def _pairs(
    m: Measurements, sides: Sequence[Sequence[Scored]], languages: Iterable[str]
) -> dict[str, tuple[Sequence[str], Pair]]:
    """Return by language what both systems predicted, [unit example]; nothing where any of it is lacking."""
    found: dict[str, tuple[Sequence[str], Pair]] = {}
    for language in languages:
        kept = [[_kept(m, unit[language]) for unit in side] for side in sides]
        known = [[one for one in side if one is not None] for side in kept]
        ids = {tuple(one[0]) for side in known for one in side}
        if len(ids) != 1 or any(one is None for side in kept for one in side):
            return {}
        ours, theirs = (System(*(np.stack([one[at] for one in side]) for at in (1, 2))) for side in known)
        found[language] = ids.pop(), Pair(ours, theirs)
    return found


def _kept(m: Measurements, models: Sequence[Model]) -> Contribution | None:
    """Return what the models of one unit add to the measure, averaged over them."""
    found: list[Contribution] = []
    for run, language, metric, _ in models:
        kept = m.predictions(run, language)
        if kept is None or metric not in kept.measures:
            return None
        found.append((kept.ids, *kept.measures[metric]))
    if len({one[0] for one in found}) != 1:
        return None
    if len(found) == 1:
        return found[0]
    part, whole = np.mean([one[1] for one in found], axis=0), np.mean([one[2] for one in found], axis=0)
    return found[0][0], part, whole


def _with_examples(found: Comparison, pairs: Mapping[str, tuple[Sequence[str], Pair]]) -> Comparison:
    """Add the error that examples bring, and the test over them."""
    added = {language: (ids, per_example(pair)) for language, (ids, pair) in pairs.items()}
    _, error, examples = error_over_languages(added)
    one = next(iter(pairs.values()))[1]
    test = paired_test(one) if len(pairs) == 1 else verdict_over_languages(added)
    return replace(
        found,
        estimate=crossed(found.values, example_error=error, examples=examples),
        examples=examples,
        test=test.name,
        p_examples=test.p_value,
        effect=cohens_d(np.concatenate([values for _, values in added.values()])),
    )
