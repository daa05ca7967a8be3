"""Machines that see each other's files late make each run once, and agree on what has failed."""

from dataclasses import replace
from threading import Thread

import pytest

from isogloss.core.identity import identity
from isogloss.core.records import FAILED, RECORD
from isogloss.data.sources import Sources
from isogloss.engine import work as module
from isogloss.engine.work import Work
from isogloss.features.built_in_languages.translator import BuiltIn
from isogloss.features.translation.run import Translate
from isogloss.runs.run import RunContext
from isogloss.store.leases import LEASES, FolderBoard, Leases
from isogloss.store.store import WORK, Store
from late_files import Client, network_folders, seen_by

RUN = Translate(corpus="xnli", languages="qaa-qad", translator=BuiltIn(), examples=9)
KEY = identity(RUN)

MISSING = (KEY, f"{KEY}/{RECORD}", f"{KEY}/{FAILED}", f"{LEASES}/{KEY}.1", f"{LEASES}/{KEY}.2", LEASES)
"""Names that the second machine requests before the first one creates them."""


def work_of(folder, name):
    """Return the work of a machine that sees a folder under a separate name."""
    (folder / name).symlink_to(folder / "runs")
    context = RunContext(store=Store(folder / name), sources=Sources(), precision="float32")
    return Work(context, [RUN], lambda _: None)


@pytest.fixture
def machines(tmp_path):
    (tmp_path / "runs" / LEASES).mkdir(parents=True)
    return work_of(tmp_path, "first"), work_of(tmp_path, "second"), Client(tmp_path.resolve())


def look_for(store, name):
    with pytest.raises(FileNotFoundError):
        (store.root / name).stat()


@pytest.mark.parametrize("name", MISSING[:-1])
@pytest.mark.parametrize("folder_is_known", [False, True])
def test_a_run_that_another_machine_finished_is_not_made_again(machines, monkeypatch, name, folder_is_known):
    first_machine, second_machine, client = machines
    if folder_is_known and name != KEY:
        (first_machine.context.store.root / KEY).mkdir()
    with network_folders():
        with seen_by(client):
            look_for(second_machine.context.store, name)
        assert first_machine.attempt(RUN).state == "made"
        monkeypatch.setattr(module, "make", lambda *_: pytest.fail("it was made twice"))
        with seen_by(client):
            assert second_machine.attempt(RUN).state == "done"
    assert [path.name for path in (first_machine.context.store.root / LEASES).iterdir()] == ["log"]


@pytest.mark.parametrize("name", MISSING[:-1])
@pytest.mark.parametrize("folder_is_known", [False, True])
def test_a_run_that_failed_on_another_machine_is_not_tried_again(
    machines, monkeypatch, name, folder_is_known
):
    first_machine, second_machine, client = machines
    if folder_is_known and name != KEY:
        (first_machine.context.store.root / KEY).mkdir()
    with network_folders():
        with seen_by(client):
            look_for(second_machine.context.store, name)
        first_machine.context.store.fail(RUN, "it diverged")
        monkeypatch.setattr(module, "make", lambda *_: pytest.fail("it was tried again"))
        with seen_by(client):
            event = second_machine.attempt(RUN)
    assert (event.state, event.message) == ("failed", "it diverged")


@pytest.mark.parametrize("name", MISSING[:-1])
def test_a_run_that_another_machine_makes_is_left_to_it(machines, monkeypatch, name):
    first_machine, second_machine, client = machines
    monkeypatch.setattr(module, "make", lambda *_: pytest.fail("it was made by two"))
    with network_folders():
        with seen_by(client):
            look_for(second_machine.context.store, name)
        with first_machine.context.store.leases.lease_run(KEY), seen_by(client):
            assert second_machine.attempt(RUN).state == "elsewhere"


@pytest.mark.parametrize("name", MISSING[:-1])
def test_a_run_whose_folder_another_machine_made_is_made(machines, name):
    first_machine, second_machine, client = machines
    with network_folders():
        with seen_by(client):
            look_for(second_machine.context.store, name)
        (first_machine.context.store.root / KEY / WORK).mkdir(parents=True)
        with seen_by(client):
            assert second_machine.attempt(RUN).state == "made"


def test_a_holder_that_was_silent_sees_that_another_machine_took_over(tmp_path):
    """The holder finds the next lease at its next heartbeat, although a missing name is remembered."""
    (tmp_path / "leases").mkdir()
    now = [0.0]
    holder, second_leases = (
        Leases(FolderBoard(tmp_path / "leases"), duration=60, clock=lambda: now[0]) for _ in range(2)
    )
    client = Client(tmp_path.resolve(), seconds=3600)
    with network_folders(), holder.lease_run("run") as lease:
        with seen_by(client):
            holder.renew(lease)
        with second_leases.lease_run("run") as none:
            assert none is None
        now[0] += 61
        with second_leases.lease_run("run") as second_lease:
            assert second_lease
            with seen_by(client):
                holder.renew(lease)
            assert lease.lost


@pytest.mark.slow
def test_machines_that_see_files_late_and_slowly_make_each_run_once(tmp_path, monkeypatch):
    """Each call takes a millisecond, and each machine remembers what was missing."""
    (tmp_path / "runs" / LEASES).mkdir(parents=True)
    runs = [replace(RUN, examples=number) for number in range(5, 13)]
    made_ids = []
    right = module.make

    def make(context, run):
        made_ids.append(identity(run))
        right(context, run)

    def work(name):
        machine = work_of(tmp_path, name)
        machine.runs = runs
        with seen_by(Client(tmp_path.resolve(), delay=0.001)) as client:
            machine.work()
        late.append(client.late)

    monkeypatch.setattr(module, "make", make)
    late = []
    threads = [Thread(target=work, args=(name,)) for name in ("first", "second", "third")]
    with network_folders():
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert sorted(made_ids) == sorted(map(identity, runs))
    assert sum(late) > 0
    assert [path.name for path in (tmp_path / "runs" / LEASES).iterdir()] == ["log"]
