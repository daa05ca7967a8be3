"""Several processes that train one model together: which of them this one is, and sums over them all.

``accelerate launch`` (or torchrun) starts them; a process that was started alone is the first of one. Each
computes some parts of an update's batch; gradients are summed once an update. Accelerate finds the processes
and their devices; its wrapper of the model is not used, as it would have every module used in every step,
and a batch of one language leaves out those of the others.
"""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import TypeVar

import torch
from accelerate import PartialState
from accelerate.utils import disable_fsdp_ram_efficient_loading, parse_flag_from_env
from torch import Tensor, nn

from isogloss.core.errors import ConfigError

Plain = TypeVar("Plain")
"""What JSON can say."""

PATIENCE = timedelta(days=1)
"""How long processes wait for one of them: the first one reads and tokenizes all text alone."""

SHARDED = "ACCELERATE_USE_FSDP"
"""Environment variable in which Accelerate's launcher says that models are to be sharded."""

UNHEEDED = {
    "FSDP_OFFLOAD_PARAMS": "Leave --fsdp_offload_params out; more processes hold smaller shares.",
    "FSDP_ACTIVATION_CHECKPOINTING": "Leave --fsdp_activation_checkpointing out, and set "
    "gradient_checkpointing = true in the recipe's optimization.",
}
"""Further variables that Accelerate's launcher sets, with what to do instead."""


_alone: list[bool] = []
"""Not empty while this process does something that the others do not."""


@contextmanager
def alone() -> Iterator[None]:
    """Let this process be the only one for a while: the others wait, and take no part in sums."""
    _alone.append(True)
    try:
        yield
    finally:
        _alone.pop()


def own_device() -> torch.device:
    """Return this process's device: a GPU of its own where the machine has several."""
    found: torch.device = _state().device
    return found


def world_size() -> int:
    """Return how many processes train together."""
    return 1 if _alone else int(_state().num_processes)


def rank() -> int:
    """Return which of them this one is, counted from 0."""
    return 0 if _alone else int(_state().process_index)


def is_sharded() -> bool:
    """Return whether processes hold shares of a model: the launcher says so (--use_fsdp of Accelerate's)."""
    return parse_flag_from_env(SHARDED) and world_size() > 1


def refuse_sharding(what: str, instead: str) -> None:
    """Raise ConfigError for something that cannot be done where processes hold shares of a model."""
    if is_sharded():
        raise ConfigError(f"{what} with a sharded model (--use_fsdp). Leave --use_fsdp out, or {instead}.")


def prepare_sharding() -> None:
    """Raise ConfigError where the launcher asks of sharding what is not done, or done by a recipe."""
    if not is_sharded():
        return
    for name, instead in UNHEEDED.items():
        if parse_flag_from_env(name):
            raise ConfigError(f"{name} is set for this launch, and is not heeded. {instead}")
    disable_fsdp_ram_efficient_loading()  # Transformers would read weights in the main process alone.


def is_main_process() -> bool:
    """Return whether this process writes files and reports progress."""
    return rank() == 0


@contextmanager
def main_process_first() -> Iterator[None]:
    """Let the first process do something while the others wait; then they find it done."""
    if world_size() == 1:
        yield
        return
    with _state().main_process_first():
        yield


def barrier() -> None:
    """Wait until every process has come here."""
    if world_size() > 1:
        _state().wait_for_everyone()


def from_main_process(make: Callable[[], Plain]) -> Plain:
    """Return to all processes what the main one makes alone; lists, dicts, texts and numbers."""
    if world_size() == 1:
        return make()
    said = b""
    if is_main_process():
        with alone():
            made = make()
        said = json.dumps(made).encode()
    length = torch.tensor([len(said)], device=own_device())
    torch.distributed.broadcast(length, 0)
    text = torch.zeros(int(length), dtype=torch.uint8, device=own_device())
    if said:
        text.copy_(torch.frombuffer(bytearray(said), dtype=torch.uint8))
    torch.distributed.broadcast(text, 0)
    found: Plain = json.loads(bytes(text.tolist()))
    return found


def all_reduced(values: Tensor) -> Tensor:
    """Return the sum over all processes."""
    if world_size() > 1:
        values = values.clone()
        torch.distributed.all_reduce(values)
    return values


class Copies:
    """A model in training of which each process holds a whole copy; see ``sharding`` for shares of one."""

    def __init__(self, model: nn.Module) -> None:
        self._model = model.to(own_device())
        broadcast_weights(model)

    def loss(self, compute: Callable[[nn.Module], Tensor]) -> Tensor:
        """Return what is computed with the model."""
        return compute(self._model)

    def sum_gradients(self) -> None:
        """Sum gradients over all processes; parameters without a gradient anywhere keep none."""
        if world_size() == 1:
            return
        weights = [weight for weight in self._model.parameters() if weight.requires_grad]
        on = weights[0].device
        found = all_reduced(torch.tensor([float(weight.grad is not None) for weight in weights], device=on))
        for weight, somewhere in zip(weights, found.tolist(), strict=True):
            if somewhere:
                weight.grad = torch.zeros_like(weight) if weight.grad is None else weight.grad
                torch.distributed.all_reduce(weight.grad)

    def from_main_process(self, make: Callable[[], Plain]) -> Plain:
        """Return to all processes what the main one makes with the model, alone."""
        return from_main_process(make)

    def gather(self) -> None:
        """Leave the model as it is."""


def broadcast_weights(model: nn.Module) -> None:
    """Broadcast the main process's weights to all, one by one over the device."""
    if world_size() > 1:
        for weight in model.parameters():
            there = weight.detach().to(own_device())
            torch.distributed.broadcast(there, 0)
            weight.data.copy_(there)


def _state() -> PartialState:
    # On a machine without GPUs Accelerate detects no second process by itself.
    return PartialState(cpu=not torch.accelerator.is_available(), timeout=PATIENCE)
