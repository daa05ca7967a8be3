"""The adapters that an encoder of X-MOD has for each language of its pretraining.

Pfeiffer et al. (2022), "Lifting the Curse of Multilinguality by Pre-training Modular Transformers", Section
3. They are the family's own, part of its layers and of its file; a language is active for them as for the
modules that isogloss adds (``active_language.active_language``).
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from isogloss.core.languages import language_of_text
from isogloss.encoders.added.language_modules import encoder_of, language_error
from isogloss.encoders.annotations import Model
from isogloss.encoders.families import family_of


def adapter_languages(model: nn.Module) -> tuple[str, ...]:
    """Return the languages with adapters in the order of their numbers; none in other families."""
    encoder = encoder_of(model)
    return family_of(encoder).languages(encoder.config)


def adapter_number(languages: Sequence[str], language: str) -> int:
    """Return the number of a language's adapters; ConfigError for a language without."""
    code = language_of_text(language)
    if code in languages:
        return languages.index(code)
    raise language_error(
        code,
        languages,
        has="this encoder has adapters for the languages of its pretraining",
        lacks="and none for",
        then="Take another encoder for it (such as xlm-roberta), or give the text as one of these.",
    )


@contextmanager
def active_adapters(model: nn.Module, languages: Sequence[str]) -> Iterator[None]:
    """Let an encoder read with the adapters of a language, or of one language for each row.

    Of text whose language is not said it reads its default one, if config.json has that.
    """
    known, encoder = adapter_languages(model), encoder_of(model)
    default = (encoder.config.default_language or "").partition("_")[0]
    numbers = [adapter_number(known, language or default) for language in languages]

    def say(_: nn.Module, given: tuple[Any, ...], named: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
        subwords = given[0] if given else named["input_ids"]
        each = torch.tensor(numbers, device=subwords.device)
        return given, {**named, "lang_ids": each.expand(len(subwords))}

    handle = encoder.register_forward_pre_hook(say, with_kwargs=True)
    try:
        yield
    finally:
        handle.remove()


def cast_outputs_back(encoder: Model) -> None:
    """Let adapters return what they are given in its own precision: mixed precision fails without."""
    for site in family_of(encoder).sites(encoder):
        for adapter in encoder.get_submodule(site.own_adapters).children() if site.own_adapters else ():
            vars(adapter)["forward"] = _InOwnPrecision(adapter.forward)


@dataclass(frozen=True)
class _InOwnPrecision:
    """A function of states whose result has their precision; unlike a closure, copied with its module."""

    run: Callable[[Tensor], Tensor]

    def __call__(self, states: Tensor) -> Tensor:
        return self.run(states).to(states.dtype)
