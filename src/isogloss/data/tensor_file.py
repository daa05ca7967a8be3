"""Tensors that a measurement leaves beside its record, as a safetensors file; the same give the same bytes.

What they are about is one JSON object in the file's metadata.
"""

import json
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import numpy.typing as npt

from isogloss.core.errors import StorageError
from isogloss.core.records import Value, write_bytes

ENDING = ".safetensors"
ABOUT = "about"
"""The one key of the metadata: the format keeps no order among several."""

Array = npt.NDArray[np.generic]


def write_tensors(path: Path, tensors: Mapping[str, Array], about: Mapping[str, Value]) -> None:
    """Write the file, whole or not at all."""
    from safetensors.numpy import save

    arrays = {name: np.asarray(tensors[name], order="C") for name in sorted(tensors)}
    text = json.dumps(dict(about), sort_keys=True, ensure_ascii=False, allow_nan=False)
    write_bytes(path, save(arrays, metadata={ABOUT: text}))


def read_tensors(path: Path) -> tuple[dict[str, Array], dict[str, Value]]:
    """Read a file that ``write_tensors`` wrote: the tensors by name, and what they are about.

    StorageError, saying how to make it again, where it is damaged or not there.
    """
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="np") as file:
            about = json.loads((file.metadata() or {})[ABOUT])
            tensors = {name: file.get_tensor(name) for name in sorted(file.keys())}
    except (SafetensorError, OSError, KeyError, ValueError) as error:
        raise StorageError(
            f"{path}: these tensors cannot be read ({' '.join(str(error).split())}). Delete the folder's "
            f"record.json and run again; only this run is repeated."
        ) from error
    return tensors, about
