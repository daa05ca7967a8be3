"""Several processes that train one model together: their ranks, sums over them all, copies and shards.

``accelerate launch`` (or torchrun) starts them; a process that was started alone is the first of one. Each
computes some parts of an update's batch; gradients are summed once an update. Accelerate finds the processes
and their devices; its wrapper of the model is not used, as it would require every module to be used in every
step, and a batch of one language uses no modules of the others.

A model too large for one GPU is sharded by PyTorch's FSDP2 (ZeRO, Rajbhandari et al. 2020, stage 3): each
process holds a share of weights, gradients and moments. A Transformer layer's weights are gathered while it
computes, all others (embeddings, heads) while a loss does. All processes gather a layer at once, so they go
through the layers in step: each computes as many parts of a batch (``parts_of``), and evaluations (dev sets,
perplexity) are computed by all of them.
"""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import copy
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Any, TypeGuard, TypeVar

import torch
from torch import Tensor, nn

from isogloss.core.errors import ConfigError
from isogloss.core.processes import launched
from isogloss.encoders.computation import transformer_layers

if TYPE_CHECKING:
    from accelerate import PartialState
    from torch.distributed.tensor import DTensor

Plain = TypeVar("Plain")
"""What JSON can represent."""

TIMEOUT = timedelta(days=1)
"""How long processes wait for one of them: the first one reads and tokenizes all text alone."""

SHARDED = "ACCELERATE_USE_FSDP"
"""Environment variable by which Accelerate's launcher requests sharded models."""

UNSUPPORTED = {
    "FSDP_OFFLOAD_PARAMS": "Leave --fsdp_offload_params out; more processes hold smaller shares.",
    "FSDP_ACTIVATION_CHECKPOINTING": "Leave --fsdp_activation_checkpointing out, and set "
    "gradient_checkpointing = true in the recipe's optimization.",
}
"""Further variables that Accelerate's launcher sets, and the alternatives to them."""


_alone: list[bool] = []
"""Not empty while the other processes wait for this one."""


@contextmanager
def alone() -> Iterator[None]:
    """Act as the only process: the others wait, and take no part in sums."""
    _alone.append(True)
    try:
        yield
    finally:
        _alone.pop()


def own_device() -> torch.device:
    """Return this process's device: one GPU for each process where the machine has several."""
    if not launched() and not torch.accelerator.is_available():
        return torch.device("cpu")
    local_device: torch.device = _state().device
    return local_device


def world_size() -> int:
    """Return how many processes train together."""
    return 1 if _alone or not launched() else int(_state().num_processes)


def rank() -> int:
    """Return the number of this process, counted from 0."""
    return 0 if _alone or not launched() else int(_state().process_index)


def is_sharded() -> bool:
    """Return whether processes hold shares of a model (--use_fsdp of Accelerate's launcher)."""
    return world_size() > 1 and _is_set(SHARDED)


def refuse_sharding(what: str, instead: str) -> None:
    """Raise ConfigError for a feature that a sharded model does not support."""
    if is_sharded():
        raise ConfigError(f"{what} with a sharded model (--use_fsdp). Leave --use_fsdp out, or {instead}.")


def prepare_sharding() -> None:
    """Raise ConfigError for options of the launcher that are unsupported, or set by a recipe."""
    if not is_sharded():
        return
    from accelerate.utils import disable_fsdp_ram_efficient_loading

    for name, instead in UNSUPPORTED.items():
        if _is_set(name):
            raise ConfigError(f"{name} is set for this launch, and is not heeded. {instead}")
    disable_fsdp_ram_efficient_loading()  # Transformers would read weights in the main process alone.


def is_main_process() -> bool:
    """Return whether this process writes files and reports progress."""
    return rank() == 0


@contextmanager
def main_process_first() -> Iterator[None]:
    """Run a block in the first process while the others wait, then in the others."""
    if world_size() == 1:
        yield
        return
    with _state().main_process_first():
        yield


def barrier() -> None:
    """Wait for all processes."""
    if world_size() > 1:
        _state().wait_for_everyone()


def from_main_process(make: Callable[[], Plain]) -> Plain:
    """Return the result of the main process to all; made of lists, dicts, texts and numbers."""
    if world_size() == 1:
        return make()
    body = b""
    if is_main_process():
        with alone():
            body = json.dumps(make()).encode()
    length = torch.tensor([len(body)], device=own_device())
    torch.distributed.broadcast(length, 0)
    received = torch.zeros(int(length), dtype=torch.uint8, device=own_device())
    if body:
        received.copy_(torch.frombuffer(bytearray(body), dtype=torch.uint8))
    torch.distributed.broadcast(received, 0)
    plain: Plain = json.loads(bytes(received.tolist()))
    return plain


def all_reduced(values: Tensor) -> Tensor:
    """Return the sum over all processes."""
    if world_size() > 1:
        values = values.clone()
        torch.distributed.all_reduce(values)
    return values


class Copies:
    """A model in training of which each process holds a full copy."""

    def __init__(self, model: nn.Module) -> None:
        self._model = model.to(own_device())
        broadcast_weights(model)

    def loss(self, compute: Callable[[nn.Module], Tensor]) -> Tensor:
        """Return a loss computed with the model."""
        return compute(self._model)

    def sum_gradients(self) -> None:
        """Sum gradients over all processes; parameters without a gradient anywhere keep none."""
        if world_size() == 1:
            return
        weights = [weight for weight in self._model.parameters() if weight.requires_grad]
        used = torch.tensor([float(weight.grad is not None) for weight in weights])
        for weight, by_any in zip(weights, all_reduced(used.to(weights[0].device)).tolist(), strict=True):
            if by_any:
                weight.grad = torch.zeros_like(weight) if weight.grad is None else weight.grad
                torch.distributed.all_reduce(weight.grad)

    def from_main_process(self, make: Callable[[], Plain]) -> Plain:
        """Return the result of the main process, computed alone, to all."""
        return from_main_process(make)

    def gather(self) -> None:
        """Do nothing: the model is an ordinary one."""


def broadcast_weights(model: nn.Module) -> None:
    """Broadcast the main process's weights to all, one by one over the device."""
    if world_size() > 1:
        for weight in model.parameters():
            received = weight.detach().to(own_device())
            torch.distributed.broadcast(received, 0)
            weight.data.copy_(received)


class Shards:
    """A model in training of which each process holds a share, until ``gather`` makes it an ordinary one.

    Its layers are replaced by copies that are sharded, as ``fully_shard`` cannot be undone.
    """

    def __init__(self, model: nn.Module) -> None:
        self._model, self._full = model, dict(model.named_parameters(remove_duplicate=False))
        self._layers = {name: model.get_submodule(name) for name in transformer_layers(model)}
        attributes = [(module, set(vars(module))) for module in model.modules()]
        model.to("cpu")
        for weight in model.parameters():
            weight.data = weight.data.contiguous()
        broadcast_weights(model)
        for name, layer in self._layers.items():
            parts = {key: copy(part) for key, part in vars(layer).items() if isinstance(part, dict)}
            shell = copy(layer)
            vars(shell).update(parts)
            _replace(model, name, shell)
        self._root = self._shard()
        self._added = [(module, name) for module, old in attributes for name in vars(module).keys() - old]
        self._trained = [weight for weight in model.parameters() if weight.requires_grad]
        self._gathered = self._begin()
        self._used = torch.zeros(len(self._trained))

    def loss(self, compute: Callable[[nn.Module], Tensor]) -> Tensor:
        """Return a loss computed with the model; its gradients are summed over all processes.

        Every weight takes part in that sum: other processes may use those that this loss does not depend on.
        """
        value: Tensor = self._root(compute)
        used = _weights_of(value)
        for number, weight in enumerate(self._gathered):
            if weight in used:
                self._used[number] = 1
            else:
                weight.grad = torch.zeros((), dtype=weight.dtype, device=weight.device).expand_as(weight)
        return value

    def sum_gradients(self) -> None:
        """Clear the gradients of weights that no process used in this update; all others are summed."""
        used = all_reduced(self._used.to(own_device())).tolist()
        for weight, by_any in zip(self._trained, used, strict=True):
            weight.grad = weight.grad if by_any else None
        self._used.zero_()

    def from_main_process(self, make: Callable[[], Plain]) -> Plain:
        """Return the result of the main process to all; all compute it, in step."""
        self._root.unshard()
        result = make()
        self._root.reshard()
        return from_main_process(lambda: result)

    def gather(self) -> None:
        """Make the model an ordinary one on the host, with full weights in every process."""
        shares, done = dict(self._model.named_parameters(remove_duplicate=False)), set[nn.Parameter]()
        for name, weight in self._full.items():
            if weight not in done:  # Tied weights have several names.
                weight.data.copy_(gathered(shares[name]))
                done.add(weight)
            _replace(self._model, name, weight)
        for name, layer in self._layers.items():
            _replace(self._model, name, layer)
        for module, name in self._added:
            vars(module).pop(name)
        self._model.to("cpu")

    def _shard(self) -> Any:
        """Shard layer by layer, then the rest: at most one of these is on a GPU in full."""
        from torch.distributed.device_mesh import init_device_mesh
        from torch.distributed.fsdp import fully_shard

        shard = partial(fully_shard, mesh=init_device_mesh(own_device().type, (world_size(),)))
        for name in self._layers:
            self._shard_module(shard, self._model.get_submodule(name))
        return self._shard_module(shard, _Root(self._model))

    def _shard_module(self, shard: Callable[[nn.Module], Any], module: nn.Module) -> object:
        """Shard the weights of a module that are not sharded yet; the full ones stay on the host."""
        weights = [weight for weight in module.parameters() if not _is_share(weight)]
        host = [weight.data for weight in weights]
        sharded = shard(module)
        for weight, data in zip(weights, host, strict=True):
            weight.data = data
        sharded.set_gradient_divide_factor(1.0)  # Parts have shares of one loss: sums, not means.
        sharded.set_force_sum_reduction_for_comms(True)
        return sharded

    def _begin(self) -> list[Tensor]:
        """Gather everything once; return the tensors that hold full trained weights whenever gathered."""
        from torch.distributed.fsdp import FSDPModule

        for name, weight in self._model.named_parameters(remove_duplicate=False):
            vars(weight).update(vars(self._full[name]))  # Marks of frozen weights, rates.
        with torch.no_grad():
            self._root(lambda _: None)  # Registers the layers as parts of the root.
        full: dict[str, Tensor] = {}
        for module in self._root.modules():
            if isinstance(module, FSDPModule):
                module.unshard()
                full |= {name: part for name, part in self._model.named_parameters() if not _is_share(part)}
                module.reshard()
        return [full[name] for name, weight in self._model.named_parameters() if weight.requires_grad]


class _Root(nn.Module):
    """Computes anything with a model whose weights outside of layers are gathered meanwhile."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, compute: Callable[[nn.Module], object]) -> object:
        """Return the result."""
        return compute(self.model)


def gathered(tensor: Tensor) -> Tensor:
    """Return a tensor, gathered from all processes if it is sharded."""
    return tensor.full_tensor() if _is_share(tensor) else tensor


def local(tensor: Tensor) -> Tensor:
    """Return this process's share of a tensor, all of it where that is not sharded."""
    return tensor.to_local() if _is_share(tensor) else tensor


def local_rows(tensor: Tensor, reference: Tensor | None) -> Tensor:
    """Return this process's share of a full tensor, if ``like`` is sharded."""
    if reference is None or not _is_share(reference) or not tensor.dim():
        return tensor
    rows = -(-len(tensor) // world_size())
    return tensor[rank() * rows : (rank() + 1) * rows]


def as_share(tensor: Tensor, reference: Tensor) -> Tensor:
    """Return ``local_rows`` of a tensor as a sharded tensor again, if ``like`` is sharded."""
    if not _is_share(reference) or not tensor.dim():
        return tensor
    from torch.distributed.tensor import DTensor

    layout: dict[str, Any] = {"shape": reference.shape, "stride": reference.stride(), "run_check": False}
    share: Tensor = DTensor.from_local(
        tensor.to(reference.device), reference.device_mesh, reference.placements, **layout
    )
    return share


def _is_share(tensor: Tensor) -> "TypeGuard[DTensor]":
    """Return whether a tensor is sharded, without importing the package, which takes long."""
    return hasattr(tensor, "full_tensor")


def _replace(model: nn.Module, name: str, part: nn.Module | nn.Parameter) -> None:
    """Replace the module or parameter of that name."""
    owner, _, last = name.rpartition(".")
    setattr(model.get_submodule(owner), last, part)


def _weights_of(value: Tensor) -> set[Tensor]:
    """Return the weights that a value depends on."""
    weights, visited, ahead = set[Tensor](), set[Any](), [value.grad_fn]
    while ahead:
        node = ahead.pop()
        if node is None or node in visited:
            continue
        visited.add(node)
        if isinstance(leaf := getattr(node, "variable", None), Tensor):
            weights.add(leaf)
        ahead += [parent for parent, _ in node.next_functions]
    return weights


def _is_set(flag: str) -> bool:
    from accelerate.utils import parse_flag_from_env

    return bool(parse_flag_from_env(flag))


def _state() -> "PartialState":
    from accelerate import PartialState

    # On a machine without GPUs Accelerate detects no second process by itself.
    return PartialState(cpu=not torch.accelerator.is_available(), timeout=TIMEOUT)
