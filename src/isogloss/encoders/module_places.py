"""Where language modules are in an encoder, found by the sites of its family.

Whatever a model has more than the encoder it was made from hangs below one name, ``language_modules``; there
each language's modules have the names that the modules they stand for, or follow, have in the encoder. So
nothing in the encoder changes its name, and what looks for a part of a layer finds it where it always was.
"""

from copy import deepcopy
from dataclasses import dataclass
from typing import Any

from torch import Tensor, nn

from isogloss.core.errors import ConfigError, did_you_mean
from isogloss.core.languages import BOTH, language_of_text
from isogloss.core.runs import Modules
from isogloss.core.seeds import derive
from isogloss.encoders.families import Site, family_of
from isogloss.nn.adapter import Adapter
from isogloss.nn.language_switch import LanguageSwitch, Run, Speaking

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
        raise ConfigError(_lacking(self, code))


def _lacking(modules: LanguageModules, code: str) -> str:
    """Say why a language cannot be read, and what to do."""
    each, known = f"this encoder has {modules.how.kind} modules for each language", modules.languages
    if not code:
        what, then = ", and it is not said which language it reads.", "Name it (--language, or language=)."
    elif BOTH in code:
        what = f", and {code} is two languages in one input."
        then = "Take an encoder without modules for them."
    else:
        what = f", and none for {code!r}.{did_you_mean(code, known)}"
        then = f"Pretrain it with {code} too, or choose whose modules read what has none (fallback)."
    return f"{each}{what} Known: {', '.join(known)}. {then}"


class ModuleTree(nn.Module):
    """All modules that an encoder has beside its own: each language's in a tree of their names."""

    def __init__(self, about: LanguageModules) -> None:
        super().__init__()
        self.about, self.speaking = about, Speaking()

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


def branch(language: str) -> str:
    """Name what a language's modules hang below ("to" alone, Tongan, is a function of every module)."""
    return f"of_{language}"


def encoder_of(model: Any) -> Any:
    """Return the encoder of a model with a head, or of an encoder itself."""
    return getattr(model, "base_model", model)


def tree_of(model: Any) -> ModuleTree | None:
    """Return what a model has beside its own; None for one without language modules."""
    tree: ModuleTree | None = getattr(encoder_of(model), CARRIED, None)
    return tree


def places(encoder: Any, kind: str) -> list[str]:
    """Name the modules of an encoder that have copies, or that adapters follow."""
    return [name for site in family_of(encoder).sites(encoder) for name in _places(site, kind)]


def _places(site: Site, kind: str) -> tuple[str, ...]:
    if kind in COPIES:
        return site.feed_forward if kind == FEED_FORWARD else site.attention
    return site.attention_output, site.feed_forward_out


def grow(encoder: Any, about: LanguageModules, *, seed: int) -> None:
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


def _adapter(encoder: Any, before: nn.Module, how: Modules, seed: int) -> Adapter:
    weight = next(before.parameters())
    dim, spread = encoder.config.hidden_size, encoder.config.initializer_range
    return Adapter(dim, dim // how.reduction, spread=spread, seed=seed).to(weight.device, weight.dtype)


def connect(encoder: Any) -> None:
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


def disconnect(encoder: Any) -> None:
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
