"""Batches that a thread makes ahead are the batches, in any order, and their tensors are pinned."""

from dataclasses import dataclass, field
from threading import current_thread
from typing import NamedTuple

import pytest
import torch

from isogloss.training.batches_ahead import BatchesAhead, made_ahead, pin
from isogloss.training.fit import fit
from toys import UPDATES, Drawn, loss, toy
from trained import equal


@pytest.fixture
def pinned(monkeypatch):
    """Return the tensors that were pinned, on a machine without a GPU."""
    tensors = []

    def pin_memory(tensor):
        tensors.append(tensor)
        return tensor.clone()

    monkeypatch.setattr(torch.Tensor, "pin_memory", pin_memory)
    return tensors


class Noted(Drawn):
    """Notes which thread makes which batch."""

    def __init__(self, steps=12, stop=-1):
        super().__init__(steps, stop)
        self.made = []

    def __getitem__(self, step):
        self.made.append((step, current_thread().name))
        return super().__getitem__(step)


@pytest.mark.parametrize("order", [[0, 1, 2, 3], [5, 6, 7], [3, 3, 0, 11, 4, 5], [11]])
def test_each_step_has_its_batch_in_any_order(order, pinned):
    batches = Noted()
    ahead = BatchesAhead(batches)
    for step in order:
        assert torch.equal(ahead[step].x, Drawn()[step].x)
        assert torch.equal(ahead[step].y, Drawn()[step].y)
    ahead.stop()
    assert len(ahead) == 12
    assert all(name.startswith("batches") for _, name in batches.made)
    assert len(pinned) == 2 * len(batches.made)


def test_in_order_each_batch_is_made_once_and_one_ahead(pinned):
    batches = Noted(4)
    ahead = BatchesAhead(batches)
    for step in range(3):
        ahead[step]
        ahead._futures[step + 1].result()
        assert [number for number, _ in batches.made] == list(range(step + 2))
    ahead[3]
    ahead.stop()
    assert [number for number, _ in batches.made] == [0, 1, 2, 3]


def test_an_error_in_a_batch_is_raised_at_its_step(pinned):
    ahead = BatchesAhead(Drawn(stop=2))
    assert torch.equal(ahead[1].x, Drawn()[1].x)
    with pytest.raises(KeyboardInterrupt):
        ahead[2]
    ahead.stop()


def test_on_a_processor_nothing_is_made_ahead():
    batches = Drawn()
    with made_ahead(batches, torch.device("cpu")) as made:
        assert made is batches


def test_the_thread_ends_when_a_training_fails(pinned):
    with (
        pytest.raises(ValueError, match="amid"),
        made_ahead(Drawn(), torch.device("cuda")) as ahead,
    ):
        assert torch.equal(ahead[0].x, Drawn()[0].x)
        raise ValueError("amid a training")
    with pytest.raises(RuntimeError, match="after shutdown"):
        ahead[5]


def test_a_training_on_a_processor_is_the_same_as_ever():
    toys = toy(), toy()
    fit(toys[0], Drawn(), loss, updates=UPDATES, seed=0)
    fit(toys[1], Noted(), loss, updates=UPDATES, seed=0)
    assert equal(*toys)


class Named(NamedTuple):
    count: int
    values: torch.Tensor


@dataclass(frozen=True)
class Inner:
    values: torch.Tensor
    name: str = "inner"


@dataclass(frozen=True)
class Outer:
    inner: Inner
    named: Named
    several: tuple
    by_name: dict
    other: object
    missing: torch.Tensor | None = None
    derived: int = field(init=False, default=0)


def test_all_tensors_of_a_batch_are_pinned_and_the_rest_is_the_same(pinned):
    def values(number):
        return torch.full((2,), float(number))

    unknown = object()
    batch = Outer(
        Inner(values(1)), Named(7, values(2)), (values(3), [values(4)]), {"five": values(5)}, unknown
    )
    result = pin(batch)
    assert [int(tensor[0]) for tensor in pinned] == [1, 2, 3, 4, 5]
    assert result.other is unknown and result.missing is None
    assert (result.inner.name, result.named.count) == ("inner", 7)
    assert result.named.values[0] == 2 and result.several[1][0][0] == 4 and result.by_name["five"][0] == 5
    assert batch.inner.values is pinned[0]
    assert pin(Inner) is Inner
