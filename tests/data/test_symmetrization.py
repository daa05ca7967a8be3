from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from isogloss.data.word_links import SYMMETRIZATIONS, symmetrized

SIZE = 7
links = st.sets(st.tuples(st.integers(0, SIZE - 1), st.integers(0, SIZE - 1)))
forward = st.dictionaries(st.integers(0, SIZE - 1), st.integers(0, SIZE - 1)).map(
    lambda best: {(i, j) for j, i in best.items()}
)
backward = st.dictionaries(st.integers(0, SIZE - 1), st.integers(0, SIZE - 1)).map(
    lambda best: set(best.items())
)
NEIGHBOURS = ((-1, 0), (0, -1), (1, 0), (0, 1), (-1, -1), (-1, 1), (1, -1), (1, 1))


def koehn(forward, backward, *, final):
    """Scan every point of the grid, as the published pseudo-code does."""
    found, union = forward & backward, forward | backward
    before = None
    while before != len(found):
        before = len(found)
        for i in range(SIZE):
            for j in range(SIZE):
                if (i, j) not in found:
                    continue
                for down, right in NEIGHBOURS:
                    new = (i + down, j + right)
                    lone = all(x != new[0] for x, _ in found) or all(y != new[1] for _, y in found)
                    if new in union and lone:
                        found.add(new)
    for direction in (forward, backward) if final else ():
        for new in sorted(direction):
            if all(x != new[0] for x, _ in found) and all(y != new[1] for _, y in found):
                found.add(new)
    return tuple(sorted(found))


@given(links, links)
def test_grow_diag_final_and_is_koehns(one, other):
    assert symmetrized(one, other, "grow-diag-final-and") == koehn(set(one), set(other), final=True)
    assert symmetrized(one, other, "grow-diag") == koehn(set(one), set(other), final=False)


@given(links, links)
def test_every_growth_lies_between_intersection_and_union(one, other):
    steps = [
        set(symmetrized(one, other, how))
        for how in ("intersection", "grow-diag", "grow-diag-final-and", "union")
    ]
    assert all(less <= more for less, more in pairwise(steps))


@given(links, links)
def test_intersection_and_union_do_not_mind_an_exchange_of_languages(one, other):
    turned = [{(j, i) for i, j in side} for side in (other, one)]
    for how in ("intersection", "union"):
        assert {(j, i) for i, j in symmetrized(*turned, how)} == set(symmetrized(one, other, how))


@given(links)
def test_two_equal_directions_are_what_they_are(one):
    assert {symmetrized(one, one, how) for how in SYMMETRIZATIONS} == {tuple(sorted(one))}


@given(links, links)
def test_one_direction_is_that_direction(one, other):
    assert symmetrized(one, other, "forward") == tuple(sorted(one))
    assert symmetrized(one, other, "backward") == tuple(sorted(other))


@given(forward, backward)
def test_intersection_of_two_directions_is_one_to_one(one, other):
    found = symmetrized(one, other, "intersection")
    assert len({i for i, _ in found}) == len({j for _, j in found}) == len(found)


def test_a_neighbour_with_a_lone_word_is_added_and_a_far_point_only_at_the_end():
    one, other = {(0, 0), (1, 1), (3, 3)}, {(0, 0), (0, 1)}
    assert symmetrized(one, other, "grow-diag") == ((0, 0), (0, 1), (1, 1))
    assert symmetrized(one, other, "grow-diag-final-and") == ((0, 0), (0, 1), (1, 1), (3, 3))
