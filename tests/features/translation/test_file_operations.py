"""A file server sees few operations of a run besides reading and writing the files of the run."""

import os
import sys
from collections import Counter

import pytest

from isogloss.core.identity import content, identity
from isogloss.core.records import Record
from isogloss.data.sources import Sources
from isogloss.engine import work as module
from isogloss.engine.work import Work
from isogloss.features.built_in_languages.translator import BuiltIn
from isogloss.features.translation.run import Translate
from isogloss.runs.run import RunContext
from isogloss.store.leases import LEASES
from isogloss.store.store import Store

RUNS = [
    Translate(corpus="xnli", languages="qaa-qad", translator=BuiltIn(), examples=index)
    for index in range(1, 21)
]
MOST = 18
"""Opens, renames, removals and new folders for a lease, its lines in a log, three files and two listings."""

SEEN = ("open", "os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.listdir", "os.scandir")


@pytest.fixture
def operations():
    """Count the operations that Python reports. It does not report operations such as stat."""
    counts = Counter()
    counting = [True]

    def count(event, arguments):
        if counting[0] and event in SEEN:
            where = arguments[0]
            is_open_already = event == "open" and isinstance(where, int)
            is_path = event == "open" and (arguments[2] or 0) & getattr(os, "O_PATH", 0)
            is_outside = str(where).startswith(("/proc/", str(sys.prefix)))
            counts[event] += not (is_open_already or is_path or is_outside)

    sys.addaudithook(count)  # It cannot be removed.
    yield counts
    counting[0] = False


def test_a_run_in_a_folder_takes_few_operations(tmp_path, operations, monkeypatch):
    def make(context, run):
        context.store.start(run)
        record = Record(id=identity(run), kind=run.name, title=run.title, run=content(run), rows=[])
        context.store.finish(record, {"seconds": 1})

    monkeypatch.setattr(module, "make", make)
    store = Store(tmp_path / "runs")
    (store.root / LEASES).mkdir(parents=True)
    context = RunContext(store=store, sources=Sources(), precision="float32")
    Work(context, RUNS[:1], lambda _: None).work()
    operations.clear()
    Work(context, RUNS[1:], lambda _: None).work()
    assert all(store.is_finished(run) for run in RUNS)
    assert operations.total() <= MOST * len(RUNS[1:]), operations
