"""A process paused for longer than its lease uses a different process's results and does not disturb it.

More rounds, by hand: benchmarks/paused.py.
"""

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import fsspec
import pytest

from forked import Forked
from isogloss.core.errors import ModelError, StorageError
from isogloss.core.identity import identity
from isogloss.core.processes import stop_if_lost
from isogloss.core.records import FAILED, RECORD
from isogloss.data.sources import Sources
from isogloss.engine import work
from isogloss.features.buckets.mirrored_store import MirroredStore
from isogloss.features.buckets.remote import Remote
from isogloss.features.built_in_languages.translator import BuiltIn
from isogloss.features.translation.run import Translate
from isogloss.runs.run import Run, RunContext
from isogloss.store import leases
from isogloss.store.leases import LEASE_DURATION, LEASES, FolderBoard, Leases
from isogloss.store.store import WORK, Store

RUN = Translate(corpus="xnli", languages="qaa-qad", translator=BuiltIn(), examples=9)
BACK = Translate(corpus="xnli", languages="qaa-qad-qaa", translator=BuiltIn(), start=RUN)
KEY = identity(RUN)


@pytest.fixture
def context(tmp_path):
    return run_context(tmp_path / "runs")


def run_context(runs: Path) -> RunContext:
    """Give a folder of runs in which something was leased before."""
    (runs / LEASES).mkdir(parents=True)
    return RunContext(store=Store(runs), sources=Sources(), precision="float32")


@pytest.fixture
def asleep(monkeypatch):
    """Let the machine sleep for longer than a lease."""
    now = leases._now
    return lambda: monkeypatch.setattr(leases, "_now", lambda: now() + LEASE_DURATION + 1)


def attempt(context: RunContext, run: Run = RUN) -> str:
    """Attempt a run. Return its state."""
    return work.Work(context, [run], lambda _: None).attempt(run).state


@pytest.fixture
def attempt_after(monkeypatch):
    """Attempt a run in which something happens once it is leased and begun. Return its state."""
    right = work.make

    def attempt_run(context: RunContext, happens: Callable[[], object], run: Run = RUN) -> str:
        def make(*arguments):
            patch.undo()
            happens()
            return right(*arguments)

        with monkeypatch.context() as patch:
            patch.setattr(work, "make", make)
            return attempt(context, run)

    return attempt_run


def other_leases(context: RunContext) -> Leases:
    """The leases as another process sees them, for which no lease has to be waited for."""
    return Leases(FolderBoard(context.store.root / LEASES), clock=iter(range(0, 10**6, 100)).__next__)


def taken_over(context: RunContext):
    """Lease the run as another process, after a lease."""
    other_items = other_leases(context)
    while not (lease := other_items._lease(KEY)):
        pass
    return other_items, lease


def file_names(context: RunContext) -> list[str]:
    """List what is in the folder of the run and among the leases."""
    board = [path.name for path in (context.store.root / LEASES).iterdir() if path.name != "log"]
    return sorted(board + [path.name for path in context.store.folder(RUN).iterdir()])


def finished_files(context: RunContext, tmp_path: Path) -> Path:
    """Return the folder of the run as an undisturbed process leaves it."""
    undisturbed_run_context = run_context(tmp_path / "undisturbed")
    assert attempt(undisturbed_run_context) == "made"
    return undisturbed_run_context.store.folder(RUN)


def test_who_sleeps_and_finds_the_run_taken_writes_nothing_and_leaves_it(context, asleep, attempt_after):
    def begin():
        taken_over(context)
        asleep()

    assert attempt_after(context, begin) == "elsewhere"
    assert file_names(context) == [f"{KEY}.1", f"{KEY}.2"]
    assert (other_leases(context).holder(KEY) != "", other_leases(context).history(KEY).deaths) == (True, 0)


def test_who_sleeps_and_finds_the_run_finished_takes_it(context, asleep, tmp_path, attempt_after):
    whole_path = finished_files(context, tmp_path)

    def begin():
        other_items, lease = taken_over(context)
        shutil.copytree(whole_path, context.store.folder(RUN))
        other_items._remove(KEY, lease.number)
        asleep()

    assert attempt_after(context, begin) == "done"
    assert file_names(context) == sorted(path.name for path in whole_path.iterdir())
    assert (context.store.folder(RUN) / RECORD).read_bytes() == (whole_path / RECORD).read_bytes()


def test_who_sleeps_and_finds_the_run_finished_in_a_bucket_takes_it(asleep, tmp_path, attempt_after):
    fsspec.filesystem("memory").store.clear()
    ours, theirs = (
        RunContext(store=MirroredStore(root, Remote("memory://paused", root, patience=0)), sources=Sources())
        for root in (tmp_path / "ours", tmp_path / "theirs")
    )

    def begin():
        theirs.store.leases.clock = iter(range(0, 10**6, 100)).__next__
        while attempt(theirs) != "made":
            pass
        asleep()

    assert attempt_after(ours, begin) == "done"
    names = ours.store.remote.listing()
    assert [name for name in names if name.startswith(f"{LEASES}/{KEY}") or WORK in name] == []
    assert f"{KEY}/{RECORD}" in names
    assert not (ours.store.folder(RUN) / RECORD).exists()


@pytest.mark.parametrize("error", [StorageError("gone"), ModelError("gone"), FileNotFoundError("gone")])
@pytest.mark.parametrize("is_done", [True, False])
def test_what_goes_wrong_in_a_run_that_is_anothers_is_no_error(
    context, tmp_path, error, is_done, attempt_after
):
    whole_path = finished_files(context, tmp_path)

    def begin():
        other_items, lease = taken_over(context)
        if is_done:
            shutil.copytree(whole_path, context.store.folder(RUN))
            (context.store.folder(RUN) / WORK).mkdir()  # The process that woke up creates it again.
            other_items._remove(KEY, lease.number)
        raise error

    assert attempt_after(context, begin) == ("done" if is_done else "elsewhere")
    assert not (context.store.folder(RUN) / FAILED).exists()
    if is_done:
        assert file_names(context) == sorted(path.name for path in whole_path.iterdir())


def test_what_goes_wrong_in_a_run_whose_record_a_paused_process_wrote_is_no_error(
    context, tmp_path, attempt_after
):
    whole_path = finished_files(context, tmp_path)

    def begin():
        shutil.copytree(whole_path, context.store.folder(RUN))
        raise StorageError("its work has gone")

    assert attempt_after(context, begin) == "done"
    assert file_names(context) == sorted(path.name for path in whole_path.iterdir())


def test_the_error_of_a_run_that_nobody_else_makes_is_one(context, attempt_after):
    def begin():
        raise StorageError("the disk is full")

    with pytest.raises(StorageError, match="full"):
        attempt_after(context, begin)
    assert left_leases(context) == [False]


def left_leases(context: RunContext) -> list[bool]:
    """Return for each lease of the run whether a process has it."""
    paths = sorted((context.store.root / LEASES).glob(f"{KEY}.*"))
    return [json.loads(path.read_text())["held"] for path in paths]


def test_what_is_wrong_because_a_needed_folder_has_gone_is_not_recorded(context, attempt_after):
    assert attempt(context) == "made"

    def begin():
        shutil.rmtree(context.store.folder(RUN))
        raise ModelError("no such folder")

    with pytest.raises(StorageError, match=f"{KEY}/record.json:"):
        attempt_after(context, begin, BACK)
    assert context.store.failure(BACK) == ""
    assert [attempt(context, run) for run in (RUN, BACK)] == ["made", "made"]


def test_what_is_wrong_though_all_that_is_needed_is_there_is_recorded(context, attempt_after):
    assert attempt(context) == "made"

    def begin():
        raise ModelError("too wide")

    assert attempt_after(context, begin, BACK) == "failed"
    assert context.store.failure(BACK) == "too wide"


def test_a_run_is_looked_after_only_once_a_lease_may_be_over(context, monkeypatch):
    """Else each step of a training would read the folder of leases."""
    looks = []
    renew = Leases._write_renewal
    monkeypatch.setattr(
        Leases, "_write_renewal", lambda self, lease: looks.append(lease) or renew(self, lease)
    )
    assert attempt(context) == "made"
    assert looks == []
    assert stop_if_lost() is None


@pytest.fixture(scope="module")
def rounds(tmp_path_factory):
    """Function that pauses processes, a folder with its recipe, and the records of an undisturbed run."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(Path(__file__).parents[2] / "benchmarks")
        import paused

        patch.setattr(paused, "subprocess", SimpleNamespace(Popen=Forked, DEVNULL=subprocess.DEVNULL))
        folder = tmp_path_factory.mktemp("paused")
        (folder / "recipe.toml").write_text(paused.SMALL)
        yield paused, folder, paused.run_undisturbed(folder, "whole")
        for name in ("paused", "kills"):
            sys.modules.pop(name, None)


@pytest.mark.slow
@pytest.mark.parametrize(
    "pause",
    [
        ("before", "model", "at work"),
        ("after", "checkpoint-*", "at work"),
        ("before", "record.json", "done"),
    ],
    ids="-".join,
)
def test_paused_at_a_rename_both_processes_end_well(rounds, pause):
    paused_round, folder, whole_round = rounds
    side, place, moment = pause
    result = paused_round.play_round(folder, whole_round, paused_round.Pause(place, side, moment))
    assert result == ((0, 0), 0, {})
