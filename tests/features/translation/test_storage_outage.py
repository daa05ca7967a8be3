"""Outages of a folder of runs are waited for: no run fails, is lost, or is created again in its place."""

import errno
import json
import time
from dataclasses import replace

import pytest

import isogloss
from isogloss.core.atomic_files import OUTAGE_ERRORS, reading_error, storage_error
from isogloss.core.errors import StorageError
from isogloss.core.records import RECORD
from isogloss.data.sources import Sources
from isogloss.engine import work as module
from isogloss.engine.work import Work, wait_while_silent
from isogloss.features.built_in_languages.translator import BuiltIn
from isogloss.features.translation.run import Translate
from isogloss.runs.run import RunContext
from isogloss.store.leases import LEASES, FolderBoard, Leases
from isogloss.store.store import WORK, Store
from says import says
from tiny import TINY, tiny

RUN = Translate(corpus="xnli", languages="qaa-qad", translator=BuiltIn(), examples=9)
CHECKPOINTS = TINY.replace("batch_size = 8", "batch_size = 8, checkpoint_every = 1")


@pytest.fixture
def context(tmp_path):
    """A folder in which something was leased before."""
    (tmp_path / "runs" / LEASES).mkdir(parents=True)
    return RunContext(store=Store(tmp_path / "runs"), sources=Sources(), precision="float32")


@pytest.fixture
def fails_once(monkeypatch):
    """Give a function that lets the first attempt to make a run fail and returns a list of attempts."""
    monkeypatch.setattr(module, "CHECK_EVERY", 0.01)
    right, attempts = module.make, []

    def fail_once(error: Exception) -> list[object]:
        def make(context, run):
            attempts.append(run)
            if len(attempts) == 1:
                raise error
            return right(context, run)

        monkeypatch.setattr(module, "make", make)
        return attempts

    return fail_once


def test_a_run_whose_folder_goes_away_is_made_when_it_is_back(context, tmp_path, monkeypatch):
    monkeypatch.setattr(module, "CHECK_EVERY", 0.01)
    store, right, waits, events = context.store, module.make, [], []

    def unplug(*arguments):
        monkeypatch.setattr(module, "make", right)
        store.root.rename(tmp_path / "away")
        return right(*arguments)

    def plug_in(progress):
        if store.root.exists():
            return
        waits.append(progress)
        if len(waits) == 3:
            (tmp_path / "away").rename(store.root)

    monkeypatch.setattr(module, "make", unplug)
    Work(replace(context, on_progress=plug_in), [RUN], events.append).work()
    assert [event.state for event in events] == ["begun", "begun", "made"]
    assert {progress.what for progress in waits} == {"waiting until the folder of runs can be used again"}
    assert "runs has gone away" in waits[0].remark
    assert not list(store.root.glob("*/failed.json"))
    assert [path.name for path in (store.root / LEASES).iterdir()] == ["log"]


@pytest.mark.parametrize("number", sorted(OUTAGE_ERRORS), ids=errno.errorcode.get)
@pytest.mark.parametrize("raised", [reading_error, storage_error, lambda path, error: error])
def test_an_error_of_a_file_of_the_store_that_may_pass_is_no_failure(context, raised, number, fails_once):
    path = context.store.root / "x" / "model.safetensors"
    attempts = fails_once(raised(path, OSError(number, "no", str(path))))
    events = []
    Work(context, [RUN], events.append).work()
    assert (len(attempts), events[-1].state) == (2, "made")


@pytest.mark.parametrize("number", sorted(OUTAGE_ERRORS), ids=errno.errorcode.get)
@pytest.mark.parametrize("path", ["", "elsewhere/x"])
def test_an_error_of_something_else_is_not_waited_for(context, path, number, fails_once, tmp_path):
    error = OSError(number, "no", *([str(tmp_path / path)] if path else []))
    attempts = fails_once(error)
    with pytest.raises(OSError, match="no") as caught_error:
        Work(context, [RUN], lambda _: None).work()
    assert (caught_error.value, len(attempts)) == (error, 1)


def test_outages_between_long_attempts_are_bounded(context, monkeypatch):
    """Each attempt takes longer than the patience for an outage, so each attempt begins a new outage."""
    now = [0.0]
    attempts = []
    monkeypatch.setattr(module, "CHECK_EVERY", 0.001)
    monkeypatch.setattr(module, "monotonic", lambda: now[0])

    def fail(context, run):
        attempts.append(run)
        now[0] += 2 * module.PATIENCE
        raise reading_error(context.store.root / "x", OSError(errno.EIO, "no"))

    monkeypatch.setattr(module, "make", fail)
    with says(StorageError, "runs/x", f"({module.OUTAGES + 1} times)", "folder of runs cannot be used"):
        Work(context, [RUN], lambda _: None).work()
    assert len(attempts) == module.OUTAGES + 1


def test_an_error_of_the_disk_that_stays_ends_the_work_and_is_no_failure_of_the_run(context, fails_once):
    fails_once(OSError(errno.ENOSPC, "no"))
    with pytest.raises(OSError, match="no"):
        Work(context, [RUN], lambda _: None).work()
    assert context.store.failure(RUN) == ""
    Work(context, [RUN], lambda _: None).work()
    assert context.store.is_finished(RUN)


def test_an_outage_that_lasts_too_long_is_an_error(context, monkeypatch):
    """The folder is visible but unusable, which belongs to the same outage."""
    monkeypatch.setattr(module, "CHECK_EVERY", 0.01)
    monkeypatch.setattr(module, "PATIENCE", 0.05)

    def fail(context, run):
        raise reading_error(context.store.root / "y", OSError(errno.EIO, "no"))

    monkeypatch.setattr(module, "make", fail)
    with pytest.raises(StorageError, match="runs/y:"):
        Work(context, [RUN], lambda _: None).work()


@pytest.mark.slow
def test_a_holder_that_cannot_be_seen_waits_and_goes_on_if_nobody_took_its_run(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "CHECK_EVERY", 0.01)
    leases = Leases(FolderBoard(tmp_path / "leases"), duration=0.06)
    progress_events = []
    with leases.lease_run("run") as lease:
        (tmp_path / "leases").rename(tmp_path / "away")
        while not lease.silent:
            time.sleep(0.01)

        def back(progress):
            progress_events.append(progress)
            if len(progress_events) == 3:
                (tmp_path / "away").rename(tmp_path / "leases")

        wait_while_silent(lease, back)
        assert (lease.silent, lease.lost, len(progress_events) >= 3) == (False, False, True)
        lease.ending = "finished"
    assert not list((tmp_path / "leases").iterdir())


@pytest.mark.slow
def test_a_lease_that_ends_while_its_folder_is_away_is_given_up_when_that_is_back(tmp_path):
    runs, away = tmp_path / "runs", tmp_path / "away"
    leases = Leases(FolderBoard(runs / LEASES), log=runs / LEASES / "log", duration=0.06)
    with leases.lease_run("run"):
        runs.rename(away)
    time.sleep(0.1)
    assert not runs.exists()
    away.rename(runs)
    while json.loads(leases.board.read("run.1"))["held"]:
        time.sleep(0.01)
    with leases.lease_run("run") as lease:
        assert lease.number == 2


@pytest.mark.slow
def test_a_training_goes_on_when_its_folder_is_back(tmp_path):
    recipe = tiny(tmp_path, CHECKPOINTS)
    whole_study = isogloss.run(recipe, out=tmp_path / "whole", jobs=1, scale="least", report=False)
    folder, away, progress_events = tmp_path / "runs", tmp_path / "away", []

    def unplug(progress):
        if not progress_events and any(folder.glob(f"*/{WORK}/checkpoint-*")):
            progress_events.append(progress)
            folder.rename(away)
        elif progress.what.startswith("waiting until the folder"):
            progress_events.append(progress)
            assert not folder.exists()
            away.rename(folder)

    outcome = isogloss.run(
        recipe, out=folder, jobs=1, scale="least", report=False, on_progress=unplug
    ).outcome
    assert len(progress_events) > 1
    assert (len(outcome.made), outcome.failed, outcome.died) == (len(whole_study.outcome.made), {}, {})
    for key in outcome.made:
        assert (folder / key / RECORD).read_bytes() == (whole_study.out / key / RECORD).read_bytes()
