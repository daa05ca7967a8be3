"""Contributions of examples to a statistic of a path or plane, and the resulting error over examples.

A statistic is a weighted sum of scores at points, such as the slope (s(0.25) - s(0)) / 0.25. An example's
contribution is the same sum over its contributions to the scores (``metrics.significance.influence``).
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd

from isogloss.data.result_files import measure_at
from isogloss.metrics.significance import Array, System, influence
from isogloss.reports.measurements import Measurements

Weights = Mapping[tuple[float, ...], float]
"""Contributions to the score at each point, by its coordinates."""


@dataclass(frozen=True)
class ExampleTerms:
    """Contributions of examples to a statistic. Their mean is the statistic."""

    ids: tuple[str, ...]
    values: Array
    """[example]."""


@dataclass(frozen=True)
class PathExamples:
    """Contributions of examples on a path or plane in one language.

    They are read again on each access, because they are too many to cache.
    """

    m: Measurements
    run: str
    language: str
    metric: str

    def list_terms(self, statistics: Mapping[str, Weights]) -> dict[str, ExampleTerms]:
        """Return contributions of examples to each statistic whose points were all recorded."""
        contributions = self.m.stored(self.run).get(self.language)
        if contributions is None:
            return {}
        sums: dict[str, ExampleTerms] = {}
        for name, weights in statistics.items():
            points = {measure_at(self.metric, alphas): weight for alphas, weight in weights.items()}
            if points.keys() <= contributions.measures.keys():
                systems = {
                    point: System(*(side[None] for side in contributions.measures[point])) for point in points
                }
                values = [weight * influence(systems[point]) for point, weight in points.items()]
                sums[name] = ExampleTerms(contributions.ids, np.sum(values, axis=0))
        return sums


def examples_of(measurements: Measurements, first_row: pd.Series) -> PathExamples:
    """Return the examples of the path or plane of a row."""
    return PathExamples(measurements, first_row["run"], first_row["language"], first_row["metric"])


def error_over_examples(weighted_terms: Iterable[tuple[float, ExampleTerms]]) -> tuple[float, int]:
    """Return the standard error over examples of a weighted sum of statistics, and the number of examples.

    Examples with equal ids are one: all seeds answer them, and parallel sets have them in every language.
    """
    sums: dict[tuple[str, ...], Array] = {}
    for weight, terms in weighted_terms:
        deviations = weight * (terms.values - terms.values.mean()) / len(terms.values)
        sums[terms.ids] = sums[terms.ids] + deviations if terms.ids in sums else deviations
    values_by_id: dict[str, float] = {}
    for ids, values in sums.items():
        for key, value in zip(ids, values, strict=True):
            values_by_id[key] = values_by_id.get(key, 0.0) + float(value)
    n = len(values_by_id)
    scale = n / (n - 1) if n > 1 else math.nan
    return math.sqrt(scale * math.fsum(value**2 for value in values_by_id.values())), n


def example_error(rows: pd.DataFrame, name: str, means: pd.DataFrame) -> list[tuple[float, ExampleTerms]]:
    """Return contributions of examples to the mean over units and targets, or nothing if some lack them.

    ``means`` [unit target] has the units and targets that count; a unit's fine-tuning seeds are averaged.
    """
    counted_rows = rows[rows["unit"].isin(means.index) & rows["target"].isin(means.columns)]
    size = counted_rows.groupby(["unit", "target"])["unit"].transform("size") * means.size
    terms = [contributions.get(name) for contributions in counted_rows["added"]]
    if None in terms:
        return []
    return [(1 / term_size, part) for term_size, part in zip(size, terms, strict=True)]


def difference(
    ours: Iterable[tuple[float, ExampleTerms]], theirs: Iterable[tuple[float, ExampleTerms]] = ()
) -> list[tuple[float, ExampleTerms]]:
    """Return contributions of examples to the difference of two means."""
    return [*ours, *((-weight, terms) for weight, terms in theirs)]
