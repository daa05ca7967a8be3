"""Translation between the built-in languages: perfect, or with errors at a given rate."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import ClassVar, Literal

from isogloss.core.errors import ConfigError
from isogloss.core.languages import is_built_in
from isogloss.core.run_parts import Share, Whole
from isogloss.data.projection.example_texts import Translated
from isogloss.features.built_in_languages.family import find_language
from isogloss.features.built_in_languages.translating import BuiltInTranslator, words_of
from isogloss.translators.setting import TranslateSetting


@dataclass(frozen=True, kw_only=True)
class BuiltIn:
    """Translate text of one built-in language into another, with word alignments."""

    name: ClassVar[str] = "built-in"
    needs_model: ClassVar[bool] = False
    knows_links: ClassVar[bool] = True

    noise: Share = 0.05
    """Rate at which words are dropped, at which they are replaced, and at which neighbours are swapped."""

    seed: Whole = 0
    """Seed of the noise. The same sentence always has the same noise."""

    unknown: Literal["error", "copy"] = "error"
    """Whether a word unknown in the source language is an error or copied."""

    def __post_init__(self) -> None:
        """Raise ConfigError for a noise rate outside 0 to 1."""
        if not 0 <= self.noise <= 1:
            raise ConfigError(f"{self.name}: noise is {self.noise}; it is a rate, from 0 to 1.")

    def check(self, source: str, target: str) -> None:
        """Raise ConfigError for languages that are not built in."""
        for language in (source, target):
            if not is_built_in(language):
                raise ConfigError(
                    f"translator {self.name}: {language!r} is not a built-in language (qaa to qai). Use the "
                    f"translator seq2seq, with a model."
                )
            find_language(language)

    def translate(self, texts: Iterable[str], setting: TranslateSetting) -> Iterator[Translated]:
        """Yield a translation for each text, in order. Translations are not stored, because this is fast."""
        self.check(setting.source, setting.target)
        translator = BuiltInTranslator(
            setting.source, setting.target, noise=self.noise, seed=self.seed, unknown=self.unknown
        )
        setting.report(0)
        for count, text in enumerate(texts, start=1):
            translation, links = translator.translate_linked(text)
            yield Translated(translation, words=words_of(translation, setting.target), links=links)
            setting.report(count)
