"""A run is finished if and only if its record is there; one process at a time makes runs in a folder."""

import json
import subprocess
import sys
import time

import pytest

from isogloss.core.errors import StorageError
from isogloss.core.identity import identity
from isogloss.core.records import Record
from isogloss.experiments.encoder_runs import Pretrained
from isogloss.experiments.store import FAILED, HOLDER, LOCK, Store

RUN = Pretrained(source="shipped", data="0")
RECORD = Record(id=identity(RUN), kind=RUN.name, title="t", run={}, rows=[])


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path / "runs")


def test_a_run_is_finished_when_its_record_is_there(store):
    store.start(RUN)
    assert not store.is_finished(RUN)
    store.finish(RECORD, {"seconds": 1})
    assert store.is_finished(RUN)
    assert store.record(RUN) == RECORD


def test_a_failure_is_noted_until_the_next_try(store):
    store.fail(RUN, "why")
    assert json.loads((store.folder(RUN) / FAILED).read_text()) == {"error": "why"}
    store.start(RUN)
    assert not (store.folder(RUN) / FAILED).exists()


def test_starting_again_clears_what_a_killed_process_left_half_written(store):
    folder = store.start(RUN)
    (folder / ".model.17.tmp").mkdir()
    (folder / ".record.json.17.tmp").write_text("{")
    (folder / "work").mkdir()
    store.start(RUN)
    assert [path.name for path in folder.iterdir()] == ["work"]  # its checkpoints stay


def test_a_run_is_found_by_the_beginning_of_its_id(store):
    store.start(RUN)
    store.finish(RECORD, {})
    assert store.find(RECORD.id[:4]) == store.folder(RUN)
    with pytest.raises(StorageError, match=f"no finished run 'zz'. Finished runs: {RECORD.id}."):
        store.find("zz")


def test_precision_is_measured_once_for_a_device(store):
    answers = iter(["bfloat16", "float32"])
    assert store.precision("this", lambda: next(answers)) == "bfloat16"
    assert store.precision("this", lambda: next(answers)) == "bfloat16"
    assert store.precision("that", lambda: next(answers)) == "float32"


def test_a_folder_is_locked_against_another_process(store):
    holder = _holding(store)
    try:
        with pytest.raises(StorageError) as error, store.lock():
            pass
        assert f"another process ({holder.pid}) is making runs in this folder" in str(error.value)
        assert str(error.value).endswith("Wait until it has ended, or choose another --out.")
    finally:
        holder.kill()
        holder.wait()


def test_the_lock_of_a_killed_process_does_not_count(store):
    holder = _holding(store)
    holder.kill()
    holder.wait()
    assert (store.root / LOCK).exists()
    with store.lock():
        assert not store.is_finished(RUN)


def test_a_lock_ends_with_what_it_guards(store):
    for _ in range(2):
        with store.lock():
            pass


def _holding(store):
    code = f"""
import pathlib, time
from isogloss.experiments.store import Store
with Store(pathlib.Path({str(store.root)!r})).lock():
    time.sleep(60)
"""
    holder = subprocess.Popen([sys.executable, "-c", code])
    lock, until = store.root / HOLDER, time.monotonic() + 20
    while not (lock.exists() and lock.read_text().strip()):
        assert time.monotonic() < until
        time.sleep(0.05)
    return holder
