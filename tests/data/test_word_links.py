from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from isogloss.core.errors import DataError
from isogloss.data.examples import Translation
from isogloss.data.files import disk_file
from isogloss.data.word_links import Aligned, read_pharaoh, write_pharaoh

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
def read(put):
    def read(text, pairs=PAIRS):
        return list(read_pharaoh(put({"links": text}).find(["links"])[0], pairs))

    return read


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(alignments()))
def test_what_is_written_reads_back(read, made):
    pairs = [Translation(id=f"{n}", first="a b c d e f", second="u v w x y z") for n in range(len(made))]
    lines = write_pharaoh(made, scores=True)
    assert read("".join(f"{line}\n" for line in lines), pairs) == made
    bare = write_pharaoh(made)
    assert read("".join(f"{line}\n" for line in bare), pairs) == [replace(one, scores=()) for one in made]


def test_format_is_pharaohs():
    aligned = Aligned(links=((0, 0), (1, 2)), scores=(0.93, 0.5))
    assert list(write_pharaoh([aligned, Aligned(links=())])) == ["0-0 1-2", ""]
    assert list(write_pharaoh([aligned], scores=True)) == ["0-0:0.93 1-2:0.5"]


def test_links_come_sorted_each_with_its_score(read):
    assert read("1-2:0.5 0-1:1\n0-0\n")[0] == Aligned(links=((0, 1), (1, 2)), scores=(1.0, 0.5))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("0-3\n\n", ":1: link '0-3'; expected i-j (or ipj, only possible) from 0 for 2 and 3 words"),
        ("0-0\n1-0\n", ":2: link '1-0'"),
        ("0p0\n\n", ":1: link '0p0'; expected i-j; only gold"),
        ("0-0:x\n\n", ":1: link '0-0:x'; expected i-j:score"),
        ("0-0:nan\n\n", ":1: link '0-0:nan'"),
        ("0-0:1 1-1\n\n", ":1: 1 scores for 2 links; expected a score for each, or none"),
        ("0-0 0-0\n\n", ":1: link 0-0 a second time"),
        ("0-0\n", ": 1 lines of links for 2 pairs; expected a line for each pair"),
        ("\n\n\n\n", ": 4 lines of links for 2 pairs"),
    ],
)
def test_broken_line_names_file_and_line(read, text, said):
    with pytest.raises(DataError) as caught:
        read(text)
    assert f"links{said}" in str(caught.value)


def test_a_file_on_disk_is_read(tmp_path):
    (tmp_path / "a").write_text("0-0\n\n")
    assert [len(one.links) for one in read_pharaoh(disk_file(tmp_path / "a"), PAIRS)] == [1, 0]
