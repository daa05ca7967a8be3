"""Pairs of systems: what is refused, what each example adds, how large a difference is."""

import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from pairs import counted, drawn_means, means

from isogloss.core.contributions import Contributions, total
from isogloss.core.errors import InputError
from isogloss.metrics.paired import Pair, System, cohens_d, per_example


@given(counted())
def test_a_systems_scores_are_its_totals(pair):
    totals = [
        total(Contributions(part.tolist(), whole.tolist()))
        for part, whole in zip(pair.system.part, pair.system.whole, strict=True)
    ]
    assert pair.system.scores().tolist() == totals


@given(counted())
def test_what_examples_add_has_the_difference_as_its_mean(pair):
    assert per_example(pair).mean() == pytest.approx(pair.difference(), abs=1e-12)


def test_what_examples_add_to_a_mean_is_the_difference_of_values():
    pair = drawn_means(np.random.default_rng(0))
    expected = (pair.system.part - pair.baseline.part).mean(axis=0)
    assert per_example(pair) == pytest.approx(expected)


def test_what_examples_add_to_a_ratio_is_what_leaving_them_out_takes_away():
    rng = np.random.default_rng(0)
    whole = rng.integers(1, 6, (1, 500)).astype(float)
    pair = Pair(*(System(rng.binomial(whole.astype(int), 0.6).astype(float), whole) for _ in range(2)))
    without = [
        Pair(
            *(
                System(np.delete(s.part, one, 1), np.delete(s.whole, one, 1))
                for s in (pair.system, pair.baseline)
            )
        )
        for one in range(40)
    ]
    left = [pair.examples * pair.difference() - (pair.examples - 1) * one.difference() for one in without]
    assert per_example(pair)[:40] == pytest.approx(left, abs=0.02)


@given(st.lists(st.integers(-50, 50), min_size=2, max_size=20))
def test_cohens_d_is_the_mean_in_standard_deviations(values):
    assume(len(set(values)) > 1)
    assert cohens_d(values) == pytest.approx(np.mean(values) / np.std(values, ddof=1))


@pytest.mark.parametrize(
    ("values", "d"), [([0, 0], 0.0), ([0.1, 0.1, 0.1], math.inf), ([-0.1, -0.1], -math.inf)]
)
def test_cohens_d_has_an_answer_without_spread(values, d):
    assert cohens_d(values) == d
    assert math.isnan(cohens_d(values[:1]))


@pytest.mark.parametrize("shapes", [((1, 2), (1, 3)), ((2, 2), (1, 2)), ((1, 0), (1, 0)), ((0, 2), (0, 2))])
def test_pairs_need_the_same_seeds_and_examples(shapes):
    with pytest.raises(InputError, match="the same seeds and examples, at least one of each"):
        Pair(*(System(np.ones(shape), np.ones(shape)) for shape in shapes))


def test_pairs_need_numbers():
    with pytest.raises(InputError, match="no finite number"):
        means([0.5, math.nan], [0.5, 0.5])
