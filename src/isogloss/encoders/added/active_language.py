"""The language that a model is reading, and what depends on it: modules, X-MOD's adapters, and maps.

``language_modules`` adds the modules. An encoder of X-MOD has adapters for each language of its
pretraining, part of its layers and of its file (Pfeiffer et al. 2022, "Lifting the Curse of Multilinguality
by Pre-training Modular Transformers", Section 3).

A language map is applied after the last layer, to the source language's space. A loaded model carries its
maps, whatever its head, until it is saved again; fine-tuning does not change them. The active language makes
no difference to a model with neither maps nor modules.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from isogloss.core.errors import ConfigError
from isogloss.core.languages import language_of_text
from isogloss.encoders.added.language_layers import ActiveLanguage, LanguageMap, run_by_language
from isogloss.encoders.added.language_modules import ModuleTree, encoder_of, module_tree
from isogloss.encoders.added.module_settings import language_error
from isogloss.encoders.families import family_of, languages_of
from isogloss.encoders.family import Model, Output

_MAPS = "language_maps"
"""Attribute of an encoder with maps."""


@dataclass(frozen=True)
class LanguageMaps:
    """The source language, whose states are not mapped, and the map of each other language."""

    source: str
    maps: Mapping[str, LanguageMap]

    def of(self, language: str) -> LanguageMap | None:
        """Return a language's map, or None for the source.

        Raises ConfigError for a language without a map.
        """
        plain_language = language_of_text(language)
        if plain_language == self.source:
            return None
        if plain_language not in self.maps:
            raise language_error(
                plain_language,
                sorted({self.source, *self.maps}),
                has_modules="this encoder maps each language's states",
                lacks="and has no map for",
                then=f"Adjust it with bitext of {self.source} and {plain_language} too.",
            )
        return self.maps[plain_language]


def attach_language_maps(model: nn.Module, maps: LanguageMaps) -> None:
    """Attach maps to a model's encoder."""
    setattr(encoder_of(model), _MAPS, maps)


def language_maps_of(model: nn.Module) -> LanguageMaps | None:
    """Return a model's maps, or None."""
    maps: LanguageMaps | None = getattr(encoder_of(model), _MAPS, None)
    return maps


def refuse_mapped(model: nn.Module, start: str | Path) -> None:
    """Raise ConfigError for an encoder with language maps, which would not fit its changed states."""
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
    maps = language_maps_of(model)
    tree = module_tree(model)
    with ExitStack() as contexts:
        if adapter_languages(model):
            contexts.enter_context(active_adapters(model, languages))
        if tree is not None:
            contexts.enter_context(_switch_languages(tree, tuple(tree.info.of(name) for name in languages)))
        if maps is not None:
            contexts.enter_context(map_states(model, maps, languages))
        yield


@contextmanager
def active_rows(model: nn.Module, rows: slice) -> Iterator[None]:
    """Restrict the active languages to some rows of the batch, if each row has its own."""
    tree = module_tree(model)
    if tree is None or len(tree.active.languages) < 2:
        yield
        return
    with _switch_languages(tree, tree.active.languages[rows]):
        yield


def active_languages(model: nn.Module) -> tuple[str, ...]:
    """Return the active languages: none, one for the whole batch, or one per row."""
    tree = module_tree(model)
    return () if tree is None else tree.active.languages


def languages_of_halves(model: Model, languages: Sequence[str] = ()) -> tuple[str, str]:
    """Return the language of each half of the batch.

    Default: the active languages. Both are "" without modules. Raises ConfigError if a half has several
    languages, or for a language without modules.
    """
    tree = module_tree(model)
    if tree is None or not languages:
        languages = active_languages(model)
    else:
        languages = tuple(tree.info.of(language) for language in languages)
    middle_row = len(languages) // 2
    halves = (
        [set(part) for part in (languages[:middle_row], languages[middle_row:])]
        if middle_row
        else [set(languages)] * 2
    )
    if any(len(part) > 1 for part in halves):
        sides = " and ".join("+".join(sorted(part)) for part in halves)
        raise ConfigError(
            f"X-Mixup: each side of a batch is in one language; found {sides}. Give batches of one pair of "
            f"languages."
        )
    source, target = ("".join(part) for part in halves)
    return source, target


def check_languages(model: nn.Module, languages: Iterable[str]) -> None:
    """Raise ConfigError if a model has adapters, modules or maps by language but none for one of these."""
    maps = language_maps_of(model)
    tree = module_tree(model)
    adapters = adapter_languages(model)
    for language in languages:
        if adapters:
            adapter_number(adapters, language)
        if tree is not None:
            tree.info.of(language)
        if maps is not None:
            maps.of(language)


@contextmanager
def _switch_languages(tree: ModuleTree, languages: tuple[str, ...]) -> Iterator[None]:
    previous = tree.active.languages
    tree.active.languages = languages
    try:
        yield
    finally:
        tree.active.languages = previous


@contextmanager
def map_states(model: nn.Module, maps: LanguageMaps, languages: Sequence[str]) -> Iterator[None]:
    """Map the last states of an encoder, or of a model's encoder, by the maps of these languages."""
    maps_by_language = {language: maps.of(language) for language in languages}
    if not any(maps_by_language.values()):
        yield
        return
    active = ActiveLanguage(tuple(languages))

    def map_of(language: str) -> LanguageMap | nn.Identity:
        return maps_by_language[language] or nn.Identity()

    def after(encoder: Model, _: object, output: Output) -> Output:
        states = run_by_language(map_of, active, (output.last_hidden_state,), {})
        output.last_hidden_state = states
        if output.get("hidden_states") is not None:
            output.hidden_states = (*output.hidden_states[:-1], states)
        if output.get("pooler_output") is not None:  # The pooler also reads mapped states.
            output.pooler_output = encoder.pooler(states)
        return output

    with encoder_of(model).register_forward_hook(after):
        yield


def adapter_languages(model: nn.Module) -> tuple[str, ...]:
    """Return the languages with adapters in the order of their indices, or none in other families."""
    return languages_of(encoder_of(model))


def adapter_number(languages: Sequence[str], language: str) -> int:
    """Return the index of a language's adapters.

    Raises ConfigError for a language without adapters.
    """
    plain_language = language_of_text(language)
    if plain_language in languages:
        return languages.index(plain_language)
    raise language_error(
        plain_language,
        languages,
        has_modules="this encoder has adapters for the languages of its pretraining",
        lacks="and none for",
        then="Take another encoder for it (such as xlm-roberta), or give the text as one of these.",
    )


@contextmanager
def active_adapters(model: nn.Module, languages: Sequence[str]) -> Iterator[None]:
    """Use the adapters of a language, or of one language for each row.

    Default for text in an unspecified language: ``default_language`` in config.json, if any.
    """
    codes = adapter_languages(model)
    encoder = encoder_of(model)
    default = (encoder.config.default_language or "").partition("_")[0]
    numbers = [adapter_number(codes, language or default) for language in languages]

    def add_ids(
        _: nn.Module, inputs: tuple[Any, ...], keywords: dict[str, Any]
    ) -> tuple[Any, dict[str, Any]]:
        subwords = inputs[0] if inputs else keywords["input_ids"]
        lang_ids = torch.tensor(numbers, device=subwords.device)
        return inputs, {**keywords, "lang_ids": lang_ids.expand(len(subwords))}

    with encoder.register_forward_pre_hook(add_ids, with_kwargs=True):
        yield


def cast_outputs_back(encoder: Model) -> None:
    """Cast the adapters' outputs back to the precision of their inputs: mixed precision fails otherwise."""
    for site in family_of(encoder).sites(encoder):
        for adapter in encoder.get_submodule(site.own_adapters).children() if site.own_adapters else ():
            vars(adapter)["forward"] = _InOwnPrecision(adapter.forward)


@dataclass(frozen=True)
class _InOwnPrecision:
    """Cast the result of a function of states to their precision.

    Unlike a closure, it is copied with its module.
    """

    run: Callable[[Tensor], Tensor]

    def __call__(self, states: Tensor) -> Tensor:
        return self.run(states).to(states.dtype)
