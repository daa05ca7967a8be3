"""A folder of runs that goes away is waited for: nothing fails, is lost, or made anew in its place."""

import errno
import json
import time

import pytest

import isogloss
from isogloss.core.errors import StorageError
from isogloss.core.records import RECORD
from isogloss.data.sources import Sources
from isogloss.engine import storage_outage as module
from isogloss.engine.attempts import attempt
from isogloss.engine.storage_outage import StorageOutage, wait_while_silent
from isogloss.runs.run import RunContext
from isogloss.runs.translate import Translate
from isogloss.store.folder_store import FolderStore
from isogloss.store.leases import LEASES, FolderBoard, Leases
from isogloss.store.store import WORK
from isogloss.translators.built_in import BuiltIn
from tiny import TINY, tiny

RUN = Translate(corpus="xnli", languages="qaa-qad", translator=BuiltIn(), examples=9)
CHECKPOINTS = TINY.replace("batch_size = 8", "batch_size = 8, checkpoint_every = 1")


@pytest.fixture
def context(tmp_path):
    """A folder in which something was leased before."""
    (tmp_path / "runs" / LEASES).mkdir(parents=True)
    return RunContext(store=FolderStore(tmp_path / "runs"), sources=Sources(), precision="float32")


def test_a_run_whose_folder_goes_away_is_made_when_it_is_back(context, tmp_path):
    store = context.store
    result = attempt(context, RUN, begin=lambda: store.root.rename(tmp_path / "away") and None)
    assert (result.state, "runs has gone away" in result.reason) == ("outage", True)
    assert not store.root.exists()
    assert attempt(context, RUN).state == "outage"
    (tmp_path / "away").rename(store.root)
    assert not list(store.root.glob("*/failed.json"))
    assert attempt(context, RUN).state == "made"
    assert [path.name for path in (store.root / LEASES).iterdir()] == ["log"]


@pytest.mark.parametrize(("kind", "how"), [("EIO", "outage"), ("ESTALE", "outage"), ("ENOSPC", "")])
def test_an_error_that_may_go_by_is_no_failure(context, kind, how):
    def begin():
        raise StorageError("cannot read") from OSError(getattr(errno, kind), "no")

    try:
        ended = attempt(context, RUN, begin=begin).state
    except StorageError:
        ended = ""
    assert ended == how
    assert context.store.failure(RUN) == ""
    assert attempt(context, RUN).state == "made"


def test_an_outage_is_reported_and_ends_or_is_an_error_in_the_end(context, tmp_path, monkeypatch):
    told = []
    outage = StorageOutage(context.store)
    context.store.root.rename(tmp_path / "away")
    monkeypatch.setattr(module, "CHECK_EVERY", 0)
    outage.begin("runs/x: cannot read.")
    outage.check(told.append)
    assert (outage.reason, len(told)) == ("runs/x: cannot read.", 1)
    assert told[0].what == "waiting for the folder of runs, which has gone away"
    (tmp_path / "away").rename(context.store.root)
    outage.check(told.append)
    assert outage.reason == ""
    outage.begin("runs/y: cannot read.")  # It can be seen, and not be used: that is the same outage.
    monkeypatch.setattr(module, "PATIENCE", -1)
    with pytest.raises(StorageError, match=r"runs/y: cannot read. .tried for . s. The folder of runs has"):
        outage.check(told.append)


@pytest.mark.slow
def test_a_holder_that_cannot_be_seen_waits_and_goes_on_if_nobody_took_its_run(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "CHECK_EVERY", 0.01)
    leases, told = Leases(FolderBoard(tmp_path / "leases"), duration=0.06), []
    with leases.leased("run") as lease:
        (tmp_path / "leases").rename(tmp_path / "away")
        while not lease.silent:
            time.sleep(0.01)

        def back(progress):
            told.append(progress)
            if len(told) == 3:
                (tmp_path / "away").rename(tmp_path / "leases")

        wait_while_silent(lease, back)
        assert (lease.silent, lease.lost, len(told) >= 3) == (False, False, True)
        lease.finished = True
    assert not list((tmp_path / "leases").iterdir())


@pytest.mark.slow
def test_a_lease_that_ends_while_its_folder_is_away_is_given_up_when_that_is_back(tmp_path):
    runs, away = tmp_path / "runs", tmp_path / "away"
    leases = Leases(FolderBoard(runs / LEASES), log=runs / LEASES / "log", duration=0.06)
    with leases.leased("run"):
        runs.rename(away)
    time.sleep(0.1)
    assert not runs.exists()
    away.rename(runs)
    while json.loads(leases.board.read("run.1"))["held"]:
        time.sleep(0.01)
    with leases.leased("run") as lease:
        assert lease.number == 2


@pytest.mark.slow
def test_a_training_goes_on_when_its_folder_is_back(tmp_path):
    recipe = tiny(tmp_path, CHECKPOINTS)
    whole = isogloss.run(recipe, out=tmp_path / "whole", jobs=1, scale="least", report=False)
    out, away, told = tmp_path / "runs", tmp_path / "away", []

    def unplug(progress):
        if not told and any(out.glob(f"*/{WORK}/checkpoint-*")):
            told.append(progress)
            out.rename(away)
        elif progress.what.startswith("waiting for the folder"):
            told.append(progress)
            assert not out.exists()
            away.rename(out)

    outcome = isogloss.run(recipe, out=out, jobs=1, scale="least", report=False, on_progress=unplug).outcome
    assert len(told) > 1
    assert (len(outcome.made), outcome.failed, outcome.died) == (len(whole.outcome.made), {}, {})
    for key in outcome.made:
        assert (out / key / RECORD).read_bytes() == (whole.out / key / RECORD).read_bytes()
