"""The spread equals numpy and scipy, and says nothing it cannot know."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from isogloss.core.errors import InputError
from isogloss.metrics.spread import spread

VALUES = st.lists(st.floats(-1e3, 1e3), min_size=2, max_size=12)


@given(VALUES)
def test_spread_equals_numpy_and_scipy(values):
    found = spread(values)
    assert found.n == len(values)
    assert found.mean == pytest.approx(np.mean(values), abs=1e-9)
    assert found.std == pytest.approx(np.std(values, ddof=1), abs=1e-9)
    assert found.variance == pytest.approx(np.var(values, ddof=1), abs=1e-6)
    if found.std > 1e-6:
        low, high = stats.t.interval(0.95, len(values) - 1, np.mean(values), stats.sem(values))
        assert (found.low, found.high) == pytest.approx((low, high), rel=1e-9, abs=1e-9)


@given(VALUES)
def test_spread_ignores_the_order(values):
    found, other = spread(values), spread(sorted(values))
    assert (found.mean, found.std) == pytest.approx((other.mean, other.std), rel=1e-12, abs=1e-12)


def test_spread_of_one_value_has_a_mean_and_no_width():
    found = spread([0.25])
    assert found.mean == 0.25
    assert math.isnan(found.std)
    assert math.isnan(found.low)
    assert math.isnan(found.high)


def test_spread_of_equal_values_is_zero():
    assert (spread([0.3] * 4).std, spread([0.3] * 4).low) == pytest.approx((0.0, 0.3), abs=1e-15)


def test_spread_of_nothing_says_what_to_give():
    with pytest.raises(InputError, match=r"no values\. Give at least one"):
        spread([])
