"""Several processes that train together make what one makes. Alone, a process is the first of one."""

from contextlib import suppress
from dataclasses import replace

import pytest
import torch
from processes import run_in_processes
from torch import nn

from isogloss.training import fit as module
from isogloss.training.checkpoints import Checkpoints
from isogloss.training.distributed import (
    Copies,
    all_reduced,
    barrier,
    is_main_process,
    main_process_first,
    rank,
    world_size,
)
from isogloss.training.fit import Callback, Callbacks, fit
from toys import UPDATES, Drawn, loss, no_time, toy


def test_a_process_that_was_started_alone_is_the_first_of_one():
    assert (world_size(), rank(), is_main_process()) == (1, 0, True)
    values = torch.tensor([1.0, 2.0])
    assert all_reduced(values) is values
    with main_process_first():
        barrier()


def test_alone_gradients_stay_as_they_are():
    model = toy()
    model[0].weight.grad = torch.ones_like(model[0].weight)
    with Copies(model).gradients_summed(during_pass=True):
        pass
    assert torch.equal(model[0].weight.grad, torch.ones_like(model[0].weight))
    assert model[0].bias.grad is None


@pytest.mark.parametrize("accumulation", [1, 2, 3, 5])
def test_every_part_is_computed_by_one_process(monkeypatch, accumulation):
    """Both halves of the work, computed sequentially, are the whole of it."""
    calls = []

    def note_points(model, points):
        calls.append(points.y)
        return loss(model, points)

    for index in (0, 1):
        monkeypatch.setattr(module, "world_size", lambda: 2)
        monkeypatch.setattr(module, "rank", lambda number=index: number)
        fit(toy(), Drawn(1), note_points, updates=replace(UPDATES, accumulation=accumulation), seed=0)
    assert sum(len(value) for value in calls) == len(Drawn()[0].y)
    assert sorted(torch.cat(calls).tolist()) == sorted(Drawn()[0].y.tolist())


def test_a_whole_batch_is_computed_by_every_process(monkeypatch):
    counts = []

    class Undivided(Drawn):
        def __getitem__(self, step):
            batch = super().__getitem__(step)
            batch.__dict__["is_whole"] = True
            return batch

    def note_points(model, points):
        counts.append(len(points.y))
        return loss(model, points)

    monkeypatch.setattr(module, "world_size", lambda: 2)
    fit(toy(), Undivided(3), note_points, updates=UPDATES, seed=0)
    assert counts == [8, 8, 8]


def train_together(rank, folder, accumulation, stop, distance):
    """Train a toy with a module that only some parts of a batch use. Save this process's result."""
    model = toy()
    torch.manual_seed(rank if distance else 0)  # The first one's weights are everyone's.
    model.extra = nn.ModuleDict({"small": nn.Linear(2, 2), "never": nn.Linear(2, 2)})
    messages = []

    def partly(model, points):
        scores = nn.Sequential(*list(model.children())[:5])(points.x)
        if len(points.y) < 3:
            scores = model.extra["small"](scores)
        return nn.functional.cross_entropy(scores, points.y)

    callbacks = Callbacks(
        periodic=(Callback(rows=lambda step: [{"step": step, "seen": 1}], every=5),),
        checkpoints=Checkpoints(folder, 4, no_time),
        on_progress=messages.append,
    )
    updates = replace(UPDATES, accumulation=accumulation)
    with suppress(KeyboardInterrupt):
        rows = fit(model, Drawn(stop=stop), partly, updates=updates, seed=0, callbacks=callbacks)
        weights = {name: parameter.detach() for name, parameter in model.named_parameters()}
        torch.save({"weights": weights, "rows": rows, "told": len(messages)}, folder / f"{rank}.pt")


def launch_processes(folder, count, accumulation, stop=-1, is_apart=False):
    """Train in a number of processes. Return the result of each."""
    folder.mkdir(exist_ok=True)
    run_in_processes(count, train_together, folder, accumulation, stop, is_apart)
    return [torch.load(path) for path in sorted(folder.glob("?.pt"))]


@pytest.mark.slow
def test_two_processes_do_what_one_does_with_twice_the_accumulation(tmp_path):
    (single_data,) = launch_processes(tmp_path / "alone", 1, 4)
    first_data, second = launch_processes(tmp_path / "together", 2, 4, is_apart=True)
    for name, weight in single_data["weights"].items():
        assert torch.equal(first_data["weights"][name], second["weights"][name])
        assert torch.allclose(first_data["weights"][name], weight, atol=1e-5)
    losses = [
        [row["loss"] for row in row["rows"] if "loss" in row] for row in (single_data, first_data, second)
    ]
    assert losses[0] == pytest.approx(losses[1], abs=1e-5)
    assert losses[1] == losses[2]
    assert [row["step"] for row in first_data["rows"] if "seen" in row] == [5, 10, 12]
    assert first_data["told"] and not second["told"]


@pytest.mark.nightly
@pytest.mark.slow
def test_two_processes_resume_from_the_firsts_checkpoint_to_the_bit(tmp_path):
    whole_data, _ = launch_processes(tmp_path / "whole", 2, 4)
    launch_processes(tmp_path / "again", 2, 4, stop=6)
    assert [path.name for path in (tmp_path / "again").glob("checkpoint-*")] == ["checkpoint-000000004"]
    first_data, second = launch_processes(tmp_path / "again", 2, 4)
    for name, weight in whole_data["weights"].items():
        assert torch.equal(first_data["weights"][name], weight)
        assert torch.equal(second["weights"][name], weight)
    assert first_data["rows"] == whole_data["rows"]
