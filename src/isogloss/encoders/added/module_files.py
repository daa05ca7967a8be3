"""The files of language modules and language maps, as far as a plan reads them: settings and languages."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from isogloss.core.atomic_files import disk_error, reading_error
from isogloss.core.errors import ConfigError, ModelError, StorageError, one_line
from isogloss.core.run_parts import Modules
from isogloss.encoders.added.module_settings import ACTIVATIONS, LanguageModules, check_modules
from isogloss.encoders.folders import differing_shapes

Read = TypeVar("Read")


MODULES_FILE = "language_modules.safetensors"


BOTH_PLACES = "both"
"""In a file of a task's adapters: they are also after attention."""


MAPS_FILE = "language_maps.safetensors"

MAP_TENSORS = ("matrix", "shift")
"""The tensors of a language's map: [width width] and [width]."""


def optional_metadata(modules: Modules) -> dict[str, str]:
    """Return the settings of modules that differ from their defaults, as metadata of a file."""
    values = {name: getattr(modules, name) for name in ("after", "invertible", "embedding", "normed")}
    metadata = {name: str(value) for name, value in values.items() if value}
    metadata |= {"activation": modules.activation} if modules.activation else {}
    return metadata | (
        {"leave_out": ",".join(str(layer) for layer in modules.leave_out)} if modules.leave_out else {}
    )


def optional_settings(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Parse the metadata of ``optional_metadata``.

    Raises KeyError or ValueError for invalid metadata.
    """
    activation = metadata.get("activation")
    position = metadata.get("after")
    if activation not in ACTIVATIONS:
        raise KeyError(activation)
    numbers = metadata.get("leave_out", "")
    return {
        "after": None if position == BOTH_PLACES else position,
        **{name: name in metadata or None for name in ("invertible", "embedding", "normed")},
        "activation": activation,
        "leave_out": tuple(int(layer) for layer in numbers.split(",")) if numbers else None,
    }


def read_module_info(folder: Path, dim: int) -> LanguageModules | None:
    """Return the settings and languages of the modules in a folder, or None without any.

    ``dim`` is the encoder's hidden size. Raises ModelError for a damaged file.
    """
    path = folder / MODULES_FILE
    if not path.exists():
        return None

    def info(metadata: Mapping[str, Any]) -> LanguageModules:
        modules = Modules(
            kind=metadata["kind"],
            reduction=int(metadata["reduction"]),
            fallback=metadata["fallback"],
            **optional_settings(metadata),
        )
        languages = tuple(metadata["languages"].split(","))
        check_modules(modules, languages, dim=dim)
        return LanguageModules(modules, languages)

    return read_metadata(path, info)


def read_mapped_languages(folder: Path, width: int) -> tuple[str, ...] | None:
    """Return the languages with a map in a folder, after their source, or None without any.

    ``width`` is the encoder's hidden size. Raises ModelError for a damaged file, or maps of a different
    encoder.
    """
    from safetensors import SafetensorError
    from safetensors.numpy import load_file

    path = folder / MAPS_FILE
    if not path.exists():
        return None
    source = read_metadata(path, lambda metadata: str(metadata["source"]))
    try:
        weights = load_file(path)
    except (SafetensorError, OSError) as error:
        raise file_error(path, error) from error
    languages = sorted({name.rpartition(".")[0] for name in weights})
    tensors = dict(zip(MAP_TENSORS, (np.empty((width, width)), np.empty(width)), strict=True))
    expected = {f"{language}.{name}": tensor for language in languages for name, tensor in tensors.items()}
    check_shapes(path, weights, expected)
    return source, *languages


def check_shapes(path: Path, weights: Mapping[str, Any], expected: Mapping[str, Any]) -> None:
    """Raise ModelError if the weights of a file do not have the expected names and shapes."""
    for name, shape, expected_shape in differing_shapes(expected, weights):
        raise ModelError(
            f"{path}: these modules are another encoder's: {name} has the shape {shape}, and "
            f"{expected_shape} is expected. Copy the encoder's own file there, or delete this one to use the "
            f"encoder without."
        )


def read_metadata(path: Path, read: Callable[[Mapping[str, Any]], Read]) -> Read:
    """Read the metadata of a file of added modules.

    Raises ModelError for a damaged file.
    """
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="numpy") as file:
            return read(file.metadata() or {})
    except (SafetensorError, OSError, KeyError, ValueError, ConfigError) as error:
        raise file_error(path, error) from error


def file_error(path: Path, error: Exception) -> ModelError | StorageError:
    """Return the error to raise for a file that cannot be read, or is damaged."""
    if failure := disk_error(error):
        return reading_error(path, failure)
    return ModelError(
        f"{path}: these added modules are damaged ({one_line(error)}). Copy the file again; "
        f"if a run of isogloss made it, delete the run's folder and run again."
    )
