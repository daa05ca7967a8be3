"""The gap is what the source has over the mean target."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isogloss.core.errors import InputError
from isogloss.metrics.transfer_gap import transfer_gap

SCORES = st.lists(st.floats(0, 1), min_size=1, max_size=8)


def test_gap_is_source_minus_the_mean_target():
    assert transfer_gap(0.9, [0.5, 0.7]) == pytest.approx(0.3)


@given(st.floats(0, 1), SCORES)
def test_gap_is_the_mean_of_the_single_gaps(source, targets):
    single = [transfer_gap(source, [target]) for target in targets]
    assert transfer_gap(source, targets) == pytest.approx(sum(single) / len(single), abs=1e-12)


@given(st.floats(0, 1), st.integers(1, 5))
def test_gap_is_zero_when_the_targets_equal_the_source(source, count):
    assert transfer_gap(source, [source] * count) == pytest.approx(0.0, abs=1e-15)


def test_gap_without_targets_says_what_to_give():
    with pytest.raises(InputError, match="no target scores"):
        transfer_gap(0.9, [])
