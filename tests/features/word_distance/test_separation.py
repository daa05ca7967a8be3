"""Separation from fine counts: equal to scikit-learn within the error it states."""

from itertools import chain

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from isogloss.core.errors import InputError
from isogloss.features.word_distance.separation import BITS, FineCounts, histogram, separation

NUMBERS = st.lists(st.floats(0, 1000, width=32), min_size=1, max_size=60)


def count_errors(*parts):
    fine_counts = FineCounts()
    for part in parts:
        fine_counts.add(np.array(part, np.float32))
    return fine_counts


def exact(lower, upper):
    from sklearn.metrics import roc_auc_score

    values = np.concatenate((lower, upper))
    return roc_auc_score(np.repeat((0, 1), (len(lower), len(upper))), values)


@pytest.mark.slow
@given(NUMBERS, NUMBERS)
def test_auc_is_scikit_learns_within_the_stated_error(lower, upper):
    lower, upper = ([index if index > 2**-20 else 0.0 for index in part] for part in (lower, upper))
    result = separation(count_errors(lower), count_errors(upper))
    assert abs(result.auc - exact(lower, upper)) <= result.within + 1e-9


@pytest.mark.parametrize("shift", [0.0, 0.5, 3.0])
def test_the_error_is_small_for_many_numbers(shift):
    random = np.random.default_rng(0)
    lower = random.gamma(8, 1, 20_000)
    upper = shift + random.gamma(8, 1, 30_000)
    result = separation(count_errors(lower), count_errors(upper))
    assert result.within < 1e-4
    assert abs(result.auc - exact(lower.astype(np.float32), upper.astype(np.float32))) < 1e-6


@pytest.mark.slow
@given(NUMBERS, NUMBERS)
def test_exchanging_the_groups_turns_auc_around(lower, upper):
    item = separation(count_errors(lower), count_errors(upper))
    other_separation = separation(count_errors(upper), count_errors(lower))
    assert item.auc + other_separation.auc == pytest.approx(1)
    assert item.within == other_separation.within


@given(st.lists(NUMBERS, min_size=1, max_size=5), st.randoms())
def test_neither_order_nor_parts_matter(parts, random):
    whole_errors = count_errors(list(chain(*parts)))
    random.shuffle(parts)
    distance = count_errors(*parts)
    assert (whole_errors.counts == distance.counts).all()
    assert whole_errors.mean == pytest.approx(distance.mean)
    assert whole_errors.number == sum(len(value) for value in parts)


@pytest.mark.slow
@given(NUMBERS, NUMBERS, st.integers(-8, 8))
def test_scale_by_a_power_of_two_changes_nothing(lower, upper, power):
    lower, upper = ([index for index in part if index > 2**-10] or [1.0] for part in (lower, upper))
    scaled_value = [[index * 2.0**power for index in part] for part in (lower, upper)]
    result = separation(count_errors(lower), count_errors(upper))
    other_separation = separation(*(count_errors(element) for element in scaled_value))
    assert (other_separation.auc, other_separation.within) == pytest.approx((result.auc, result.within))


def test_groups_apart_have_auc_1_and_equal_zeros_one_half():
    assert separation(count_errors([1, 2]), count_errors([3, 4])).auc == 1
    assert separation(count_errors([3, 4]), count_errors([1, 2])).auc == 0
    both_zero = separation(count_errors([0, 0]), count_errors([0]))
    assert (both_zero.auc, both_zero.within) == (0.5, 0)


@pytest.mark.slow
@given(NUMBERS, NUMBERS, st.integers(1, 50))
def test_a_histogram_is_numpys_with_its_edges(left, right, bins):
    rows = list(histogram((count_errors(left), count_errors(right)), bins))
    assert 1 <= len(rows) <= bins
    edges = [rows[0][0], *(high for _, high, _ in rows)]
    assert edges == sorted(set(edges))
    assert [low for low, _, _ in rows[1:]] == edges[1:-1]
    for place, numbers in enumerate((left, right)):
        shares = [row[2][place] for row in rows]
        assert sum(shares) == pytest.approx(1)
        clipped_gradients = np.clip(np.array(numbers, np.float32).astype(float), edges[0], None)
        # numpy's last bin holds its upper edge; here it never is one.
        assert shares == pytest.approx((np.histogram(clipped_gradients, edges)[0] / len(numbers)).tolist())


def test_bins_are_equally_wide_up_to_the_fine_ones():
    rows = list(histogram((count_errors(np.linspace(5, 25, 1000)),), 20))
    assert [high - low for low, high, _ in rows] == pytest.approx([1] * 20, abs=25 / 2**BITS * 2)


def test_memory_does_not_grow_with_the_numbers():
    fine_counts = FineCounts()
    nbytes_before = fine_counts.counts.nbytes
    for seed in range(20):
        fine_counts.add(np.random.default_rng(seed).random(10_000))
    assert (fine_counts.counts.nbytes, fine_counts.number) == (nbytes_before, 200_000)


@pytest.mark.parametrize("index", [-1.0, float("nan"), float("inf")])
def test_what_is_no_distance_is_refused(index):
    with pytest.raises(InputError, match="negative"):
        count_errors([1.0, index])


def test_an_empty_group_is_refused():
    with pytest.raises(InputError, match="group"):
        separation(count_errors([1.0]), FineCounts())
    assert list(histogram((FineCounts(),), 3)) == []
    assert np.isnan(FineCounts().mean)
