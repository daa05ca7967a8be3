"""Comparison of two systems: the difference per seed, its error over seeds and examples, p-values and marks.

Paper: "The Impact of Cross-Lingual Adjustment …", Section 5, whose tests over examples are kept; verdicts and
stars require in addition that the difference generalises to other seeds (``metrics.estimates``).
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from html import escape
from itertools import chain
from statistics import fmean
from typing import Any, TypeVar

import numpy as np
import pandas as pd

from isogloss.metrics.estimates import (
    LEVEL,
    Estimate,
    crossed_estimate,
    independent_estimate,
    t_p_value,
    t_quantile,
)
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

TEST_SET = ["corpus", "treebank", "task", "source", "split", "metric"]
"""Columns that identify a test set. Inputs in two languages are a separate test set."""

SYSTEM = ["encoder", "way", "inputs", "inputs.translator"]
"""Columns that identify a system: encoder (over its seeds), way of training, and form of the inputs."""

FEWEST = 3
"""Minimum number of pairs for a rank correlation. With fewer it is always 1 or -1."""

K = TypeVar("K")

SURE, ON_EXAMPLES = "*", "°"
"""Marks of differences that are significant over seeds and examples, and over only examples."""

TESTS = {
    "paired t": "paired t-test on values averaged over seeds",
    "permutation": "permutation test that swaps whole sentences of all seeds, 1,000 rounds or all there are",
    "McNemar": "McNemar's exact test",
    "paired t over languages": "t-test in which parallel examples count as one",
}


NUMBERS = (
    *("score", "baseline_score", "difference", "low", "high", "effect", "examples", "test", "p_units"),
    *("p_examples", "p_value", "p_holm", "p_examples_holm", "mark", "smallest_seen", "tested_units"),
)
"""The columns of a comparison in tables."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SystemComparison:
    """Two systems compared on one language, or on the mean of several. Scores are means over units."""

    languages: tuple[str, ...]
    score: float
    baseline_score: float
    values: tuple[float, ...]
    """Difference per unit that both sides have, a seed of fine-tuning or of pretraining. For independent
    units: the difference of each unit of the smaller side from the mean of the larger side."""
    estimate: Estimate
    """The mean difference, with its error over units and, where predictions were recorded, examples."""
    examples: int = 0
    """Examples with recorded predictions of both systems."""
    error_examples: float = math.nan
    """Standard error of the difference over examples."""
    test: str = ""
    p_examples: float = math.nan
    """p of the test over examples, averaged over units."""
    effect: float = math.nan
    """Cohen's d of the examples' contributions to the difference."""
    p_holm: float = math.nan
    """``p_value`` after Holm's correction over the tests of a table."""
    p_examples_holm: float = math.nan
    """``p_examples`` after the same correction."""

    @property
    def difference(self) -> float:
        """System minus baseline."""
        return self.estimate.mean

    @property
    def p_units(self) -> float:
        """P of the t-test over units, without examples. nan for one unit."""
        return self.estimate.p_units()

    @property
    def p_value(self) -> float:
        """P of the test that crosses units and examples. nan for one unit."""
        return self.estimate.p_value()

    @property
    def low_examples(self) -> float:
        """Lower end of the 95 % interval over examples, by Student's t. nan for fewer than two examples."""
        return self.difference - self._half_over_examples

    @property
    def high_examples(self) -> float:
        """Upper end of the 95 % interval over examples."""
        return self.difference + self._half_over_examples

    @property
    def _half_over_examples(self) -> float:
        if self.examples < 2:
            return math.nan
        return t_quantile(1 - LEVEL / 2, self.examples - 1) * self.error_examples

    def p_equivalence(self, margin: float) -> float:
        """Return the p of the two one-sided tests (TOST) that the difference is ``margin`` or more.

        Schuirmann (1987): the larger p of the tests at both ends, over units and examples, or over examples
        for one unit.
        """
        p_values = []
        for bound, is_within in ((margin, self.difference < margin), (-margin, self.difference > -margin)):
            p_value = self._p_of_bound(bound)
            p_values.append(p_value / 2 if is_within else 1 - p_value / 2)
        return max(p_values)

    def equivalence(self, margin: float | None) -> dict[str, float | None]:
        """Return the columns of the test of equivalence. None without a margin."""
        return {
            "margin": margin,
            "p_equivalence": None if margin is None else self.p_equivalence(margin),
        }

    def _p_of_bound(self, bound: float) -> float:
        """Return the two-sided p for the difference being this bound."""
        if self.estimate.units > 1:
            return self.estimate.p_value(bound)
        if not self.error_examples:
            return float(self.difference == bound)
        if self.examples < 2:
            return math.nan
        return t_p_value((self.difference - bound) / self.error_examples, self.examples - 1)

    @property
    def mark(self) -> str:
        """The mark of the score in tables."""
        if self.p_holm < LEVEL:
            return SURE
        return ON_EXAMPLES if self.p_examples_holm < LEVEL else ""

    def numbers(self) -> dict[str, object]:
        """Return the columns ``NUMBERS``."""
        parts = {
            **{name: getattr(self.estimate, name) for name in ("low", "high")},
            "smallest_seen": self.estimate.smallest_seen(),
            "tested_units": len(self.values),
        }
        return {name: parts[name] if name in parts else getattr(self, name) for name in NUMBERS}


@dataclass(frozen=True, repr=False)
class Compared:
    """Comparisons of systems with a baseline: a row for each pair of systems and each language."""

    rows: Sequence[Mapping[str, Any]]
    notes: Sequence[str] = ()
    """Records that could not be read, and runs without predictions to test."""

    @cached_property
    def frame(self) -> pd.DataFrame:
        """The rows as a DataFrame."""
        return pd.DataFrame(list(self.rows))

    def __repr__(self) -> str:
        """Return the largest differences in a few lines. ``frame`` has all."""
        sorted_rows = sorted(self.rows, key=lambda row: -abs(row.get("difference") or 0.0))
        texts = [
            f"{row.get('language') or 'all'}: {row['difference']:+.4f}, p = {row['p_examples']:.3g}"
            for row in sorted_rows[:FEWEST]
        ]
        return "\n".join([f"Compared({len(self.rows)} rows, {len(self.notes)} notes; see .frame)", *texts])

    def _repr_html_(self) -> str:
        """Return the rows and the notes as HTML for a notebook."""
        notes = "".join(f"<p>{escape(note)}</p>" for note in self.notes)
        return f"{self.frame.to_html()}{notes}"


def compare_means(
    languages: Sequence[str],
    scores: Sequence[float],
    baseline_scores: Sequence[float],
    *,
    is_paired: bool = True,
) -> SystemComparison:
    """Compare two systems by their scores, each a mean over these languages: in the same units, if paired."""
    if is_paired:
        values = tuple(a - b for a, b in zip(scores, baseline_scores, strict=True))
    elif len(scores) <= len(baseline_scores):
        values = tuple(score - fmean(baseline_scores) for score in scores)
    else:
        values = tuple(fmean(scores) - score for score in baseline_scores)
    return SystemComparison(
        languages=tuple(languages),
        score=fmean(scores),
        baseline_score=fmean(baseline_scores),
        values=values,
        estimate=crossed_estimate(values) if is_paired else independent_estimate(scores, baseline_scores),
    )


def compare(
    measurements: Measurements,
    ours: pd.DataFrame,
    theirs: pd.DataFrame,
    *,
    unit: str = "seed",
    is_paired: bool = True,
) -> SystemComparison | None:
    """Compare the scores of two systems on the mean of the languages that both have.

    Rows are of frame "scores", by one metric. Only units with all of these languages count: in both systems
    if units are paired, else in their system. Returns None if no unit counts.
    """
    sides = [_group_by_unit(model_languages(rows), unit) for rows in (ours, theirs)]
    languages = sorted(set.intersection(*(set[str]().union(*side.values()) for side in sides)))
    complete = [
        {key for key, language_scores in side.items() if language_scores.keys() >= set(languages)}
        for side in sides
    ]
    units = [complete[0] & complete[1]] * 2 if is_paired else complete
    if not languages or not all(units):
        return None
    unit_scores = [[side[key] for key in sorted(keys)] for side, keys in zip(sides, units, strict=True)]
    means = (
        [
            fmean(fmean(score for _, score in models[language_code]) for language_code in languages)
            for models in side
        ]
        for side in unit_scores
    )
    comparison = compare_means(languages, *means, is_paired=is_paired)
    fewer = min(
        len(models) for models in unit_scores
    )  # The test over examples compares as many models of each side.
    return _with_examples(
        measurements, comparison, [side[:fewer] for side in unit_scores], ours["metric"].iloc[0]
    )


def model_languages(scores: pd.DataFrame) -> pd.DataFrame:
    """Return scores of models without targets on all languages, of others on their sources and targets."""

    def counts(language: str, target: str, source: str) -> bool:
        return not target or language in target.split("+") or language in source.split("+")

    return filter_rows(scores, counts, "language", "target", "source") if len(scores) else scores


def row_keys(rows: pd.DataFrame, columns: Iterable[str]) -> pd.Series:
    """Return a text for each row, equal if these columns are equal. Missing values are equal."""
    values = zip(
        [""] * len(rows),
        *((str(value) for value in rows[name].astype(object)) for name in columns),
        strict=True,
    )
    return pd.Series(map("\n".join, values), index=rows.index, dtype=object)


def filter_rows(rows: pd.DataFrame, condition: Callable[..., bool], *columns: str) -> pd.DataFrame:
    """Return the rows whose values in these columns fulfil a condition."""
    keep = [condition(*values) for values in zip(*(rows[name] for name in columns), strict=True)]
    return rows[np.array(keep, dtype=bool)]


def rows_of(rows: pd.DataFrame, values: Mapping[str, object]) -> pd.DataFrame:
    """Return the rows with these values, by column."""
    return rows[(rows[list(values)] == list(values.values())).all(axis=1)]


def where_any(rows: pd.DataFrame, name: str, value: object) -> pd.DataFrame:
    """Return the rows with a value in a column, or all where none has it."""
    matching = rows[rows[name] == value]
    return matching if len(matching) else rows


def holm_corrected(tests: Mapping[K, SystemComparison]) -> dict[K, SystemComparison]:
    """Return the tests of one table with p-values after Holm's correction over all of them."""
    units, examples = (
        iter(holm([getattr(comparison, name) for comparison in tests.values()]))
        for name in ("p_value", "p_examples")
    )
    return {
        key: replace(comparison, p_holm=next(units), p_examples_holm=next(examples))
        for key, comparison in tests.items()
    }


def unit_of(*frames: pd.DataFrame) -> str:
    """Return the unit of replication: pretraining seeds of encoders trained here, else fine-tuning seeds.

    One pretrained encoder and its adjusted versions are replicated only by fine-tuning.
    """
    kinds, encoders, originals, seeds = (
        {value for frame in frames for value in frame[name].dropna()}
        for name in ("encoder.kind", "encoder", "encoder.original", "encoder.seed")
    )
    is_replicated = len(encoders) > 1 and max(len(originals), len(seeds)) > 1
    return "encoder.seed" if kinds == {"pretrain"} and is_replicated else "seed"


def best_split(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the test split of each corpus and task, or the dev split where test was not measured."""
    order = frame["split"].map({"test": 0, "dev": 1}).fillna(2)
    return frame[order == order.groupby([frame["corpus"], frame["task"]]).transform("min")]


def main_scores(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the scores by their tasks' main metrics on the best split of each corpus and task."""
    return best_split(frame[frame["main"].astype(bool)])


Scored = dict[str, list[tuple[str, float]]]
"""Score runs and scores of the models of one unit, by language."""


def _group_by_unit(rows: pd.DataFrame, unit: str) -> dict[int, Scored]:
    """Return the scores of each unit. A loop is faster than pandas on many small frames."""
    unit_scores: dict[int, Scored] = {}
    columns = [rows[name] for name in (unit, "language", "run", "score")]
    for key, language, *values in zip(*columns, strict=True):
        if not pd.isna(key):
            unit_scores.setdefault(key, {}).setdefault(language, []).append(tuple(values))
    return unit_scores


def _with_examples(
    measurements: Measurements, comparison: SystemComparison, sides: Sequence[Sequence[Scored]], metric: str
) -> SystemComparison:
    """Add the error over examples, and the test over them, where all predictions were recorded."""
    needed_runs = {
        (run, language_code)
        for unit in chain(*sides)
        for language_code in comparison.languages
        for run, _ in unit[language_code]
    }
    contributions_by_run = {
        key: predictions
        for key in needed_runs
        if (predictions := measurements.predictions(*key)) and metric in predictions.measures
    }
    ids = {language_code: predictions.ids for (_, language_code), predictions in contributions_by_run.items()}
    if len(contributions_by_run) < len(needed_runs) or any(
        predictions.ids != ids[language_code]
        for (_, language_code), predictions in contributions_by_run.items()
    ):
        return comparison
    pairs = {}
    for language_code in comparison.languages:
        models = [
            [
                [contributions_by_run[run, language_code].measures[metric] for run, _ in unit[language_code]]
                for unit in side
            ]
            for side in sides
        ]
        units = [np.array([np.mean(unit, axis=0) for unit in side]) for side in models]
        pairs[language_code] = SystemPair(*(System(sums[:, 0], sums[:, 1]) for sums in units))
    return add_example_test(comparison, pairs, ids)


def add_example_test(
    comparison: SystemComparison, pairs: Mapping[str, SystemPair], ids: Mapping[str, Sequence[str]]
) -> SystemComparison:
    """Add the error over examples, and the test over them, to a comparison on these languages.

    Examples with equal ids in several languages count as one.
    """
    language_differences = {
        language_code: (ids[language_code], per_example(pair)) for language_code, pair in pairs.items()
    }
    _, error, examples = error_over_languages(language_differences)
    test = (
        paired_test(*pairs.values())
        if len(pairs) == 1
        else paired_t_test_over_languages(language_differences)
    )
    return replace(
        comparison,
        estimate=comparison.estimate.with_examples(error, examples),
        examples=examples,
        error_examples=error,
        test=test.name,
        p_examples=test.p_value,
        effect=cohens_d(np.concatenate([values for _, values in language_differences.values()])),
    )
