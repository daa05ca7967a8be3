import errno
import itertools
import json
import math
import os
import resource
import shutil
from itertools import pairwise

import pytest
import torch
from safetensors.torch import load_file

from each import each
from isogloss.core.checksums import CHECKSUMS, Checksum, read_checksums
from isogloss.core.errors import StorageError
from isogloss.core.processes import Interrupted, host, stopping_if_lost
from isogloss.training.checkpoints import (
    CHECKPOINT_SHARE,
    DTYPES,
    FIRST_CHECKPOINT,
    Checkpoints,
    CheckpointTimes,
    State,
    write_tensors,
)
from isogloss.training.fit import Callbacks, fit
from isogloss.training.optimizer import adamw
from toys import UPDATES, Drawn, loss, no_time, toy
from trained import equal, weights


def trained_steps(steps=2):
    """A model and its optimizer, both with something in them."""
    model = toy()
    optimizer = adamw(model, UPDATES)
    for step in range(steps):
        loss(model, Drawn()[step]).backward()
        optimizer.step()
        optimizer.zero_grad()
    return model, optimizer


def moments(optimizer):
    state = optimizer.state_dict()["state"]
    return {f"{n}/{key}": value.clone() for n, parts in state.items() for key, value in parts.items()}


@pytest.mark.parametrize("with_best", [True, False])
def test_what_is_loaded_is_what_was_saved(tmp_path, with_best):
    model, optimizer = trained_steps()
    best_weights = weights(toy(seed=9)) if with_best else None
    Checkpoints(tmp_path, 1).save(model, optimizer, State(7, {"rows": [{"x": 0.1}], "ä": None}, best_weights))
    second_model = toy(seed=3)
    second_optimizer = adamw(second_model, UPDATES)
    state = Checkpoints(tmp_path, 1).load(second_model, second_optimizer)
    assert (state.step, state.notes) == (7, {"rows": [{"x": 0.1}], "ä": None})
    assert equal(weights(second_model), weights(model))
    assert equal(moments(second_optimizer), moments(optimizer))
    assert (state.best is None) if best_weights is None else equal(state.best, best_weights)


def test_loading_where_there_is_none_changes_nothing(tmp_path):
    model, optimizer = trained_steps()
    old_weights = weights(model)
    assert Checkpoints(tmp_path / "none", 1).load(model, optimizer) is None
    assert Checkpoints(tmp_path / "none", 1).notes() is None
    assert equal(weights(model), old_weights)


def test_only_the_last_checkpoint_is_kept(tmp_path):
    model, optimizer = trained_steps()
    for step in (2, 10, 9_999_999):
        Checkpoints(tmp_path, 1).save(model, optimizer, State(step, {}, None))
        assert [path.name for path in tmp_path.iterdir()] == [f"checkpoint-{step:09d}"]


def test_a_checkpoint_is_safetensors_and_json_and_no_pickle(tmp_path):
    model, optimizer = trained_steps()
    Checkpoints(tmp_path, 1).save(model, optimizer, State(1, {}, weights(model)))
    files = sorted((tmp_path / "checkpoint-000000001").iterdir())
    assert [file.name for file in files] == [
        "best.safetensors",
        CHECKSUMS,
        "model.safetensors",
        "optimizer.safetensors",
        "state.json",
    ]
    assert json.loads(files[-1].read_text()) == {"step": 1, "notes": {}}
    assert read_checksums(files[1].parent) == {
        file.name: Checksum.of_file(file.parent, file.name) for file in each(files) if file.name != CHECKSUMS
    }
    for file in files[:1] + files[2:-1]:
        header = file.read_bytes()[8:].lstrip()
        assert header.startswith(b"{")


def test_half_written_checkpoints_are_no_checkpoints(tmp_path):
    model, optimizer = trained_steps()
    store = Checkpoints(tmp_path, 1)
    store.save(model, optimizer, State(3, {}, None))
    # The folder of a process that has ended.
    half_checkpoint = tmp_path / f".checkpoint-000000006.{host()}-{os.getpid()}-1.tmp"
    shutil.copytree(tmp_path / "checkpoint-000000003", half_checkpoint)
    (half_checkpoint / "state.json").unlink()
    assert store.load(model, optimizer).step == 3
    store.save(model, optimizer, State(6, {}, None))
    assert [path.name for path in tmp_path.iterdir()] == ["checkpoint-000000006"]


def test_a_checkpoint_that_another_process_has_written_stays(tmp_path):
    model, optimizer = trained_steps()
    store = Checkpoints(tmp_path, 1)
    store.save(model, optimizer, State(3, {}, None))
    inode = (tmp_path / "checkpoint-000000003").stat().st_ino
    store.save(model, optimizer, State(3, {}, None))
    assert [(path.name, path.stat().st_ino) for path in tmp_path.iterdir()] == [
        ("checkpoint-000000003", inode)
    ]


def test_who_lost_a_run_while_a_checkpoint_got_its_name_removes_none(tmp_path):
    """A different process may be resuming from the previous checkpoint."""
    model, optimizer = trained_steps()
    store = Checkpoints(tmp_path, 1)
    store.save(model, optimizer, State(3, {}, None))

    def check():
        if (tmp_path / "checkpoint-000000006").exists():
            raise Interrupted

    with pytest.raises(Interrupted), stopping_if_lost(check):
        store.save(model, optimizer, State(6, {}, None))
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "checkpoint-000000003",
        "checkpoint-000000006",
    ]


def test_two_checkpoints_side_by_side_are_the_later_one(tmp_path):
    """The process died between renaming the new one and removing the old one."""
    model, optimizer = trained_steps()
    store = Checkpoints(tmp_path, 1)
    store.save(model, optimizer, State(99, {}, None))
    shutil.copytree(tmp_path / "checkpoint-000000099", tmp_path / "kept")
    store.save(model, optimizer, State(100, {}, None))
    (tmp_path / "kept").rename(tmp_path / "checkpoint-000000099")
    assert store.load(model, optimizer).step == 100


@pytest.mark.parametrize(
    "name", ["model.safetensors", "optimizer.safetensors", "best.safetensors", "state.json"]
)
@pytest.mark.parametrize("damage", ["cut", "empty", "noise"])
def test_a_damaged_checkpoint_is_an_error_that_says_what_to_do(tmp_path, name, damage):
    model, optimizer = trained_steps()
    Checkpoints(tmp_path, 1).save(model, optimizer, State(1, {"rows": []}, weights(model)))
    file = tmp_path / "checkpoint-000000001" / name
    content = file.read_bytes()
    file.write_bytes({"cut": content[: len(content) // 2], "empty": b"", "noise": b"\xff" * 100}[damage])
    with pytest.raises(StorageError) as error:
        Checkpoints(tmp_path, 1).load(model, optimizer)
    assert str(tmp_path / "checkpoint-000000001") in str(error.value)
    assert "training starts over" in str(error.value)


def test_the_checkpoint_of_another_model_is_refused(tmp_path):
    model, optimizer = trained_steps()
    Checkpoints(tmp_path, 1).save(model, optimizer, State(1, {}, None))
    second_model = torch.nn.Linear(6, 16)
    with pytest.raises(StorageError, match="checkpoint-"):
        Checkpoints(tmp_path, 1).load(second_model, adamw(second_model, UPDATES))


@pytest.mark.parametrize("failing", ["os.mkdir", "isogloss.training.checkpoints.create_file", "os.replace"])
def test_a_full_disk_is_a_storage_error_and_the_last_checkpoint_stays(tmp_path, monkeypatch, failing):
    model, optimizer = trained_steps()
    store = Checkpoints(tmp_path, 1)
    store.save(model, optimizer, State(1, {}, None))

    def full(*_, **__):
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(failing, full)
        with pytest.raises(StorageError, match="device"):
            store.save(model, optimizer, State(2, {}, None))
    assert [path.name for path in tmp_path.iterdir()] == ["checkpoint-000000001"]
    assert store.load(model, optimizer).step == 1


@pytest.mark.parametrize("in_thread", [False, True])
def test_a_disk_that_fills_while_weights_are_written_is_a_storage_error(tmp_path, in_thread):
    """The limit on the size of a file stands for a full disk."""
    model, optimizer = trained_steps()
    store = Checkpoints(tmp_path, 1)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (600, limits[1]))
    try:
        with pytest.raises(StorageError, match="write"):
            store.save(model, optimizer, State(2, {}, None), uses_thread=in_thread)
            store.finish()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_stops_a_training_with_a_storage_error(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    callbacks = Callbacks(checkpoints=Checkpoints(tmp_path / "file", 2))
    with pytest.raises(StorageError):
        fit(toy(), Drawn(4), loss, updates=UPDATES, seed=0, callbacks=callbacks)


def test_no_checkpoints_are_written_where_none_are_wanted_or_needed(tmp_path):
    fit(
        toy(),
        Drawn(4),
        loss,
        updates=UPDATES,
        seed=0,
        callbacks=Callbacks(checkpoints=Checkpoints(tmp_path, 0)),
    )
    fit(
        toy(),
        Drawn(4),
        loss,
        updates=UPDATES,
        seed=0,
        callbacks=Callbacks(checkpoints=Checkpoints(tmp_path, 4)),
    )
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(os.name == "nt", reason="files have no such modes there")
def test_whoever_shares_the_folder_can_go_on_from_a_checkpoint(tmp_path):
    old_umask = os.umask(0o002)
    try:
        Checkpoints(tmp_path, 1).save(*trained_steps(), State(7, {}, None))
    finally:
        os.umask(old_umask)
    modes = {path.name: path.stat().st_mode & 0o777 for path in tmp_path.glob("checkpoint-*/*")}
    assert modes == dict.fromkeys(
        ("model.safetensors", "optimizer.safetensors", "state.json", CHECKSUMS), 0o664
    )


class Clock:
    """A clock that tests set."""

    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now


def written_steps(interval, *, step_seconds, write_seconds, steps):
    """The steps with a checkpoint, and the share of the time that writing took."""
    clock = Clock()
    times = CheckpointTimes(interval, clock)
    checkpoint_steps = []
    for step in range(1, steps + 1):
        clock.now += step_seconds
        if times.is_due(step):
            checkpoint_steps.append(step)
            with times.measure_wait():
                clock.now += write_seconds
    return checkpoint_steps, len(checkpoint_steps) * write_seconds / clock.now


@pytest.mark.parametrize("interval", [1, 7, 200])
@pytest.mark.parametrize("step_seconds", [0.001, 0.014, 0.5, 45.0, 90.0])
@pytest.mark.parametrize("write_seconds", [0.0, 0.01, 1.0, 10.0, 300.0])
def test_checkpoints_take_two_percent_of_the_time_at_most(interval, step_seconds, write_seconds):
    steps = 20_000
    checkpoint_steps, share = written_steps(
        interval, step_seconds=step_seconds, write_seconds=write_seconds, steps=steps
    )
    first_step = min(interval, math.ceil(FIRST_CHECKPOINT / step_seconds))
    assert checkpoint_steps[0] == first_step
    assert all(step % interval == 0 for step in checkpoint_steps[1:])
    # The first one is written before anything is known of its price.
    assert share <= CHECKPOINT_SHARE + write_seconds / (steps * step_seconds)
    longest_gap = max(interval, write_seconds / CHECKPOINT_SHARE / step_seconds + interval)
    assert all(next_step - step <= longest_gap + 1 for step, next_step in pairwise(checkpoint_steps))


def test_no_checkpoint_is_due_where_none_are_wanted():
    assert written_steps(0, step_seconds=100.0, write_seconds=1.0, steps=50) == ([], 0.0)


def test_losses_are_logged_at_the_same_steps_however_long_checkpoints_take(tmp_path):
    """Records contain the rows, so the disk must not change them."""
    slow_disk = itertools.count(step=1000.0).__next__
    rows = [
        fit(
            toy(),
            Drawn(),
            loss,
            updates=UPDATES,
            seed=5,
            callbacks=Callbacks(checkpoints=Checkpoints(tmp_path / name, 3, clock)),
        )
        for name, clock in (("quick", no_time), ("slow", slow_disk))
    ]
    assert rows[0] == rows[1]
    assert [row["step"] for row in rows[0]] == [3, 6, 9, 12]


def test_a_training_continues_from_a_checkpoint_between_two_logged_steps(tmp_path):
    """The first checkpoint comes after a minute, wherever the training is then."""
    clock = Clock()

    class Slow(Drawn):
        def __getitem__(self, step):
            clock.now += 15.0
            return super().__getitem__(step)

    def train(folder, stop=-1):
        model = toy()
        callbacks = Callbacks(checkpoints=Checkpoints(folder, 100, clock))
        return model, fit(model, Slow(stop=stop), loss, updates=UPDATES, seed=5, callbacks=callbacks)

    with pytest.raises(KeyboardInterrupt):
        train(tmp_path / "x", stop=8)
    assert [path.name for path in (tmp_path / "x").iterdir()] == ["checkpoint-000000004"]
    again, rows_again = train(tmp_path / "x")
    whole_model, rows = train(tmp_path / "whole")
    assert equal(weights(again), weights(whole_model))
    assert rows_again == rows


def test_a_thread_writes_the_state_of_the_moment_although_training_continues(tmp_path):
    model, optimizer = trained_steps()
    best_weights = weights(toy(seed=9))
    Checkpoints(tmp_path / "here", 1).save(model, optimizer, State(3, {}, best_weights))
    store = Checkpoints(tmp_path / "thread", 1)
    store.save(model, optimizer, State(3, {}, best_weights), uses_thread=True)
    loss(model, Drawn()[9]).backward()
    optimizer.step()
    store.finish()
    name = "checkpoint-000000003"
    assert read_checksums(tmp_path / "thread" / name) == read_checksums(tmp_path / "here" / name)


def test_checkpoints_written_by_threads_follow_each_other(tmp_path):
    model, optimizer = trained_steps()
    store = Checkpoints(tmp_path, 1)
    for step in range(1, 6):
        store.save(model, optimizer, State(step, {}, None), uses_thread=True)
    store.finish()
    assert [path.name for path in tmp_path.iterdir()] == ["checkpoint-000000005"]


def test_who_lost_a_run_while_a_thread_writes_learns_of_it(tmp_path):
    model, optimizer = trained_steps()
    store = Checkpoints(tmp_path, 1)

    def check():
        raise Interrupted

    with pytest.raises(Interrupted), stopping_if_lost(check):
        store.save(model, optimizer, State(6, {}, None), uses_thread=True)
        store.finish()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(), (0,), (1,), (3, 5), (2, 0, 4)])
def test_tensors_are_written_as_safetensors_reads_them(tmp_path, dtype, shape):
    tensors = {
        "a": torch.arange(1, 4, dtype=torch.int8),
        "ü": (torch.randn(shape) * 9).to(dtype),
        "z": torch.ones(2, dtype=torch.float64),
    }
    checksum = write_tensors(tmp_path / "x.safetensors", tensors)
    assert checksum == Checksum.of_file(tmp_path, "x.safetensors")
    loaded_tensors = load_file(tmp_path / "x.safetensors")
    assert loaded_tensors.keys() == tensors.keys()
    for name, tensor in tensors.items():
        assert loaded_tensors[name].dtype == tensor.dtype
        assert torch.equal(loaded_tensors[name], tensor)
