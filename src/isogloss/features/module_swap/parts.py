"""The parts of a model: which parameters belong to which part.

The parts of a model contain each of its parameters exactly once. ``part_names`` has their names.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import cast

from torch import nn

from isogloss.core.errors import ConfigError, ModelError, did_you_mean
from isogloss.encoders.added.added_weights import language_parameters
from isogloss.encoders.added.language_modules import (
    TASK,
    TREE,
    branch_of,
    changed_modules,
    encoder_of,
    modules_of,
)
from isogloss.encoders.added.module_settings import SHARED_ADAPTER
from isogloss.encoders.families import family_of, has_known_layers
from isogloss.encoders.family import Model, encoder_prefix, head_parameters
from isogloss.encoders.parameter_groups import parts_of
from isogloss.features.module_swap.part_names import (
    ADAPTERS,
    ALL,
    EMBEDDINGS,
    ENCODER,
    HEAD,
    LANGUAGE,
    LAYERS,
    NORMS,
    OTHER,
    REST,
    SHARED,
    TASK_ADAPTER,
)


@dataclass(frozen=True, order=True)
class ModelPart:
    """One part of a model."""

    layer: int | None
    """Layer from 1. 0: added at the embeddings. None: outside the layers."""
    kind: str

    @property
    def name(self) -> str:
        """The part's name, such as "layer 2 attention"."""
        if self.layer is None:
            return self.kind
        return f"layer {self.layer} {self.kind}" if self.layer else f"{EMBEDDINGS} {self.kind}"


def assign_parts(model: nn.Module) -> dict[str, ModelPart]:
    """Return the part of each parameter, by the parameter's name.

    A module of torch around a model of transformers, such as one of sentence-transformers, has the parts of
    this model. It has a part for each other child.
    """
    names = [name for name, _ in model.named_parameters()]
    if not is_of_transformers(model):
        return _wrapper_parts(model)
    network = cast(Model, model)
    parts = _encoder_parts(network)
    heads = head_parameters(model)
    norms = _norm_parameters(model)
    adapters = _peft_parameters(model)
    for name in names:
        part = parts.get(name, ModelPart(None, REST))
        if name in adapters:
            part = ModelPart(part.layer, ADAPTERS)
        elif name in heads:
            part = ModelPart(None, HEAD)
        elif name in norms and part.layer is not None:
            part = ModelPart(part.layer, NORMS)
        parts[name] = part
    return {name: parts[name] for name in names} | _added_parts(network)


def is_of_transformers(module: nn.Module) -> bool:
    """Return whether a module is a model of transformers."""
    return hasattr(getattr(module, "config", None), "model_type")


def _wrapper_parts(model: nn.Module) -> dict[str, ModelPart]:
    children = {name for name, _ in model.named_children()}
    first_words = {name: name.partition(".")[0] for name, _ in model.named_parameters()}
    parts = {
        name: ModelPart(None, child if child in children else REST) for name, child in first_words.items()
    }
    paths = [path for path, module in model.named_modules() if is_of_transformers(module)]
    for path in paths[:1]:
        inner_parts = assign_parts(model.get_submodule(path))
        parts |= {f"{path}.{name}": part for name, part in inner_parts.items()}
    return parts


def _encoder_parts(model: Model) -> dict[str, ModelPart]:
    """Return the parts of what languages share."""
    parts: dict[str, ModelPart] = {}
    for name, group in parts_of(model).items():
        if group.module == EMBEDDINGS:
            parts[name] = ModelPart(None, EMBEDDINGS)
        elif group.layer is None:
            parts[name] = ModelPart(None, REST if group.module == OTHER else group.module)
        else:
            parts[name] = ModelPart(group.layer, group.module)
    return parts


def _added_parts(model: Model) -> dict[str, ModelPart]:
    """Return the parts of modules of languages and of tasks."""
    if not has_known_layers(model):
        return {}
    prefix = encoder_prefix(model)
    blocks = {site.block: site.layer for site in family_of(model).sites(model)}

    def layer_of(name: str) -> int:
        inside = name.removeprefix(prefix)
        _, added, hosted = inside.partition(f"{TREE}.")
        host = prefix + (hosted.partition(".")[2] if added else inside)
        return next((layer for block, layer in blocks.items() if host.startswith(f"{block}.")), 0)

    parts: dict[str, ModelPart] = {}
    info = modules_of(model)
    for language in info.languages if info else ():
        kind = LANGUAGE.format(language)
        parts |= {name: ModelPart(layer_of(name), kind) for name in language_parameters(model, language)}
    shared = f"{prefix}{TREE}.{branch_of(SHARED_ADAPTER)}."
    own_adapters = {
        f"{site.own_adapters}.": site.layer for site in family_of(model).sites(model) if site.own_adapters
    }
    for name, _ in model.named_parameters():
        if name.startswith(shared):
            parts[name] = ModelPart(layer_of(name), SHARED)
        for adapters, layer in own_adapters.items():
            if name.startswith(adapters):
                language = name.removeprefix(adapters).partition(".")[0].partition("_")[0]
                parts[name] = ModelPart(layer, LANGUAGE.format(language))
    return parts | _task_parts(model, blocks)


def _task_parts(model: Model, blocks: Mapping[str, int]) -> dict[str, ModelPart]:
    """Return the parts of a task's adapters, which are numbered in the order of the modules they follow."""
    prefix = encoder_prefix(model)
    adapters = getattr(encoder_of(model), TASK, None)
    if adapters is None:
        return {}
    hosts = [f"{prefix}{host}" for host in changed_modules(encoder_of(model), adapters.placement)]
    layers = [
        next(layer for block, layer in blocks.items() if host.startswith(f"{block}.")) for host in hosts
    ]
    return {
        f"{prefix}{TASK}.{index}.{name}": ModelPart(layers[index], TASK_ADAPTER)
        for index, adapter in enumerate(adapters)
        for name, _ in adapter.named_parameters()
    }


def _norm_parameters(model: nn.Module) -> set[str]:
    return {
        f"{path}.{name}"
        for path, module in model.named_modules()
        if is_norm(module)
        for name, _ in module.named_parameters(recurse=False)
    }


def is_norm(module: nn.Module) -> bool:
    """Return whether a module is a norm, as all classes of transformers with Norm in their name."""
    return "Norm" in type(module).__name__ and not list(module.children())


def _peft_parameters(model: nn.Module) -> set[str]:
    """Return the names of the parameters of adapters of peft that are not merged."""
    if not any(".base_layer." in name for name, _ in model.named_parameters()):
        return set()
    from peft.tuners.tuners_utils import BaseTunerLayer

    return {
        f"{path}.{name}"
        for path, module in model.named_modules()
        if isinstance(module, BaseTunerLayer)
        for name, _ in module.named_parameters()
        if not name.startswith("base_layer.")
    }


@dataclass(frozen=True)
class ModelParts:
    """The parameters of a model, by part and by any name of parts."""

    parts: Mapping[str, ModelPart]
    """The part of each parameter."""
    layers: int
    """Number of layers, 0 if unknown."""
    modules: frozenset[str]
    """Names of modules and parameters."""

    @classmethod
    def of(cls, model: nn.Module) -> "ModelParts":
        """Return the parts of a model."""
        parts = assign_parts(model)
        layers = max((part.layer or 0 for part in parts.values()), default=0)
        return cls(parts, layers, frozenset(_module_names(parts)))

    def names(self) -> dict[str, list[str]]:
        """Return the parameters of each part, by the part's name, in the order of the model."""
        return {
            part.name: [name for name, owner in self.parts.items() if owner == part]
            for part in sorted(set(self.parts.values()), key=self._place)
        }

    def _place(self, part: ModelPart) -> tuple[int, bool, str]:
        last_place = 0 if part.kind == EMBEDDINGS else self.layers + 1
        return last_place if part.layer is None else part.layer, part.kind == HEAD, part.kind

    def select(self, part: str) -> list[str]:
        """Return the parameters of a part, or of a union of parts, by its name.

        Raises ConfigError for a name that the model does not have.
        """
        if match := LAYERS.fullmatch(part):
            first, last = int(match[1]), int(match[2] or match[1])
            found = [
                name for name, owner in self.parts.items() if owner.layer and first <= owner.layer <= last
            ]
            if not 1 <= first <= last <= self.layers:
                raise ConfigError(
                    f"part {part!r}: this model has the layers 1 to {self.layers}. Name one of them."
                )
            return found
        if part == ALL:
            return list(self.parts)
        if part == ENCODER:
            return [name for name, owner in self.parts.items() if owner.kind != HEAD]
        found = [name for name, owner in self.parts.items() if part in (owner.name, owner.kind)]
        if not found and part in self.modules:
            found = [name for name in self.parts if f"{name}.".startswith(f"{part}.")]
        if not found:
            names = [*self.names(), *self.unions()]
            kinds = dict.fromkeys(owner.kind for owner in self.parts.values())
            layers = f"layer 1 to layer {self.layers}, " if self.layers else ""
            raise ConfigError(
                f"part {part!r}: this model has no part of that name.{did_you_mean(part, names)} Parts: "
                f"{layers}{', '.join([*kinds, ENCODER, ALL])}, a part of a layer such as {names[1]!r}, or "
                f"the name of a module."
            )
        return found

    def unions(self) -> list[str]:
        """Return the names of unions: layers, kinds of parts, the encoder, all."""
        kinds = dict.fromkeys(part.kind for part in self.parts.values() if part.layer is not None)
        layers = [f"layer {number}" for number in range(1, self.layers + 1)]
        return [*layers, *sorted(kinds), ENCODER, ALL]

    def expand(self, parts: Iterable[str] | None) -> dict[str, list[str]]:
        """Return the parameters of named parts. Default: all parts, layers and kinds of the model."""
        names = [*self.names(), *self.unions()] if parts is None else list(parts)
        return {name: self.select(name) for name in names}


def _module_names(parameters: Iterable[str]) -> set[str]:
    return {
        name[:end]
        for name in parameters
        for end in (*(index for index, letter in enumerate(name) if letter == "."), len(name))
    }


def match_parameters(
    models: tuple[nn.Module, nn.Module], parts: tuple[ModelParts, ModelParts], names: tuple[str, str]
) -> dict[str, str]:
    """Return the parameter of the second model for each parameter of a part of the first, by name.

    ``names`` are the part of each model. Parameters of equal names match. Where the parts differ, such as two
    layers or the modules of two languages, parameters match whose names inside these are equal.

    Raises ConfigError for an unknown part, ModelError where no names match.
    """
    selected, others = (parts[side].select(names[side]) for side in (0, 1))
    prefixes = [_prefix_of(model) for model in models]
    names_inside = _NamesInside(models[0])
    for shorten in (str, names_inside.without_language, names_inside.without_layer):
        keys = {shorten(name.removeprefix(prefixes[0])): name for name in selected}
        other_keys = {shorten(name.removeprefix(prefixes[1])): name for name in others}
        if len(keys) == len(selected) and keys.keys() == other_keys.keys():
            return {name: other_keys[key] for key, name in keys.items()}
    raise ModelError(
        f"part {names[0]!r}: the model has {len(selected)} parameters there, such as {selected[0]!r}, and "
        f"{names[1]!r} of the other model {len(others)}, such as {others[0]!r}. Swap parts of one kind "
        f"between models of one architecture."
    )


def _prefix_of(model: nn.Module) -> str:
    """Return the prefix of the encoder's parameters, which an encoder without a head lacks."""
    return encoder_prefix(cast(Model, model)) if hasattr(model, "base_model_prefix") else ""


class _NamesInside:
    """Names of parameters without what differs between the modules of two languages, or two layers."""

    def __init__(self, model: nn.Module) -> None:
        is_known = has_known_layers(model)
        sites = family_of(cast(Model, model)).sites(cast(Model, model)) if is_known else []
        prefix = _prefix_of(model)
        self.blocks = [f"{site.block.removeprefix(prefix)}." for site in sites]
        self.adapters = [f"{site.own_adapters.removeprefix(prefix)}." for site in sites if site.own_adapters]

    def without_language(self, name: str) -> str:
        """Return the name of a parameter in the modules of any language."""
        before, added, hosted = name.partition(f"{TREE}.")
        if added:
            return before + hosted.partition(".")[2]
        for adapters in self.adapters:
            if name.startswith(adapters):
                return adapters + name.removeprefix(adapters).partition(".")[2]
        return name

    def without_layer(self, name: str) -> str:
        """Return the name of a parameter in any layer, in the modules of any language."""
        name_of_any_language = self.without_language(name)
        for block in self.blocks:
            if name_of_any_language.startswith(block):
                return name_of_any_language.removeprefix(block)
        return name_of_any_language
