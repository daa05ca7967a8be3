"""Language-specific modules of an encoder of any family.

"On Negative Interference in Multilingual Models", Sections 3.3 and 4: each language has its own feed-forward
or attention layers, or adapters after both, and its text runs through them
(``language_context.active_language``). They are added to a new or an existing encoder, and change nothing to
the bit until they are trained. With copies, those of the first language are the encoder's own layers.

All added modules are below one name in the encoder, ``language_modules``, where each language's have the
names of the modules that they replace or follow. No module of the encoder is renamed.
"""

from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from isogloss.core.errors import ConfigError, did_you_mean, unknown_name
from isogloss.core.languages import BOTH, check_language, language_of_text
from isogloss.core.run_parts import Modules
from isogloss.core.seeds import derive
from isogloss.encoders.families import family_of
from isogloss.encoders.family import Site, encoder_prefix, initial_spread
from isogloss.nn.language_modules import ActiveLanguage, Adapter, LanguageSwitch, Run

if TYPE_CHECKING:
    from transformers import PreTrainedModel

WHERE = "modules"
TREE = "language_modules"
"""Name of the added modules in the encoder."""

FEED_FORWARD, ATTENTION, ADAPTER, SHARED_ADAPTER = "feed-forward", "attention", "adapter", "shared-adapter"
KINDS = (FEED_FORWARD, ATTENTION, ADAPTER, SHARED_ADAPTER)

COPIES = (FEED_FORWARD, ATTENTION)
"""The kinds that are copies of the encoder's modules; the first language uses the encoder's own."""


@dataclass(frozen=True)
class LanguageModules:
    """The kind and the languages of a model's language modules."""

    how: Modules
    languages: tuple[str, ...]
    """The languages with modules, in the given order."""

    def of(self, language: str) -> str:
        """Return the language whose modules a language uses; ConfigError if there are none.

        For a pair such as en-sw, translated from en into sw, the text is in the second language.
        """
        code = language_of_text(language)
        if self.how.kind == SHARED_ADAPTER:
            return SHARED_ADAPTER
        if code in self.languages:
            return code
        if code and BOTH not in code and self.how.fallback:
            return self.how.fallback
        raise language_error(
            code,
            self.languages,
            has=f"this encoder has {self.how.kind} modules for each language",
            lacks="and none for",
            then=f"Pretrain it with {code} too, or choose whose modules read what has none (fallback).",
        )


def language_error(code: str, known: Sequence[str], *, has: str, lacks: str, then: str) -> ConfigError:
    """Return the error for a language without modules or map."""
    if not code:
        what, then = "and it is not said which language it reads.", "Name it (--language, or language=)."
    elif BOTH in code:
        what, then = f"and {code} is two languages in one input.", "Take an encoder that reads all alike."
    else:
        what = f"{lacks} {code!r}.{did_you_mean(code, known)}"
    return ConfigError(f"{has}, {what} Known: {', '.join(known)}. {then}")


class ModuleTree(nn.Module):
    """The added modules of an encoder: a tree of module names for each language."""

    def __init__(self, about: LanguageModules) -> None:
        super().__init__()
        self.about, self.active = about, ActiveLanguage()

    def put(self, language: str, name: str, module: nn.Module) -> None:
        """Add a language's module for a module of the encoder."""
        *path, last = [branch_of(language), *name.split(".")]
        inner: nn.Module = self
        for part in path:
            if part not in dict(inner.named_children()):
                inner.add_module(part, nn.Module())
            inner = inner.get_submodule(part)
        inner.add_module(last, module)

    def get(self, language: str, name: str) -> nn.Module:
        """Return a language's module for a module of the encoder."""
        return self.get_submodule(f"{branch_of(language)}.{name}")


def add_modules(model: nn.Module, modules: Modules, languages: tuple[str, ...], *, seed: int) -> None:
    """Add modules for each language to an encoder or a model with a head; initially all are equal.

    Copies are initialised with what they copy, adapters as the identity: the outputs do not change. ``seed``
    initialises adapters. ConfigError for invalid languages or bottlenecks.
    """
    encoder = encoder_of(model)
    if (about := modules_of(model)) is not None:
        raise ConfigError(
            f"{WHERE}: this encoder has {about.how.kind} modules already, for "
            f"{', '.join(about.languages)}. Add a language to them, or start from one without."
        )
    check_modules(modules, languages, dim=encoder.config.hidden_size)
    build_modules(encoder, LanguageModules(modules, languages), seed=seed)


def check_modules(modules: Modules, languages: tuple[str, ...], *, dim: int) -> None:
    """Raise ConfigError for modules that are invalid for these languages and hidden size ``dim``."""
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
    """Raise ConfigError for a fallback language without modules."""
    if fallback and fallback not in languages:
        raise ConfigError(
            f"{WHERE}: fallback: {fallback!r} has no modules itself.{did_you_mean(fallback, languages)} "
            f"Choose one of {', '.join(languages)}."
        )


def modules_of(model: nn.Module) -> LanguageModules | None:
    """Return the kind and languages of a model's language modules, or None."""
    tree = module_tree(model)
    return None if tree is None else tree.about


def add_language(model: nn.Module, language: str) -> None:
    """Add modules for another language, each initialised with the mean of the other languages'.

    ConfigError if the model has none, has some for this language, or shares one adapter.
    """
    tree = _tree(model)
    about = tree.about
    check_language(language, WHERE)
    if about.how.kind == SHARED_ADAPTER or language in about.languages:
        what = "shares its adapter with all languages" if language not in about.languages else "has modules"
        raise ConfigError(f"{WHERE}: {language} {what} already. Name a language that has none.")
    encoder = encoder_of(model)
    names = changed_modules(encoder, about.how.kind)
    for name in names:
        tree.put(language, name, _mean([_module(encoder, tree, one, name) for one in about.languages]))
    tree.about = replace(about, languages=(*about.languages, language))
    for name in names:
        vars(encoder.get_submodule(name)).pop("forward", None)
    _connect(encoder)


def fall_back(model: nn.Module, language: str) -> None:
    """Set the language whose modules are used for languages without; "" for none."""
    tree = _tree(model)
    check_fallback(language, tree.about.languages)
    tree.about = replace(tree.about, how=replace(tree.about.how, fallback=language))


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
        for module in changed_modules(encoder, tree.about.how.kind)
        for name, weight in _module(encoder, tree, owner, module).named_parameters()
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


def language_site(model: nn.Module, site: Site, language: str) -> Site:
    """Return a layer's site for a language, with the names of the language's own copies.

    ConfigError for a language without modules.
    """
    tree = module_tree(model)
    if tree is None or tree.about.how.kind not in COPIES:
        return site
    owner, inside = tree.about.of(language), encoder_prefix(model)
    if owner == tree.about.languages[0]:
        return site
    copied = site.feed_forward if tree.about.how.kind == FEED_FORWARD else site.attention

    def moved(name: str) -> str:
        own = any(f"{name}.".startswith(f"{one}.") for one in copied)
        return f"{inside}{TREE}.{branch_of(owner)}.{name.removeprefix(inside)}" if own else name

    return site.renamed(moved)


def _tree(model: nn.Module) -> ModuleTree:
    tree = module_tree(model)
    if tree is None:
        raise ConfigError(f"{WHERE}: this encoder has no language modules. Add them first (add_modules).")
    return tree


def _module(encoder: "PreTrainedModel", tree: ModuleTree, owner: str, name: str) -> nn.Module:
    added = owner in owners(tree.about)
    module: nn.Module = tree.get(owner, name) if added else encoder.get_submodule(name)
    return module


def _mean(modules: list[nn.Module]) -> nn.Module:
    """Return a module with the mean of the modules' weights; exact if all are equal."""
    first = modules[0]
    forward = first.__dict__.pop(
        "forward", None
    )  # The encoder's own module has a switch, which is not copied.
    try:
        found = deepcopy(first)
    finally:
        if forward is not None:
            first.__dict__["forward"] = forward
    with torch.no_grad():
        for name, weight in found.named_parameters():
            deltas = [one.get_parameter(name) - weight for one in modules[1:]]
            weight.add_(torch.stack(deltas).sum(dim=0) / len(modules) if deltas else 0)
    return found


def branch_of(language: str) -> str:
    """Return the name of a language's branch ("to", Tongan, alone is a method of every module)."""
    return f"of_{language}"


def encoder_of(model: nn.Module) -> "PreTrainedModel":
    """Return the encoder of a model with a head, or an encoder itself."""
    return getattr(model, "base_model", model)


def module_tree(model: nn.Module) -> ModuleTree | None:
    """Return a model's added modules, or None."""
    tree: ModuleTree | None = getattr(encoder_of(model), TREE, None)
    return tree


def changed_modules(encoder: "PreTrainedModel", kind: str) -> list[str]:
    """Return the names of an encoder's modules that are copied, or followed by adapters."""

    def of(site: Site) -> tuple[str, ...]:
        if kind in COPIES:
            return site.feed_forward if kind == FEED_FORWARD else site.attention
        return site.attention_output, site.feed_forward_out

    return [name for site in family_of(encoder).sites(encoder) for name in of(site)]


def build_modules(encoder: "PreTrainedModel", about: LanguageModules, *, seed: int) -> None:
    """Add the modules of all languages to an encoder; all are equal and change no output."""
    tree = ModuleTree(about)
    for name in changed_modules(encoder, about.how.kind):
        module = encoder.get_submodule(name)
        for language in owners(about):
            if about.how.kind in COPIES:
                tree.put(language, name, deepcopy(module))
            else:
                tree.put(language, name, _adapter(encoder, module, about.how, derive(seed, name)))
    encoder.add_module(TREE, tree.train(encoder.training))
    _connect(encoder)


def owners(about: LanguageModules) -> tuple[str, ...]:
    """Return the languages with modules in the tree: with copies, all but the first."""
    if about.how.kind == SHARED_ADAPTER:
        return (SHARED_ADAPTER,)
    return about.languages[1:] if about.how.kind in COPIES else about.languages


def _adapter(encoder: "PreTrainedModel", before: nn.Module, how: Modules, seed: int) -> Adapter:
    weight = next(before.parameters())
    dim, spread = encoder.config.hidden_size, initial_spread(encoder.config)
    return Adapter(dim, dim // how.reduction, spread=spread, seed=seed).to(weight.device, weight.dtype)


def _connect(encoder: "PreTrainedModel") -> None:
    """Let the modules of an encoder run the active language's modules in place of, or after, themselves."""
    tree: ModuleTree = encoder.language_modules
    kind = tree.about.how.kind
    for name in changed_modules(encoder, kind):
        module = encoder.get_submodule(name)
        own: dict[str, Run] = {language: tree.get(language, name) for language in owners(tree.about)}
        forward: Run = module.forward
        if kind in COPIES:
            forward = LanguageSwitch({tree.about.languages[0]: forward, **own}, tree.active)
        else:
            then = LanguageSwitch(own, tree.active) if kind == ADAPTER else own[SHARED_ADAPTER]
            forward = _Chain(forward, then)
        vars(module)["forward"] = forward  # Overrides the class's: the module keeps its name and hooks.


@dataclass(frozen=True)
class _Chain:
    """A module's own forward function followed by another; unlike a closure, copied with the module."""

    first: Run
    then: Run

    def __call__(self, states: Tensor) -> Tensor:
        found: Tensor = self.then(self.first(states))
        return found
