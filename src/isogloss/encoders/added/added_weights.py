"""The weights that are added to an encoder: which languages they belong to, and the files they are saved in.

A folder holds an ordinary encoder (without adapters and maps, and with the first language's copies), which
is all that transformers reads, and a file each for language modules and language maps.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import torch
from torch import Tensor, nn

from isogloss.core.atomic_files import write_bytes
from isogloss.core.errors import ConfigError
from isogloss.encoders.added.active_language import LanguageMaps
from isogloss.encoders.added.language_layers import LanguageMap
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
from isogloss.encoders.added.module_files import (
    MAP_TENSORS,
    MAPS_FILE,
    MODULES_FILE,
    check_shapes,
    file_error,
    optional_metadata,
    read_mapped_languages,
    read_module_info,
)
from isogloss.encoders.added.module_settings import EMBEDDING, SHARED_ADAPTER
from isogloss.encoders.families import family_of
from isogloss.encoders.family import encoder_prefix


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


def mix_modules(model: nn.Module, language: str, near: str, share: float) -> None:
    """Overwrite a language's modules by share · own + (1 - share) · those of ``near``.

    Raises ConfigError for a language without separate modules.
    """
    info = modules_of(model)
    parts = [language_parameters(model, name) for name in (language, near)]
    for language_code, parameters in zip((language, near), parts, strict=True):
        if info is None or language_code not in info.languages or not parameters:
            having = ", ".join(info.languages) if info and parameters else "none"
            raise ConfigError(
                f"mixing modules of {language} and {near}: this encoder has no separate modules of "
                f"{language_code}. Known: {having}. Name languages with modules."
            )
    with torch.no_grad():
        for own, other in zip(*(part.values() for part in parts), strict=True):
            own.copy_(torch.lerp(other, own, share) if share < 1 else own)


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
    codes = read_mapped_languages(folder, width)
    if codes is None:
        return None
    source, *languages = codes
    weights = read_weights(folder / MAPS_FILE)
    maps = {
        language: LanguageMap(**{name: weights[f"{language}.{name}"] for name in MAP_TENSORS})
        for language in languages
    }
    return LanguageMaps(source, maps)


def read_weights(path: Path) -> dict[str, Tensor]:
    """Read a file of added modules.

    Raises ModelError for a damaged file.
    """
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    try:
        return dict(load_file(path))
    except (SafetensorError, OSError) as error:
        raise file_error(path, error) from error


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
