"""A run is finished if and only if its record is there, and failed as long as a note says so."""

import json
import os

import pytest

from isogloss.core.errors import StorageError
from isogloss.core.identity import content, identity
from isogloss.core.processes import host
from isogloss.core.records import FAILED, Record
from isogloss.runs.pretrained import Pretrained
from isogloss.store import local_folder, store_at
from isogloss.store.store import PRECISION, Store

RUN = Pretrained(source="shipped", data="0")
RECORD = Record(id=identity(RUN), kind=RUN.name, title="t", run=content(RUN), rows=[])


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path / "runs")


def test_a_run_is_finished_when_its_record_is_there(store):
    store.start(RUN)
    assert not store.is_finished(RUN)
    store.finish(RECORD, {"seconds": 1})
    assert store.is_finished(RUN)
    assert store.record(RUN) == RECORD


@pytest.mark.parametrize("place", [store_at, local_folder])
def test_a_folder_that_cannot_be_is_refused(place):
    with pytest.raises(StorageError, match="xxx:"):
        place("x" * 300)


@pytest.mark.parametrize("forget", [Store.start, Store.forget_failure])
def test_a_failure_is_noted_until_the_next_try(store, forget):
    store.fail(RUN, "why")
    assert json.loads((store.folder(RUN) / FAILED).read_text())["error"] == "why"
    assert store.failure(RUN) == "why"
    forget(store, RUN)
    assert not (store.folder(RUN) / FAILED).exists()
    assert store.failure(RUN) == ""


def test_a_run_that_could_not_begin_has_not_failed(store):
    store.fail(RUN, "needs run abc, which failed", needs="abc")
    assert store.failure(RUN) == ""


@pytest.mark.parametrize("content", ["", "{", "[]", "{}"])
def test_a_damaged_note_of_a_failure_is_none(store, content):
    store.start(RUN)
    (store.folder(RUN) / FAILED).write_text(content)
    assert store.failure(RUN) == ""


def test_starting_again_clears_what_a_killed_process_left_half_written(store):
    folder = store.start(RUN)
    (folder / ".model.17.tmp").mkdir()
    (folder / ".record.json.17.tmp").write_text("{")
    (folder / "work").mkdir()
    store.start(RUN)
    assert [path.name for path in folder.iterdir()] == ["work"]  # its checkpoints stay


def test_what_a_living_process_is_writing_stays_when_another_starts(store):
    folder = store.start(RUN)
    another_folder = folder / f".model.{host()}-{os.getppid()}-0.tmp"
    another_folder.mkdir()
    store.start(RUN)
    store.remove_leftovers(RUN)
    assert list(folder.iterdir()) == [another_folder]


def test_a_precision_that_another_process_wrote_meanwhile_counts(store):
    def measure():  # For longer than a lease.
        (store.root / PRECISION).write_text('{"auto": "bfloat16"}')
        return "float32"

    assert store.precision(measure) == "bfloat16"
    assert json.loads((store.root / PRECISION).read_text())["auto"] == "bfloat16"


def test_a_run_is_found_by_the_beginning_of_its_id(store):
    store.start(RUN)
    store.finish(RECORD, {})
    assert store.find(RECORD.id[:4]) == store.folder(RUN)
    message = f"'zz'.*{RECORD.id}.*--in"
    with pytest.raises(StorageError, match=message):
        store.find("zz")
    for index in range(12):
        (store.root / f"{index:012}").mkdir()
        (store.root / f"{index:012}" / "record.json").touch()
    with pytest.raises(StorageError, match=r"000000000011.*1"):
        store.find("zz")


def test_precision_is_measured_once_in_a_store(store):
    """Another machine would measure another one, and a table would mix both."""
    answers = iter(["bfloat16", "float32"])
    assert store.precision(lambda: next(answers)) == "bfloat16"
    assert store.precision(lambda: next(answers)) == "bfloat16"


@pytest.mark.parametrize(
    ("content", "precision"),
    [
        ('{"auto": "bfloat16"}', "bfloat16"),
        (
            '{"AVX512": "bfloat16"}',
            "bfloat16",
        ),  # from older versions, which had a precision for each kind of device
        ('{"AVX512": "bfloat16", "V100": "float32"}', "float32"),
        ('{"AVX512": "float32", "auto": "bfloat16"}', "bfloat16"),
        ("{}", "measured"),
        ('{"auto": "float8"}', "measured"),
        ("[1", "measured"),
    ],
)
def test_the_precision_of_a_store_is_read_from_any_version(store, content, precision):
    store.root.mkdir()
    (store.root / PRECISION).write_text(content)
    assert store.precision(lambda: "measured") == precision


@pytest.mark.parametrize("place", ["", "model", "work"])
def test_nothing_is_replaced_where_a_link_leads_out_of_the_store(tmp_path, place):
    store = Store(tmp_path / "runs")
    victim = tmp_path / "victim"
    (victim / "model").mkdir(parents=True)
    (victim / "model" / "mine").write_text("kept")
    link = store.folder(RUN) / place
    link.parent.mkdir(parents=True, exist_ok=True)
    link.symlink_to(victim)
    with pytest.raises(StorageError, match=f"{RECORD.id}.*: .*link"):
        store.start(RUN)
    assert sorted(path.name for path in victim.rglob("*")) == ["mine", "model"]
