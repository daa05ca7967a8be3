"""What an encoder has for its languages, on disk: files beside the weights, which are an ordinary encoder's.

What model.safetensors holds is the encoder without what these files have: where each language has copies the
first language's model, as if there were no other; where there are adapters the encoder without them, where
there are maps the one whose states are unmapped. transformers reads that alone.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import torch
from torch import Tensor, nn

from isogloss.core.errors import ConfigError, ModelError
from isogloss.core.records import writing
from isogloss.core.runs import Modules
from isogloss.encoders.folders import differing, one_line
from isogloss.encoders.language_context import LanguageMaps
from isogloss.encoders.language_modules import (
    CARRIED,
    LanguageModules,
    ModuleTree,
    branch,
    check_modules,
    encoder_of,
    grow,
    owners,
    tree_of,
)
from isogloss.nn.language_modules import LanguageMap

MODULES_FILE = "language_modules.safetensors"
MAPS_FILE = "language_maps.safetensors"


@contextmanager
def left_out(model: nn.Module) -> Iterator[None]:
    """Let a model have no language modules for a while, as for transformers to write an ordinary one."""
    encoder, tree = encoder_of(model), tree_of(model)
    if tree is None:
        yield
        return
    del encoder.language_modules
    try:
        yield
    finally:
        encoder.add_module(CARRIED, tree)


def write_language_modules(model: nn.Module, folder: Path) -> None:
    """Write a model's language modules into its folder; nothing for one without."""
    tree = tree_of(model)
    if tree is None:
        return
    about = tree.about
    metadata = {
        "kind": about.how.kind,
        "reduction": str(about.how.reduction),
        "fallback": about.how.fallback,
        "languages": ",".join(about.languages),
    }
    weights = {name: weight.detach().cpu().contiguous() for name, weight in _weights(tree).items()}
    _write(folder / MODULES_FILE, weights, metadata)


def read_about(folder: Path, dim: int) -> LanguageModules | None:
    """Read which languages an encoder of some width has modules for; None where it has none."""
    from safetensors import SafetensorError, safe_open

    path = folder / MODULES_FILE
    if not path.exists():
        return None
    try:
        with safe_open(path, framework="pt") as file:
            metadata = file.metadata() or {}
        how = Modules(
            kind=metadata["kind"],
            reduction=int(metadata["reduction"]),
            fallback=metadata["fallback"],
        )
        languages = tuple(metadata["languages"].split(","))
        check_modules(how, languages, dim=dim)
    except (SafetensorError, OSError, KeyError, ValueError, ConfigError) as error:
        raise _damaged(path, error) from error
    return LanguageModules(how, languages)


def read_language_modules(model: nn.Module, folder: Path) -> None:
    """Give a model the modules that lie in its folder, if there are any.

    ModelError when the file is damaged, or belongs to another encoder.
    """
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    encoder = encoder_of(model)
    about = read_about(folder, encoder.config.hidden_size)
    if about is None:
        return
    try:
        there = load_file(folder / MODULES_FILE)
    except (SafetensorError, OSError) as error:
        raise _damaged(folder / MODULES_FILE, error) from error
    grow(encoder, about, seed=0)
    _take(_weights(encoder.language_modules), there, folder / MODULES_FILE)


def _weights(tree: ModuleTree) -> dict[str, nn.Parameter]:
    """Return all weights by their names in the file: the language, then the name in the encoder."""
    return {
        f"{owner}/{name}": weight
        for owner in owners(tree.about)
        for name, weight in tree.get_submodule(branch(owner)).named_parameters()
    }


def _take(own: dict[str, nn.Parameter], there: dict[str, Tensor], path: Path) -> None:
    """Put weights in place; ModelError when they are not exactly what is expected."""
    expected = {name: tuple(weight.shape) for name, weight in own.items()}
    found = {name: tuple(weight.shape) for name, weight in there.items()}
    for name in differing(expected, found):
        raise ModelError(
            f"{path}: these modules are another encoder's: {name} has the shape {found.get(name)}, and "
            f"{expected.get(name)} is expected. Copy the encoder's own file there, or delete this one to "
            f"use the encoder without."
        )
    with torch.no_grad():
        for name, weight in own.items():
            weight.copy_(there[name])


def _damaged(path: Path, error: Exception) -> ModelError:
    return ModelError(
        f"{path}: these language modules are damaged ({one_line(error)}). Copy the file again; "
        f"if a run of isogloss made it, delete the run's folder and run again."
    )


def write_language_maps(maps: LanguageMaps, folder: Path) -> None:
    """Write the maps beside an encoder."""
    parts = {
        f"{language}.{name}": getattr(one, name).contiguous()
        for language, one in maps.maps.items()
        for name in ("matrix", "shift")
    }
    _write(folder / MAPS_FILE, parts, {"source": maps.source})


def read_language_maps(folder: Path, width: int) -> LanguageMaps | None:
    """Read the maps of an encoder of some width; None when it has none.

    ModelError when the file is damaged, or belongs to another encoder.
    """
    from safetensors import SafetensorError, safe_open

    path = folder / MAPS_FILE
    if not path.exists():
        return None
    try:
        with safe_open(path, framework="pt") as file:
            source = (file.metadata() or {})["source"]
            parts = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (no mapping)
        languages = sorted({name.rpartition(".")[0] for name in parts})
        maps = {one: LanguageMap(parts[f"{one}.matrix"], parts[f"{one}.shift"]) for one in languages}
    except (SafetensorError, OSError, KeyError) as error:
        raise ModelError(
            f"{path}: these language maps are damaged ({type(error).__name__}: {error}). Adjust the encoder "
            f"again, or delete the file to use it without."
        ) from error
    for language, one in maps.items():
        if one.matrix.shape != (width, width) or one.shift.shape != (width,):
            raise ModelError(
                f"{path}: the map of {language} has the shape {tuple(one.matrix.shape)}, and the encoder is "
                f"{width} wide. Copy the encoder's own file there, or delete this one to use it without."
            )
    return LanguageMaps(source, maps)


def _write(path: Path, weights: Mapping[str, Tensor], metadata: dict[str, str]) -> None:
    """Write a file that is there whole or not at all."""
    from safetensors.torch import save_file

    temporary = path.with_name(f".{path.name}.tmp")
    with writing(path):
        save_file(dict(weights), temporary, metadata=metadata)
        temporary.replace(path)
