"""Systems held against others: the difference with each seed, its error over seeds and examples, p and marks.

Paper: "The Impact of Cross-Lingual Adjustment …", Section 5, whose tests over examples are kept; a verdict
and a star ask for more, namely that other seeds would show it too (``metrics.estimates``).
"""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from statistics import fmean
from typing import Any

import numpy as np
import pandas as pd

from isogloss.metrics.correlation import spearman
from isogloss.metrics.estimates import LEVEL, Estimate, crossed_estimate
from isogloss.metrics.significance import (
    System,
    SystemPair,
    cohens_d,
    error_over_languages,
    holm,
    paired_t_test_over_languages,
    paired_test,
    per_example,
)
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
        return crossed_estimate(self.values).p_value()

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
    languages = sorted(set.intersection(*(set[str]().union(*side.values()) for side in sides)))
    both = sides[0].keys() & sides[1].keys()
    units = sorted(one for one in both if all(side[one].keys() >= {*languages} for side in sides))
    if not languages or not units:
        return None
    scored = [[side[one] for one in units] for side in sides]
    mine, yours = (
        [fmean(fmean(score for _, score in own[one]) for one in languages) for own in side] for side in scored
    )
    values = tuple(a - b for a, b in zip(mine, yours, strict=True))
    found = Comparison(
        languages=tuple(languages),
        score=fmean(mine),
        baseline_score=fmean(yours),
        values=values,
        estimate=crossed_estimate(values),
    )
    return _with_examples(m, found, scored, ours["metric"].iloc[0])


def spoken_for(scores: pd.DataFrame) -> pd.DataFrame:
    """Keep what a model speaks about: all languages, but of targets its own where it was made for some."""

    def spoken(language: str, target: str, source: str) -> bool:
        return not target or language in target.split("+") or language in source.split("+")

    return where(scores, spoken, "language", "target", "source") if len(scores) else scores


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


def corrected(tests: Mapping[Any, Comparison]) -> dict[Any, Comparison]:
    """Return the tests of one table with p-values after Holm's correction over all of them."""
    units, examples = (
        _holm([getattr(one, name) for one in tests.values()]) for name in ("p_value", "p_examples")
    )
    return {
        key: replace(one, p_holm=next(units), p_examples_holm=next(examples)) for key, one in tests.items()
    }


def _holm(p_values: Sequence[float]) -> Iterator[float]:
    """Correct those that are known; nan for the others."""
    known = iter(holm([one for one in p_values if not math.isnan(one)]))
    return (one if math.isnan(one) else next(known) for one in p_values)


def unit_of(*frames: pd.DataFrame) -> str:
    """Return what replicates a comparison: pretraining seeds of encoders made here, else fine-tuning seeds.

    One pretraining and what adjusted it are replicated by fine-tuning alone.
    """
    kinds, encoders, originals, seeds = (
        {value for one in frames for value in one[name].dropna()}
        for name in ("encoder.kind", "encoder", "encoder.original", "encoder.seed")
    )
    replicated = len(encoders) > 1 and max(len(originals), len(seeds)) > 1
    return "encoder.seed" if kinds == {"pretrain"} and replicated else "seed"


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


Scored = dict[str, list[tuple[str, float]]]
"""The models of one unit, by language: their score runs and scores."""


def _by_unit(rows: pd.DataFrame, unit: str) -> dict[Any, Scored]:
    """Return the scores of each unit; a loop, as a report asks this of many small frames."""
    found: dict[Any, Scored] = {}
    columns = [rows[name] for name in (unit, "language", "run", "score")]
    for one, language, *scored in zip(*columns, strict=True):
        if not pd.isna(one):
            found.setdefault(one, {}).setdefault(language, []).append((*scored,))
    return found


def _with_examples(
    m: Measurements, found: Comparison, sides: Sequence[Sequence[Scored]], metric: str
) -> Comparison:
    """Add the error that examples bring, and the test over them, where all predictions were kept."""
    asked = {(run, code) for unit in chain(*sides) for code in found.languages for run, _ in unit[code]}
    kept = {key: one for key in asked if (one := m.predictions(*key)) and metric in one.measures}
    ids = {code: one.ids for (_, code), one in kept.items()}
    if len(kept) < len(asked) or any(one.ids != ids[code] for (_, code), one in kept.items()):
        return found
    pairs = {}
    for code in found.languages:
        models = [
            [[kept[run, code].measures[metric] for run, _ in unit[code]] for unit in side] for side in sides
        ]
        units = [np.array([np.mean(unit, axis=0) for unit in side]) for side in models]
        pairs[code] = SystemPair(*(System(own[:, 0], own[:, 1]) for own in units))
    added = {code: (ids[code], per_example(pair)) for code, pair in pairs.items()}
    _, error, examples = error_over_languages(added)
    test = paired_test(*pairs.values()) if len(pairs) == 1 else paired_t_test_over_languages(added)
    return replace(
        found,
        estimate=crossed_estimate(found.values, example_error=error, examples=examples),
        examples=examples,
        test=test.name,
        p_examples=test.p_value,
        effect=cohens_d(np.concatenate([values for _, values in added.values()])),
    )
