"""Order in which a process tries runs, if other processes lease most of them and the store is slow."""

import json
from dataclasses import dataclass, field, replace

import pytest

from isogloss.core.identity import identity
from isogloss.data.sources import Sources
from isogloss.engine import work
from isogloss.engine.work import Agenda, Work
from isogloss.features.built_in_languages.translator import BuiltIn
from isogloss.features.translation.run import Translate
from isogloss.runs.run import RunContext
from isogloss.store.leases import LEASES, FolderBoard, Leases
from isogloss.store.store import Store


@dataclass(frozen=True)
class Task:
    """A run that needs others and trains nothing."""

    number: int
    trains = False


class Clock:
    """Time that passes only where a test lets it."""

    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now

    def pass_time(self, seconds):
        self.now += seconds


@dataclass
class SlowBoard:
    """A board in memory on which every operation takes ``latency`` seconds."""

    clock: Clock
    latency: float
    files: dict = field(default_factory=dict)
    operations: int = 0
    interruptions: int = 0

    def _wait(self):
        self.operations += 1
        self.clock.pass_time(self.latency)

    def create(self, name, content):
        self._wait()
        return self.files.setdefault(name, content) is content

    def write(self, name, content, is_own=lambda _: True):
        self._wait()
        if name not in self.files or not is_own(self.files[name]):
            return False
        self.files[name] = content
        return True

    def read(self, name):
        self._wait()
        return self.files.get(name)

    def names(self):
        self._wait()
        return list(self.files)

    def remove(self, name):
        self._wait()
        self.files.pop(name, None)

    def append(self, name, line, *, begins):
        pass


def held_elsewhere(key):
    lease = {"process": "elsewhere-1-1", "machine": "elsewhere", "pid": 1, "token": key, "held": True}
    return json.dumps(lease).encode()


@pytest.fixture
def clock(monkeypatch):
    clock = Clock()
    monkeypatch.setattr(work, "monotonic", clock)
    monkeypatch.setattr(work, "needs", lambda run: [])
    return clock


def free_runs_made(clock, *, latency, held_value, free_values, seconds=1e9):
    """Run the free runs of a plan whose first runs are leased. Return these and the operations."""
    runs = [Task(index) for index in range(held_value + free_values)]
    board = SlowBoard(clock, latency)
    leases = Leases(board, clock=clock)
    for run in runs[:held_value]:
        board.files[f"{identity(run)}.1"] = held_elsewhere(identity(run))
    agenda = Agenda(runs, leases.list_leased_runs)
    result = []
    while len(result) < free_values and clock.now < seconds:
        run = agenda.next()
        if run is None:
            clock.pass_time(work.CHECK_EVERY)
            agenda.begin_pass()
        elif leases.history(identity(run)).is_held:
            agenda.postpone()
        else:
            with leases.lease_run(identity(run)) as lease:
                assert lease
                lease.ending = "finished"
            result.append((run.number, clock.now))
            agenda.settle()
    return result, board.operations


@pytest.mark.each_value
@pytest.mark.parametrize("held_value", [0, 10, 50, 200, 1_000])
@pytest.mark.parametrize("latency", [0.0, 0.002, 0.03, 0.2])
def test_a_process_reaches_free_runs_however_many_others_hold(clock, latency, held_value):
    result, _ = free_runs_made(clock, latency=latency, held_value=held_value, free_values=10, seconds=60.0)
    assert sorted(index for index, _ in result) == list(range(held_value, held_value + 10))
    first_item = result[0][1]
    assert first_item <= work.CHECK_EVERY + 30 * latency


@pytest.mark.parametrize("held_value", [50, 1_000])
def test_a_claim_costs_as_many_operations_however_many_runs_are_held(clock, held_value):
    _, few_free_runs = free_runs_made(clock, latency=0.002, held_value=held_value, free_values=5)
    _, many = free_runs_made(clock, latency=0.002, held_value=held_value, free_values=105)
    assert (many - few_free_runs) / 100 <= 12


def test_a_run_that_was_begun_and_given_back_comes_before_new_ones(clock):
    """After Ctrl-C the same command continues the training that it interrupted."""
    runs = [Task(index) for index in range(5)]
    board = SlowBoard(clock, 0.002)
    board.files[f"{identity(runs[2])}.1"] = json.dumps({"held": False, "token": "x"}).encode()
    agenda = Agenda(runs, Leases(board).list_leased_runs)
    order = []
    while agenda.left:
        order.append(agenda.next().number)
        agenda.settle()
    assert order == [0, 1, 2, 3, 4]


def test_processes_begin_at_positions_of_their_own(clock):
    runs = [Task(index) for index in range(10)]
    agenda = Agenda(runs, frozenset, position=0.35)
    order = []
    while agenda.left:
        order.append(agenda.next().number)
        agenda.settle()
    assert order == [3, 4, 5, 6, 7, 8, 9, 0, 1, 2]


def test_a_run_whose_holder_finishes_is_taken_up_at_the_next_look(clock):
    runs = [Task(index) for index in range(3)]
    board = SlowBoard(clock, 0.0)
    leases = Leases(board)
    board.files[f"{identity(runs[0])}.1"] = held_elsewhere(identity(runs[0]))
    agenda = Agenda(runs, leases.list_leased_runs)
    assert agenda.next() == runs[0]
    agenda.postpone()
    clock.pass_time(2 * work.CHECK_EVERY)
    del board.files[f"{identity(runs[0])}.1"]
    assert agenda.next() == runs[0]


def test_each_held_run_is_looked_at_once_in_a_pass(clock):
    runs = [Task(index) for index in range(4)]
    board = SlowBoard(clock, 0.0)
    for run in runs:
        board.files[f"{identity(run)}.1"] = held_elsewhere(identity(run))
    agenda = Agenda(runs, Leases(board).list_leased_runs)
    for _ in range(3):
        tried_value = []
        while run := agenda.next():
            tried_value.append(run.number)
            agenda.postpone()
        assert sorted(tried_value) == [0, 1, 2, 3]
        agenda.begin_pass()


@pytest.mark.parametrize("left", [(), (0,), (0, 1, 2), (3, 9, 11), tuple(range(11)), tuple(range(12))])
def test_a_worker_makes_no_run_that_is_left_to_others(tmp_path, monkeypatch, left):
    """It needs no more listings of leases for that."""
    runs = [
        Translate(corpus="xnli", languages="qaa-qad", translator=BuiltIn(), examples=index)
        for index in range(1, 13)
    ]
    other_identities = {identity(runs[index]) for index in left}
    (tmp_path / LEASES).mkdir()
    identities = []
    listings = []
    names = FolderBoard.names

    def counted_names(board):
        listings.append(board)
        return names(board)

    monkeypatch.setattr(FolderBoard, "names", counted_names)
    monkeypatch.setattr(work, "make", lambda context, run: identities.append(identity(run)))
    context = RunContext(store=Store(tmp_path), sources=Sources(), precision="float32")
    Work(context, runs, lambda event: None, patience=0.0, left_to_others=other_identities).work()
    assert sorted(identities) == sorted({identity(value) for value in runs} - other_identities)
    assert len(listings) <= 3 + len(identities)


def test_a_worker_goes_on_when_others_have_made_what_its_runs_need(tmp_path, monkeypatch):
    first_translate = Translate(corpus="xnli", languages="qaa-qad", translator=BuiltIn(), examples=1)
    second = replace(first_translate, start=first_translate, languages="qad-qaa")
    (tmp_path / LEASES).mkdir()
    store = Store(tmp_path)
    events = []
    context = RunContext(store=store, sources=Sources(), precision="float32")

    def report(event):
        events.append((event.run, event.state))
        if event.state == "waiting":
            store.fail(first_translate, "made elsewhere, and failed")

    Work(context, [first_translate, second], report, left_to_others={identity(first_translate)}).work()
    assert [event for event in events if event[1] != "waiting"] == [
        (identity(first_translate), "failed"),
        (identity(second), "failed"),
    ]
