"""Which of an encoder's parameters are a language's own, and which are shared by all."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from torch import nn

from isogloss.encoders.added.language_modules import (
    SHARED_ADAPTER,
    TREE,
    branch_of,
    changed_modules,
    encoder_of,
    module_of,
    module_tree,
    modules_of,
    owners,
)
from isogloss.encoders.families import family_of
from isogloss.encoders.family import encoder_prefix


def language_parameters(model: nn.Module, language: str) -> dict[str, nn.Parameter]:
    """Return the parameters of a language's modules by name; ConfigError for languages without modules.

    Empty if all parameters are shared, as with one adapter for all.
    """
    tree = module_tree(model)
    if tree is None:
        return {}
    owner, encoder, inside = tree.about.of(language), encoder_of(model), encoder_prefix(model)
    if owner == SHARED_ADAPTER:
        return {}
    below = f"{TREE}.{branch_of(owner)}." if owner in owners(tree.about) else ""
    return {
        f"{inside}{below}{module}.{name}": weight
        for module in changed_modules(encoder, tree.about.how)
        for name, weight in module_of(encoder, tree, owner, module).named_parameters()
    }


def shared_parameters(model: nn.Module) -> dict[str, nn.Parameter]:
    """Return the parameters shared by all languages, by name."""
    about = modules_of(model)
    own = {name for one in (about.languages if about else ()) for name in language_parameters(model, one)}
    adapters = tuple(f"{site.own_adapters}." for site in family_of(model).sites(model) if site.own_adapters)
    return {
        name: weight
        for name, weight in model.named_parameters()
        if name not in own and not name.startswith(adapters)
    }


def module_parameters(model: nn.Module, languages: Iterable[str]) -> dict[str, nn.Parameter]:
    """Return the parameters of these languages' modules by name, those of a shared adapter with them."""
    own = [language_parameters(model, language) for language in languages]
    shared = f"{encoder_prefix(model)}{TREE}.{branch_of(SHARED_ADAPTER)}."
    one = {name: weight for name, weight in model.named_parameters() if name.startswith(shared)}
    return {name: weight for part in (one, *own) for name, weight in part.items()}


@dataclass(frozen=True)
class ParameterCounts:
    """The number of shared parameters, and that of each language's own."""

    shared: int
    own: Mapping[str, int]


def parameter_counts(model: nn.Module) -> ParameterCounts:
    """Count the shared and language-specific parameters of a model."""
    about = modules_of(model)
    shared = sum(weight.numel() for weight in shared_parameters(model).values())
    own = {
        language: sum(weight.numel() for weight in language_parameters(model, language).values())
        for language in (about.languages if about else ())
    }
    return ParameterCounts(shared, own)
