"""Every reader and door that opens a foreign folder is fuzzed: right, or refused with the file's name."""

import pytest
from doors import ROWS, Door, doors
from fuzzing import fuzz, try_door

from isogloss.data.corpora.catalogue import CORPORA
from isogloss.data.formats.corpus_kinds import KINDS, list_columns
from isogloss.tasks import TASKS

MUTATIONS = 100
"""Mutations of a fast door; slower doors get fewer, by cost. `make fuzz` tries more."""


HANGING = 20.0
"""Seconds of a busy machine. `make fuzz` allows one."""


@pytest.mark.slow
@pytest.mark.parametrize("name", doors())
def test_a_mutated_file_is_read_right_or_refused_in_a_line_with_its_name(name, tmp_path):
    count = MUTATIONS if doors()[name].cost <= 5 else max(20, round(5 * MUTATIONS / doors()[name].cost))
    result = fuzz(name, range(count), tmp_path, seconds=HANGING)
    assert result.faults == []
    assert result.outcomes["right"] + result.outcomes["refused"] == count
    sets_aside = doors()[name].sets_aside or name.startswith("study ")
    assert result.outcomes["refused"] > 0 or sets_aside


NOT_PLAIN = {f"description {kind} {form}" for kind in ("tagging", "choice") for form in ("tsv", "csv")}
"""Formats with text cells, for kinds whose parts are lists, which need a separate description."""


@pytest.mark.parametrize("name", [name for name in doors() if name not in NOT_PLAIN])
def test_the_file_of_a_door_is_valid_as_it_is(name, tmp_path):
    readings = []
    for files, _, read in doors()[name].variants[:3]:
        for path, body in files.items():
            (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / path).write_bytes(body)
        readings.append(read(tmp_path))
    assert readings


def test_every_table_of_readers_has_its_doors():
    assert {f"corpus {name}" for name in CORPORA} <= set(doors())
    assert {f"description {kind} {form}" for kind in KINDS for form in list_columns(kind)} <= set(doors())
    assert set(ROWS) == set(KINDS)
    assert TASKS and any(name.startswith("predict ") for name in doors())


@pytest.mark.slow
@pytest.mark.parametrize(
    ("read", "outcome"),
    [
        (lambda folder: None, "right"),
        (lambda folder: 1 / 0, "foreign"),
        (lambda folder: any(False for _ in iter(int, 1)), "hang"),
        (lambda folder: (folder / "new").write_text(""), "wrote"),
    ],
)
def test_a_fault_is_found(read, outcome, tmp_path):
    door = Door("made up", (({"a": b"x"}, "a", read),))
    assert try_door(door, 0, tmp_path)[0] == outcome


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "index"),
    [
        ("outputs of words", 1_005_288),
        ("description tagging itself", 1_002_464),
        ("description tagging jsonl", 520),
    ],
)
def test_what_a_million_mutations_once_found_stays_mended(name, index, tmp_path):
    assert try_door(doors()[name], index, tmp_path, seconds=HANGING) == ("refused", "")
