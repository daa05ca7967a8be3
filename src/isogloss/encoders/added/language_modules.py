"""Language-specific modules of an encoder of any family.

"On Negative Interference in Multilingual Models", Sections 3.3 and 4: each language has its own feed-forward
or attention layers, or adapters after both, or a vector that is added to the embeddings, and its text runs
through them (``active_language.active_language``). They are added to a new or an existing encoder, and
change nothing to the bit until they are trained. With copies, the first language uses the encoder's layers.

All added modules are below one name in the encoder, ``language_modules``, where each language's have the
names of the modules that they replace or follow. No module of the encoder is renamed.
"""

from collections.abc import Iterable
from copy import deepcopy
from dataclasses import replace
from typing import cast

import torch
from torch import nn

from isogloss.core.errors import ConfigError, ModelError
from isogloss.core.identity import derive
from isogloss.core.languages import check_language
from isogloss.core.run_parts import Modules
from isogloss.encoders.added.language_layers import (
    ActiveLanguage,
    Adapter,
    BehindNorm,
    InvertibleAdapter,
    LanguageEmbedding,
    LanguageSwitch,
    Run,
    disconnect,
    run_after,
    run_before,
    run_instead,
)
from isogloss.encoders.added.module_settings import (
    ADAPTERS,
    COPIES,
    EMBEDDING,
    FEED_FORWARD,
    SHARED_ADAPTER,
    WHERE,
    LanguageModules,
    are_shared,
    check_fallback,
    check_modules,
    check_placement,
    check_same_modules,
    layers_left_out,
)
from isogloss.encoders.families import family_of
from isogloss.encoders.family import Model, Site, encoder_prefix, initial_spread

TREE = "language_modules"
"""Name of the added modules in the encoder."""

TASK = "task_adapter"
"""Name of the adapters of a task in the encoder, one for each layer (``task_adapters.add_task_adapter``)."""

INVERTIBLE = "invertible"
"""The kind of an adapter at the embeddings, undone before the masked-LM scores."""


class ModuleTree(nn.Module):
    """The added modules of an encoder: a tree of module names for each language."""

    def __init__(self, info: LanguageModules) -> None:
        super().__init__()
        self.info = info
        self.active = ActiveLanguage()

    def insert(self, language: str, name: str, module: nn.Module) -> None:
        """Add a language's module for a module of the encoder."""
        *path, leaf = [branch_of(language), *name.split(".")]
        inner: nn.Module = self
        for part in path:
            if part not in dict(inner.named_children()):
                inner.add_module(part, nn.Module())
            inner = inner.get_submodule(part)
        inner.add_module(leaf, module)

    def get(self, language: str, name: str) -> nn.Module:
        """Return a language's module for a module of the encoder."""
        return self.get_submodule(f"{branch_of(language)}.{name}")


class TaskAdapters(nn.ModuleList):
    """Adapters of a task: one for each layer, or two."""

    def __init__(self, model: nn.Module, placement: Modules, *, seed: int) -> None:
        encoder = encoder_of(model)
        names = enumerate(changed_modules(encoder, placement), start=1)
        super().__init__(adapter(encoder, placement, seed=derive(seed, f"{index}")) for index, _ in names)
        self.placement = placement
        """Their position in the layers, and how many times narrower they are than the states."""


def add_modules(model: nn.Module, modules: Modules, languages: tuple[str, ...], *, seed: int) -> None:
    """Add modules for each language, initially all equal, to an encoder or a model with a head.

    Copies are initialised with what they copy, adapters as the identity: the outputs do not change. ``seed``
    initialises adapters. Raises ConfigError for invalid languages or bottlenecks, or if the encoder has
    modules.
    """
    encoder = encoder_of(model)
    if (info := modules_of(model)) is not None:
        raise ConfigError(
            f"{WHERE}: this encoder has {info.modules.kind} modules already, for "
            f"{', '.join(info.languages)}. Add a language to them, or start from one without."
        )
    config = encoder.config
    check_modules(modules, languages, dim=config.hidden_size)
    check_placement(modules, layers=config.num_hidden_layers, family=config.model_type)
    build_modules(model, LanguageModules(modules, languages), seed=seed)


def modules_of(model: nn.Module) -> LanguageModules | None:
    """Return the kind and languages of a model's language modules, or None."""
    tree = module_tree(model)
    return None if tree is None else tree.info


def add_language(model: nn.Module, language: str) -> None:
    """Add modules for a language, each initialised with the mean of the other languages' modules.

    Raises ConfigError if the model has none, has some for this language, or shares one adapter.
    """
    tree = _tree(model)
    info = tree.info
    check_language(language, WHERE)
    if are_shared(info.modules) or language in info.languages:
        kind_of_name = (
            "shares its adapter with all languages" if language not in info.languages else "has modules"
        )
        raise ConfigError(f"{WHERE}: {language} {kind_of_name} already. Name a language that has none.")
    encoder = encoder_of(model)
    disconnect(model)
    for name, kind in changed_modules(encoder, info.modules).items():
        if kind != SHARED_ADAPTER:
            modules = [module_of(encoder, tree, owner, name, kind) for owner in info.languages]
            tree.insert(language, name, _mean(modules))
    tree.info = replace(info, languages=(*info.languages, language))
    connect(model)


def ensure_modules(model: nn.Module, modules: Modules | None, languages: Iterable[str], *, seed: int) -> None:
    """Add language modules for all languages that have none in an encoder.

    Without ``modules`` nothing is added. Raises ConfigError if the encoder has modules of a different kind.
    """
    info = modules_of(model)
    if modules is None:
        return
    if info is None:
        add_modules(model, modules, tuple(languages), seed=seed)
        return
    check_same_modules(info, modules)
    for language in languages:
        if language not in info.languages and not are_shared(info.modules):
            add_language(model, language)
    fall_back(model, modules.fallback)


def fall_back(model: nn.Module, language: str) -> None:
    """Set the language whose modules are used for languages without modules, or "" for none.

    Raises ConfigError for a language without modules.
    """
    tree = _tree(model)
    check_fallback(language, tree.info.languages)
    tree.info = replace(tree.info, modules=replace(tree.info.modules, fallback=language))


def language_site(model: nn.Module, site: Site, language: str) -> Site:
    """Return a layer's site for a language, with the names of the language's own copies.

    Raises ConfigError for a language without modules.
    """
    tree = module_tree(model)
    if tree is None or tree.info.modules.kind not in COPIES:
        return site
    owner = tree.info.of(language)
    inside = encoder_prefix(model)
    if owner == tree.info.languages[0]:
        return site
    copy_names = site.feed_forward if tree.info.modules.kind == FEED_FORWARD else site.attention

    def move_name(name: str) -> str:
        is_copied = any(f"{name}.".startswith(f"{module}.") for module in copy_names)
        return f"{inside}{TREE}.{branch_of(owner)}.{name.removeprefix(inside)}" if is_copied else name

    return site.rename_modules(move_name)


def _tree(model: nn.Module) -> ModuleTree:
    tree = module_tree(model)
    if tree is None:
        raise ConfigError(f"{WHERE}: this encoder has no language modules. Add them first (add_modules).")
    return tree


def module_of(encoder: Model, tree: ModuleTree, owner: str, name: str, kind: str) -> nn.Module:
    """Return an owner's module for a module of the encoder, or the latter if the owner has no copy."""
    has_copy = owner in owners(tree.info, kind)
    module: nn.Module = tree.get(owner, name) if has_copy else encoder.get_submodule(name)
    return module


def _mean(modules: list[nn.Module]) -> nn.Module:
    """Return a module with the mean of the modules' weights, which is exact if all are equal."""
    mean = deepcopy(modules[0])
    with torch.no_grad():
        for name, weight in mean.named_parameters():
            deltas = [module.get_parameter(name) - weight for module in modules[1:]]
            weight.add_(torch.stack(deltas).sum(dim=0) / len(modules) if deltas else 0)
    return mean


def branch_of(language: str) -> str:
    """Return the name of a language's branch ("to", Tongan, alone is a method of every module)."""
    return f"of_{language}"


def encoder_of(model: nn.Module) -> Model:
    """Return the encoder of a model with a head, or an encoder itself."""
    return getattr(model, "base_model", model)


def module_tree(model: nn.Module) -> ModuleTree | None:
    """Return a model's added modules, or None."""
    tree: ModuleTree | None = getattr(encoder_of(model), TREE, None)
    return tree


def changed_modules(encoder: Model, modules: Modules) -> dict[str, str]:
    """Return the encoder's modules that are copied or followed by added ones, with the kind of these."""
    if modules.kind == EMBEDDING:
        return {_embeddings(encoder): EMBEDDING}
    names = {}
    if modules.embedding:
        names = {_embeddings(encoder): EMBEDDING}
    elif modules.invertible:
        names = {_embeddings(encoder): INVERTIBLE}
    sites = family_of(encoder).sites(encoder)
    omitted_layers = layers_left_out(modules, len(sites))
    adapting = [site for site in sites if site.layer not in omitted_layers]
    return names | {name: modules.kind for site in adapting for name in adapted_modules(site, modules)}


def adapted_modules(site: Site, modules: Modules) -> tuple[str, ...]:
    """Return the modules of a layer that are copied, followed or, of normed adapters, preceded."""
    if modules.kind in COPIES:
        return site.feed_forward if modules.kind == FEED_FORWARD else site.attention
    if modules.normed:
        places = (site.attention_norm, site.feed_forward_norm)
    else:
        places = (site.attention_output, site.feed_forward_out)
    return places[1:] if modules.after else places


def _embeddings(encoder: Model) -> str:
    """Return the name of the module whose output is the first layer's input."""
    names: dict[nn.Module, str] = {module: name for name, module in encoder.named_modules()}
    return names[family_of(encoder).embeddings(encoder)]


def build_modules(model: nn.Module, info: LanguageModules, *, seed: int) -> None:
    """Add the modules of all languages, all equal, to an encoder without changing its outputs."""
    encoder = encoder_of(model)
    tree = ModuleTree(info)
    disconnect(model)
    for name, kind in changed_modules(encoder, info.modules).items():
        module = encoder.get_submodule(name)
        for language in owners(info, kind):
            if kind in COPIES:
                tree.insert(language, name, deepcopy(module))
            else:
                tree.insert(language, name, _new_module(encoder, kind, info.modules, derive(seed, name)))
    encoder.add_module(TREE, tree.train(encoder.training))
    connect(model)


def owners(info: LanguageModules, kind: str) -> tuple[str, ...]:
    """Return the languages with modules of a kind in the tree: with copies, all but the first."""
    if kind != EMBEDDING and info.modules.kind == SHARED_ADAPTER:
        return (SHARED_ADAPTER,)
    return info.languages[1:] if kind in COPIES else info.languages


def branches(info: LanguageModules) -> tuple[str, ...]:
    """Return all languages with a branch in the tree."""
    kinds = (info.modules.kind, *((EMBEDDING,) if info.modules.embedding else ()))
    return tuple(dict.fromkeys(owner for kind in kinds for owner in owners(info, kind)))


def _new_module(encoder: Model, kind: str, modules: Modules, seed: int) -> nn.Module:
    if kind == EMBEDDING:
        module: nn.Module = LanguageEmbedding(encoder.get_input_embeddings().weight.shape[1])
    elif kind == INVERTIBLE:
        spread = initial_spread(encoder.config)
        module = InvertibleAdapter(
            encoder.config.hidden_size, spread=spread, seed=seed, activation=modules.activation
        )
    else:
        module = adapter(encoder, modules, seed=seed)
    return module.to(encoder.device, encoder.dtype)


def adapter(encoder: Model, modules: Modules, *, seed: int) -> Adapter:
    """Return a new adapter for an encoder's states."""
    dim = encoder.config.hidden_size
    spread = initial_spread(encoder.config)
    bottleneck = dim // modules.reduction
    module = Adapter(dim, bottleneck, spread=spread, seed=seed, activation=modules.activation)
    return module.to(encoder.device, encoder.dtype)


def connect(model: nn.Module) -> None:
    """Let the modules of an encoder run what was added in place of, or after, themselves.

    The active language's comes first, then the task's.
    """
    disconnect(model)
    encoder = encoder_of(model)
    tree = module_tree(model)
    task: TaskAdapters | None = getattr(encoder, TASK, None)
    if task is not None and task.placement.normed:  # What is put before a norm last runs first.
        _connect_task(encoder, task, tree)
    if tree is not None:
        for name, kind in changed_modules(encoder, tree.info.modules).items():
            _connect_languages(encoder.get_submodule(name), tree, name, kind)
        if tree.info.modules.invertible:
            _connect_inverse(model, tree, _embeddings(encoder))
    if task is not None and not task.placement.normed:
        if tree is not None and tree.info.modules.normed:
            raise ConfigError(
                f"{WHERE}: the adapters of languages read states behind the norm, and those of the task are "
                f"before it, where the languages' outputs are not there yet. Take both of one kind."
            )
        _connect_task(encoder, task, tree)


def _connect_task(encoder: Model, task: TaskAdapters, tree: ModuleTree | None) -> None:
    """Let all copies of a module, one for each language, run the same adapter."""
    adapters = iter(task)
    sites = family_of(encoder).sites(encoder)
    omitted_layers = layers_left_out(task.placement, len(sites))
    codes = tree.info.languages if tree is not None else ()
    for site in (site for site in sites if site.layer not in omitted_layers):
        variants = [site, *(language_site(encoder, site, language) for language in codes)]
        for names in zip(*(adapted_modules(variant, task.placement) for variant in variants), strict=True):
            task_module = cast(Adapter, next(adapters))
            for module in [encoder.get_submodule(name) for name in set(names)]:
                if task.placement.normed:
                    run_before(module, BehindNorm(module, task_module))
                else:
                    run_after(module, task_module)


def _connect_languages(module: nn.Module, tree: ModuleTree, name: str, kind: str) -> None:
    modules: dict[str, Run] = {language: tree.get(language, name) for language in owners(tree.info, kind)}
    if kind in ADAPTERS and tree.info.modules.normed:
        norm_adapters: dict[str, Run] = {
            language: BehindNorm(module, cast(Adapter, module_of_language))
            for language, module_of_language in modules.items()
        }
        run_before(module, _active(norm_adapters, tree))
    elif kind in COPIES:
        run_instead(module, LanguageSwitch({tree.info.languages[0]: module.forward, **modules}, tree.active))
    else:
        run_after(module, _active(modules, tree))


def _connect_inverse(model: nn.Module, tree: ModuleTree, name: str) -> None:
    """Undo the adapters at the embeddings before the masked-LM scores, which compare with embeddings."""
    output: nn.Module | None = getattr(model, "get_output_embeddings", lambda: None)()
    if output is None:
        return
    encoder = encoder_of(model)
    weight = getattr(output, "weight", torch.empty(0))
    shape = (encoder.config.vocab_size, encoder.config.hidden_size)
    # RemBERT's embeddings are narrower before its layers than after them.
    if weight.shape != shape or encoder.get_input_embeddings().weight.shape[1] != shape[1]:
        raise ModelError(
            f"{WHERE}: invertible: the masked-LM head of {type(model).__name__} has no module that compares "
            f"states with embeddings, before which they could be undone. Remove invertible."
        )
    adapters = {language: tree.get(language, name) for language in owners(tree.info, INVERTIBLE)}
    undo: dict[str, Run] = {language: getattr(module, "inverse") for language, module in adapters.items()}  # noqa: B009
    run_before(output, _active(undo, tree))


def _active(modules: dict[str, Run], tree: ModuleTree) -> Run:
    return modules[SHARED_ADAPTER] if SHARED_ADAPTER in modules else LanguageSwitch(modules, tree.active)
