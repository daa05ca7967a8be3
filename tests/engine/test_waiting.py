"""A process that waits says for what: runs of others, memory, or a machine for a run that killed one."""

import json
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from isogloss.core.identity import identity
from isogloss.core.processes import host
from isogloss.data.sources import Sources
from isogloss.engine.devices import Room
from isogloss.engine.work import Work
from isogloss.features.built_in_languages.translator import BuiltIn
from isogloss.features.translation.run import Translate
from isogloss.runs.run import RunContext
from isogloss.store.leases import LEASES
from isogloss.store.store import Store

RUNS = [
    Translate(corpus="xnli", languages=f"qaa-{target}", translator=BuiltIn(), examples=3)
    for target in ("qad", "qae")
]
NOBODY = 2**22 + 1
"""No process has this number."""


class BusyRoom(Room):
    """A machine on which other runs take the memory until it is free."""

    is_free = False

    @contextmanager
    def reserve(self, run, leases, *, is_exclusive) -> Iterator[str]:
        with super().reserve(run, leases, is_exclusive=is_exclusive) as seat:
            yield seat if self.is_free else ""


def waiting_messages(root, room, *, then, runs=RUNS) -> list[str]:
    """Work on runs, and free them at the third message."""
    messages: list[str] = []

    def hear(event):
        if event.state == "waiting":
            messages.append(event.message)
            if len(messages) == 3:
                then()

    context = RunContext(store=Store(root), sources=Sources(), precision="float32")
    Work(context, runs, hear, room).work()
    assert all(context.store.is_finished(run) for run in runs)
    return messages


def hold(root, run, process: str):
    """Write the lease of another process. Return its file."""
    file = root / LEASES / f"{identity(run)}.1"
    file.write_text(json.dumps({"process": process, "held": True}), encoding="utf-8")
    return file


@pytest.fixture
def root(tmp_path):
    (tmp_path / "runs" / LEASES).mkdir(parents=True)
    return tmp_path / "runs"


def test_memory_of_other_runs(root):
    room = BusyRoom(str(root))
    messages = waiting_messages(root, room, then=lambda: setattr(room, "is_free", True))
    assert len(messages) == 3
    assert all("memory" in message and "process" not in message for message in messages)


def test_runs_of_other_processes(root):
    files = [hold(root, run, f"another-{number}-1") for number, run in enumerate(RUNS)]
    messages = waiting_messages(root, Room(str(root)), then=lambda: [file.unlink() for file in files])
    assert "2 runs that other processes make" in messages[-1]
    assert all("memory" not in message and "died" not in message for message in messages)


@pytest.mark.parametrize("held_runs", [0, 1])
def test_a_run_whose_process_died_waits_for_a_machine_of_its_own(root, held_runs):
    hold(root, RUNS[0], f"{host()}-{NOBODY}-1")
    files = [hold(root, run, "another-1-1") for run in RUNS[1 : 1 + held_runs]]
    room = BusyRoom(str(root))

    def free():
        room.is_free = True
        for file in files:
            file.unlink()

    message = waiting_messages(root, room, then=free, runs=RUNS[: 1 + held_runs])[-1]
    assert "1 run whose process died" in message and "alone" in message
    assert ("1 run that other processes make" in message) == bool(held_runs)
