"""The program is played by a script that keeps to its protocol; the real one is asked where it is there."""

import random
import shutil
import sys

import pytest

from isogloss.aligners import AlignSetting
from isogloss.aligners.eflomal import (
    Eflomal,
    count_priors,
    priors_lines,
    read_priors,
    write_priors,
    write_sentences,
)
from isogloss.core.errors import ConfigError, DataError, RunError
from isogloss.data.examples import Translation
from isogloss.data.files import disk_file

PROGRAM = f"""#!{sys.executable}
import pathlib, sys
given = dict(zip(sys.argv[1::2], sys.argv[2::2]))
here = pathlib.Path(__file__).parent
options = [one for one in sys.argv[1:] if one != "-q"]
given = dict(zip(options[::2], options[1::2]))
(here / "given").write_text(repr(given))
if "-p" in given:
    (here / "priors").write_text(pathlib.Path(given["-p"]).read_text())
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


def setting(folder, pairs=PAIRS):
    return AlignSetting(pairs=pairs, folder=folder)


def test_both_directions_are_read_and_made_one(program, tmp_path):
    assert [one.links for one in Eflomal().align(setting(tmp_path))] == [((1, 1), (2, 2)), (), (), ()]
    union = Eflomal(symmetrization="union").align(setting(tmp_path))
    assert [one.links for one in union] == [((0, 0), (1, 1), (2, 2)), ((0, 0),), (), ()]
    assert all(one.scores == () for one in union)


def test_program_is_given_model_samplers_and_rounds(program, tmp_path):
    Eflomal().align(setting(tmp_path))
    given = eval((program / "given").read_text())
    assert {option: given[option] for option in ("-m", "-n", "-N", "-1", "-2", "-3")} == {
        "-m": "3", "-n": "3", "-N": "0.2", "-1": "625", "-2": "625", "-3": "2500",
    }  # fmt: skip
    Eflomal(model=1, length=0.1).align(setting(tmp_path))
    given = eval((program / "given").read_text())
    assert (given["-1"], "-2" in given, "-3" in given) == ("250", False, False)


def test_new_pairs_are_aligned_with_priors_from_the_links(program, tmp_path):
    Eflomal().align(setting(tmp_path))
    assert not (program / "priors").exists()
    Eflomal().align_new(setting(tmp_path, [Translation(id="9", first="cat dog", second="chat chien")]))
    head, *rows = (program / "priors").read_text().splitlines()
    assert head.split()[:3] == ["3", "3", "1"]
    assert rows[0] == "1 1 1"  # cat and chat, counted from 1, once


def test_no_model_is_said(program, tmp_path):
    with pytest.raises(DataError, match="no alignment model is here"):
        Eflomal().align_new(setting(tmp_path))


def test_no_program_is_said_with_what_to_do(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("isogloss.aligners.eflomal.find_spec", lambda _: None)
    with pytest.raises(
        ConfigError, match=r"no program eflomal is on the PATH. pip install eflomal .*fast-align or encoder"
    ):
        Eflomal().align(setting(tmp_path))


def test_a_program_that_fails_is_quoted(program, tmp_path):
    (program / "eflomal").write_text(f"#!{sys.executable}\nimport sys\nsys.exit('out of memory')\n")
    with pytest.raises(RunError, match=r"ended with code 1 \(out of memory\)"):
        Eflomal().align(setting(tmp_path))


def test_sentences_are_numbers_and_too_long_ones_empty(tmp_path):
    known = write_sentences(tmp_path / "a", [["x", "y", "x"], [], ["y"] * 1024])
    assert (tmp_path / "a").read_text() == "3 2\n3 0 1 0\n0\n0\n"
    assert known == {"x": 0, "y": 1}


def test_priors_count_words_jumps_and_fertilities(tmp_path):
    pairs = [(["a", "b"], ["u", "v", "w"])]
    priors = count_priors(pairs, [[(0, 0), (0, 1)]], [[(0, 0), (1, 2)]])
    assert priors == {
        ("LEX", "a", "u"): 1, ("LEX", "a", "v"): 1,
        ("HMMF", "1"): 1, ("HMMF", "0"): 1, ("HMMF", "2"): 1,
        ("HMMR", "1"): 2, ("HMMR", "2"): 1,
        ("FERF", "a", "2"): 1, ("FERR", "u", "1"): 1, ("FERR", "w", "1"): 1,
    }  # fmt: skip
    (tmp_path / "p").write_text("".join(f"{line}\n" for line in priors_lines(priors)))
    assert read_priors(disk_file(tmp_path / "p")) == priors
    write_priors(tmp_path / "q", priors, {"a": 0}, {"u": 0, "w": 1})
    assert (tmp_path / "q").read_text().splitlines() == [
        "2 3 1 3 2 1 2", "1 1 1", "0 1", "1 1", "2 1", "1 2", "2 1", "1 2 1", "1 1 1", "2 1 1",
    ]  # fmt: skip


@pytest.mark.parametrize("line", ["LEX\ta\t1", "HMMF\t1\t2\t3", "NONE\ta\tb\t1", "LEX\ta\tb\tx", ""])
def test_a_broken_prior_names_file_and_line(tmp_path, line):
    (tmp_path / "p").write_text(f"HMMF\t1\t1\n{line}\n")
    with pytest.raises(DataError, match=r"p:2: .*expected kind, word or words or jump, and count"):
        read_priors(disk_file(tmp_path / "p"))


@pytest.mark.skipif(not shutil.which("eflomal"), reason="the program eflomal is not installed")
def test_the_real_program_links_words_that_come_together(tmp_path):
    rng, words = random.Random(0), ["one", "two", "three", "four", "five", "six", "seven", "eight"]
    pairs = []
    for number in range(60):
        chosen = rng.sample(words, rng.randint(2, 6))
        backwards = " ".join(word[::-1] for word in chosen)
        pairs.append(Translation(id=f"{number}", first=" ".join(chosen), second=backwards))
    for made in (Eflomal().align(setting(tmp_path, pairs)), Eflomal().align_new(setting(tmp_path, pairs))):
        right = [
            one.links == tuple((n, n) for n in range(len(pair.first.split())))
            for one, pair in zip(made, pairs, strict=True)
        ]
        assert sum(right) >= 55
