"""Spreads are compared by turns of signs: scipy's permutation test, and intervals of what is not rejected."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from isogloss.core.errors import InputError
from isogloss.features.claims.spreads import compare_spreads, logits, sign_turning_p_value
from isogloss.metrics.estimates import LEVEL

VALUES = st.lists(st.floats(-1, 1).map(lambda x: round(x, 3)), min_size=2, max_size=7)


@given(VALUES)
def test_turns_of_signs_are_scipys_permutation_test(values):
    expected = stats.permutation_test(
        (values, [0.0] * len(values)),
        lambda x, y, axis: np.abs((x - y).sum(axis=axis)),
        permutation_type="samples",
        alternative="greater",
        vectorized=True,
    )
    assert sign_turning_p_value(np.array(values)) == pytest.approx(expected.pvalue)


def test_spread_is_the_mean_distance_from_the_median():
    spreads = compare_spreads([[1.0], [2.0], [9.0]], [[0.0], [1.0], [3.0]])
    assert spreads.ratio == pytest.approx((1 + 0 + 7) / (1 + 0 + 2))


@pytest.mark.parametrize(("seeds", "decides"), [(3, False), (5, False), (6, True)])
def test_six_seeds_can_decide_and_five_cannot(seeds, decides):
    rng = np.random.default_rng(0)
    first_samples = rng.normal(size=(seeds, 1))
    second = 1e-4 * rng.normal(size=(seeds, 1))
    spreads = compare_spreads(first_samples, second)
    assert (spreads.p_value(1.0) < LEVEL) == decides
    low, high = spreads.interval()
    assert (low > 1, math.isfinite(high)) == (decides, decides)


def test_an_interval_ends_where_bounds_begin_to_be_rejected():
    rng = np.random.default_rng(1)
    spreads = compare_spreads(3 * rng.normal(size=(8, 2)), rng.normal(size=(8, 1)))
    low, high = spreads.interval()
    assert low < spreads.ratio < high
    inside = spreads.p_value(low * 1.001)
    outside = spreads.p_value(low * 0.999)
    assert inside >= LEVEL > outside
    assert spreads.p_value(high * 0.999) >= LEVEL > spreads.p_value(high * 1.001)


def test_a_seed_far_from_the_others_is_no_evidence():
    """By variances, ten standard deviations in one of eight seeds are a ratio of ten (F-test: p < 0.001)."""
    rng = np.random.default_rng(2)
    first_samples = rng.normal(size=(8, 1))
    second = rng.normal(size=(8, 1))
    first_samples[0] = 30
    assert compare_spreads(first_samples, second).p_value(1.0) > LEVEL


def test_logits_are_scipys_and_none_where_a_score_has_none():
    from scipy.special import logit

    shares = np.array([0.1, 0.5, 0.99])
    np.testing.assert_allclose(logits(shares), logit(shares))
    assert not np.isfinite(logits([0.0, 1.0, 1.2])).any()


def test_spreads_of_different_seeds_are_refused():
    with pytest.raises(InputError, match=r"\(2, 1\) and \(3, 1\)"):
        compare_spreads([[1.0], [2.0]], [[1.0], [2.0], [3.0]])
