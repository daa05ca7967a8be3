"""Means over runs and their errors: numpy's, scipy's, Clark's min F′, and how often they reject the null."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from isogloss.core.errors import InputError
from isogloss.metrics.estimates import (
    LEVEL,
    crossed_estimate,
    independent_estimate,
    mean_std,
    random_effects,
)

EXAMPLES = 100

RATIOS = (0.0, 0.25, 1.0, 4.0, 25.0)
"""Variance of the mean due to units, over the variance due to examples."""

RESIDUAL = 0.5
"""Standard deviation of the residual, if the standard deviation of examples is 1."""

VALUES = st.lists(st.floats(-1e3, 1e3), min_size=2, max_size=12)

numbers = st.lists(st.floats(-1, 1).map(lambda x: round(x, 3)), min_size=2, max_size=8).filter(
    lambda values: len(set(values)) > 1
)


def draw_differences(rng, units, ratio):
    """Draw differences [unit example] of two systems that are equally good."""
    unit_noise = rng.standard_normal((units, 1)) * math.sqrt(ratio / EXAMPLES)
    example_noise = rng.standard_normal((1, EXAMPLES))
    return unit_noise + example_noise + RESIDUAL * rng.standard_normal((units, EXAMPLES))


def estimate_of(values):
    over_units = values.mean(axis=0)
    error = over_units.std(ddof=1) / math.sqrt(EXAMPLES)
    return crossed_estimate(list(values.mean(axis=1)), example_error=error, examples=EXAMPLES)


@given(VALUES)
def test_mean_and_standard_deviation_are_those_of_numpy_and_scipy_in_any_order(values):
    for result in (mean_std(values), mean_std(sorted(values))):
        assert result.n == len(values)
        assert result.mean == pytest.approx(np.mean(values), abs=1e-9)
        assert result.std == pytest.approx(np.std(values, ddof=1), abs=1e-9)
        if result.std > 1e-6:
            expected = stats.t.interval(0.95, len(values) - 1, np.mean(values), stats.sem(values))
            assert (result.low, result.high) == pytest.approx(expected, rel=1e-9, abs=1e-9)


def test_few_or_equal_values_have_known_deviations():
    values = mean_std([0.25])
    equal = mean_std([0.3] * 4)
    assert values.mean == 0.25
    assert all(math.isnan(std) for std in (values.std, values.low, values.high))
    assert (equal.std, equal.low) == pytest.approx((0.0, 0.3), abs=1e-15)
    with pytest.raises(InputError, match="least"):
        mean_std([])


@given(numbers)
def test_over_units_alone_it_is_students_test(values):
    estimate = crossed_estimate(values)
    expected = stats.ttest_1samp(values, 0)
    assert estimate.p_value() == pytest.approx(expected.pvalue, abs=1e-9)
    interval = expected.confidence_interval()
    assert (estimate.low, estimate.high) == pytest.approx((interval.low, interval.high), abs=1e-9)


@given(numbers, st.floats(0.001, 1))
def test_it_is_clarks_min_f(values, example_error):
    """Clark (1973): min F' = F1·F2 / (F1 + F2), with (F1 + F2)² / (F1²/n2 + F2²/n1) degrees of freedom."""
    n = len(values)
    mean = float(np.mean(values))
    estimate = crossed_estimate(values, example_error=example_error, examples=40)
    unit_ratio = mean**2 / (np.var(values, ddof=1) / n)
    example_ratio = mean**2 / example_error**2
    if abs(mean) < 1e-6:
        return
    min_f = unit_ratio * example_ratio / (unit_ratio + example_ratio)
    freedom = (unit_ratio + example_ratio) ** 2 / (unit_ratio**2 / 39 + example_ratio**2 / (n - 1))
    assert (mean / estimate.error) ** 2 == pytest.approx(min_f)
    assert estimate.freedom == pytest.approx(freedom)
    values_by_units = stats.f.sf(unit_ratio, 1, n - 1)
    assert estimate.p_value() == pytest.approx(max(stats.f.sf(min_f, 1, freedom), values_by_units), abs=1e-9)


def test_min_f_worked_out_by_hand():
    """Differences 1, 2, 3 (mean 2, variance 1) with an error of 0.5 over 25 examples.

    F1 = 4 / (1/3) = 12, F2 = 4 / .25 = 16; min F' = 192 / 28 = 6.857; freedom 28² / (144/24 + 256/2) = 5.851.
    """
    estimate = crossed_estimate([1.0, 2.0, 3.0], example_error=0.5, examples=25)
    assert (estimate.mean / estimate.error) ** 2 == pytest.approx(6.857, abs=1e-3)
    assert estimate.freedom == pytest.approx(5.851, abs=1e-3)


@given(numbers, numbers)
def test_independent_units_are_compared_by_welchs_test(ours, theirs):
    result = independent_estimate(ours, theirs)
    expected = stats.ttest_ind(ours, theirs, equal_var=False)
    interval = expected.confidence_interval()
    assert result.p_value() == result.p_units() == pytest.approx(expected.pvalue, abs=1e-9)
    assert (result.low, result.high) == pytest.approx((interval.low, interval.high), abs=1e-9)
    assert result.freedom == pytest.approx(expected.df)
    assert result.units == min(len(ours), len(theirs))


@given(numbers, numbers, st.floats(0.001, 1))
def test_examples_add_to_welchs_error_as_in_min_f(ours, theirs, example_error):
    welch = independent_estimate(ours, theirs)
    result = welch.with_examples(example_error, 40)
    variances = welch.error**2, example_error**2
    parts = variances[0] ** 2 / welch.freedom + variances[1] ** 2 / 39
    assert result.error == pytest.approx(math.sqrt(sum(variances)))
    assert result.freedom == pytest.approx(sum(variances) ** 2 / parts)


MEANS = (0.095, 0.277, 0.367, 0.664, 0.462, 0.185)
ERRORS = tuple(weight**-0.5 for weight in (30.352, 32.568, 20.048, 95.111, 23.439, 42.698))
"""Effects of six studies, and their errors by the weights 1/V that the textbook prints (sum: 244.215)."""


def test_the_mean_over_studies_is_that_of_a_textbook():
    """Borenstein et al. (2009), Introduction to Meta-Analysis, Chapter 14: M* = 0.3582, T² = 0.0372.

    Hartung's and Knapp's interval is Student's t of five degrees of freedom around the weighted variance.
    """
    values = random_effects(MEANS, ERRORS)
    assert values.mean == pytest.approx(0.3582, abs=2e-3)
    assert values.between**2 == pytest.approx(0.0372, abs=2e-3)
    weights = 1 / (np.square(ERRORS) + values.between**2)
    around = (weights * np.square(np.array(MEANS) - values.mean)).sum() / 5
    half_size = stats.t.ppf(0.975, 5) * math.sqrt(max(1, around) / weights.sum())
    assert (values.low, values.high) == pytest.approx((values.mean - half_size, values.mean + half_size))


@given(st.lists(st.floats(-1, 1), min_size=2, max_size=8))
def test_studies_of_equal_errors_that_agree_have_their_plain_mean(means):
    values = random_effects(means, [10.0] * len(means))
    assert values.between == 0 and values.studies == len(means)
    assert values.mean == pytest.approx(np.mean(means), abs=1e-9)


def test_one_study_has_no_mean_over_studies():
    with pytest.raises(InputError, match=r"1.*1.*errors"):
        random_effects([1.0], [0.1])


def test_one_unit_says_nothing():
    estimate = crossed_estimate([0.3], example_error=0.001, examples=1000)
    assert all(math.isnan(p_value) for p_value in (estimate.p_value(), estimate.low, estimate.high))


@given(numbers, st.floats(0, 1))
def test_examples_never_make_it_surer(values, example_error):
    single_estimate = crossed_estimate(values)
    estimates = crossed_estimate(values, example_error=example_error, examples=50)
    assert estimates.p_value() >= single_estimate.p_value() - 1e-12
    assert estimates.low <= single_estimate.low + 1e-12
    assert estimates.high >= single_estimate.high - 1e-12


@given(numbers, st.floats(0, 0.5))
def test_the_interval_holds_what_is_not_rejected(values, example_error):
    estimate = crossed_estimate(values, example_error=example_error, examples=50)
    for bound in (-0.4, 0.0, 0.3):
        inside = estimate.low < bound < estimate.high
        assert inside == (estimate.p_value(bound) > LEVEL) or abs(estimate.p_value(bound) - LEVEL) < 1e-6


@pytest.mark.nightly
@pytest.mark.slow
@pytest.mark.parametrize("units", [3, 5])
@pytest.mark.parametrize("ratio", RATIOS)
def test_a_true_null_is_rejected_no_more_often_than_said(units, ratio):
    rng = np.random.default_rng(0)
    rounds = 4000
    rejected_total = sum(
        estimate_of(draw_differences(rng, units, ratio)).p_value() < LEVEL for _ in range(rounds)
    )
    assert rejected_total / rounds <= (0.055 if ratio <= 4 else 0.06)  # 5.6 % at the worst, in 20,000 rounds


def test_a_large_effect_is_detected():
    rng = np.random.default_rng(0)
    result = [estimate_of(draw_differences(rng, 5, 0.25) + 1.0).p_value() < LEVEL for _ in range(200)]
    assert np.mean(result) > 0.95


def test_the_smallest_detectable_effect_is_detected_four_times_in_five():
    """With many units all parts of the error are known well, so that the promise can be checked."""
    rng = np.random.default_rng(0)
    units = 40
    ratio = 1.0
    error = math.sqrt((1 + ratio / units + RESIDUAL**2 / units) / EXAMPLES)
    effect = (stats.norm.ppf(0.975) + stats.norm.ppf(0.8)) * error
    estimates = [estimate_of(draw_differences(rng, units, ratio) + effect) for _ in range(600)]
    assert np.mean([estimate.p_value() < LEVEL for estimate in estimates]) == pytest.approx(0.8, abs=0.05)
    assert np.median([estimate.smallest_seen() for estimate in estimates]) == pytest.approx(effect, rel=0.1)


@given(numbers, st.floats(0.01, 1), st.floats(0, 0.3))
def test_the_units_that_detect_an_effect_are_the_fewest(values, effect, example_error):
    estimate = crossed_estimate(values, example_error=example_error, examples=10_000)
    units = estimate.units_to_detect(effect)
    variance = np.var(values, ddof=1)
    for more, detects in ((units, True), (units and units - 1, False)):
        if more is not None and more >= 2:
            errors = math.sqrt(variance / more), math.sqrt(variance / more + example_error**2)
            freedom = more - 1, errors[1] ** 4 / (errors[0] ** 4 / (more - 1) + example_error**4 / 9_999)
            smallest = max(
                (stats.t.ppf(0.975, n) + stats.t.ppf(0.8, n)) * error
                for error, n in zip(errors, freedom, strict=True)
            )
            assert (smallest <= effect * (1 + 1e-9)) == detects or abs(smallest - effect) < 1e-6
    if units is None:
        assert 2.7 * example_error > effect or 2.7 * math.sqrt(variance / 10_000) > effect / 2


def test_equal_units_need_as_many_as_their_signs_take():
    assert crossed_estimate([0.5, 0.5, 0.5]).units_to_detect(0.1) == 6
    assert crossed_estimate([0.5]).units_to_detect(0.1) is None
