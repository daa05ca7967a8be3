"""Saying which language a model reads, for all that depends on it: language modules and language maps.

With maps, states are mapped after the last layer onto the source language's. A model that is loaded carries
them, whatever head is put on it, until it is saved again; fine-tuning changes the encoder, and leaves its
maps as they are. A model with neither maps nor modules reads every language alike, and nothing is done.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

from torch import Tensor, nn

from isogloss.core.languages import language_of_text
from isogloss.encoders.language_modules import ModuleTree, encoder_of, tree_of, unreadable
from isogloss.nn.language_modules import ActiveLanguage, LanguageMap, Run, routed

_MAPS = "language_maps"
"""Attribute of an encoder that has maps."""


@dataclass(frozen=True)
class LanguageMaps:
    """The source language, whose states stay as they are, and the map of each other language."""

    source: str
    maps: Mapping[str, LanguageMap]

    def of(self, language: str) -> LanguageMap | None:
        """Return a language's map, None for the source; ConfigError when the language has none.

        Of a pair such as en-sw, translated from en into sw, the last is the language of the text.
        """
        code = language_of_text(language)
        if code == self.source:
            return None
        if code not in self.maps:
            raise unreadable(
                code,
                sorted({self.source, *self.maps}),
                has="this encoder maps each language's states",
                lacks="and has no map for",
                then=f"Adjust it with bitext of {self.source} and {code} too.",
            )
        return self.maps[code]


def keep_language_maps(model: nn.Module, maps: LanguageMaps) -> None:
    """Let a model carry maps, in its encoder."""
    setattr(encoder_of(model), _MAPS, maps)


def language_maps_of(model: nn.Module) -> LanguageMaps | None:
    """Return the maps that a model carries; None for one without."""
    maps: LanguageMaps | None = getattr(encoder_of(model), _MAPS, None)
    return maps


@contextmanager
def active_language(model: nn.Module, language: str | Sequence[str]) -> Iterator[None]:
    """Let a model read a language for a while; of several languages, one for each row of the batch.

    Of a pair such as en-sw, translated from en into sw, the last is the language of the text. ConfigError
    for a language that the model has no module, or map, for.
    """
    languages = (language,) if isinstance(language, str) else tuple(language)
    maps, tree = language_maps_of(model), tree_of(model)
    with ExitStack() as both:
        if tree is not None:
            both.enter_context(_said(tree, tuple(map(tree.about.of, languages))))
        if maps is not None:
            both.enter_context(mapped(model, maps, languages))
        yield


@contextmanager
def of_rows(model: nn.Module, rows: slice) -> Iterator[None]:
    """Let a model read some rows of the batch for a while, where each row has a language of its own."""
    tree = tree_of(model)
    if tree is None or len(tree.speaking.languages) < 2:
        yield
        return
    with _said(tree, tree.speaking.languages[rows]):
        yield


def languages_in_force(model: nn.Module) -> tuple[str, ...]:
    """Return whose modules are read now: none, one for the whole batch, or one for each row."""
    tree = tree_of(model)
    return () if tree is None else tree.speaking.languages


def check_languages(model: nn.Module, languages: Iterable[str]) -> None:
    """Raise ConfigError where a model has no module, or map, for a language; one without reads them all."""
    maps, tree = language_maps_of(model), tree_of(model)
    for language in languages:
        if tree is not None:
            tree.about.of(language)
        if maps is not None:
            maps.of(language)


@contextmanager
def _said(tree: ModuleTree, languages: tuple[str, ...]) -> Iterator[None]:
    before, tree.speaking.languages = tree.speaking.languages, languages
    try:
        yield
    finally:
        tree.speaking.languages = before


@contextmanager
def mapped(model: nn.Module, maps: LanguageMaps, languages: Sequence[str]) -> Iterator[None]:
    """Let an encoder, or a model with a head, map its last states as its languages' for a while."""
    found = {language: maps.of(language) for language in languages}
    if all(one is None for one in found.values()):
        yield
        return
    speaking = ActiveLanguage(tuple(languages))

    def of(language: str) -> Run:
        return found[language] or _unchanged

    def after(module: Any, _: Any, output: Any) -> Any:
        output.last_hidden_state = routed(of, speaking, (output.last_hidden_state,), {})
        if output.get("hidden_states") is not None:
            output.hidden_states = (*output.hidden_states[:-1], output.last_hidden_state)
        if output.get("pooler_output") is not None:  # Made of the last states too.
            output.pooler_output = module.pooler(output.last_hidden_state)
        return output

    handle = encoder_of(model).register_forward_hook(after)
    try:
        yield
    finally:
        handle.remove()


def _unchanged(states: Tensor) -> Tensor:
    return states
