"""Saying which language a model reads, for all that depends on it: language modules and language maps.

A model with neither reads every language alike, and nothing is done.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

from torch import Tensor

from isogloss.encoders.language_maps import LanguageMaps, language_maps_of
from isogloss.encoders.module_places import ModuleTree, encoder_of, tree_of
from isogloss.nn.language_switch import Run, Speaking, routed


@contextmanager
def of_language(model: Any, language: str | Sequence[str]) -> Iterator[None]:
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
def of_rows(model: Any, rows: slice) -> Iterator[None]:
    """Let a model read some rows of the batch for a while, where each row has a language of its own."""
    tree = tree_of(model)
    if tree is None or len(tree.speaking.languages) < 2:
        yield
        return
    with _said(tree, tree.speaking.languages[rows]):
        yield


def languages_in_force(model: Any) -> tuple[str, ...]:
    """Return whose modules are read now: none, one for the whole batch, or one for each row."""
    tree = tree_of(model)
    return () if tree is None else tree.speaking.languages


def knows_languages(model: Any) -> bool:
    """Tell whether a model reads languages differently, by modules or by maps."""
    return language_maps_of(model) is not None or tree_of(model) is not None


def check_languages(model: Any, languages: Iterable[str]) -> None:
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
def mapped(model: Any, maps: LanguageMaps, languages: Sequence[str]) -> Iterator[None]:
    """Let an encoder, or a model with a head, map its last states as its languages' for a while."""
    found = {language: maps.of(language) for language in languages}
    if all(one is None for one in found.values()):
        yield
        return
    speaking = Speaking(tuple(languages))

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
