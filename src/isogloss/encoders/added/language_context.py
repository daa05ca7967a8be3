"""The language that a model is reading, and what depends on it: language modules and language maps.

A language map is applied after the last layer, to the source language's space. A loaded model carries its
maps, whatever its head, until it is saved again; fine-tuning does not change them. A model with neither maps
nor modules reads all languages alike.

On disk, maps and modules are files beside the weights, which are those of an ordinary encoder: the first
language's model where each language has copies, the encoder without adapters, the encoder without maps.
transformers reads that alone.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import torch
from torch import Tensor, nn

from isogloss.core.errors import ConfigError, ModelError, one_line
from isogloss.core.languages import language_of_text
from isogloss.core.records import write_bytes
from isogloss.core.run_parts import Modules
from isogloss.encoders.added.language_modules import (
    TASK,
    TREE,
    LanguageModules,
    ModuleTree,
    branch_of,
    build_modules,
    check_modules,
    encoder_of,
    language_error,
    module_tree,
    owners,
)
from isogloss.encoders.added.own_adapters import active_adapters, adapter_languages, adapter_number
from isogloss.encoders.annotations import Model, Output
from isogloss.encoders.folders import differing_shapes
from isogloss.nn.language_modules import ActiveLanguage, LanguageMap, routed

Read = TypeVar("Read")

MODULES_FILE = "language_modules.safetensors"
MAPS_FILE = "language_maps.safetensors"

_MAPS = "language_maps"
"""Attribute of an encoder with maps."""


@dataclass(frozen=True)
class LanguageMaps:
    """The source language, whose states are not mapped, and the map of each other language."""

    source: str
    maps: Mapping[str, LanguageMap]

    def of(self, language: str) -> LanguageMap | None:
        """Return a language's map, or None for the source; ConfigError for languages without a map."""
        code = language_of_text(language)
        if code == self.source:
            return None
        if code not in self.maps:
            raise language_error(
                code,
                sorted({self.source, *self.maps}),
                has="this encoder maps each language's states",
                lacks="and has no map for",
                then=f"Adjust it with bitext of {self.source} and {code} too.",
            )
        return self.maps[code]


def attach_language_maps(model: nn.Module, maps: LanguageMaps) -> None:
    """Attach maps to a model's encoder."""
    setattr(encoder_of(model), _MAPS, maps)


def language_maps_of(model: nn.Module) -> LanguageMaps | None:
    """Return a model's maps, or None."""
    maps: LanguageMaps | None = getattr(encoder_of(model), _MAPS, None)
    return maps


def refuse_mapped(model: nn.Module, start: str | Path) -> None:
    """Raise ConfigError for an encoder with language maps: a change of its states would leave them behind."""
    if language_maps_of(model) is not None:
        raise ConfigError(
            f"{start}: this encoder maps each language's states already, and its maps would not fit it any "
            f"more. Start from the encoder without maps; map last, all pairs of languages at once."
        )


@contextmanager
def active_language(model: nn.Module, language: str | Sequence[str]) -> Iterator[None]:
    """Set the language that a model reads, or one language per row of the batch.

    For a pair such as en-sw, translated from en into sw, the text is in the second language. ConfigError for
    a language without modules or map.
    """
    languages = (language,) if isinstance(language, str) else tuple(language)
    maps, tree = language_maps_of(model), module_tree(model)
    with ExitStack() as both:
        if adapter_languages(model):
            both.enter_context(active_adapters(model, languages))
        if tree is not None:
            both.enter_context(_switched(tree, tuple(map(tree.about.of, languages))))
        if maps is not None:
            both.enter_context(mapped(model, maps, languages))
        yield


@contextmanager
def active_rows(model: nn.Module, rows: slice) -> Iterator[None]:
    """Restrict the active languages to some rows of the batch, if each row has its own."""
    tree = module_tree(model)
    if tree is None or len(tree.active.languages) < 2:
        yield
        return
    with _switched(tree, tree.active.languages[rows]):
        yield


def active_languages(model: nn.Module) -> tuple[str, ...]:
    """Return the active languages: none, one for the whole batch, or one per row."""
    tree = module_tree(model)
    return () if tree is None else tree.active.languages


def check_languages(model: nn.Module, languages: Iterable[str]) -> None:
    """Raise ConfigError if a model has modules or maps for languages, but none for one of these."""
    maps, tree, adapters = language_maps_of(model), module_tree(model), adapter_languages(model)
    for language in languages:
        if adapters:
            adapter_number(adapters, language)
        if tree is not None:
            tree.about.of(language)
        if maps is not None:
            maps.of(language)


@contextmanager
def _switched(tree: ModuleTree, languages: tuple[str, ...]) -> Iterator[None]:
    before, tree.active.languages = tree.active.languages, languages
    try:
        yield
    finally:
        tree.active.languages = before


@contextmanager
def mapped(model: nn.Module, maps: LanguageMaps, languages: Sequence[str]) -> Iterator[None]:
    """Map the last states of an encoder, or of a model's encoder, as those of these languages."""
    found = {language: maps.of(language) for language in languages}
    if all(one is None for one in found.values()):
        yield
        return
    active = ActiveLanguage(tuple(languages))

    def after(encoder: Model, _: object, output: Output) -> Output:
        states = routed(
            lambda language: found[language] or nn.Identity(), active, (output.last_hidden_state,), {}
        )
        output.last_hidden_state = states
        if output.get("hidden_states") is not None:
            output.hidden_states = (*output.hidden_states[:-1], states)
        if output.get("pooler_output") is not None:  # The pooler reads mapped states, too.
            output.pooler_output = encoder.pooler(states)
        return output

    handle = encoder_of(model).register_forward_hook(after)
    try:
        yield
    finally:
        handle.remove()


# Files


@contextmanager
def without_added_modules(model: nn.Module) -> Iterator[None]:
    """Detach the modules of languages and task temporarily, so that transformers saves an ordinary model."""
    encoder = encoder_of(model)
    added = {name: one for name, one in encoder.named_children() if name in (TREE, TASK)}
    for name in added:
        delattr(encoder, name)
    try:
        yield
    finally:
        for name, one in added.items():
            encoder.add_module(name, one)


def write_language_modules(model: nn.Module, folder: Path) -> None:
    """Write a model's language modules, if any, into its folder."""
    tree = module_tree(model)
    if tree is None:
        return
    how = tree.about.how
    metadata = {"kind": how.kind, "reduction": str(how.reduction), "fallback": how.fallback}
    optional = {"after": how.after, "invertible": how.invertible}
    metadata |= {name: str(value) for name, value in optional.items() if value}
    write_weights(
        folder / MODULES_FILE, _weights(tree), {**metadata, "languages": ",".join(tree.about.languages)}
    )


def read_module_info(folder: Path, dim: int) -> LanguageModules | None:
    """Read which language modules an encoder of hidden size ``dim`` has; None without any."""
    path = folder / MODULES_FILE
    if not path.exists():
        return None

    def info(metadata: Mapping[str, Any]) -> LanguageModules:
        how = Modules(
            kind=metadata["kind"],
            reduction=int(metadata["reduction"]),
            fallback=metadata["fallback"],
            after=metadata.get("after"),
            invertible="invertible" in metadata or None,
        )
        languages = tuple(metadata["languages"].split(","))
        check_modules(how, languages, dim=dim)
        return LanguageModules(how, languages)

    return read_metadata(path, info)


def read_language_modules(model: nn.Module, folder: Path) -> None:
    """Add the language modules in a folder, if any, to a model.

    ModelError for a damaged file, or that of another encoder.
    """
    encoder = encoder_of(model)
    about = read_module_info(folder, encoder.config.hidden_size)
    if about is not None:
        build_modules(model, about, seed=0)
        path = folder / MODULES_FILE
        copy_weights(path, read_weights(path), _weights(encoder.language_modules))


def _weights(tree: ModuleTree) -> dict[str, nn.Parameter]:
    """Return all weights by their names in the file: the language, then the name in the encoder."""
    return {
        f"{owner}/{name}": weight
        for owner in owners(tree.about)
        for name, weight in tree.get_submodule(branch_of(owner)).named_parameters()
    }


def read_metadata(path: Path, read: Callable[[Mapping[str, Any]], Read]) -> Read:
    """Read the metadata of a file of added modules; ModelError for a damaged one."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="pt") as file:
            return read(file.metadata() or {})
    except (SafetensorError, OSError, KeyError, ValueError, ConfigError) as error:
        raise _damaged(path, error) from error


def read_weights(path: Path) -> dict[str, Tensor]:
    """Read a file of added modules; ModelError for a damaged one."""
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    try:
        return dict(load_file(path))
    except (SafetensorError, OSError) as error:
        raise _damaged(path, error) from error


def copy_weights(path: Path, weights: Mapping[str, Tensor], own: Mapping[str, nn.Parameter]) -> None:
    """Give added modules the weights of their file; ModelError if it is that of another encoder."""
    for name, found, expected in differing_shapes(own, weights):
        raise ModelError(
            f"{path}: these modules are another encoder's: {name} has the shape {found}, and "
            f"{expected} is expected. Copy the encoder's own file there, or delete this one to "
            f"use the encoder without."
        )
    with torch.no_grad():
        for name, weight in own.items():
            weight.copy_(weights[name])


def _damaged(path: Path, error: Exception) -> ModelError:
    return ModelError(
        f"{path}: these added modules are damaged ({one_line(error)}). Copy the file again; "
        f"if a run of isogloss made it, delete the run's folder and run again."
    )


def write_language_maps(maps: LanguageMaps, folder: Path) -> None:
    """Write an encoder's maps into its folder."""
    weights = {
        f"{language}.{name}": getattr(one, name)
        for language, one in maps.maps.items()
        for name in ("matrix", "shift")
    }
    write_weights(folder / MAPS_FILE, weights, {"source": maps.source})


def read_language_maps(folder: Path, width: int) -> LanguageMaps | None:
    """Read the maps of an encoder of hidden size ``width``; None without any.

    ModelError for a damaged file, or that of another encoder.
    """
    from safetensors import SafetensorError, safe_open

    path = folder / MAPS_FILE
    if not path.exists():
        return None
    try:
        with safe_open(path, framework="pt") as file:
            source = (file.metadata() or {})["source"]
            weights = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (no mapping)
        languages = sorted({name.rpartition(".")[0] for name in weights})
        maps = {one: LanguageMap(weights[f"{one}.matrix"], weights[f"{one}.shift"]) for one in languages}
    except (SafetensorError, OSError, KeyError) as error:
        raise ModelError(
            f"{path}: these language maps are damaged ({one_line(error)}). Adjust the encoder "
            f"again, or delete the file to use it without."
        ) from error
    for language, one in maps.items():
        if one.matrix.shape != (width, width) or one.shift.shape != (width,):
            raise ModelError(
                f"{path}: the map of {language} has the shape {tuple(one.matrix.shape)}, and the encoder is "
                f"{width} wide. Copy the encoder's own file there, or delete this one to use it without."
            )
    return LanguageMaps(source, maps)


def write_weights(path: Path, weights: Mapping[str, Tensor], metadata: dict[str, str] | None = None) -> None:
    """Write a safetensors file atomically."""
    from safetensors.torch import save

    own = {name: weight.detach().cpu().contiguous() for name, weight in weights.items()}
    write_bytes(path, save(own, metadata=metadata))
