"""A mean over two kinds of units that are both samples, such as targets and seeds."""

import math

import numpy as np
import numpy.typing as npt

from isogloss.core.errors import InputError
from isogloss.metrics.estimates import Estimate


def two_way_estimate(grid: npt.ArrayLike) -> Estimate:
    """Estimate the mean of a table whose rows (such as targets) and columns (such as seeds) are both samples.

    The interval is for other rows and other columns. The variance of the mean is (MS_rows + MS_columns −
    MS_rest) / n, but at least MS_rows / n and MS_columns / n, with Satterthwaite's degrees of freedom.
    ``units`` is the smaller number of both.
    """
    values = np.asarray(grid, dtype=np.float64)
    if values.ndim != 2 or not values.size or np.isnan(values).any():
        raise InputError(
            f"two_way_estimate: a table of shape {values.shape}. Give a value for each row with each column."
        )
    rows, columns = values.shape
    mean = float(values.mean())
    units = min(rows, columns)
    if units < 2:
        return Estimate(mean, math.nan, math.nan, math.nan, units, math.nan)
    row_means = values.mean(axis=1, keepdims=True)
    column_means = values.mean(axis=0, keepdims=True)
    row_square = float(columns * ((row_means - mean) ** 2).sum()) / (rows - 1)
    column_square = float(rows * ((column_means - mean) ** 2).sum()) / (columns - 1)
    rest = values - row_means - column_means + mean
    rest_freedom = (rows - 1) * (columns - 1)
    rest_square = float((rest**2).sum()) / rest_freedom
    total = max(row_square + column_square - rest_square, row_square, column_square)
    parts = row_square**2 / (rows - 1) + column_square**2 / (columns - 1) + rest_square**2 / rest_freedom
    freedom = max(1.0, total**2 / parts) if parts else float(units - 1)
    error = math.sqrt(total / values.size)
    return Estimate(mean, error, error, freedom, units, freedom)
