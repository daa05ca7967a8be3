"""Language-specific modules: what each language of an encoder has for itself, whatever its family.

"On Negative Interference in Multilingual Models", Sections 3.3 and 4: feed-forward or attention layers of
their own, or adapters after both; text goes through those of its language (``speaking.of_language``). A new
encoder gets them before it is pretrained, one that exists by the same surgery; either changes nothing to the
bit until it is trained. Where each language has copies, the first one's are the encoder's own layers.
"""

from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import nn

from isogloss.core.errors import ConfigError, did_you_mean, unknown_name
from isogloss.core.languages import check_language
from isogloss.core.runs import Modules
from isogloss.encoders.families import Region, Site, encoder_prefix
from isogloss.encoders.module_places import (
    CARRIED,
    COPIES,
    FEED_FORWARD,
    KINDS,
    SHARED_ADAPTER,
    LanguageModules,
    ModuleTree,
    branch,
    connect,
    disconnect,
    encoder_of,
    grow,
    owners,
    places,
    tree_of,
)

WHERE = "modules"


def add_modules(model: Any, modules: Modules, languages: tuple[str, ...], *, seed: int) -> None:
    """Give each language modules of its own, in a model with or without a head; now all of them are equal.

    Copies start as what they copy, adapters as the identity: at first the model gives what it gave, to the
    bit. ``seed`` is that of the adapters' weights. ConfigError for languages or a bottleneck that cannot be.
    """
    encoder = encoder_of(model)
    if (there := tree_of(model)) is not None:
        raise ConfigError(
            f"{WHERE}: this encoder has {there.about.how.kind} modules already, for "
            f"{', '.join(there.about.languages)}. Add a language to them, or start from one without."
        )
    check_modules(modules, languages, dim=encoder.config.hidden_size)
    grow(encoder, LanguageModules(modules, languages), seed=seed)


def check_modules(modules: Modules, languages: tuple[str, ...], *, dim: int) -> None:
    """Raise ConfigError for modules that an encoder of some width cannot have for these languages."""
    if modules.kind not in KINDS:
        raise unknown_name(WHERE, "kind of module", modules.kind, KINDS)
    for code in languages:
        check_language(code, WHERE)
    if not languages or len(set(languages)) < len(languages):
        found = ", ".join(languages) or "(none)"
        raise ConfigError(f"{WHERE}: each language has modules once; found {found}. Name each once.")
    if not 1 <= modules.reduction <= dim:
        raise ConfigError(
            f"{WHERE}: a bottleneck of {dim} / {modules.reduction} (reduction): nothing goes through. "
            f"Choose a reduction from 1 to {dim}; 4 is usual."
        )
    check_fallback(modules.fallback, languages)


def check_fallback(fallback: str, languages: tuple[str, ...]) -> None:
    """Raise ConfigError for a language that cannot stand in for others: it has no modules itself."""
    if fallback and fallback not in languages:
        raise ConfigError(
            f"{WHERE}: fallback: {fallback!r} has no modules itself.{did_you_mean(fallback, languages)} "
            f"Choose one of {', '.join(languages)}."
        )


def modules_of(model: Any) -> LanguageModules | None:
    """Return what a model carries: the kind, the languages; None for one without language modules."""
    tree = tree_of(model)
    return None if tree is None else tree.about


def add_language(model: Any, language: str) -> None:
    """Give one more language modules, each the mean of those that the others have.

    ConfigError where the model has none, or one for this language, or one that all share.
    """
    tree = _tree(model)
    about = tree.about
    check_language(language, WHERE)
    if about.how.kind == SHARED_ADAPTER or language in about.languages:
        what = "shares its adapter with all languages" if language not in about.languages else "has modules"
        raise ConfigError(f"{WHERE}: {language} {what} already. Name a language that has none.")
    encoder = encoder_of(model)
    for place in places(encoder, about.how.kind):
        there = [_module(encoder, tree, one, place) for one in about.languages]
        tree.put(language, place, _mean(there))
    tree.about = replace(about, languages=(*about.languages, language))
    disconnect(encoder)
    connect(encoder)


def fall_back(model: Any, language: str) -> None:
    """Let a language's modules read the languages that have none; none does where it is empty."""
    tree = _tree(model)
    check_fallback(language, tree.about.languages)
    tree.about = replace(tree.about, how=replace(tree.about.how, fallback=language))


def own_parameters(model: Any, language: str) -> dict[str, nn.Parameter]:
    """Return by name the parameters of a language's modules alone.

    None where all is shared, as one adapter for all is. ConfigError for a language without modules.
    """
    tree = tree_of(model)
    if tree is None:
        return {}
    owner = tree.about.of(language)
    return {} if owner == SHARED_ADAPTER else _owned(model, tree, owner)


def shared_parameters(model: Any) -> dict[str, nn.Parameter]:
    """Return by name the parameters that no language has for itself."""
    about = modules_of(model)
    own = {name for one in (about.languages if about else ()) for name in own_parameters(model, one)}
    return {name: weight for name, weight in model.named_parameters() if name not in own}


@dataclass(frozen=True)
class ParameterCounts:
    """How many parameters all languages share, and how many each has for itself."""

    shared: int
    own: Mapping[str, int]


def parameter_counts(model: Any) -> ParameterCounts:
    """Count the parameters of a model with or without language modules."""
    about = modules_of(model)
    shared = sum(weight.numel() for weight in shared_parameters(model).values())
    own = {
        language: sum(weight.numel() for weight in own_parameters(model, language).values())
        for language in (about.languages if about else ())
    }
    return ParameterCounts(shared, own)


def site_of(model: Any, site: Site, language: str) -> Site:
    """Return a layer's site as a language sees it: its own copies' names, where it has copies.

    ConfigError for a language without modules.
    """
    tree = tree_of(model)
    if tree is None or tree.about.how.kind not in COPIES:
        return site
    owner, inside = tree.about.of(language), encoder_prefix(model)
    if owner == tree.about.languages[0]:
        return site
    region: Region = "feed_forward" if tree.about.how.kind == FEED_FORWARD else "attention"
    copied: tuple[str, ...] = getattr(site, region)

    def moved(name: str) -> str:
        own = any(f"{name}.".startswith(f"{place}.") for place in copied)
        return f"{inside}{CARRIED}.{branch(owner)}.{name.removeprefix(inside)}" if own else name

    changed: dict[str, Any] = {part: moved(getattr(site, part)) for part in _SINGLE if getattr(site, part)}
    changed[region] = tuple(map(moved, copied))
    return replace(site, **changed)


_SINGLE = (
    "query",
    "key",
    "value",
    "attention_output",
    "attention_norm",
    "attention_dropout",
    "output_dropout",
    "feed_forward_in",
    "feed_forward_out",
    "feed_forward_norm",
)
"""The fields of a site that name one module, or none, of a sub-layer."""


def _tree(model: Any) -> ModuleTree:
    tree = tree_of(model)
    if tree is None:
        raise ConfigError(f"{WHERE}: this encoder has no language modules. Add them first (add_modules).")
    return tree


def _owned(model: Any, tree: ModuleTree, owner: str) -> dict[str, nn.Parameter]:
    """Return the parameters of one language's modules, by their names in the model."""
    encoder, inside = encoder_of(model), encoder_prefix(model)
    below = "" if owner not in owners(tree.about) else f"{CARRIED}.{branch(owner)}."
    return {
        f"{inside}{below}{place}.{name}": weight
        for place in places(encoder, tree.about.how.kind)
        for name, weight in _module(encoder, tree, owner, place).named_parameters()
    }


def _module(encoder: Any, tree: ModuleTree, owner: str, place: str) -> nn.Module:
    hung = owner in owners(tree.about)
    module: nn.Module = tree.get(owner, place) if hung else encoder.get_submodule(place)
    return module


def _mean(modules: list[nn.Module]) -> nn.Module:
    """Return a module whose weights are the mean of others'; equal ones give their very weights."""
    first = modules[0]
    forward = first.__dict__.pop("forward", None)  # That of the encoder's own is a switch: no copy has one.
    try:
        found = deepcopy(first)
    finally:
        if forward is not None:
            first.__dict__["forward"] = forward
    with torch.no_grad():
        for name, weight in found.named_parameters():
            apart = [one.get_parameter(name) - weight for one in modules[1:]]
            weight.add_(torch.stack(apart).sum(dim=0) / len(modules) if apart else 0)
    return found
