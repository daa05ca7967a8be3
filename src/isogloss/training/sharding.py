"""Training what does not fit on one GPU: each process holds a share of weights, gradients and moments.

PyTorch's FSDP2 (after ZeRO, Rajbhandari et al. 2020, stage 3). A Transformer layer's weights are gathered
while it computes, all others (embeddings, heads) while a loss does. All processes gather a layer at once, so
they go through the layers in step: each computes as many parts of a batch (``parts_of``), and whatever runs
the model on the way (dev sets, perplexity) is computed by all of them.
"""

from collections.abc import Callable
from copy import copy
from functools import partial
from typing import TYPE_CHECKING, Any, TypeGuard

import torch
from torch import Tensor, nn

from isogloss.encoders.computation import transformer_layers
from isogloss.training.distributed import (
    Plain,
    all_reduced,
    broadcast_weights,
    from_main_process,
    own_device,
    rank,
    world_size,
)

if TYPE_CHECKING:
    from torch.distributed.tensor import DTensor


class Shards:
    """A model in training of which each process holds a share, until ``gather`` makes it an ordinary one.

    What is sharded are stand-ins for its layers, as ``fully_shard`` cannot be undone.
    """

    def __init__(self, model: nn.Module) -> None:
        self._model, self._whole = model, dict(model.named_parameters(remove_duplicate=False))
        self._layers = {name: model.get_submodule(name) for name in transformer_layers(model)}
        known = [(module, set(vars(module))) for module in model.modules()]
        _prepare(model)
        for name, layer in self._layers.items():
            _put(model, name, _stand_in(layer))
        self._root = self._shard()
        self._added = [(module, name) for module, before in known for name in vars(module).keys() - before]
        self._trained = [weight for weight in model.parameters() if weight.requires_grad]
        self._gathered = self._begin()
        self._used = torch.zeros(len(self._trained))

    def loss(self, compute: Callable[[nn.Module], Tensor]) -> Tensor:
        """Return what is computed with the model; its gradients are summed over all processes.

        Every weight takes part in that sum: others may use those that the loss does not depend on here.
        """
        value: Tensor = self._root(compute)
        used = _leaves(value)
        for number, weight in enumerate(self._gathered):
            if weight in used:
                self._used[number] = 1
            else:
                weight.grad = torch.zeros((), dtype=weight.dtype, device=weight.device).expand_as(weight)
        return value

    def sum_gradients(self) -> None:
        """Leave no gradient to weights that no process used in this update; all others' are summed by now."""
        used = all_reduced(self._used.to(own_device())).tolist()
        for weight, somewhere in zip(self._trained, used, strict=True):
            weight.grad = weight.grad if somewhere else None
        self._used.zero_()

    def from_main_process(self, make: Callable[[], Plain]) -> Plain:
        """Return to all processes what the main one makes with the model; all make it, in step."""
        self._root.unshard()
        made = make()
        self._root.reshard()
        return from_main_process(lambda: made)

    def gather(self) -> None:
        """Make the model an ordinary one on the host, with whole weights in every process."""
        shares, done = dict(self._model.named_parameters(remove_duplicate=False)), set[nn.Parameter]()
        for name, weight in self._whole.items():
            if weight not in done:  # Tied weights have several names.
                weight.data.copy_(whole(shares[name]))
                done.add(weight)
            _put(self._model, name, weight)
        for name, layer in self._layers.items():
            _put(self._model, name, layer)
        for module, name in self._added:
            vars(module).pop(name)
        self._model.to("cpu")

    def _shard(self) -> Any:
        """Shard layer by layer, then the rest: no more than one of these is whole on a GPU."""
        from torch.distributed.device_mesh import init_device_mesh
        from torch.distributed.fsdp import fully_shard

        shard = partial(fully_shard, mesh=init_device_mesh(own_device().type, (world_size(),)))
        for name in self._layers:
            self._shard_one(shard, self._model.get_submodule(name))
        return self._shard_one(shard, _Root(self._model))

    def _shard_one(self, shard: Callable[[nn.Module], Any], module: nn.Module) -> object:
        """Shard what is still whole in a module; the whole weights stay on the host."""
        weights = [weight for weight in module.parameters() if not _is_share(weight)]
        host = [weight.data for weight in weights]
        sharded = shard(module)
        for weight, data in zip(weights, host, strict=True):
            weight.data = data
        sharded.set_gradient_divide_factor(1.0)  # Parts have shares of one loss: sums, not means.
        sharded.set_force_sum_reduction_for_comms(True)
        return sharded

    def _begin(self) -> list[Tensor]:
        """Gather everything once; return what then holds whole trained weights, as it will again."""
        from torch.distributed.fsdp import FSDPModule

        for name, weight in self._model.named_parameters(remove_duplicate=False):
            vars(weight).update(vars(self._whole[name]))  # Marks of what is frozen, rates.
        with torch.no_grad():
            self._root(lambda _: None)  # Tells the layers what they are a part of.
        found: dict[str, Tensor] = {}
        for module in self._root.modules():
            if isinstance(module, FSDPModule):
                module.unshard()
                found |= {name: one for name, one in self._model.named_parameters() if not _is_share(one)}
                module.reshard()
        return [found[name] for name, one in self._model.named_parameters() if one.requires_grad]


class _Root(nn.Module):
    """Computes anything with a model whose weights outside of layers are gathered meanwhile."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, compute: Callable[[nn.Module], object]) -> object:
        """Return what is computed."""
        return compute(self.model)


def whole(tensor: Tensor) -> Tensor:
    """Return a tensor, gathered from all processes if each has a share of it."""
    return tensor.full_tensor() if _is_share(tensor) else tensor


def own(tensor: Tensor) -> Tensor:
    """Return this process's share of a tensor, all of it where that is not sharded."""
    return tensor.to_local() if _is_share(tensor) else tensor


def own_of(tensor: Tensor, like: Tensor | None) -> Tensor:
    """Return this process's share of a whole tensor, as the share of another one is of that."""
    if like is None or not _is_share(like) or not tensor.dim():
        return tensor
    rows = -(-len(tensor) // world_size())
    return tensor[rank() * rows : (rank() + 1) * rows]


def share(tensor: Tensor, like: Tensor) -> Tensor:
    """Return ``own_of`` a tensor as a share again, like that of another one."""
    if not _is_share(like) or not tensor.dim():
        return tensor
    from torch.distributed.tensor import DTensor

    how: dict[str, Any] = {"shape": like.shape, "stride": like.stride(), "run_check": False}
    made: Tensor = DTensor.from_local(tensor.to(like.device), like.device_mesh, like.placements, **how)
    return made


def _is_share(tensor: Tensor) -> "TypeGuard[DTensor]":
    """Return whether a tensor is sharded: found out without the package, which takes long to import."""
    return hasattr(tensor, "full_tensor")


def _prepare(model: nn.Module) -> None:
    """Move a model to the host, and give all processes the main one's weights."""
    model.to("cpu")
    for weight in model.parameters():
        weight.data = weight.data.contiguous()
    broadcast_weights(model)


def _stand_in(layer: nn.Module) -> nn.Module:
    """Return another module with the parts, weights and hooks of a layer."""
    made = copy(layer)
    vars(made).update({name: copy(one) for name, one in vars(layer).items() if isinstance(one, dict)})
    return made


def _put(model: nn.Module, name: str, part: nn.Module | nn.Parameter) -> None:
    """Put a module or a parameter in the place of the one with that name."""
    owner, _, last = name.rpartition(".")
    setattr(model.get_submodule(owner), last, part)


def _leaves(value: Tensor) -> set[Tensor]:
    """Return the weights that a value depends on."""
    found, seen, ahead = set[Tensor](), set[Any](), [value.grad_fn]
    while ahead:
        node = ahead.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        if isinstance(leaf := getattr(node, "variable", None), Tensor):
            found.add(leaf)
        ahead += [parent for parent, _ in node.next_functions]
    return found
