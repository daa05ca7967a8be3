"""How far repeated numbers lie apart: mean, standard deviation and a 95 % interval of the mean."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

from isogloss.core.errors import InputError

LEVEL = 0.95
"""Coverage of the interval."""


@dataclass(frozen=True, slots=True)
class Spread:
    """Summary of ``n`` numbers; ``std``, ``low`` and ``high`` are nan for n = 1: one number has no spread."""

    mean: float
    std: float
    low: float
    high: float
    n: int

    @property
    def variance(self) -> float:
        """The unbiased variance."""
        return self.std**2


def spread(values: Sequence[float]) -> Spread:
    """Return the mean, the unbiased standard deviation and Student's t interval of the mean."""
    n = len(values)
    if n == 0:
        raise InputError("spread: no values. Give at least one; two or more for a standard deviation.")
    mean = math.fsum(values) / n
    if n == 1:
        return Spread(mean, math.nan, math.nan, math.nan, 1)
    std = math.sqrt(math.fsum((value - mean) ** 2 for value in values) / (n - 1))
    half = _t_quantile(n - 1) * std / math.sqrt(n)
    return Spread(mean, std, mean - half, mean + half, n)


@cache
def _t_quantile(freedom: int) -> float:
    """Return the two-sided quantile of Student's t; a report asks for few different ones, often."""
    from scipy.special import stdtrit

    return float(stdtrit(freedom, (1 + LEVEL) / 2))
