"""Spearman equals scipy, ties included. The exact p-value equals counting every order."""

import math
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from each import each
from isogloss.core.errors import InputError
from isogloss.core.rows.models import total
from isogloss.features.representations.rank_intervals import bootstrap_interval
from isogloss.metrics.ranks import correlation_contributions, ranks, spearman, spearman_within, trend_p_value

FEW = st.integers(0, 6)


def pairs(minimum, maximum):
    return st.lists(st.tuples(FEW, FEW), min_size=minimum, max_size=maximum).filter(
        lambda rows: len({x for x, _ in rows}) > 1 and len({y for _, y in rows}) > 1
    )


@given(st.lists(FEW, min_size=1, max_size=20))
def test_ranks_equal_scipy_with_ties(values):
    assert ranks(values).tolist() == stats.rankdata(values).tolist()


@given(pairs(8, 30))
def test_spearman_equals_scipy_for_many_pairs(rows):
    x, y = zip(*rows, strict=True)
    result = spearman(x, y)
    expected = stats.spearmanr(x, y)
    assert result.rho == pytest.approx(expected.statistic, abs=1e-12)
    assert result.p_value == pytest.approx(expected.pvalue, abs=1e-9)


@given(pairs(4, 12))
def test_interval_equals_fisher_z_of_the_ranks(rows):
    x, y = zip(*rows, strict=True)
    result = spearman(x, y)
    if abs(result.rho) < 1 - 1e-9:
        interval = stats.pearsonr(stats.rankdata(x), stats.rankdata(y)).confidence_interval()
        assert (result.low, result.high) == pytest.approx((interval.low, interval.high), abs=1e-9)


@pytest.mark.slow
@given(pairs(3, 5))
def test_p_value_of_few_pairs_counts_every_order(rows):
    x, y = zip(*rows, strict=True)
    strength = [abs(stats.spearmanr(x, order).statistic) for order in permutations(y)]
    observed_difference = abs(stats.spearmanr(x, y).statistic)
    share = np.mean([value >= observed_difference - 1e-9 for value in strength])
    assert spearman(x, y).p_value == pytest.approx(share)


def test_a_perfect_order_has_correlation_one():
    result = spearman(range(10), [value**3 for value in range(10)])
    assert (result.rho, result.p_value, result.low, result.high) == (1.0, 0.0, 1.0, 1.0)


def test_reversing_one_side_turns_the_sign():
    x = [1, 5, 2, 8, 3, 9]
    y = [2, 4, 4, 7, 1, 6]
    assert spearman(x, y).rho == pytest.approx(-spearman(x, [-value for value in y]).rho)


def test_a_constant_side_has_no_correlation():
    assert math.isnan(spearman([1, 1, 1], [1, 2, 3]).rho)


def test_unequal_lengths_are_named():
    with pytest.raises(InputError, match=r"3.*2.*lists"):
        spearman([1, 2, 3], [1, 2])


def test_the_bootstrap_interval_is_that_of_a_loop_over_the_same_draws():
    x = [1, 5, 2, 8, 3, 9, 4]
    y = [2, 4, 4, 7, 1, 6, 6]
    draws = np.random.Generator(np.random.PCG64(3)).multinomial(7, np.full(7, 1 / 7), size=300)
    statistics = []
    for times in draws:
        places = np.repeat(np.arange(7), times)
        item = np.array(x)[places]
        other_item = np.array(y)[places]
        if len(set(item)) > 1 and len(set(other_item)) > 1:
            statistics.append(stats.spearmanr(item, other_item).statistic)
    expected = np.quantile(statistics, [0.025, 0.975])
    assert bootstrap_interval(x, y, rounds=300, seed=3) == pytest.approx(expected)


@pytest.mark.nightly
@pytest.mark.slow
def test_the_bootstrap_interval_covers_as_often_as_it_says():
    """In many samples from one distribution, about 95 % of the intervals contain its correlation."""
    rng = np.random.Generator(np.random.PCG64(0))
    x = rng.normal(size=(200, 60))
    y = x + rng.normal(size=x.shape)
    true_ratio = 6 / np.pi * np.arcsin(0.5**0.5 / 2)  # Spearman's rho of a normal pair that correlates by √½.
    intervals = [bootstrap_interval(a, b, rounds=400) for a, b in zip(x, y, strict=True)]
    assert 0.88 < np.mean([low <= true_ratio <= high for low, high in intervals]) <= 1


def test_a_constant_side_has_no_bootstrap_interval():
    assert all(math.isnan(rim) for rim in each(bootstrap_interval([1, 1, 1], [1, 2, 3])))


# Correlations within groups, and trends


@given(st.lists(st.tuples(FEW, FEW), min_size=5, max_size=30))
def test_within_one_group_it_is_spearmans_correlation(rows):
    x, y = ([float(row[side]) for row in rows] for side in (0, 1))
    result = spearman_within(x, y, ["one"] * len(rows))
    if len(set(x)) < 2 or len(set(y)) < 2:
        assert math.isnan(result.rho)
        return
    expected = stats.spearmanr(x, y)
    assert result.rho == pytest.approx(expected.statistic, abs=1e-12)
    assert result.p_value == pytest.approx(expected.pvalue, abs=1e-9)


def test_what_groups_differ_in_is_no_correlation_within_them():
    x = [1.0, 2.0, 3.0, 101.0, 102.0, 103.0, 50.0]
    y = [3.0, 2.0, 1.0, 103.0, 102.0, 101.0, 50.0]
    fields = spearman_within(x, y, list("aaabbbc"))
    assert (fields.rho, fields.items, fields.groups) == (-1.0, 6, 2)
    assert stats.spearmanr(x, y).statistic > 0.5


@pytest.mark.parametrize(("conditions", "units"), [(3, 3), (3, 5), (4, 3)])
def test_the_same_order_in_each_unit_has_the_p_of_pages_trend_test(conditions, units):
    rows = [list(range(conditions))] * units
    expected = 2 * stats.page_trend_test(rows, method="exact").pvalue
    assert trend_p_value(conditions, units) == pytest.approx(expected)


# What each pair bears on a correlation


@given(st.lists(st.tuples(FEW, FEW), max_size=30))
def test_contributions_add_up_to_the_correlations_of_scipy_and_to_0_where_there_is_none(rows):
    x, y = ([float(row[side]) for row in rows] for side in (0, 1))
    totals = {
        name: total(correlation_contribution)
        for name, correlation_contribution in correlation_contributions(x, y).items()
    }
    is_there = len(set(x)) > 1 and len(set(y)) > 1
    expected = (stats.spearmanr(x, y).statistic, stats.pearsonr(x, y).statistic) if is_there else (0.0, 0.0)
    assert totals == pytest.approx(dict(zip(("spearman", "pearson"), expected, strict=True)), abs=1e-12)


@pytest.mark.parametrize("ties", [False, True])
def test_a_pair_bears_on_a_correlation_what_leaving_it_out_changes(ties):
    rng = np.random.default_rng(0)
    x = rng.integers(0, 6, 200).astype(float) if ties else rng.normal(size=200)
    y = x + rng.normal(size=200)
    y = y.round() if ties else y
    scores = {"spearman": stats.spearmanr, "pearson": stats.pearsonr}
    for name, (part, _) in each(correlation_contributions(x.tolist(), y.tolist()).items()):
        whole_statistic = scores[name](x, y).statistic
        jackknife = [
            200 * whole_statistic - 199 * scores[name](np.delete(x, n), np.delete(y, n)).statistic
            for n in range(200)
        ]
        assert np.corrcoef(part, jackknife)[0, 1] > 0.9999
        assert np.std(part) == pytest.approx(np.std(jackknife), rel=0.03)
