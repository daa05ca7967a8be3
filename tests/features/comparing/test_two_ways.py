"""A mean over targets and seeds: estimated variances, and intervals that cover other targets and seeds."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from isogloss.core.errors import InputError
from isogloss.features.comparing.two_ways import two_way_estimate
from isogloss.metrics.estimates import crossed_estimate


def components(grid):
    """Return the variance of the mean of a table from estimated variances of rows, columns and the rest."""
    rows, columns = grid.shape
    total = ((grid - grid.mean()) ** 2).sum()
    by_row = columns * grid.mean(axis=1).var() * rows
    by_column = rows * grid.mean(axis=0).var() * columns
    rest = (total - by_row - by_column) / ((rows - 1) * (columns - 1))
    row_variance = (by_row / (rows - 1) - rest) / columns
    column_variance = (by_column / (columns - 1) - rest) / rows
    return row_variance, column_variance, row_variance / rows + column_variance / columns + rest / grid.size


@given(st.integers(0, 10_000), st.integers(2, 6), st.integers(2, 6))
def test_two_ways_are_the_estimated_variances_of_rows_columns_and_the_rest(seed, rows, columns):
    rng = np.random.default_rng(seed)
    grid = rng.normal(size=(rows, 1)) + 2 * rng.normal(size=(1, columns)) + rng.normal(size=(rows, columns))
    estimate = two_way_estimate(grid)
    turned = two_way_estimate(grid.T)
    assert (estimate.mean, estimate.error) == pytest.approx((turned.mean, turned.error))
    row_variance, column_variance, expected = components(grid)
    if min(row_variance, column_variance) > 0:
        assert estimate.error**2 == pytest.approx(expected)
    assert estimate.error**2 >= expected - 1e-12


def test_equal_columns_are_no_evidence():
    """Seeds that all give the same show nothing about other targets: the t-test over targets remains."""
    targets = [1.0, 2.5, 2.0, 4.0]
    estimate = two_way_estimate(np.repeat(np.array(targets)[:, None], 5, axis=1))
    alone = crossed_estimate(targets)
    assert (estimate.error, estimate.freedom) == pytest.approx((alone.error, alone.freedom))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["normal", "skewed", "heavy"])
@pytest.mark.parametrize("sizes", [(1, 1, 1), (1, 0, 1), (0, 1, 1), (0, 0, 1), (2, 0.3, 1), (1, 1, 0.1)])
def test_intervals_of_two_ways_cover_other_rows_and_columns(name, sizes):
    rng = np.random.default_rng(0)
    draw = {
        "normal": rng.standard_normal,
        "skewed": lambda shape: rng.exponential(size=shape) - 1,
        "heavy": lambda shape: rng.standard_t(3, size=shape),
    }[name]
    of_rows, of_columns, of_rest = sizes
    covered = []
    for _ in range(500):
        grid = of_rows * draw((4, 1)) + of_columns * draw((1, 4)) + of_rest * draw((4, 4))
        estimate = two_way_estimate(grid)
        covered.append(estimate.low <= 0 <= estimate.high)
    assert np.mean(covered) > (0.89 if name == "skewed" else 0.93)


@pytest.mark.parametrize("grid", [[], [1.0, 2.0], [[1.0, math.nan], [2.0, 3.0]], [[[1.0]]]])
def test_a_table_with_holes_is_refused(grid):
    with pytest.raises(InputError, match="shape"):
        two_way_estimate(grid)


@pytest.mark.parametrize("grid", [[[1.0]], [[1.0, 2.0]], [[1.0], [3.0]]])
def test_one_row_or_column_has_a_mean_alone(grid):
    estimate = two_way_estimate(grid)
    assert estimate.mean == np.mean(grid)
    assert math.isnan(estimate.low)
    assert math.isnan(estimate.p_value())
