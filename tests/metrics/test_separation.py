"""Separation from fine counts: equal to scikit-learn within the error it states."""

from itertools import chain

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from isogloss.core.errors import InputError
from isogloss.metrics.ranks import BITS, FineCounts, histogram, separation

NUMBERS = st.lists(st.floats(0, 1000, width=32), min_size=1, max_size=60)


def count_errors(*parts):
    found = FineCounts()
    for part in parts:
        found.add(np.array(part, np.float32))
    return found


def exact(lower, upper):
    from sklearn.metrics import roc_auc_score

    values = np.concatenate((lower, upper))
    return roc_auc_score(np.repeat((0, 1), (len(lower), len(upper))), values)


@pytest.mark.slow
@given(NUMBERS, NUMBERS)
def test_auc_is_scikit_learns_within_the_stated_error(lower, upper):
    lower, upper = ([number if number > 2**-20 else 0.0 for number in part] for part in (lower, upper))
    found = separation(count_errors(lower), count_errors(upper))
    assert abs(found.auc - exact(lower, upper)) <= found.within + 1e-9


@pytest.mark.parametrize("shift", [0.0, 0.5, 3.0])
def test_the_error_is_small_for_many_numbers(shift):
    random = np.random.default_rng(0)
    lower, upper = random.gamma(8, 1, 20_000), shift + random.gamma(8, 1, 30_000)
    found = separation(count_errors(lower), count_errors(upper))
    assert found.within < 1e-4
    assert abs(found.auc - exact(lower.astype(np.float32), upper.astype(np.float32))) < 1e-6


@pytest.mark.slow
@given(NUMBERS, NUMBERS)
def test_exchanging_the_groups_turns_auc_around(lower, upper):
    one, other = (
        separation(count_errors(lower), count_errors(upper)),
        separation(count_errors(upper), count_errors(lower)),
    )
    assert one.auc + other.auc == pytest.approx(1)
    assert one.within == other.within


@given(st.lists(NUMBERS, min_size=1, max_size=5), st.randoms())
def test_neither_order_nor_parts_matter(parts, random):
    whole = count_errors(list(chain(*parts)))
    random.shuffle(parts)
    apart = count_errors(*parts)
    assert (whole.counts == apart.counts).all()
    assert whole.mean == pytest.approx(apart.mean)
    assert whole.number == sum(map(len, parts))


@pytest.mark.slow
@given(NUMBERS, NUMBERS, st.integers(-8, 8))
def test_scale_by_a_power_of_two_changes_nothing(lower, upper, power):
    lower, upper = ([number for number in part if number > 2**-10] or [1.0] for part in (lower, upper))
    scaled = [[number * 2.0**power for number in part] for part in (lower, upper)]
    found, other = (
        separation(count_errors(lower), count_errors(upper)),
        separation(*map(count_errors, scaled)),
    )
    assert (other.auc, other.within) == pytest.approx((found.auc, found.within))


def test_groups_apart_have_auc_1_and_equal_zeros_one_half():
    assert separation(count_errors([1, 2]), count_errors([3, 4])).auc == 1
    assert separation(count_errors([3, 4]), count_errors([1, 2])).auc == 0
    both_zero = separation(count_errors([0, 0]), count_errors([0]))
    assert (both_zero.auc, both_zero.within) == (0.5, 0)


@pytest.mark.slow
@given(NUMBERS, NUMBERS, st.integers(1, 50))
def test_a_histogram_is_numpys_with_its_edges(one, other, bins):
    rows = list(histogram((count_errors(one), count_errors(other)), bins))
    assert 1 <= len(rows) <= bins
    edges = [rows[0][0], *(high for _, high, _ in rows)]
    assert edges == sorted(set(edges))
    assert [low for low, _, _ in rows[1:]] == edges[1:-1]
    for place, numbers in enumerate((one, other)):
        shares = [row[2][place] for row in rows]
        assert sum(shares) == pytest.approx(1)
        clipped = np.clip(np.array(numbers, np.float32).astype(float), edges[0], None)
        # numpy's last bin holds its upper edge; here it never is one.
        assert shares == pytest.approx((np.histogram(clipped, edges)[0] / len(numbers)).tolist())


def test_bins_are_equally_wide_up_to_the_fine_ones():
    rows = list(histogram((count_errors(np.linspace(5, 25, 1000)),), 20))
    assert [high - low for low, high, _ in rows] == pytest.approx([1] * 20, abs=25 / 2**BITS * 2)


def test_memory_does_not_grow_with_the_numbers():
    found = FineCounts()
    before = found.counts.nbytes
    for seed in range(20):
        found.add(np.random.default_rng(seed).random(10_000))
    assert (found.counts.nbytes, found.number) == (before, 200_000)


@pytest.mark.parametrize("number", [-1.0, float("nan"), float("inf")])
def test_what_is_no_distance_is_refused(number):
    with pytest.raises(InputError, match="negative"):
        count_errors([1.0, number])


def test_an_empty_group_is_refused():
    with pytest.raises(InputError, match="group"):
        separation(count_errors([1.0]), FineCounts())
    assert list(histogram((FineCounts(),), 3)) == []
    assert np.isnan(FineCounts().mean)
