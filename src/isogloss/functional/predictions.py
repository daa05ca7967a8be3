"""Predictions of two systems on the same examples, compared and tested; imports neither models nor torch."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from isogloss.core.errors import ConfigError, DataError, check_named
from isogloss.core.rows.models import ByMeasure, Contributions, total
from isogloss.metrics.significance import System, SystemPair, error_over_languages, per_example
from isogloss.reports.comparison import compare_means, over_examples
from isogloss.reports.outputs import contributions_of

Predictions = Sequence[Any]
"""For each example a label, a set of labels, a number, the tags of its words, or an answer."""

NUMBERS = ("score", "baseline_score", "difference", "low", "high", "p_value", "p_units", "p_examples", "test")
"""The numbers of a comparison, of those that reports have."""


def compare(
    system: Predictions | Mapping[int, Predictions],
    baseline: Predictions | Mapping[int, Predictions],
    gold: Predictions | None = None,
    *,
    metric: str = "",
) -> pd.Series:
    """Compare a system's predictions with a baseline's on the same examples, and test the difference.

    Either is the predictions of one model, or a mapping from seeds to the predictions of each seed's model.
    With ``gold`` they are labels, sets of labels, numbers, lists of tags, or texts that answer questions
    (``metric`` "f1" or "em"); without it, they are the values of a measure that is a mean over examples, such
    as 0 and 1. ``metric`` is the main one of such predictions unless named (accuracy, span_f1 …).

    Returned are ``score``, ``baseline_score`` and ``difference`` (0 to 1), with its 95 % interval ``low`` and
    ``high``; ``p_value`` of the test that crosses seeds and examples (min F′), ``p_units`` over seeds alone
    and ``p_examples`` over examples alone, by ``test``: McNemar's for right and wrong of one seed, the paired
    t-test for other means, and a permutation test for F1; the standard error of the difference over examples
    (``error_examples``) and Cohen's d (``effect``); the numbers of ``seeds`` and ``examples``. One seed has
    neither interval nor ``p_value``: another seed may differ by more than examples do.

    DataError where the numbers of examples differ, ConfigError for other seeds or an unknown metric.

    >>> import isogloss
    >>> compared = isogloss.compare([1, 1, 1, 1, 1, 1, 0, 1], [1, 0, 0, 0, 0, 0, 0, 1])
    >>> compared.test, compared.difference, compared.p_examples
    ('McNemar', 0.625, 0.0625)
    """
    sides = [side if isinstance(side, Mapping) else {0: side} for side in (system, baseline)]
    seeds = sorted(sides[0])
    if seeds != sorted(sides[1]):
        raise ConfigError(
            f"compare: the system has the seeds {seeds}, the baseline {sorted(sides[1])}; expected the same."
        )
    measured = [[_measures(side[seed], gold, metric) for seed in seeds] for side in sides]
    shared = [name for name in measured[0][0] if all(name in seed for side in measured for seed in side)]
    if metric:
        check_named("compare", "metric", shared, metric)
    name = metric or shared[0]
    contributions = [[seed[name] for seed in side] for side in measured]
    sizes = sorted({len(seed.part) for side in contributions for seed in side})
    if len(sizes) > 1:
        raise DataError(
            f"compare: predictions of {' and '.join(map(str, sizes))} examples; expected the same ones."
        )
    means = compare_means([""], *([total(seed) for seed in side] for side in contributions))
    pair = SystemPair(*map(_system, contributions))
    ids = [str(number) for number in range(sizes[0])]
    tested = over_examples(means, {"": pair}, {"": ids})
    numbers = tested.numbers()
    return pd.Series(
        {
            "metric": name,
            **{number: numbers[number] for number in NUMBERS},
            "error_examples": error_over_languages({"": (ids, per_example(pair))})[1],
            "effect": tested.effect,
            "seeds": len(seeds),
            "examples": sizes[0],
        }
    )


def _measures(predictions: Predictions, gold: Predictions | None, metric: str) -> ByMeasure:
    """Return what each example adds to each measure, the main one first."""
    if not len(predictions):
        raise DataError("compare: no predictions; expected one for each example, at least one.")
    if gold is None:
        values = [float(value) for value in predictions]
        return {metric or "mean": Contributions(values, [1.0] * len(values))}
    if len(predictions) != len(gold):
        raise DataError(
            f"compare: {len(predictions)} predictions for {len(gold)} gold answers; expected equal."
        )
    return contributions_of(predictions, gold, answers=metric in ("f1", "em"))


def _system(seeds: Sequence[Contributions]) -> System:
    parts, wholes = (
        np.array([getattr(seed, name) for seed in seeds], dtype=float) for name in ("part", "whole")
    )
    return System(parts, wholes)
