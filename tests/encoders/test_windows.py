import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isogloss.encoders.subwords import Window, windows


@st.composite
def cases(draw):
    limit = draw(st.integers(1, 24))
    return draw(st.integers(0, 120)), limit, draw(st.integers(0, limit - 1))


def context(window, position, length):
    left = position - window.start if window.start > 0 else length
    right = window.stop - 1 - position if window.stop < length else length
    return min(left, right)


@given(cases())
def test_every_position_is_owned_once_and_in_order(case):
    length, limit, overlap = case
    owned = [
        position
        for window in windows(length, limit=limit, overlap=overlap)
        for position in range(window.own_start, window.own_stop)
    ]
    assert owned == list(range(length))


@given(cases())
def test_the_owner_shows_most_context_and_is_the_first_that_does(case):
    length, limit, overlap = case
    made = windows(length, limit=limit, overlap=overlap)
    for position in range(length):
        showing = [window for window in made if window.start <= position < window.stop]
        best = max(showing, key=lambda window: context(window, position, length))
        assert best.own_start <= position < best.own_stop


@given(cases())
def test_windows_are_full_and_overlap_enough(case):
    length, limit, overlap = case
    made = windows(length, limit=limit, overlap=overlap)
    assert (made[0].start, made[-1].stop) == (0, length)
    assert all(window.stop - window.start == min(limit, length) for window in made)
    for one, other in itertools.pairwise(made):
        assert one.start < other.start
        assert one.stop - other.start >= overlap


@given(cases())
def test_no_window_is_needless(case):
    length, limit, overlap = case
    made = windows(length, limit=limit, overlap=overlap)
    assert len(made) == (1 if length <= limit else 1 + -(-(length - limit) // (limit - overlap)))
    if length <= limit:
        assert made == [Window(0, length, 0, length)]


@given(st.integers(1, 10), st.integers(0, 8), st.integers(1, 100))
def test_an_overlap_of_2k_leaves_k_neighbours_on_either_side(k, spare, length):
    limit = 2 * k + 1 + spare
    for window in windows(length, limit=limit, overlap=2 * k):
        for position in range(window.own_start, window.own_stop):
            assert window.start <= max(0, position - k)
            assert window.stop > min(length - 1, position + k)


@pytest.mark.parametrize(("limit", "overlap"), [(4, 4), (4, 7), (4, -1), (0, 0)])
def test_impossible_overlaps_are_refused(limit, overlap):
    with pytest.raises(ValueError, match=f"windows of {limit} positions cannot overlap by {overlap}"):
        windows(10, limit=limit, overlap=overlap)
