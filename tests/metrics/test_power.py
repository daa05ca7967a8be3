"""Power equals simulated trainings and scipy's noncentral t. Fewer seeds would not suffice."""

import math

import numpy as np
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

from isogloss.core.errors import InputError
from isogloss.metrics.significance import power_of, seeds_needed

SIZES = st.floats(0.3, 3)


@given(SIZES, st.integers(2, 30))
def test_power_is_that_of_the_noncentral_t(size, seeds):
    needed_value = scipy.stats.t.ppf(0.975, seeds - 1)
    shifted_value = scipy.stats.nct(seeds - 1, size * math.sqrt(seeds))
    expected = shifted_value.sf(needed_value) + np.nan_to_num(
        shifted_value.cdf(-needed_value)
    )  # nan where it is 0
    assert power_of(size, 1.0, seeds) == pytest.approx(expected, abs=1e-6)


def test_power_is_how_often_simulated_trainings_show_the_difference():
    samples = np.random.default_rng(0).normal(1.0, 1.5, (20_000, 8))
    is_seen = scipy.stats.ttest_1samp(samples, 0, axis=1).pvalue < 0.05
    assert power_of(1.0, 1.5, 8) == pytest.approx(is_seen.mean(), abs=0.01)


@given(SIZES)
def test_the_seeds_needed_are_the_fewest_that_do(size):
    seeds = seeds_needed(size, 1.0)
    assert power_of(size, 1.0, seeds) >= 0.8 > power_of(size, 1.0, seeds - 1)


def test_half_a_standard_deviation_takes_34():
    """Cohen (1988), Table 2.4.1, and G*Power: paired t, d = 0.5, two-sided."""
    assert seeds_needed(0.5, 1.0) == 34


@pytest.mark.parametrize(
    ("difference", "std", "seeds"), [(1e-6, 1.0, None), (0.025, 1.0, None), (0.001, 0.0, 2)]
)
def test_extreme_differences_take_too_many_seeds_or_two(difference, std, seeds):
    assert seeds_needed(difference, std) == seeds


@pytest.mark.parametrize(
    ("inputs", "power"),
    [((0.0, 0.0, 3), 0.05), ((5.0, 0.1, 1), 0.0), ((1000.0, 0.001, 50), 1.0), ((1e300, 1e-300, 5), 1.0)],
)
def test_extreme_settings_have_known_power(inputs, power):
    assert power_of(*inputs) == pytest.approx(power)


@given(st.floats(0, 1e6), st.floats(0, 1e3), st.integers(1, 200))
def test_power_is_a_probability(difference, std, seeds):
    assert 0 <= power_of(difference, std, seeds) <= 1


def test_a_difference_of_nothing_is_no_question():
    with pytest.raises(InputError, match=r"difference.*0"):
        seeds_needed(0.0, 1.0)


@pytest.mark.parametrize("wrong", [(math.nan, 1.0, 3), (1.0, -1.0, 3), (1.0, math.inf, 3), (1.0, 1.0, 0)])
def test_what_is_no_number_is_refused(wrong):
    with pytest.raises(InputError, match="finite"):
        power_of(*wrong)
