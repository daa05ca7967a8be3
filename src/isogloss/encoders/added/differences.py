"""Models saved as their difference from a base model: only the trained weights.

Such a folder has the configuration and the tokenizer of an ordinary model, the trained weights in a special
format (adapters of the library peft or of a task, sparse deltas), and ``difference.json``, which names the
encoder or model that they belong to. Loaded, it is an ordinary model with ordinary weights.

Sparse deltas: some of an encoder's weights differ from the base, all others equal it to the bit. In training
a mask selects the weights that change. A file of deltas has, for each tensor, positions and values of the
weights in the mask (values, since adding differences would round), and the whole head.
"""

import json
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import cast

import torch
from torch import Tensor, nn
from torch.nn.utils import parametrize

from isogloss.core.atomic_files import disk_error, reading_error, write_text
from isogloss.core.errors import ModelError, one_line
from isogloss.core.untrusted import convert_json, from_home, parse_json, read_regular
from isogloss.encoders import folders
from isogloss.encoders.added.adapters import apply_adapters, read_task_adapter
from isogloss.encoders.added.added_weights import read_weights, write_weights
from isogloss.encoders.family import encoder_prefix, head_parameters
from isogloss.encoders.folders import DIFFERENCE
from isogloss.encoders.hub import is_hub_name

DELTAS_FILE = "sparse_deltas.safetensors"
POSITIONS = "/places"
VALUES = "/values"
"""Suffixes in that file of the names of a tensor's positions, flattened, and of their values."""


@dataclass(frozen=True, kw_only=True)
class WeightDifference:
    """The model that the weights in a folder are the difference from."""

    format: str
    """One of ``FORMATS``."""
    weights: str
    """Name of the file with the weights."""
    base: str
    """shipped, a hub name, or a folder: a path relative to this one for a run in the same folder of runs, and
    for a folder that this one is in."""
    fingerprint: str
    """Hash of the base's files, or "" for a hub name, which includes the commit."""


def write_difference(folder: Path, base: str, *, form: str, weights: str) -> WeightDifference:
    """Write and return the description of weights in a folder.

    ``base`` is a folder or a hub name.
    """
    name = base
    fingerprint = ""
    if not is_hub_name(base):
        path = from_home(base).resolve()
        name = _base_name(path, folder.resolve())
        fingerprint = folders.fingerprint(path)
    difference = WeightDifference(format=form, weights=weights, base=name, fingerprint=fingerprint)
    write_text(folder, DIFFERENCE, json.dumps(asdict(difference), ensure_ascii=False, indent=1) + "\n")
    return difference


def _base_name(base: Path, folder: Path) -> str:
    if base == folders.shipped_folder():
        return folders.SHIPPED
    same_store = base.parent.parent == folder.parent.parent or base in folder.parents
    return Path(os.path.relpath(base, folder)).as_posix() if same_store else str(base)


def difference_of(folder: Path) -> WeightDifference | None:
    """Read the description of a difference, or return None for a folder with all weights.

    Raises ModelError for a damaged file or an unknown format.
    """
    path = folder / DIFFERENCE
    if not path.is_file():
        return None
    try:
        difference = convert_json(WeightDifference, parse_json(read_regular(path)))
    except (OSError, ValueError) as error:
        if failure := disk_error(error):
            raise reading_error(path, failure) from error
        raise ModelError(
            f"{path}: this file is damaged ({one_line(error)}). Copy the folder again; if a run of "
            f"isogloss made it, delete the run's folder and run again."
        ) from error
    if difference.format not in FORMATS:
        raise ModelError(
            f"{path}: weights of format {difference.format!r}; this version knows {', '.join(FORMATS)}. Use "
            f"the version that made them."
        )
    return difference


def base_folder(folder: Path, difference: WeightDifference) -> Path:
    """Return the folder of the base.

    Raises ModelError if it is missing or its files have changed.
    """
    where = f"{folder / DIFFERENCE}: these weights are a difference from {difference.base!r}"
    if difference.base == folders.SHIPPED:
        base = folders.shipped_folder()
    elif not difference.fingerprint:
        if not is_hub_name(difference.base):  # A folder is identified by its content.
            raise ModelError(f"{where}, and no fingerprint of it is there. Copy the folder again.")
        return folders.find_folder(difference.base, folders.MODEL_FILES, folders.has_weights)
    else:
        base = (folder.resolve() / difference.base).resolve()
    if not base.is_dir():
        raise ModelError(f"{where}, and no such folder is there. Put it back, or run again.")
    if folders.fingerprint(base) != difference.fingerprint:
        raise ModelError(
            f"{where}, whose files have changed since ({base}). Put them back as they were, or run again."
        )
    return base


def whole_folder(folder: Path) -> Path:
    """Return the folder itself, or the folder with all weights that it is a difference from."""
    difference = difference_of(folder)
    return folder if difference is None else whole_folder(base_folder(folder, difference))


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


FORMATS: Mapping[str, Callable[[nn.Module, Path], set[str]]] = {
    "peft": apply_adapters,
    "task-adapter": read_task_adapter,
    "sparse": apply_deltas,
}
"""Functions that load the saved weights into an encoder or a model with a head.

They return the names of the head's weights.
"""
