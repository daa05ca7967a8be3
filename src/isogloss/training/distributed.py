"""Several processes that train one model together: which of them this one is, and sums over them all.

``accelerate launch`` (or torchrun) starts them; a process that was started alone is the first of one. Each
computes some parts of an update's batch; gradients are summed once an update. Accelerate finds the processes
and their devices; its wrapper of the model is not used, as it would have every module used in every step,
and a batch of one language leaves out those of the others.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

import torch
from accelerate import PartialState
from torch import Tensor, nn

PATIENCE = timedelta(days=1)
"""How long processes wait for one of them: the first one reads and tokenizes all text alone."""


def own_device() -> torch.device:
    """Return this process's device: a GPU of its own where the machine has several."""
    found: torch.device = _state().device
    return found


def world_size() -> int:
    """Return how many processes train together."""
    return int(_state().num_processes)


def rank() -> int:
    """Return which of them this one is, counted from 0."""
    return int(_state().process_index)


def is_main_process() -> bool:
    """Return whether this process writes files and reports progress."""
    return rank() == 0


@contextmanager
def main_process_first() -> Iterator[None]:
    """Let the first process do something while the others wait; then they find it done."""
    with _state().main_process_first():
        yield


def barrier() -> None:
    """Wait until every process has come here."""
    _state().wait_for_everyone()


def all_reduced(values: Tensor) -> Tensor:
    """Return the sum over all processes."""
    if world_size() > 1:
        values = values.clone()
        torch.distributed.all_reduce(values)
    return values


def broadcast_weights(model: nn.Module) -> None:
    """Broadcast the main process's weights to all."""
    if world_size() > 1:
        for weight in model.parameters():
            torch.distributed.broadcast(weight.detach(), 0)


def all_reduce_gradients(model: nn.Module) -> None:
    """Sum gradients over all processes; parameters without a gradient anywhere keep none."""
    if world_size() == 1:
        return
    weights = [weight for weight in model.parameters() if weight.requires_grad]
    on = weights[0].device
    found = all_reduced(torch.tensor([float(weight.grad is not None) for weight in weights], device=on))
    for weight, somewhere in zip(weights, found.tolist(), strict=True):
        if somewhere:
            weight.grad = torch.zeros_like(weight) if weight.grad is None else weight.grad
            torch.distributed.all_reduce(weight.grad)


def _state() -> PartialState:
    # On a machine without GPUs Accelerate detects no second process by itself.
    return PartialState(cpu=not torch.accelerator.is_available(), timeout=PATIENCE)
