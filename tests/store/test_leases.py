"""Exactly one process has the lease of a run, and none that ended, gave up, or was silent too long."""

import json
import os
import shutil
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from forked import Forked
from isogloss.core.errors import StorageError
from isogloss.core.processes import has_ended, host, this_process
from isogloss.store import leases as module
from isogloss.store.leases import FolderBoard, Lease, LeaseHistory, Leases

ELSEWHERE = "another-7-7"


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def board(tmp_path):
    return FolderBoard(tmp_path / "leases")


def held_elsewhere(board: FolderBoard, key: str, number: int = 1, beat: int = 0, process: str = ELSEWHERE):
    body = {"process": process, "machine": "there", "pid": 7, "beat": beat, "held": True}
    board.create(f"{key}.{number}", b"")
    board.write(f"{key}.{number}", json.dumps(body).encode())


def left(board: FolderBoard) -> list[str]:
    return sorted(path.name for path in board.folder.iterdir())


def test_a_lease_is_held_by_one_alone_and_removed_when_its_run_is_finished(board):
    first_leases, second_leases = Leases(board), Leases(board)
    with first_leases.lease_run("run") as lease, second_leases.lease_run("run") as second_lease:
        assert (lease.number, second_lease) == (1, None)
        assert first_leases.holder("run").startswith(f"{os.getpid()} on ")
        lease.ending = "finished"
    assert left(board) == []
    assert first_leases.history("run") == LeaseHistory()


def test_a_lease_that_was_given_up_is_followed_by_the_next(board):
    leases = Leases(board)
    with pytest.raises(KeyError), leases.lease_run("run"):
        raise KeyError
    assert left(board) == ["run.1"]
    assert (leases.history("run").is_held, leases.history("run").deaths) == (False, 0)
    with Leases(board).lease_run("run") as lease:
        assert lease.number == 2
        lease.ending = "finished"
    assert left(board) == []


def test_signs_of_life_keep_a_lease_and_silence_for_a_lease_ends_it(board):
    clock = Clock()
    leases = Leases(board, duration=60, clock=clock)
    held_elsewhere(board, "run")
    for beat in range(4):
        held_elsewhere(board, "run", beat=beat)
        with leases.lease_run("run") as lease:
            assert lease is None
        assert leases.history("run").is_held
        clock.now += 59
    clock.now += 2
    assert not leases.history("run").is_held
    with leases.lease_run("run") as lease:
        assert lease.number == 2
        lease.ending = "finished"


def test_deaths_are_leases_that_nobody_gave_back(board):
    clock = Clock()
    leases = Leases(board, clock=clock)
    assert leases.history("run") == LeaseHistory()
    held_elsewhere(board, "run")
    assert leases.history("run") == LeaseHistory(is_held=True, holder="7 on there")
    clock.now += module.LEASE_DURATION + 1
    assert leases.history("run") == LeaseHistory(holder="7 on there", starts=("",))
    with leases.lease_run("run") as lease:
        assert Leases(board).history("run").deaths == 1
        lease.ending = "out of memory"
    history = leases.history("run")
    assert (history.is_held, history.deaths, history.out_of_memory) == (False, 1, True)


def test_a_holder_that_was_paused_and_finds_its_lease_lost_has_not_died(board, monkeypatch):
    paused_leases = Leases(board)
    with paused_leases.lease_run("run") as lease:
        other_leases = Leases(board, clock=Clock())
        held_elsewhere(board, "run", number=2)
        assert other_leases.history("run").deaths == 1
        paused_leases.renew(lease)
        assert lease.lost
    assert other_leases.history("run") == LeaseHistory(is_held=True, holder="7 on there")


def test_the_leases_of_a_process_that_ends_at_once_are_given_back(board):
    leases = Leases(board)
    with leases.lease_run("run") as lease:
        leases.abandon()
        assert lease.lost
        assert Leases(board).history("run").deaths == 0


def test_silence_is_not_counted_while_the_board_could_not_be_seen(board):
    class Seen(FolderBoard):
        interruptions = 0

    clock, seen_board = Clock(), Seen(board.folder)
    leases = Leases(seen_board, duration=60, clock=clock)
    held_elsewhere(board, "run")
    assert leases.history("run").is_held
    clock.now += 61
    object.__setattr__(seen_board, "interruptions", 1)
    assert leases.history("run").is_held
    clock.now += 61
    assert not leases.history("run").is_held


def test_a_dead_process_of_this_machine_holds_nothing(board):
    process = subprocess.Popen(["true"])
    process.wait()
    held_elsewhere(board, "run", process=f"{host()}-{process.pid}-1")
    with Leases(board).lease_run("run") as lease:
        assert lease.number == 2


@pytest.mark.parametrize("content", [b"", b"{", b"[1]", b'"text"', b"\xff"])
def test_a_lease_that_cannot_be_read_is_waited_for_as_any_other(board, content):
    clock = Clock()
    leases = Leases(board, clock=clock)
    board.create("run.1", content)
    assert leases.history("run").is_held
    clock.now += module.LEASE_DURATION + 1
    with leases.lease_run("run") as lease:
        assert lease.number == 2


def test_where_a_file_stands_in_the_place_of_a_folder_there_is_nothing_to_read(tmp_path):
    (tmp_path / "runs").write_bytes(b"")  # As on a machine that has something else under this path.
    assert FolderBoard(tmp_path / "runs" / "leases").read("run.1") is None


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes with names there")
@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir])
def test_what_is_no_file_in_the_place_of_a_lease_is_said_at_once(board, make):
    board.folder.mkdir()
    make(board.folder / "run.1")
    with pytest.raises(StorageError, match=r"run\.1:"):
        Leases(board).history("run")


def test_a_lease_that_is_being_written_is_held(board):
    """Between the creation of its file and the first byte in it."""
    board.create("run.1", b"")
    with Leases(board).lease_run("run") as lease:
        assert lease is None


@pytest.mark.nightly
@pytest.mark.slow
def test_a_holder_gives_signs_of_life_until_it_ends_and_none_after(board):
    leases = Leases(board, duration=0.06)
    with leases.lease_run("run") as lease:
        contents = {board.read(lease.name)}
        for _ in range(200):
            time.sleep(0.01)
            contents.add(board.read(lease.name))
            if len(contents) > 3:
                break
        assert len(contents) > 3
        lease.ending = "finished"
    time.sleep(0.1)
    assert left(board) == []


@pytest.mark.slow
def test_a_holder_that_was_frozen_finds_that_it_lost(board):
    leases = Leases(board, duration=0.06)
    with leases.lease_run("run") as lease:
        held_elsewhere(board, "run", number=2)
        for _ in range(200):
            if lease.lost:
                break
            time.sleep(0.01)
        assert lease.lost
    assert left(board) == ["run.1", "run.2"]  # The next holder removes both.


def test_who_slept_for_a_lease_finds_that_the_run_was_finished_and_writes_no_lease_anew(board, monkeypatch):
    now = 0.0
    monkeypatch.setattr(module, "_now", lambda: now)
    leases = Leases(board)
    with leases.lease_run("run") as lease:
        board.remove("run.1")  # As another process does that has made the run.
        leases.renew(lease, if_over=True)
        assert not lease.lost  # Nobody can have: no lease is over.
        now = module.LEASE_DURATION + 1
        leases.renew(lease, if_over=True)
        assert lease.lost
        leases.renew(lease)
        assert lease.lost
    assert left(board) == []


def test_what_one_process_does_at_a_time_is_not_freed_by_who_lost_it(board, monkeypatch):
    with Leases(board).alone("report"):
        held_elsewhere(board, "report", number=2)
        monkeypatch.setattr(module, "_now", lambda: 10**9)
    assert left(board) == ["report.1", "report.2"]
    assert Leases(board).history("report").is_held


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir])
def test_a_lease_that_is_no_ordinary_file_is_an_error_that_names_it(board, make):
    board.folder.mkdir()
    make(board.folder / "run.1")
    with pytest.raises(StorageError, match=r"run\.1:"):
        Leases(board).history("run")


def test_a_lease_that_is_removed_while_it_is_looked_at_is_none(board, monkeypatch):
    board.create("run.1", b"")
    path = board.folder / "run.1"
    open_ = os.open

    def remove_first(*args, **options):
        path.unlink(missing_ok=True)
        return open_(*args, **options)

    monkeypatch.setattr(os, "open", remove_first)
    assert board.read("run.1") is None


def test_a_lease_is_not_written_where_the_board_has_gone_away(board, tmp_path):
    with Leases(board).lease_run("run") as lease:
        board.folder.rename(tmp_path / "away")
        with pytest.raises(FileNotFoundError):
            board.write(lease.name, b"")
        (tmp_path / "away").rename(board.folder)


def test_a_lease_begins_before_its_sign_of_life_is_written(board, monkeypatch):
    """A process may be paused between the two."""
    leases, write = Leases(board), FolderBoard.write
    monkeypatch.setattr(module, "_now", lambda: 0.0)

    def pause_first(*arguments):
        is_there = write(*arguments)
        monkeypatch.setattr(module, "_now", lambda: module.LEASE_DURATION + 1)
        return is_there

    with leases.lease_run("run") as lease:
        monkeypatch.setattr(FolderBoard, "write", pause_first)
        leases.renew(lease)
        assert (lease.renewed, lease.silent) == (0.0, True)
        lease.ending = "finished"


def test_the_lease_of_another_under_the_same_name_is_not_written_over(board):
    """The run was finished, then quarantined as damaged, and is computed again."""
    leases = Leases(board)
    with leases.lease_run("run") as lease:
        board.remove("run.1")
        with Leases(board).lease_run("run") as second_lease:
            leases.renew(lease)
            assert (lease.lost, board.read("run.1")) == (True, second_lease.content())


def test_what_is_done_alone_waits_for_others(board, monkeypatch):
    monkeypatch.setattr(module, "RETRY_EVERY", 0.001)
    at_once, most = 0, 0

    def work() -> None:
        nonlocal at_once, most
        with Leases(board).alone("report"):
            at_once += 1
            most = max(most, at_once)
            time.sleep(0.005)
            at_once -= 1

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (most, left(board)) == (1, [])


MANY = """
import sys, time
from pathlib import Path
from isogloss.store.leases import Leases, FolderBoard
folder = Path(sys.argv[1])
leases = Leases(FolderBoard(folder / "leases"))
(folder / f"ready-{sys.argv[2]}").touch()
while len([*folder.glob("ready-*")]) < 4:
    pass
for key in map(str, range(300)):
    with leases.lease_run(key) as lease:
        if lease is not None and not (folder / key).exists():
            with (folder / f"made-{sys.argv[2]}").open("a") as file:
                file.write(key + "\\n")
            (folder / key).touch()
            lease.ending = "finished"
        elif lease is not None:
            lease.ending = "finished"
"""


@pytest.mark.slow
def test_processes_that_race_make_each_run_once(tmp_path):
    words = [sys.executable, "-c", MANY, str(tmp_path)]
    racing = [Forked([*words, str(number)]) for number in range(4)]
    assert [process.wait() for process in racing] == [0] * 4
    made_counts = Counter(line for path in tmp_path.glob("made-*") for line in path.read_text().split())
    assert made_counts == dict.fromkeys(map(str, range(300)), 1)
    assert not list((tmp_path / "leases").iterdir())


HOST = """
import sys, time
from pathlib import Path
from isogloss.store.leases import Leases, FolderBoard
folder, name = Path(sys.argv[1]), sys.argv[2]
leases, left = Leases(FolderBoard(folder / "leases"), duration=2.0), set(map(str, range(20)))
while left:
    for key in sorted(left):
        with leases.lease_run(key) as lease:
            if lease is not None:
                with (folder / name).open("a") as file:
                    file.write(key + "\\n")
                if name == "first":
                    time.sleep(1000)
                left.remove(key)
                lease.ending = "finished"
    time.sleep(0.01)
"""


def machine(folder: Path, name: str) -> "subprocess.Popen[bytes]":
    """Start a machine: its name, processes and mounts are its own, and it sees the folder elsewhere."""
    (folder.parent / name).mkdir()
    script = f"hostname {name} && mount --bind {folder} {folder.parent / name} && "
    script += f"exec {sys.executable} -c '{HOST}' {folder.parent / name} {name}"
    return subprocess.Popen([*UNSHARE, "--mount-proc", "--kill-child", "sh", "-c", script])


UNSHARE = ("unshare", "--uts", "--pid", "--mount", "--fork")


@pytest.mark.nightly
@pytest.mark.slow
def test_what_a_machine_held_that_died_is_leased_by_another_after_a_lease(tmp_path):
    if not shutil.which("unshare") or subprocess.run([*UNSHARE, "true"], check=False).returncode:
        pytest.skip("no machine can be made up here")
    folder = tmp_path / "shared"
    folder.mkdir()

    def list_made(name: str) -> list[str]:
        return (folder / name).read_text().split() if (folder / name).exists() else []

    first_machine = machine(folder, "first")
    wait_until(lambda: list_made("first") == ["0"])
    second = machine(folder, "second")
    wait_until(lambda: len(list_made("second")) == 19)
    assert sorted(list_made("second"), key=int) == list(map(str, range(1, 20)))
    first_machine.kill()
    first_machine.wait()
    assert second.wait(timeout=60) == 0
    assert Counter(list_made("second")) == dict.fromkeys(map(str, range(20)), 1)
    assert not list((folder / "leases").iterdir())


def wait_until(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end, "waited too long"
        time.sleep(0.02)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.tuples(st.integers(0, 2), st.sampled_from(["claim", "end", "finish", "freeze", "wake"])),
        max_size=24,
    )
)
def test_no_two_hold_a_lease_whatever_happens(steps):
    """A model of the protocol: three processes that lease, give up, finish, fall silent, and wake up."""

    class Memory(dict):
        interruptions = 0

        def create(self, name, content):
            return self.setdefault(name, content) is content

        def write(self, name, content, is_own):
            if name not in self or not is_own(self[name]):
                return False
            self[name] = content
            return True

        read = dict.get

        def remove(self, name):
            self.pop(name, None)

    board, clock, is_finished = Memory(), Clock(), False
    processes = [Leases(board, duration=60, clock=clock) for _ in range(3)]
    holding: dict[int, Lease] = {}
    frozen_leases: dict[int, Lease] = {}
    for index, action in steps:
        if action == "claim" and index not in {**holding, **frozen_leases} and not is_finished:
            lease = processes[index]._lease("run")
            if lease is not None:
                assert not holding
                holding[index] = lease
                processes[index]._held["run"] = lease
        elif index in holding and action in ("end", "finish"):
            lease = holding.pop(index)
            is_finished = action == "finish"
            lease.ending = "finished" if is_finished else "given up"
            processes[index]._end(lease)
        elif action == "freeze" and holding:
            for leases in processes:
                leases.history("run")
            clock.now += 61
            frozen_leases |= holding
            holding.clear()
        elif action == "wake" and index in frozen_leases:
            lease = frozen_leases.pop(index)
            processes[index].renew(lease)
            if lease.lost:
                processes[index]._end(lease)
            else:
                assert not holding
                assert not is_finished
                holding[index] = lease
    assert not is_finished or not board


def test_the_log_says_what_was_leased_and_how_it_ended(board):
    leases = Leases(board, log="log")
    with leases.lease_run("one") as lease:
        lease.ending = "finished"
    with leases.lease_run("two"):
        pass
    (path,) = (board.folder / "log").iterdir()
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert [(line["run"], line["event"]) for line in lines] == [
        ("one", "claimed"),
        ("one", "finished"),
        ("two", "claimed"),
        ("two", "given up"),
    ]


def test_processes_have_names_of_their_own():
    assert this_process().startswith(f"{host()}-{os.getpid()}-")
    assert not has_ended(this_process())
    assert not has_ended(ELSEWHERE)
    assert not has_ended("")
    start = this_process().rpartition("-")[2]
    if Path("/proc/self/stat").exists():
        assert has_ended(f"{host()}-{os.getpid()}-{int(start) + 1}")


@pytest.mark.parametrize(
    "make",
    [lambda path, own_file: path.symlink_to(own_file), lambda path, own_file: path.hardlink_to(own_file)],
)
def test_who_renews_a_lease_that_became_a_link_writes_nothing_through_it(board, tmp_path, make):
    own_file = tmp_path / "mine"
    own_file.write_text("a file of the holder")
    with Leases(board).lease_run("run") as lease:
        (board.folder / lease.name).unlink()
        make(board.folder / lease.name, own_file)
        Leases(board).renew(lease)
        assert not board.write(lease.name, lease.content(), lease.is_own)
    assert own_file.read_text() == "a file of the holder"


@pytest.mark.parametrize("content", [b"", b"{", b"[" * 100_000, b"\xff", b"[1]", b"{}", b'{"token": null}'])
def test_a_lease_whose_content_cannot_be_read_is_not_ones_own(board, content):
    with Leases(board).lease_run("run") as lease:
        (board.folder / lease.name).write_bytes(content)
        assert not lease.is_own(content)
        assert not board.write(lease.name, lease.content(), lease.is_own)
        assert (board.folder / lease.name).read_bytes() == content


@pytest.mark.parametrize("folders", [1, 30])
def test_a_process_keeps_no_thread_for_a_folder_in_which_it_holds_nothing(tmp_path, folders):
    thread_count = threading.active_count()
    for number in range(folders):
        leases = Leases(FolderBoard(tmp_path / str(number)))
        for _ in range(3):
            with leases.lease_run("run") as lease:
                renewing = leases._renewing
                assert renewing.is_alive()
                lease.ending = "finished"
            renewing.join()
    assert threading.active_count() == thread_count
