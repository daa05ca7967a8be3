"""On a full disk, half-written files are never used as whole ones, and the same call resumes later."""

import subprocess

import pytest
import torch

import isogloss
from isogloss.core.errors import StorageError
from isogloss.core.identity import identity
from isogloss.core.records import RECORD, Record
from isogloss.data.sources import Sources
from isogloss.engine.work import Work
from isogloss.features.built_in_languages.translator import BuiltIn
from isogloss.features.translation.run import Translate
from isogloss.runs.run import RunContext
from isogloss.store.leases import FolderBoard, Leases
from isogloss.store.store import Store
from isogloss.training.checkpoints import Checkpoints, State
from tiny import TINY, tiny

RUN = Translate(corpus="xnli", languages="qaa-qad", translator=BuiltIn(), examples=9)
FULL = "space"


@pytest.fixture
def disk(tmp_path):
    """A file system of 64 KiB, which only root can make."""
    folder = tmp_path / "disk"
    folder.mkdir()
    words = ["mount", "-t", "tmpfs", "-o", "size=64k", "none", str(folder)]
    try:
        subprocess.run(words, check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("no file system can be mounted here")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


def resize(disk, size):
    subprocess.run(["mount", "-o", f"remount,size={size}", str(disk)], check=True)


def fill(disk):
    """Fill the disk and return the file that uses the space."""
    ballast = disk / "ballast"
    with pytest.raises(OSError, match="left"), ballast.open("wb", buffering=0) as file:
        while True:
            file.write(bytes(4096))
    return ballast


def test_a_lease_cannot_be_made_on_a_full_disk_and_can_be_renewed(disk):
    board = FolderBoard(disk / "leases")
    leases = Leases(board)
    with leases.lease_run("held") as lease:
        ballast, old_content = fill(disk), board.read("held.1")
        lease.beat = 10
        board.write("held.1", lease.content())
        assert board.read("held.1") == old_content.replace(b'"beat": 0', b'"beat": 10')
        with pytest.raises(StorageError, match=FULL), leases.lease_run("another"):
            pass
        assert sorted(path.name for path in board.folder.iterdir()) == ["held.1"]
        ballast.unlink()
        with leases.lease_run("another") as second_lease:
            assert second_lease.number == 1


def test_a_run_is_not_finished_on_a_full_disk_and_is_when_there_is_space(disk):
    context = RunContext(store=Store(disk), sources=Sources(), precision="float32")
    with context.store.leases.lease_run("before"):
        ballast = fill(disk)
    with pytest.raises(StorageError, match=FULL):
        Work(context, [RUN], lambda _: None).attempt(RUN)
    record = Record(id=identity(RUN), kind="measure", title="", run={})
    with pytest.raises(StorageError, match=FULL):
        context.store.finish(record, {})
    assert not context.store.is_finished(RUN)
    assert not list(disk.rglob("*.tmp"))
    ballast.unlink()
    assert Work(context, [RUN], lambda _: None).attempt(RUN).state == "made"


def test_the_last_checkpoint_stays_on_a_full_disk(disk):
    model = torch.nn.Linear(32, 32)
    optimizer, checkpoints = torch.optim.AdamW(model.parameters()), Checkpoints(disk / "work", 1)
    checkpoints.save(model, optimizer, State(1, {}, None))
    fill(disk)
    with pytest.raises(StorageError, match=FULL):
        checkpoints.save(model, optimizer, State(2, {}, None))
    assert [path.name for path in (disk / "work").iterdir()] == ["checkpoint-000000001"]
    assert checkpoints.load(model, optimizer).step == 1


@pytest.mark.nightly
@pytest.mark.slow
def test_however_often_the_disk_is_full_the_same_call_goes_on(disk, tmp_path):
    recipe = tiny(tmp_path, TINY.replace("batch_size = 8", "batch_size = 8, checkpoint_every = 1"))
    whole_study = isogloss.run(recipe, out=tmp_path / "whole", jobs=1, scale="least", report=False)
    folder, stop_count, size = disk / "runs", 0, 16
    while True:
        resize(disk, f"{size}k")
        try:
            outcome = isogloss.run(recipe, out=folder, jobs=1, scale="least", report=False).outcome
        except StorageError as error:
            stop_count += 1
            assert FULL in str(error)
            assert not list(folder.rglob("*.tmp"))
            size = int(size * 1.7)
        else:
            break
    assert stop_count > 3
    assert (outcome.failed, outcome.damaged) == ({}, {})
    for key in whole_study.outcome.made:
        assert (folder / key / RECORD).read_bytes() == (whole_study.out / key / RECORD).read_bytes()
