"""Intervals of rank correlations by the bootstrap."""

import math
from collections.abc import Sequence

import numpy as np

from isogloss.core.errors import InputError
from isogloss.metrics.ranks import CORRELATION_TOLERANCE, Array

MIN_DEFINED_SHARE = 0.5
"""Share of bootstrap samples that must have a correlation."""


def bootstrap_interval(
    x: Sequence[float], y: Sequence[float], *, rounds: int = 10_000, seed: int = 0
) -> tuple[float, float]:
    """Return the 95 % percentile interval of Spearman's rho over bootstrap samples of pairs.

    Samples in which one side is constant have no rho and do not count; nan where most have none. With few
    pairs the interval is rough: it shows how much single pairs matter.
    """
    if len(x) != len(y) or len(x) < 2:
        raise InputError(
            f"bootstrap_interval: {len(x)} and {len(y)} values. Give two equally long lists of 2 or more."
        )
    n = len(x)
    draws = np.random.Generator(np.random.PCG64(seed)).multinomial(n, np.full(n, 1 / n), size=rounds)
    times = draws.astype(np.float64)
    ranks_x, ranks_y = (_ranks_in_draws(np.asarray(side, dtype=np.float64), times) for side in (x, y))
    mean_rank = (n + 1) / 2  # The mean of n ranks, ties or not.
    ranks_x, ranks_y = ranks_x - mean_rank, ranks_y - mean_rank
    product = (times * ranks_x * ranks_y).sum(axis=1)
    square = (times * ranks_x**2).sum(axis=1)
    norm = np.sqrt(square * (times * ranks_y**2).sum(axis=1))
    is_defined = norm > CORRELATION_TOLERANCE
    if is_defined.mean() < MIN_DEFINED_SHARE:
        return math.nan, math.nan
    low, high = np.quantile(product[is_defined] / norm[is_defined], [0.025, 0.975])
    return float(low), float(high)


def _ranks_in_draws(values: Array, times: Array) -> Array:
    """Return each value's rank in each sample [draw value], from how often it was drawn."""
    is_smaller = (values[:, None] < values[None, :]).astype(np.float64)
    equal = (values[:, None] == values[None, :]).astype(np.float64)
    return np.asarray(times @ (is_smaller + equal / 2) + 0.5, dtype=np.float64)
