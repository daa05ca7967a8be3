"""Models saved as their difference from a base model: only the trained weights.

Such a folder has the configuration and the tokenizer of an ordinary model, the trained weights in a special
format (adapters of the library peft or of a task, sparse deltas), and ``difference.json``, which names the
encoder or model that they belong to. Loaded, it is an ordinary model with ordinary weights.
"""

import json
import os
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from isogloss.core.atomic_files import disk_error, reading_error, write_text
from isogloss.core.errors import ModelError, one_line
from isogloss.core.registry import Registry
from isogloss.core.untrusted import convert_json, from_home, parse_json, read_regular
from isogloss.encoders import folders
from isogloss.encoders.folders import DIFFERENCE
from isogloss.encoders.hub import is_hub_name

if TYPE_CHECKING:
    from torch import nn


@dataclass(frozen=True, kw_only=True)
class DifferenceFormat:
    """A format of saved weights. Each function loads them into an encoder or a model with a head.

    It returns the names of the head's weights.
    """

    load: "Callable[[nn.Module, Path], set[str]]"
    """Leaves an ordinary model."""
    load_unmerged: "Callable[[nn.Module, Path], set[str]] | None" = None
    """Keeps adapters separate from the weights. None for weights that are not adapters in each layer."""


DIFFERENCE_FORMATS: Registry[DifferenceFormat] = Registry(
    {
        "task-adapter": "isogloss.encoders.added.task_adapters:TASK_FORMAT",
        "sparse": "isogloss.encoders.added.sparse_deltas:SPARSE_FORMAT",
    },
    features="weight-differences",
)
"""Formats of weights that are saved as their difference from a base model."""


@dataclass(frozen=True, kw_only=True)
class WeightDifference:
    """The model that the weights in a folder are the difference from."""

    format: str
    """One of ``DIFFERENCE_FORMATS``."""
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
    if difference.format not in DIFFERENCE_FORMATS:
        raise ModelError(
            f"{path}: weights of format {difference.format!r}; this version knows "
            f"{', '.join(DIFFERENCE_FORMATS)}. Use the version that made them."
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
            raise ModelError(f"{where}, and there is no fingerprint of it. Copy the folder again.")
        return folders.find_folder(difference.base, folders.MODEL_FILES, folders.has_weights)
    else:
        base = (folder.resolve() / difference.base).resolve()
    if not base.is_dir():
        raise ModelError(f"{where}, and there is no such folder. Put it back, or run again.")
    if folders.fingerprint(base) != difference.fingerprint:
        raise ModelError(
            f"{where}, whose files have changed since ({base}). Put them back as they were, or run again."
        )
    return base


def whole_folder(folder: Path) -> Path:
    """Return the folder itself, or the folder with all weights that it is a difference from."""
    difference = difference_of(folder)
    return folder if difference is None else whole_folder(base_folder(folder, difference))
