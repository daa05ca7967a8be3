"""Models kept as their difference from another one: what a part of the weights became, and nothing else.

Such a folder has the configuration and the tokenizer of an ordinary model, the trained weights in a format of
their own (adapters of the library peft or of a task, sparse deltas), and ``difference.json``, which names the
encoder or model that they belong to. Loaded, it is an ordinary model with ordinary weights.
"""

import json
import os
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from torch import Tensor, nn

from isogloss.core.errors import ModelError, one_line
from isogloss.core.foreign_json import fitting, parse_json, read_regular
from isogloss.core.paths import from_home
from isogloss.core.records import write_text
from isogloss.encoders import folders
from isogloss.encoders.added import peft_adapters, sparse_deltas
from isogloss.encoders.added.task_adapter import read_task_adapter
from isogloss.encoders.folders import DIFFERENCE
from isogloss.encoders.hub import is_hub_name

FORMATS: Mapping[str, Callable[[nn.Module, Path], set[str]]] = {
    "peft": peft_adapters.apply_adapters,
    "task-adapter": read_task_adapter,
    "sparse": sparse_deltas.apply_deltas,
}
"""Give the stored weights to an encoder, or to a model with a head; return the names of the head's."""


@dataclass(frozen=True, kw_only=True)
class Difference:
    """What the weights in a folder are the difference from."""

    format: str
    """One of ``FORMATS``."""
    weights: str
    """Name of the file with the weights."""
    base: str
    """shipped, a hub name, or a folder: a path relative to this one for a run in the same folder of runs."""
    fingerprint: str
    """Of the files of the base; empty for a hub name, which holds the commit."""


def write_difference(folder: Path, base: str, *, form: str, weights: str) -> Difference:
    """Write and return what the weights in a folder are the difference from: a folder or hub name."""
    name, fingerprint = base, ""
    if not is_hub_name(base):
        place = from_home(base).resolve()
        name, fingerprint = _named(place, folder.resolve()), folders.fingerprint(place)
    found = Difference(format=form, weights=weights, base=name, fingerprint=fingerprint)
    write_text(folder / DIFFERENCE, json.dumps(asdict(found), ensure_ascii=False, indent=1) + "\n")
    return found


def write_sparse(weights: Mapping[str, Tensor], base: str, folder: Path) -> None:
    """Write some weights of a model as its difference from ``base``."""
    write_difference(folder, base, form="sparse", weights=sparse_deltas.WEIGHTS)
    sparse_deltas.write_weights(folder, weights)


def _named(base: Path, folder: Path) -> str:
    if base == folders.shipped_folder():
        return folders.SHIPPED
    together = base.parent.parent == folder.parent.parent
    return Path(os.path.relpath(base, folder)).as_posix() if together else str(base)


def difference_of(folder: Path) -> Difference | None:
    """Read what the weights in a folder are the difference from; None where they are whole."""
    path = folder / DIFFERENCE
    if not path.is_file():
        return None
    try:
        found = fitting(Difference, parse_json(read_regular(path)))
    except (OSError, ValueError) as error:
        raise ModelError(
            f"{path}: this file is damaged ({one_line(error)}). Copy the folder again; if a run of "
            f"isogloss made it, delete the run's folder and run again."
        ) from error
    if found.format not in FORMATS:
        raise ModelError(
            f"{path}: weights of format {found.format!r}; this version knows {', '.join(FORMATS)}. Use the "
            f"version that made them."
        )
    return found


def base_folder(folder: Path, difference: Difference) -> Path:
    """Return the folder of the base; ModelError where it is gone, or is not what it was."""
    where = f"{folder / DIFFERENCE}: these weights are a difference from {difference.base!r}"
    if difference.base == folders.SHIPPED:
        found = folders.shipped_folder()
    elif not difference.fingerprint:
        if not is_hub_name(difference.base):  # A folder is known by what is in it.
            raise ModelError(f"{where}, and no fingerprint of it is there. Copy the folder again.")
        return folders.find_folder(difference.base, folders.MODEL_FILES, folders.has_weights)
    else:
        found = (folder.resolve() / difference.base).resolve()
    if not found.is_dir():
        raise ModelError(f"{where}, and no such folder is there. Put it back, or run again.")
    if folders.fingerprint(found) != difference.fingerprint:
        raise ModelError(
            f"{where}, whose files have changed since ({found}). Put them back as they were, or run again."
        )
    return found


def whole_folder(folder: Path) -> Path:
    """Return the folder itself, or the one of whole weights that its own are a difference from."""
    difference = difference_of(folder)
    return folder if difference is None else whole_folder(base_folder(folder, difference))
