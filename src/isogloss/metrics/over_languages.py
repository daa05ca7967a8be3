"""Is the mean of several languages' differences more than chance? A paired t-test over what is parallel.

A test set says the same in several languages, so a sentence that is hard in one is hard in others: examples
with equal ids are one unit. With one language it is the paired t-test on its examples; with languages that
share no id, the test of a sum of independent means (Liang & Zeger 1986: variance by clusters).
"""

import math
from collections.abc import Mapping, Sequence

import numpy as np

from isogloss.core.errors import InputError
from isogloss.metrics.paired import Array
from isogloss.metrics.significance import TIE, Verdict

NAME = "paired t over languages"


def verdict_over_languages(differences: Mapping[str, tuple[Sequence[str], Array]]) -> Verdict:
    """Test whether the mean over languages of the mean difference is 0.

    ``differences`` are, by language, the examples' ids and what each adds to the difference
    (``paired.per_example``). A single unit proves nothing (p = 1).
    """
    mean, error, n = error_over_languages(differences)
    if abs(mean) <= TIE or n < 2:
        return Verdict(NAME, 0.0, 1.0)
    if error <= TIE:
        return Verdict(NAME, math.copysign(math.inf, mean), 0.0)
    from scipy.special import stdtr

    return Verdict(NAME, mean / error, float(2 * stdtr(n - 1, -abs(mean / error))))


def error_over_languages(
    differences: Mapping[str, tuple[Sequence[str], Array]],
) -> tuple[float, float, int]:
    """Return the mean over languages of the mean difference, its standard error, and the number of units."""
    if not differences:
        raise InputError("test over languages: no language. Give the differences of one or more.")
    units: dict[str, float] = {}
    means = []
    for ids, values in differences.values():
        mean = float(values.mean())
        means.append(mean)
        for one, value in zip(ids, values, strict=True):
            share = (float(value) - mean) / (len(values) * len(differences))
            units[one] = units.get(one, 0.0) + share
    mean, n = math.fsum(means) / len(means), len(units)
    scale = n / (n - 1) if n > 1 else math.nan
    return mean, math.sqrt(float(np.square(list(units.values())).sum()) * scale), n
