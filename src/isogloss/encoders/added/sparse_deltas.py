"""Sparse deltas: some of an encoder's weights differ from its base, all others equal it to the bit.

In training a mask selects the weights that change. A file of deltas has, for each tensor, positions and
values of the weights in the mask (values, since adding differences would round), and the whole head.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import cast

import torch
from torch import Tensor, nn
from torch.nn.utils import parametrize

from isogloss.core.errors import ModelError
from isogloss.encoders.added.added_weights import read_weights, write_weights
from isogloss.encoders.added.differences import DifferenceFormat, write_difference
from isogloss.encoders.family import encoder_prefix, head_parameters

DELTAS_FILE = "sparse_deltas.safetensors"


POSITIONS = "/places"


VALUES = "/values"
"""Suffixes in that file of the names of a tensor's positions, flattened, and of their values."""


class Masked(nn.Module):
    """A tensor that is the trained one where the mask is true, and the original elsewhere."""

    original: Tensor
    mask: Tensor

    def __init__(self, weight: Tensor, mask: Tensor) -> None:
        super().__init__()
        self.register_buffer("original", weight.detach().clone())
        self.register_buffer("mask", mask.to(weight.device))

    def forward(self, weight: Tensor) -> Tensor:
        """Return the tensor, whose gradient is 0 outside the mask."""
        return torch.where(self.mask, weight, self.original)


def encoder_weights(model: nn.Module) -> dict[str, nn.Parameter]:
    """Return the parameters of a model's encoder by name, without the pooler, which is the head's."""
    head = head_parameters(model)
    return {name: weight for name, weight in model.named_parameters() if name not in head}


def add_masks(model: nn.Module, masks: Mapping[str, Tensor]) -> None:
    """Restrict training of these tensors to positions where their masks are true.

    No value changes. A tied tensor is masked under each of its names: mT5 reads its embeddings under the
    second.
    """
    mask_of = {weight: masks[name] for name, weight in model.named_parameters() if name in masks}
    # In the model's order, for the norm of all gradients is a sum in that order.
    for name, weight in list(model.named_parameters(remove_duplicate=False)):
        if weight in mask_of:
            parent, _, attribute = name.rpartition(".")
            mask_module = Masked(weight, mask_of[weight])
            parametrize.register_parametrization(model.get_submodule(parent), attribute, mask_module)


def remove_masks(model: nn.Module) -> dict[str, Tensor]:
    """Restore masked tensors as ordinary ones with their current values, and return the masks by name."""
    masks: dict[str, Tensor] = {}
    for name, module in list(model.named_modules()):
        for attribute in list(getattr(module, "parametrizations", ())):
            masks[f"{name}.{attribute}"] = cast(Masked, module.parametrizations[attribute][0]).mask
            parametrize.remove_parametrizations(module, attribute, leave_parametrized=True)
    return {name: masks[name] for name, _ in model.named_parameters() if name in masks}


def sparse_weights(model: nn.Module, masks: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return the tensors of a file of deltas: positions and values in the masks, and the whole head."""
    encoder = encoder_weights(model)
    tensors = {
        name: weight.detach().cpu().clone()
        for name, weight in model.named_parameters()
        if name not in encoder
    }
    for name, mask in masks.items():
        positions = mask.flatten().nonzero().flatten()
        if len(positions):
            tensors[f"{name}{POSITIONS}"] = positions.to(torch.int32).cpu()
            tensors[f"{name}{VALUES}"] = encoder[name].detach().flatten()[positions].cpu()
    return tensors


def write_sparse(weights: Mapping[str, Tensor], base: str, folder: Path) -> None:
    """Write the tensors of ``sparse_weights``, as a difference from ``base``."""
    write_difference(folder, base, form="sparse", weights=DELTAS_FILE)
    write_weights(folder / DELTAS_FILE, weights, {"format": "pt"})


def apply_deltas(model: nn.Module, folder: Path) -> set[str]:
    """Copy saved deltas into a model or an encoder.

    Returns the names of the head's weights among them. Raises ModelError for deltas of a different encoder.
    """
    weights = read_weights(folder / DELTAS_FILE)
    prefix = encoder_prefix(model)
    inside = "" if prefix else f"{getattr(model, 'base_model_prefix', '')}."
    parameters = dict(model.named_parameters())
    head = set[str]()
    with torch.no_grad():
        for tensor, positions, values in _deltas(weights):
            name = tensor.removeprefix(inside)
            if name not in parameters or int(positions.max()) >= parameters[name].numel():
                raise ModelError(
                    f"{folder / DELTAS_FILE}: these weights are another encoder's: it has no such {name}. "
                    f"Copy the folder again."
                )
            parameters[name].flatten()[positions] = values
        for tensor, weight in weights.items():
            name = tensor.removeprefix(inside)
            if name in parameters and parameters[name].shape == weight.shape:
                parameters[name].copy_(weight)
                head.add(name)
    return head


def _deltas(weights: Mapping[str, Tensor]) -> Iterator[tuple[str, Tensor, Tensor]]:
    for name, positions in weights.items():
        if name.endswith(POSITIONS):
            tensor = name.removesuffix(POSITIONS)
            yield tensor, positions.long(), weights[f"{tensor}{VALUES}"]


SPARSE_FORMAT = DifferenceFormat(load=apply_deltas)
"""Some of the weights as the difference of a model from its base."""
