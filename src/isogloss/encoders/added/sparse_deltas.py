"""Sparse deltas: a few of an encoder's weights differ from another's, all others equal it to the bit.

While a model trains, each weight of the encoder is the trained one where a mask says so, else what it was
before the first step. On disk there are, for each tensor, the places and values of the weights in the mask
(values, not differences: sums would not give back the very bits), and all of the head.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import cast

import torch
from torch import Tensor, nn
from torch.nn.utils import parametrize

from isogloss.core.errors import ModelError
from isogloss.encoders.added.added_weights import read_weights
from isogloss.encoders.family import encoder_prefix, head_parameters

WEIGHTS = "sparse_deltas.safetensors"
PLACES, VALUES = "/places", "/values"
"""Endings of the names in the file of a tensor's places, in its flattened form, and values there."""


class Masked(nn.Module):
    """A tensor that is the trained one where the mask is true, and elsewhere what it was."""

    before: Tensor
    mask: Tensor

    def __init__(self, weight: Tensor, mask: Tensor) -> None:
        super().__init__()
        self.register_buffer("before", weight.detach().clone())
        self.register_buffer("mask", mask.to(weight.device))

    def forward(self, weight: Tensor) -> Tensor:
        """Return the tensor; no gradient reaches what the mask hides."""
        return torch.where(self.mask, weight, self.before)


def encoder_weights(model: nn.Module) -> dict[str, nn.Parameter]:
    """Return the parameters of a model's encoder by name, without the pooler, which is the head's."""
    head = head_parameters(model)
    return {name: weight for name, weight in model.named_parameters() if name not in head}


def add_masks(model: nn.Module, masks: Mapping[str, Tensor]) -> None:
    """Let training change these tensors only where their masks are true; nothing changes yet.

    A tied tensor is masked wherever it stands: mT5 reads its embeddings under their second name.
    """
    of = {weight: masks[name] for name, weight in model.named_parameters() if name in masks}
    # In the model's order, for the norm of all gradients is a sum in that order.
    for name, weight in [*model.named_parameters(remove_duplicate=False)]:
        if weight in of:
            owner, _, own = name.rpartition(".")
            parametrize.register_parametrization(model.get_submodule(owner), own, Masked(weight, of[weight]))


def remove_masks(model: nn.Module) -> dict[str, Tensor]:
    """Make masked tensors ordinary ones with the values they have; return the masks by name."""
    masks: dict[str, Tensor] = {}
    for name, module in list(model.named_modules()):
        for own in list(getattr(module, "parametrizations", ())):
            masks[f"{name}.{own}"] = cast(Masked, module.parametrizations[own][0]).mask
            parametrize.remove_parametrizations(module, own, leave_parametrized=True)
    return {name: masks[name] for name, _ in model.named_parameters() if name in masks}


def sparse_weights(model: nn.Module, masks: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return what is stored of a model: places and values in the masks, and the whole head."""
    own = encoder_weights(model)
    found = {name: one.detach().cpu().clone() for name, one in model.named_parameters() if name not in own}
    for name, mask in masks.items():
        places = mask.flatten().nonzero().flatten()
        if len(places):
            found[f"{name}{PLACES}"] = places.to(torch.int32).cpu()
            found[f"{name}{VALUES}"] = own[name].detach().flatten()[places].cpu()
    return found


def write_weights(folder: Path, weights: Mapping[str, Tensor]) -> None:
    """Write what is stored of a model."""
    from safetensors.torch import save_file

    save_file(dict(weights), folder / WEIGHTS, metadata={"format": "pt"})


def apply_deltas(model: nn.Module, folder: Path) -> set[str]:
    """Give a model, or an encoder alone, the stored values; return the names of the weights of a head."""
    stored, prefix = read_weights(folder / WEIGHTS), encoder_prefix(model)
    inside = f"{getattr(model, 'base_model_prefix', '')}."
    own, head = dict(model.named_parameters()), set[str]()
    with torch.no_grad():
        for name, places, values in _deltas(stored):
            here = name if prefix else name.removeprefix(inside)
            if here not in own or int(places.max()) >= own[here].numel():
                raise ModelError(
                    f"{folder / WEIGHTS}: these weights are another encoder's: it has no such {here}. Copy "
                    f"the folder again."
                )
            own[here].flatten()[places] = values
        for name, one in stored.items():
            here = name if prefix else name.removeprefix(inside)
            if here in own and own[here].shape == one.shape:
                own[here].copy_(one)
                head.add(here)
    return head


def _deltas(stored: Mapping[str, Tensor]) -> Iterator[tuple[str, Tensor, Tensor]]:
    """Yield name, places and values of each tensor that differs."""
    for name, places in stored.items():
        if name.endswith(PLACES):
            tensor = name.removesuffix(PLACES)
            yield tensor, places.long(), stored[f"{tensor}{VALUES}"]
