from collections import Counter
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from isogloss.data.languages.draws import Draws, Weighted, zipf


def test_sequence_is_the_same_on_every_machine():
    draws = Draws(42)
    assert [draws.below(1000) for _ in range(6)] == [639, 25, 275, 223, 736, 676]


@given(st.integers(0, 2**62), st.lists(st.integers(), max_size=30))
def test_shuffling_keeps_every_item(seed, items):
    assert sorted(Draws(seed).shuffled(items)) == sorted(items)


@given(st.integers(0, 2**62))
def test_items_without_weight_are_never_drawn(seed):
    draws, table = Draws(seed), Weighted([("never", 0), ("often", 3), ("nor", 0), ("seldom", 1)])
    assert {draws.weighted(table) for _ in range(30)} <= {"often", "seldom"}


def test_zipf_falls_with_rank():
    draws, table = Draws(1), zipf(range(8))
    counts = Counter(draws.weighted(table) for _ in range(20000))
    assert all(counts[one] > counts[other] for one, other in pairwise(range(8)))
    assert abs(counts[0] / counts[1] - 2**0.8) < 0.15
