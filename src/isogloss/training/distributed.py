"""Several processes that train one model together: their ranks, sums over all of them, copies and shards.

``accelerate launch`` (or torchrun) starts them. A process that was started without these is the only one.
Each computes some parts of an update's batch, and gradients are summed once per update. Accelerate finds the
processes and their devices. Its wrapper of the model is not used, because it would require every module to be
used in every step, and a batch of one language uses no modules of other languages.

A model too large for one GPU is sharded by PyTorch's FSDP2 (ZeRO, Rajbhandari et al. 2020, stage 3): each
process stores a share of weights, gradients and moments. A Transformer layer's weights are gathered while it
computes, all others (embeddings, heads) while a loss does. Layers are gathered by all processes at once, so
all processes run through the layers in step: each computes the same number of parts of a batch
(``parts_of``), and all of them compute evaluations (dev sets, perplexity).
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

from isogloss.core.arguments import do_nothing
from isogloss.core.errors import ConfigError
from isogloss.core.processes import is_launched
from isogloss.encoders.computation import transformer_layers

if TYPE_CHECKING:
    from accelerate import PartialState
    from torch.distributed.tensor import DTensor

Plain = TypeVar("Plain")
"""Any value that JSON can represent."""

TIMEOUT = timedelta(days=1)
"""Maximum time that processes wait for each other. The first one reads and tokenizes all text meanwhile."""

SHARDED = "ACCELERATE_USE_FSDP"
"""Environment variable by which Accelerate's launcher requests sharded models."""

UNSUPPORTED = {
    "FSDP_OFFLOAD_PARAMS": "Remove --fsdp_offload_params. More processes need less memory each.",
    "FSDP_ACTIVATION_CHECKPOINTING": "Remove --fsdp_activation_checkpointing, and set "
    "gradient_checkpointing = true in the recipe's optimization.",
}
"""Further variables that Accelerate's launcher sets, and the alternatives to them."""


_alone: list[bool] = []
"""Not empty while the other processes wait for this one."""


@contextmanager
def alone() -> Iterator[None]:
    """Act as the only process, without sums, while the others wait."""
    _alone.append(True)
    try:
        yield
    finally:
        _alone.pop()


def own_device() -> torch.device:
    """Return this process's device: one GPU per process if the machine has several."""
    if not is_launched() and not torch.accelerator.is_available():
        return torch.device("cpu")
    local_device: torch.device = _state().device
    return local_device


def world_size() -> int:
    """Return the number of processes that train together."""
    return 1 if _alone or not is_launched() else int(_state().num_processes)


def rank() -> int:
    """Return the index of this process."""
    return 0 if _alone or not is_launched() else int(_state().process_index)


def is_sharded() -> bool:
    """Return whether each process stores only a share of the model (--use_fsdp of Accelerate's launcher)."""
    return world_size() > 1 and _is_set(SHARDED)


def refuse_sharding(feature: str, instead: str) -> None:
    """Raise ConfigError for a feature that a sharded model does not support."""
    if is_sharded():
        raise ConfigError(f"{feature} with a sharded model (--use_fsdp). Remove --use_fsdp, or {instead}.")


def prepare_sharding() -> None:
    """Raise ConfigError for launcher options that are unsupported, or that belong into a recipe."""
    if not is_sharded():
        return
    from accelerate.utils import disable_fsdp_ram_efficient_loading

    for name, instead in UNSUPPORTED.items():
        if _is_set(name):
            raise ConfigError(f"{name} is set for this launch, but not supported. {instead}")
    disable_fsdp_ram_efficient_loading()  # Transformers would only read weights in the main process.


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
    """Compute a value in the main process, and return it in all. JSON must be able to represent it."""
    if world_size() == 1:
        return make()
    body = b""
    if is_main_process():
        with alone():
            body = json.dumps(make()).encode()
    length = torch.tensor([len(body)], device=own_device())
    torch.distributed.broadcast(length, 0)
    message = torch.zeros(int(length), dtype=torch.uint8, device=own_device())
    if body:
        message.copy_(torch.frombuffer(bytearray(body), dtype=torch.uint8))
    torch.distributed.broadcast(message, 0)
    result: Plain = json.loads(bytes(message.tolist()))
    return result


def all_reduced(values: Tensor) -> Tensor:
    """Return the sum of a tensor over all processes."""
    if world_size() > 1:
        values = values.clone()
        torch.distributed.all_reduce(values)
    return values


class Copies:
    """A model in training with a full copy in each process."""

    def __init__(self, model: nn.Module) -> None:
        self._model = model.to(own_device())
        broadcast_weights(model)

    def loss(self, compute: Callable[[nn.Module], Tensor]) -> Tensor:
        """Return a loss computed with the model."""
        return compute(self._model)

    @contextmanager
    def gradients_summed(self, *, during_pass: bool) -> Iterator[None]:
        """Sum gradients over all processes when the context ends (see ``gradient_sums``)."""
        if world_size() == 1:
            yield
            return
        from isogloss.training.gradient_sums import gradients_summed

        weights = [weight for weight in self._model.parameters() if weight.requires_grad]
        with gradients_summed(weights, during_pass=during_pass):
            yield

    def from_main_process(self, make: Callable[[], Plain]) -> Plain:
        """Compute a value in the main process while the others wait, and return it in all."""
        return from_main_process(make)

    def gather(self) -> None:
        """Do nothing, since the model is an ordinary one."""


def broadcast_weights(model: nn.Module) -> None:
    """Broadcast the main process's weights to all, one by one over the device."""
    if world_size() > 1:
        for weight in model.parameters():
            values = weight.detach().to(own_device())
            torch.distributed.broadcast(values, 0)
            weight.data.copy_(values)


class Shards:
    """A model in training with a share in each process, until ``gather`` restores the full model.

    Its layers are replaced by sharded copies, because ``fully_shard`` cannot be undone.
    """

    def __init__(self, model: nn.Module) -> None:
        self._model = model
        self._full = dict(model.named_parameters(remove_duplicate=False))
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
        self._added = [(module, name) for module, names in attributes for name in vars(module).keys() - names]
        self._trained = [weight for weight in model.parameters() if weight.requires_grad]
        self._gathered = self._begin()
        self._used = torch.zeros(len(self._trained))

    def loss(self, compute: Callable[[nn.Module], Tensor]) -> Tensor:
        """Return a loss computed with the model. Its gradients are summed over all processes.

        Weights that the loss does not depend on get zero gradients, because other processes may use them.
        """
        value: Tensor = self._root(compute)
        dependencies = _weights_of(value)
        for index, weight in enumerate(self._gathered):
            if weight in dependencies:
                self._used[index] = 1
            else:
                weight.grad = torch.zeros((), dtype=weight.dtype, device=weight.device).expand_as(weight)
        return value

    @contextmanager
    def gradients_summed(self, *, during_pass: bool) -> Iterator[None]:  # noqa: ARG002 (they always are)
        """Clear the gradients of weights that no process used in this update when the context ends.

        All others are already summed.
        """
        yield
        use_counts = all_reduced(self._used.to(own_device())).tolist()
        for weight, is_used in zip(self._trained, use_counts, strict=True):
            weight.grad = weight.grad if is_used else None
        self._used.zero_()

    def from_main_process(self, make: Callable[[], Plain]) -> Plain:
        """Compute a value in all processes in step, and return the main process's value in all."""
        self._root.unshard()
        result = make()
        self._root.reshard()
        return from_main_process(lambda: result)

    def gather(self) -> None:
        """Restore an ordinary model on the host, with full weights in every process."""
        shares = dict(self._model.named_parameters(remove_duplicate=False))
        gathered_weights: set[nn.Parameter] = set()
        for name, weight in self._full.items():
            if weight not in gathered_weights:  # Tied weights have several names.
                weight.data.copy_(gather_tensor(shares[name]))
                gathered_weights.add(weight)
            _replace(self._model, name, weight)
        for name, layer in self._layers.items():
            _replace(self._model, name, layer)
        for module, name in self._added:
            vars(module).pop(name)
        self._model.to("cpu")

    def _shard(self) -> Any:
        """Shard layer by layer, then the rest, so that at most one of them is on a GPU in full."""
        from torch.distributed.device_mesh import init_device_mesh
        from torch.distributed.fsdp import fully_shard

        shard = partial(fully_shard, mesh=init_device_mesh(own_device().type, (world_size(),)))
        for name in self._layers:
            self._shard_module(shard, self._model.get_submodule(name))
        return self._shard_module(shard, _Root(self._model))

    def _shard_module(self, shard: Callable[[nn.Module], Any], module: nn.Module) -> object:
        """Shard the weights of a module that are not sharded yet. The full weights stay on the host."""
        weights = [weight for weight in module.parameters() if not _is_share(weight)]
        host = [weight.data for weight in weights]
        shards = shard(module)
        for weight, data in zip(weights, host, strict=True):
            weight.data = data
        shards.set_gradient_divide_factor(1.0)  # Parts have shares of one loss: sums, not means.
        shards.set_force_sum_reduction_for_comms(True)
        return shards

    def _begin(self) -> list[Tensor]:
        """Gather everything once, and return the tensors that contain full trained weights when gathered."""
        from torch.distributed.fsdp import FSDPModule

        for name, weight in self._model.named_parameters(remove_duplicate=False):
            vars(weight).update(vars(self._full[name]))  # Marks of frozen weights, rates.
        with torch.no_grad():
            self._root(do_nothing)  # Registers the layers as parts of the root.
        full_weights: dict[str, Tensor] = {}
        for module in self._root.modules():
            if isinstance(module, FSDPModule):
                module.unshard()
                full_weights |= {
                    name: part for name, part in self._model.named_parameters() if not _is_share(part)
                }
                module.reshard()
        return [full_weights[name] for name, weight in self._model.named_parameters() if weight.requires_grad]


class _Root(nn.Module):
    """Computes with a model whose weights outside of layers are gathered meanwhile."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, compute: Callable[[nn.Module], object]) -> object:
        """Call ``compute`` with the model."""
        return compute(self.model)


def gather_tensor(tensor: Tensor) -> Tensor:
    """Return a tensor, gathered from all processes if it is sharded."""
    return tensor.full_tensor() if _is_share(tensor) else tensor


def local(tensor: Tensor) -> Tensor:
    """Return this process's share of a sharded tensor, or the whole tensor if it is not sharded."""
    return tensor.to_local() if _is_share(tensor) else tensor


def local_rows(tensor: Tensor, reference: Tensor | None) -> Tensor:
    """Return this process's rows of a full tensor if ``reference`` is sharded, else the whole tensor."""
    if reference is None or not _is_share(reference) or not tensor.dim():
        return tensor
    rows = -(-len(tensor) // world_size())
    return tensor[rank() * rows : (rank() + 1) * rows]


def as_share(tensor: Tensor, reference: Tensor) -> Tensor:
    """Convert this process's rows to a sharded tensor if ``reference`` is sharded."""
    if not _is_share(reference) or not tensor.dim():
        return tensor
    from torch.distributed.tensor import DTensor

    layout: dict[str, Any] = {"shape": reference.shape, "stride": reference.stride(), "run_check": False}
    share: Tensor = DTensor.from_local(
        tensor.to(reference.device), reference.device_mesh, reference.placements, **layout
    )
    return share


def _is_share(tensor: Tensor) -> "TypeGuard[DTensor]":
    """Return whether a tensor is sharded, without a slow import."""
    return hasattr(tensor, "full_tensor")


def _replace(model: nn.Module, name: str, part: nn.Module | nn.Parameter) -> None:
    """Replace the module or parameter of a name."""
    owner, _, attribute = name.rpartition(".")
    setattr(model.get_submodule(owner), attribute, part)


def _weights_of(value: Tensor) -> set[Tensor]:
    """Return the weights that a value depends on."""
    weights: set[Tensor] = set()
    ancestors: set[Any] = set()
    queue = [value.grad_fn]
    while queue:
        node = queue.pop()
        if node is None or node in ancestors:
            continue
        ancestors.add(node)
        if isinstance(leaf := getattr(node, "variable", None), Tensor):
            weights.add(leaf)
        queue += [parent for parent, _ in node.next_functions]
    return weights


def _is_set(flag: str) -> bool:
    from accelerate.utils import parse_flag_from_env

    return bool(parse_flag_from_env(flag))


def _state() -> "PartialState":
    from accelerate import PartialState

    # On a machine without GPUs Accelerate detects no second process by itself.
    return PartialState(cpu=not torch.accelerator.is_available(), timeout=TIMEOUT)
