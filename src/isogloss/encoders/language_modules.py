"""Language-specific modules: what each language of an encoder has for itself, whatever its family.

"On Negative Interference in Multilingual Models", Sections 3.3 and 4: feed-forward or attention layers of
their own, or adapters after both; text goes through those of its language
(``language_context.active_language``). A new encoder gets them before it is pretrained, one that exists by
the same surgery; either changes nothing to the bit until it is trained. Where each language has copies, the
first one's are the encoder's own layers.

Whatever a model has more than the encoder it was made from hangs below one name, ``language_modules``; there
each language's modules have the names that the modules they stand for, or follow, have in the encoder. So
nothing in the encoder changes its name, and what looks for a part of a layer finds it where it always was.
"""

from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from isogloss.core.errors import ConfigError, did_you_mean, unknown_name
from isogloss.core.languages import BOTH, check_language, language_of_text
from isogloss.core.runs import Modules
from isogloss.core.seeds import derive
from isogloss.encoders.families import Site, encoder_prefix, family_of
from isogloss.nn.language_modules import ActiveLanguage, Adapter, LanguageSwitch, Run

if TYPE_CHECKING:
    from transformers import PreTrainedModel

WHERE = "modules"
CARRIED = "language_modules"
"""The name, in the encoder, of what it has beside its own."""

FEED_FORWARD, ATTENTION, ADAPTER, SHARED_ADAPTER = "feed-forward", "attention", "adapter", "shared-adapter"
KINDS = (FEED_FORWARD, ATTENTION, ADAPTER, SHARED_ADAPTER)

COPIES = (FEED_FORWARD, ATTENTION)
"""The kinds that are copies of what an encoder has; the first language's are those of the encoder itself."""


@dataclass(frozen=True)
class LanguageModules:
    """What a model with language modules carries."""

    how: Modules
    languages: tuple[str, ...]
    """Those with modules, in the order they were given."""

    def of(self, language: str) -> str:
        """Return the language whose modules read a language; ConfigError when there are none.

        Of a pair such as en-sw, translated from en into sw, the last is the language of the text.
        """
        code = language_of_text(language)
        if self.how.kind == SHARED_ADAPTER:
            return SHARED_ADAPTER
        if code in self.languages:
            return code
        if code and BOTH not in code and self.how.fallback:
            return self.how.fallback
        raise unreadable(
            code,
            self.languages,
            has=f"this encoder has {self.how.kind} modules for each language",
            lacks="and none for",
            then=f"Pretrain it with {code} too, or choose whose modules read what has none (fallback).",
        )


def unreadable(code: str, known: Sequence[str], *, has: str, lacks: str, then: str) -> ConfigError:
    """Build the error for a language that an encoder has no modules, or map, for."""
    if not code:
        what, then = "and it is not said which language it reads.", "Name it (--language, or language=)."
    elif BOTH in code:
        what, then = f"and {code} is two languages in one input.", "Take an encoder that reads all alike."
    else:
        what = f"{lacks} {code!r}.{did_you_mean(code, known)}"
    return ConfigError(f"{has}, {what} Known: {', '.join(known)}. {then}")


class ModuleTree(nn.Module):
    """All modules that an encoder has beside its own: each language's in a tree of their names."""

    def __init__(self, about: LanguageModules) -> None:
        super().__init__()
        self.about, self.speaking = about, ActiveLanguage()

    def put(self, language: str, place: str, module: nn.Module) -> None:
        """Hang up a language's module for a place of the encoder."""
        *path, last = [branch(language), *place.split(".")]
        inner: nn.Module = self
        for name in path:
            if name not in dict(inner.named_children()):
                inner.add_module(name, nn.Module())
            inner = inner.get_submodule(name)
        inner.add_module(last, module)

    def get(self, language: str, place: str) -> nn.Module:
        """Return a language's module for a place of the encoder."""
        return self.get_submodule(f"{branch(language)}.{place}")


def add_modules(model: nn.Module, modules: Modules, languages: tuple[str, ...], *, seed: int) -> None:
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


def modules_of(model: nn.Module) -> LanguageModules | None:
    """Return what a model carries: the kind, the languages; None for one without language modules."""
    tree = tree_of(model)
    return None if tree is None else tree.about


def add_language(model: nn.Module, language: str) -> None:
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


def fall_back(model: nn.Module, language: str) -> None:
    """Let a language's modules read the languages that have none; none does where it is empty."""
    tree = _tree(model)
    check_fallback(language, tree.about.languages)
    tree.about = replace(tree.about, how=replace(tree.about.how, fallback=language))


def own_parameters(model: nn.Module, language: str) -> dict[str, nn.Parameter]:
    """Return by name the parameters of a language's modules alone.

    None where all is shared, as one adapter for all is. ConfigError for a language without modules.
    """
    tree = tree_of(model)
    if tree is None:
        return {}
    owner = tree.about.of(language)
    return {} if owner == SHARED_ADAPTER else _owned(model, tree, owner)


def shared_parameters(model: nn.Module) -> dict[str, nn.Parameter]:
    """Return by name the parameters that no language has for itself."""
    about = modules_of(model)
    own = {name for one in (about.languages if about else ()) for name in own_parameters(model, one)}
    return {name: weight for name, weight in model.named_parameters() if name not in own}


@dataclass(frozen=True)
class ParameterCounts:
    """How many parameters all languages share, and how many each has for itself."""

    shared: int
    own: Mapping[str, int]


def parameter_counts(model: nn.Module) -> ParameterCounts:
    """Count the parameters of a model with or without language modules."""
    about = modules_of(model)
    shared = sum(weight.numel() for weight in shared_parameters(model).values())
    own = {
        language: sum(weight.numel() for weight in own_parameters(model, language).values())
        for language in (about.languages if about else ())
    }
    return ParameterCounts(shared, own)


def site_of(model: nn.Module, site: Site, language: str) -> Site:
    """Return a layer's site as a language sees it: its own copies' names, where it has copies.

    ConfigError for a language without modules.
    """
    tree = tree_of(model)
    if tree is None or tree.about.how.kind not in COPIES:
        return site
    owner, inside = tree.about.of(language), encoder_prefix(model)
    if owner == tree.about.languages[0]:
        return site
    copied = site.feed_forward if tree.about.how.kind == FEED_FORWARD else site.attention

    def moved(name: str) -> str:
        own = any(f"{name}.".startswith(f"{place}.") for place in copied)
        return f"{inside}{CARRIED}.{branch(owner)}.{name.removeprefix(inside)}" if own else name

    return site.renamed(moved)


def _tree(model: nn.Module) -> ModuleTree:
    tree = tree_of(model)
    if tree is None:
        raise ConfigError(f"{WHERE}: this encoder has no language modules. Add them first (add_modules).")
    return tree


def _owned(model: nn.Module, tree: ModuleTree, owner: str) -> dict[str, nn.Parameter]:
    """Return the parameters of one language's modules, by their names in the model."""
    encoder, inside = encoder_of(model), encoder_prefix(model)
    below = "" if owner not in owners(tree.about) else f"{CARRIED}.{branch(owner)}."
    return {
        f"{inside}{below}{place}.{name}": weight
        for place in places(encoder, tree.about.how.kind)
        for name, weight in _module(encoder, tree, owner, place).named_parameters()
    }


def _module(encoder: "PreTrainedModel", tree: ModuleTree, owner: str, place: str) -> nn.Module:
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


def branch(language: str) -> str:
    """Name what a language's modules hang below ("to" alone, Tongan, is a function of every module)."""
    return f"of_{language}"


def encoder_of(model: nn.Module) -> Any:
    """Return the encoder of a model with a head, or of an encoder itself."""
    return getattr(model, "base_model", model)


def tree_of(model: nn.Module) -> ModuleTree | None:
    """Return what a model has beside its own; None for one without language modules."""
    tree: ModuleTree | None = getattr(encoder_of(model), CARRIED, None)
    return tree


def places(encoder: "PreTrainedModel", kind: str) -> list[str]:
    """Name the modules of an encoder that have copies, or that adapters follow."""

    def of(site: Site) -> tuple[str, ...]:
        if kind in COPIES:
            return site.feed_forward if kind == FEED_FORWARD else site.attention
        return site.attention_output, site.feed_forward_out

    return [name for site in family_of(encoder).sites(encoder) for name in of(site)]


def grow(encoder: "PreTrainedModel", about: LanguageModules, *, seed: int) -> None:
    """Give an encoder the modules of its languages; all of them start equal, and change nothing."""
    tree = ModuleTree(about)
    for place in places(encoder, about.how.kind):
        module = encoder.get_submodule(place)
        for language in owners(about):
            if about.how.kind in COPIES:
                tree.put(language, place, deepcopy(module))
            else:
                tree.put(language, place, _adapter(encoder, module, about.how, derive(seed, place)))
    encoder.add_module(CARRIED, tree.train(encoder.training))
    connect(encoder)


def owners(about: LanguageModules) -> tuple[str, ...]:
    """Name those whose modules hang in the tree: copies of the first language's are in the encoder itself."""
    if about.how.kind == SHARED_ADAPTER:
        return (SHARED_ADAPTER,)
    return about.languages[1:] if about.how.kind in COPIES else about.languages


def _adapter(encoder: "PreTrainedModel", before: nn.Module, how: Modules, seed: int) -> Adapter:
    weight = next(before.parameters())
    dim, spread = encoder.config.hidden_size, encoder.config.initializer_range
    return Adapter(dim, dim // how.reduction, spread=spread, seed=seed).to(weight.device, weight.dtype)


def connect(encoder: "PreTrainedModel") -> None:
    """Let every place of an encoder run through the modules in its tree."""
    tree: ModuleTree = encoder.language_modules
    kind = tree.about.how.kind
    for place in places(encoder, kind):
        module = encoder.get_submodule(place)
        own: dict[str, Run] = {language: tree.get(language, place) for language in owners(tree.about)}
        forward: Run = module.forward
        if kind in COPIES:
            forward = LanguageSwitch({tree.about.languages[0]: forward, **own}, tree.speaking)
        else:
            then = LanguageSwitch(own, tree.speaking) if kind == ADAPTER else own[SHARED_ADAPTER]
            forward = _Followed(forward, then)
        module.__dict__["forward"] = forward  # In place of its class's: the module keeps name and hooks.


def disconnect(encoder: "PreTrainedModel") -> None:
    """Let every place of an encoder run as it did without language modules, which stay in their tree."""
    for place in places(encoder, encoder.language_modules.about.how.kind):
        encoder.get_submodule(place).__dict__.pop("forward", None)


@dataclass(frozen=True)
class _Followed:
    """A module's own forward function, and what its output goes through after it."""

    run: Run
    then: Run

    def __call__(self, states: Tensor) -> Tensor:
        found: Tensor = self.then(self.run(states))
        return found
