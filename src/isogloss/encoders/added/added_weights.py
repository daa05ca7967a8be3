"""The weights that are added to an encoder: which languages they belong to, and the files they are saved in.

A folder holds an ordinary encoder (without adapters and maps, and with the first language's copies), which
is all that transformers reads, and a file each for language modules and language maps.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import torch
from torch import Tensor, nn

from isogloss.core.atomic_files import disk_error, reading_error, write_bytes
from isogloss.core.errors import ConfigError, ModelError, StorageError, one_line
from isogloss.core.run_parts import Modules
from isogloss.encoders.added.active_language import LanguageMaps
from isogloss.encoders.added.language_layers import ACTIVATIONS, LanguageMap
from isogloss.encoders.added.language_modules import (
    TASK,
    TREE,
    ModuleTree,
    branch_of,
    branches,
    build_modules,
    changed_modules,
    encoder_of,
    module_of,
    module_tree,
    modules_of,
    owners,
)
from isogloss.encoders.added.module_settings import EMBEDDING, SHARED_ADAPTER, LanguageModules, check_modules
from isogloss.encoders.families import family_of
from isogloss.encoders.family import encoder_prefix
from isogloss.encoders.folders import differing_shapes

Read = TypeVar("Read")

MODULES_FILE = "language_modules.safetensors"
BOTH_PLACES = "both"
"""In a file of a task's adapters: they are also after attention."""

MAPS_FILE = "language_maps.safetensors"


def language_parameters(
    model: nn.Module, language: str, *, embedding: bool = True
) -> dict[str, nn.Parameter]:
    """Return the parameters of a language's modules by name.

    Empty if all parameters are shared, as with one adapter for all. ``embedding``: include a vector added at
    the embeddings by modules of a different kind. Raises ConfigError for a language without modules.
    """
    tree = module_tree(model)
    if tree is None:
        return {}
    owner = tree.info.of(language)
    encoder = encoder_of(model)
    inside = encoder_prefix(model)
    parameters = dict[str, nn.Parameter]()
    for module, kind in changed_modules(encoder, tree.info.modules).items():
        is_extra = kind == EMBEDDING != tree.info.modules.kind
        if SHARED_ADAPTER in owners(tree.info, kind) or (is_extra and not embedding):
            continue
        prefix = f"{inside}{TREE}.{branch_of(owner)}." if owner in owners(tree.info, kind) else inside
        weights = module_of(encoder, tree, owner, module, kind).named_parameters()
        parameters |= {f"{prefix}{module}.{name}": weight for name, weight in weights}
    return parameters


def shared_parameters(model: nn.Module) -> dict[str, nn.Parameter]:
    """Return the parameters shared by all languages, by name."""
    info = modules_of(model)
    language_names = {
        name for language in (info.languages if info else ()) for name in language_parameters(model, language)
    }
    adapters = tuple(f"{site.own_adapters}." for site in family_of(model).sites(model) if site.own_adapters)
    return {
        name: weight
        for name, weight in model.named_parameters()
        if name not in language_names and not name.startswith(adapters)
    }


def module_parameters(model: nn.Module, languages: Iterable[str]) -> dict[str, nn.Parameter]:
    """Return the parameters of a shared adapter and of these languages' modules, by name."""
    shared = f"{encoder_prefix(model)}{TREE}.{branch_of(SHARED_ADAPTER)}."
    parameters = {name: weight for name, weight in model.named_parameters() if name.startswith(shared)}
    for language in languages:
        parameters |= language_parameters(model, language)
    return parameters


def parameter_counts(model: nn.Module) -> dict[str, int]:
    """Count the parameters of each language's modules, with "" for the shared ones."""
    info = modules_of(model)
    parts = {"": shared_parameters(model)}
    parts |= {language: language_parameters(model, language) for language in (info.languages if info else ())}
    return {language: sum(weight.numel() for weight in part.values()) for language, part in parts.items()}


@contextmanager
def without_added_modules(model: nn.Module) -> Iterator[None]:
    """Detach the modules of languages and task temporarily, so that transformers saves an ordinary model."""
    encoder = encoder_of(model)
    modules = {name: module for name, module in encoder.named_children() if name in (TREE, TASK)}
    for name in modules:
        delattr(encoder, name)
    try:
        yield
    finally:
        for name, module in modules.items():
            encoder.add_module(name, module)


def write_language_modules(model: nn.Module, folder: Path) -> None:
    """Write a model's language modules, if any, into its folder."""
    tree = module_tree(model)
    if tree is None:
        return
    modules = tree.info.modules
    metadata = {"kind": modules.kind, "reduction": str(modules.reduction), "fallback": modules.fallback}
    metadata |= optional_metadata(modules)
    metadata["languages"] = ",".join(tree.info.languages)
    write_weights(folder / MODULES_FILE, _weights(tree), metadata)


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
    ACTIVATIONS[activation]
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


def read_language_modules(model: nn.Module, folder: Path) -> None:
    """Add the language modules in a folder, if any, to a model.

    Raises ModelError for a damaged file, or modules of a different encoder.
    """
    encoder = encoder_of(model)
    info = read_module_info(folder, encoder.config.hidden_size)
    if info is not None:
        build_modules(model, info, seed=0)
        path = folder / MODULES_FILE
        copy_weights(path, read_weights(path), _weights(encoder.language_modules))


def _weights(tree: ModuleTree) -> dict[str, nn.Parameter]:
    """Return all weights by their names in the file: the language, then the name in the encoder."""
    return {
        f"{owner}/{name}": weight
        for owner in branches(tree.info)
        for name, weight in tree.get_submodule(branch_of(owner)).named_parameters()
    }


def write_language_maps(maps: LanguageMaps, folder: Path) -> None:
    """Write an encoder's maps into its folder."""
    weights = {
        f"{language}.{name}": tensor
        for language, language_map in maps.maps.items()
        for name, tensor in vars(language_map).items()
    }
    write_weights(folder / MAPS_FILE, weights, {"source": maps.source})


def read_language_maps(folder: Path, width: int) -> LanguageMaps | None:
    """Read the maps of an encoder of hidden size ``width``, or return None without any.

    Raises ModelError for a damaged file, or maps of a different encoder.
    """
    path = folder / MAPS_FILE
    if not path.exists():
        return None
    source = read_metadata(path, lambda metadata: str(metadata["source"]))
    weights = read_weights(path)
    shapes = {"matrix": torch.empty(width, width), "shift": torch.empty(width)}
    languages = sorted({name.rpartition(".")[0] for name in weights})
    tensors_of = {f"{language}.{name}": tensor for language in languages for name, tensor in shapes.items()}
    check_shapes(path, weights, tensors_of)
    maps = {
        language: LanguageMap(**{name: weights[f"{language}.{name}"] for name in shapes})
        for language in languages
    }
    return LanguageMaps(source, maps)


def read_metadata(path: Path, read: Callable[[Mapping[str, Any]], Read]) -> Read:
    """Read the metadata of a file of added modules.

    Raises ModelError for a damaged file.
    """
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="pt") as file:
            return read(file.metadata() or {})
    except (SafetensorError, OSError, KeyError, ValueError, ConfigError) as error:
        raise _file_error(path, error) from error


def read_weights(path: Path) -> dict[str, Tensor]:
    """Read a file of added modules.

    Raises ModelError for a damaged file.
    """
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    try:
        return dict(load_file(path))
    except (SafetensorError, OSError) as error:
        raise _file_error(path, error) from error


def check_shapes(path: Path, weights: Mapping[str, Tensor], expected: Mapping[str, Tensor]) -> None:
    """Raise ModelError if the weights of a file do not have the expected names and shapes."""
    for name, shape, expected_shape in differing_shapes(expected, weights):
        raise ModelError(
            f"{path}: these modules are another encoder's: {name} has the shape {shape}, and "
            f"{expected_shape} is expected. Copy the encoder's own file there, or delete this one to use the "
            f"encoder without."
        )


def copy_weights(path: Path, weights: Mapping[str, Tensor], parameters: Mapping[str, nn.Parameter]) -> None:
    """Copy the weights of a file into added modules.

    Raises ModelError for names or shapes of a different encoder.
    """
    check_shapes(path, weights, parameters)
    with torch.no_grad():
        for name, parameter in parameters.items():
            parameter.copy_(weights[name])


def write_weights(path: Path, weights: Mapping[str, Tensor], metadata: dict[str, str] | None = None) -> None:
    """Write a safetensors file atomically."""
    from safetensors.torch import save

    tensors = {name: weight.detach().cpu().contiguous() for name, weight in weights.items()}
    write_bytes(path.parent, path.name, save(tensors, metadata=metadata))


def _file_error(path: Path, error: Exception) -> ModelError | StorageError:
    if failure := disk_error(error):
        return reading_error(path, failure)
    return ModelError(
        f"{path}: these added modules are damaged ({one_line(error)}). Copy the file again; "
        f"if a run of isogloss made it, delete the run's folder and run again."
    )
