"""Gradients summed over processes, bucket by bucket, are their sums, whichever parameters a process used."""

from itertools import product

import numpy as np
import pytest
import torch
from processes import run_in_processes
from torch import nn

from isogloss.training import gradient_sums
from isogloss.training.distributed import own_device
from isogloss.training.gradient_sums import divide_into_buckets, gradients_summed
from says import says

PARAMETERS = 7


def draw_uses(seed, processes, passes):
    """Return which parameters each pass of each process uses: none, some, or all of them."""
    rng = np.random.Generator(np.random.PCG64(seed))
    share = rng.choice([0.0, 0.3, 0.7, 1.0])
    return rng.random((processes, passes, PARAMETERS)) < share


def make_weights():
    """Return parameters of two types and of several sizes."""
    return [
        nn.Parameter(torch.full((size, 2), 0.5, dtype=torch.float64 if size == 3 else torch.float32))
        for size in (1, 2, 3, 3, 5, 1, 4)
    ]


def loss_of(weights, uses, process, number):
    """Return a loss whose gradients are sums of small integers, so that their order does not matter."""
    terms = [
        (weight * (1 + process + 10 * number + index)).sum().double()
        for index, weight in enumerate(weights)
        if uses[index]
    ]
    return sum(terms) if terms else None


def sum_in_processes(rank, folder, processes, cases):
    own_device()  # Joins the processes.
    results = []
    for seed, passes, bucket_bytes, during_pass in cases:
        gradient_sums.BUCKET_BYTES = bucket_bytes
        weights = make_weights()
        uses = draw_uses(seed, processes, passes)[rank]
        losses = [loss_of(weights, uses[number], rank, number) for number in range(passes)]
        for loss in losses[:-1]:
            if loss is not None:
                loss.backward()
        with gradients_summed(weights, during_pass=during_pass):
            if losses[-1] is not None:
                losses[-1].backward()
        assert not any(weight._post_accumulate_grad_hooks for weight in weights)
        results.append([weight.grad for weight in weights])
    torch.save(results, folder / f"{rank}.pt")


@pytest.mark.slow
def test_sums_are_those_of_all_processes_whatever_each_of_them_used(tmp_path):
    processes = 3
    cases = list(product(range(12), (1, 2), (1, 40, 10**6), (True, False)))
    run_in_processes(processes, sum_in_processes, tmp_path, processes, cases)
    results = [torch.load(tmp_path / f"{rank}.pt") for rank in range(processes)]
    unused = 0
    for case, (seed, passes, *_) in enumerate(cases):
        uses = draw_uses(seed, processes, passes)
        for index, weight in enumerate(make_weights()):
            numbers = [
                1 + process + 10 * number + index
                for process, number in product(range(processes), range(passes))
                if uses[process, number, index]
            ]
            unused += not numbers
            for rank in range(processes):
                gradient = results[rank][case][index]
                expected = torch.full_like(weight, sum(numbers)) if numbers else None
                assert gradient is expected if expected is None else torch.equal(gradient, expected)
    assert unused > 100


class Work:
    """A sum of one process, which is finished as soon as it begins."""

    def wait(self):
        pass


@pytest.fixture
def begun(monkeypatch):
    """Return the sums that have begun, in order, without other processes."""
    sums = []

    def all_reduce(values, **_):
        sums.append(values.numel())
        return Work()

    monkeypatch.setattr(torch.distributed, "all_reduce", all_reduce)
    return sums


def test_sums_begin_during_the_backward_pass_the_last_layers_first(begun, monkeypatch):
    monkeypatch.setattr(gradient_sums, "BUCKET_BYTES", 1)
    layers = nn.Sequential(*(nn.Linear(size, size + 1, bias=False) for size in (1, 2, 3)))
    begun_before_first_layer = []
    layers[0].register_full_backward_hook(lambda *_: begun_before_first_layer.extend(begun))
    inputs = torch.ones(2, 1, requires_grad=True)
    with gradients_summed(list(layers.parameters()), during_pass=True):
        layers(inputs).sum().backward()
        assert begun == [12, 6, 2]
    assert begun_before_first_layer[:2] == [12, 6]
    assert begun == [12, 6, 2, 3]  # The last sum counts the processes with each gradient.


def test_a_bucket_waits_for_the_buckets_before_it(begun, monkeypatch):
    monkeypatch.setattr(gradient_sums, "BUCKET_BYTES", 1)
    used = nn.Parameter(torch.ones(2))
    unused = nn.Parameter(torch.ones(3))
    with gradients_summed([used, unused], during_pass=True):
        used.sum().backward()
        assert begun == []
    assert begun == [3, 2, 2]


def test_a_gradient_that_is_computed_twice_in_a_pass_is_refused(begun):
    weight = nn.Parameter(torch.ones(2))
    with (
        says(RuntimeError, "twice", "Use one process"),
        gradients_summed([weight], during_pass=True),
    ):
        weight.sum().backward()
        weight.sum().backward()
    assert not weight._post_accumulate_grad_hooks


def test_buckets_have_one_type_and_at_least_their_size(monkeypatch):
    monkeypatch.setattr(gradient_sums, "BUCKET_BYTES", 20)
    weights = make_weights()
    buckets = divide_into_buckets(weights)
    assert [weight for bucket in buckets for weight in bucket] == weights[::-1]
    assert [[len(weight) for weight in bucket] for bucket in buckets] == [[4], [1, 5], [3], [3], [2, 1]]
    assert all(len({weight.dtype for weight in bucket}) == 1 for bucket in buckets)
