"""The program is played by a script that keeps to its protocol. The real one is asked where it is there."""

import random
import shutil
import sys

import pytest

from isogloss.aligners.setting import AlignSetting
from isogloss.core.errors import ConfigError, RunError
from isogloss.data.examples import Translation
from isogloss.features.statistical_alignment.eflomal import Eflomal, write_sentences

PROGRAM = f"""#!{sys.executable}
import pathlib, sys
here = pathlib.Path(__file__).parent
options = [one for one in sys.argv[1:] if one != "-q"]
given = dict(zip(options[::2], options[1::2]))
(here / "given").write_text(repr(given))
sides = []
for option in "-s", "-t":
    head, *rows = pathlib.Path(given[option]).read_text().splitlines()
    rows = [list(map(int, row.split())) for row in rows]
    assert int(head.split()[0]) == len(rows), head
    assert all(row[0] == len(row) - 1 for row in rows)
    assert int(head.split()[1]) == len({{word for row in rows for word in row[1:]}})
    sides.append([row[1:] for row in rows])
for option, extra in ("-f", ""), ("-r", " 0-0"):
    with open(given[option], "w") as file:
        for first, second in zip(*sides):
            links = [f"{{i}}-{{i}}" for i in range(min(len(first), len(second)))]
            file.write(" ".join(links[1:] if option == "-f" else links) + "\\n")
"""
PAIRS = [
    Translation(id="1", first="The cat sleeps", second="le chat dort"),
    Translation(id="2", first="the", second="Le chat"),
    Translation(id="3", first="", second="x"),
    Translation(id="4", first="a " * 1024, second="x"),
]


@pytest.fixture
def program(tmp_path, monkeypatch):
    place = tmp_path / "bin"
    place.mkdir()
    (place / "eflomal").write_text(PROGRAM)
    (place / "eflomal").chmod(0o755)
    monkeypatch.setenv("PATH", str(place))
    return place


def align(pairs=PAIRS, **fields):
    return Eflomal(**fields).align(AlignSetting(pairs=pairs))


def test_both_directions_are_read_and_made_one(program):
    assert [link.links for link in align()] == [((1, 1), (2, 2)), (), (), ()]
    union = align(symmetrization="union")
    assert [pair.links for pair in union] == [((0, 0), (1, 1), (2, 2)), ((0, 0),), (), ()]
    assert all(item.scores == () for item in union)


def test_program_is_given_model_samplers_and_rounds(program):
    align()
    row = eval((program / "given").read_text())
    assert {option: row[option] for option in ("-m", "-n", "-N", "-1", "-2", "-3")} == {
        "-m": "3", "-n": "3", "-N": "0.2", "-1": "625", "-2": "625", "-3": "2500",
    }  # fmt: skip
    align(model=1, length=0.1)
    row = eval((program / "given").read_text())
    assert (row["-1"], "-2" in row, "-3" in row) == ("250", False, False)


def test_no_program_is_said_with_what_to_do(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("isogloss.features.statistical_alignment.eflomal.find_spec", lambda _: None)
    with pytest.raises(ConfigError, match=r"eflomal.*PATH.*eflomal.*fast-align.*encoder"):
        align()


def test_a_program_that_fails_is_quoted(program):
    (program / "eflomal").write_text(f"#!{sys.executable}\nimport sys\nsys.exit('out of memory')\n")
    with pytest.raises(RunError, match=r"code 1.*memory\)"):
        align()


def test_sentences_are_numbers_and_too_long_ones_empty(tmp_path):
    write_sentences(tmp_path / "a", [["x", "y", "x"], [], ["y"] * 1024])
    assert (tmp_path / "a").read_text() == "3 2\n3 0 1 0\n0\n0\n"


@pytest.mark.skipif(not shutil.which("eflomal"), reason="the program eflomal is not installed")
def test_the_real_program_links_words_that_come_together():
    rng = random.Random(0)
    words = ["one", "two", "three", "four", "five", "six", "seven", "eight"]
    pairs = []
    for index in range(60):
        chosen_samples = rng.sample(words, rng.randint(2, 6))
        backwards = " ".join(word[::-1] for word in chosen_samples)
        pairs.append(Translation(id=f"{index}", first=" ".join(chosen_samples), second=backwards))
    right = [
        link.links == tuple((n, n) for n in range(len(pair.first.split())))
        for link, pair in zip(align(pairs), pairs, strict=True)
    ]
    assert sum(right) >= 55
