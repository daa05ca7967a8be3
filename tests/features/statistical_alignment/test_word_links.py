"""Pharaoh's word links, and symmetrization against the published pseudo-code."""

from itertools import pairwise

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from isogloss.core.errors import DataError
from isogloss.data.examples import Translation
from isogloss.data.files import disk_file
from isogloss.data.formats.word_links import SYMMETRIZATIONS, Aligned, read_pharaoh
from isogloss.features.alignment.run import write_pharaoh
from isogloss.features.statistical_alignment.symmetrizing import symmetrize

PAIRS = [
    Translation(id="1", first="a b", second="x y z"),
    Translation(id="2", first="c", second="w"),
]
places = st.integers(0, 5)


@st.composite
def alignments(draw):
    links = tuple(sorted(draw(st.sets(st.tuples(places, places)))))
    score = st.floats(0, 1).map(lambda x: float(f"{x:.6g}"))
    return Aligned(links=links, scores=tuple(draw(score) for _ in links) if draw(st.booleans()) else ())


@pytest.fixture
def read(put_files):
    def read(text, pairs=PAIRS):
        return list(read_pharaoh(put_files({"links": text}).find(["links"])[0], pairs))

    return read


@pytest.mark.slow
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(alignments()))
def test_what_is_written_reads_back(read, finished_study):
    pairs = [
        Translation(id=f"{n}", first="a b c d e f", second="u v w x y z") for n in range(len(finished_study))
    ]
    assert read("".join(f"{line}\n" for line in write_pharaoh(finished_study)), pairs) == finished_study


def test_format_is_pharaohs():
    result = [Aligned(links=((0, 0), (1, 2)), scores=scores) for scores in ((0.93, 0.5), ())]
    assert list(write_pharaoh([*result, Aligned(links=())])) == ["0-0:0.93 1-2:0.5", "0-0 1-2", ""]


def test_links_come_sorted_each_with_its_score(read):
    assert read("1-2:0.5 0-1:1\n0-0\n")[0] == Aligned(links=((0, 1), (1, 2)), scores=(1.0, 0.5))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("0-3\n\n", ":1: link '0-3'; expected i-j … ipj … from 0 for 2 and 3 words"),
        ("0-0\n1-0\n", ":2: link '1-0'"),
        ("0p0\n\n", ":1: link '0p0'; expected i-j; only gold"),
        ("0-0:x\n\n", ":1: link '0-0:x'; expected i-j:score"),
        ("0-0:nan\n\n", ":1: link '0-0:nan'"),
        ("0-0:1 1-1\n\n", ":1: 1 scores for 2 links"),
        ("0-0 0-0\n\n", ":1: link 0-0 a second time"),
        ("0-0\n", ": 1 lines … 2 pairs"),
        ("\n\n\n\n", ": 4 lines … 2 pairs"),
    ],
)
def test_broken_line_names_file_and_line(read, text, message):
    with pytest.raises(DataError) as error:
        read(text)
    facts = f"links{message}".split(" … ")
    assert [fact for fact in facts if fact not in str(error.value)] == []


def test_a_file_on_disk_is_read(tmp_path):
    (tmp_path / "a").write_text("0-0\n\n")
    assert [len(pair.links) for pair in read_pharaoh(disk_file(tmp_path / "a"), PAIRS)] == [1, 0]


SIZE = 7
links = st.sets(st.tuples(st.integers(0, SIZE - 1), st.integers(0, SIZE - 1)))
forward = st.dictionaries(st.integers(0, SIZE - 1), st.integers(0, SIZE - 1)).map(
    lambda best_fields: {(i, j) for j, i in best_fields.items()}
)
backward = st.dictionaries(st.integers(0, SIZE - 1), st.integers(0, SIZE - 1)).map(
    lambda best_fields: set(best_fields.items())
)
NEIGHBOURS = ((-1, 0), (0, -1), (1, 0), (0, 1), (-1, -1), (-1, 1), (1, -1), (1, 1))


def koehn(forward, backward, *, final):
    """Scan every point of the grid, as the published pseudo-code does."""
    result = forward & backward
    union = forward | backward
    state_before = None
    while state_before != len(result):
        state_before = len(result)
        for i in range(SIZE):
            for j in range(SIZE):
                if (i, j) not in result:
                    continue
                for lower_neighbour, right in NEIGHBOURS:
                    new_value = (i + lower_neighbour, j + right)
                    lone = all(x != new_value[0] for x, _ in result) or all(
                        y != new_value[1] for _, y in result
                    )
                    if new_value in union and lone:
                        result.add(new_value)
    for direction in (forward, backward) if final else ():
        for new_value in sorted(direction):
            if all(x != new_value[0] for x, _ in result) and all(y != new_value[1] for _, y in result):
                result.add(new_value)
    return tuple(sorted(result))


@given(links, links)
def test_grow_diag_final_and_is_koehns(left, right):
    assert symmetrize(left, right, "grow-diag-final-and") == koehn(set(left), set(right), final=True)
    assert symmetrize(left, right, "grow-diag") == koehn(set(left), set(right), final=False)


def moses_grown(forward, backward):
    """Grow as Moses' symal does, second word by second word.

    ``forward`` has one first word for each second word, ``backward`` one second word for each first.
    """
    first_of = {j: i for i, j in forward}
    second_of = dict(backward)
    result = {(j, i) for i, j in forward & backward}
    is_growing = True
    while is_growing:
        is_growing = False
        for point in [(j, i) for j in range(SIZE) for i in range(SIZE)]:
            for lower_neighbour, right in NEIGHBOURS if point in result else ():
                j = point[0] + lower_neighbour
                i = point[1] + right
                is_free = j not in {element for element, _ in result} or i not in {
                    element for _, element in result
                }
                if (first_of.get(j) == i or second_of.get(i) == j) and is_free:
                    result.add((j, i))
                    is_growing = True
    return {(i, j) for j, i in result}


def moses_final(grown_links, forward, backward):
    """Add links of two free words as Moses' symal does, second word by second word."""
    for side in (forward - backward, backward - forward):
        for j, i in sorted(exchange_sides(side)):
            if i not in {element for element, _ in grown_links} and j not in {
                element for _, element in grown_links
            }:
                grown_links.add((i, j))
    return grown_links


def exchange_sides(pairs):
    return {(j, i) for i, j in pairs}


@given(forward, backward)
def test_growth_is_that_of_moses_with_the_languages_exchanged(left, right):
    grown_links = exchange_sides(moses_grown(exchange_sides(right), exchange_sides(left)))
    assert set(symmetrize(left, right, "grow-diag")) == grown_links
    assert set(symmetrize(left, right, "grow-diag-final-and")) == moses_final(grown_links, left, right)


def test_growth_differs_from_that_of_moses_where_it_depends_on_the_order():
    item = {(1, 0), (0, 2), (2, 1)}
    other_item = {(0, 2), (1, 2), (2, 1)}
    assert set(symmetrize(item, other_item, "grow-diag")) - moses_grown(item, other_item) == {(1, 2)}


@given(links, links)
def test_every_growth_lies_between_intersection_and_union(left, right):
    steps = [
        set(symmetrize(left, right, name))
        for name in ("intersection", "grow-diag", "grow-diag-final-and", "union")
    ]
    assert all(less <= more for less, more in pairwise(steps))


@given(links, links)
def test_intersection_and_union_do_not_mind_an_exchange_of_languages(left, right):
    turned_value = [{(j, i) for i, j in side} for side in (right, left)]
    for name in ("intersection", "union"):
        assert {(j, i) for i, j in symmetrize(*turned_value, name)} == set(symmetrize(left, right, name))


@given(links)
def test_two_equal_directions_are_what_they_are(item):
    assert {symmetrize(item, item, symmetrization) for symmetrization in SYMMETRIZATIONS} == {
        tuple(sorted(item))
    }


@given(links, links)
def test_one_direction_is_that_direction(left, right):
    assert symmetrize(left, right, "forward") == tuple(sorted(left))
    assert symmetrize(left, right, "backward") == tuple(sorted(right))


@given(forward, backward)
def test_intersection_of_two_directions_is_one_to_one(left, right):
    result = symmetrize(left, right, "intersection")
    assert len({i for i, _ in result}) == len({j for _, j in result}) == len(result)


def test_a_neighbour_with_a_lone_word_is_added_and_a_far_point_only_at_the_end():
    item = {(0, 0), (1, 1), (3, 3)}
    other_item = {(0, 0), (0, 1)}
    assert symmetrize(item, other_item, "grow-diag") == ((0, 0), (0, 1), (1, 1))
    assert symmetrize(item, other_item, "grow-diag-final-and") == ((0, 0), (0, 1), (1, 1), (3, 3))
