"""Translation between the built-in languages: perfect, with a dial that makes it err."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import ClassVar, Literal

from isogloss.core.errors import ConfigError
from isogloss.core.languages import is_built_in
from isogloss.data.label_projection import Translated
from isogloss.data.languages import Translator as BuiltInTranslator
from isogloss.data.languages import find_language, words_of
from isogloss.translators.setting import TranslateSetting


@dataclass(frozen=True, kw_only=True)
class BuiltIn:
    """Translate text of one built-in language into another; it knows which words belong together."""

    name: ClassVar[str] = "built-in"
    needs_model: ClassVar[bool] = False
    knows_links: ClassVar[bool] = True

    noise: float = 0.05
    """Rate at which words are dropped, at which they are wrongly chosen, and at which neighbours swap."""

    seed: int = 0
    """Seed of the noise; the same sentence always meets the same noise."""

    unknown: Literal["error", "copy"] = "error"
    """Whether a word that is not of the source language is an error or copied."""

    def __post_init__(self) -> None:
        """Refuse a rate that is none."""
        if not 0 <= self.noise <= 1:
            raise ConfigError(f"{self.name}: noise is {self.noise}; it is a rate, from 0 to 1.")

    def check(self, source: str, target: str) -> None:
        """Refuse languages that are not built in."""
        for language in (source, target):
            if not is_built_in(language):
                raise ConfigError(
                    f"translator {self.name}: {language!r} is no built-in language (qaa, qab, …). Use the "
                    f"translator seq2seq, with a model."
                )
            find_language(language)

    def translate(self, texts: Iterable[str], setting: TranslateSetting) -> Iterator[Translated]:
        """Give one translation for each text, in order; quick enough to keep nothing on the way."""
        translator = self._translator(setting)
        setting.told(0)
        for done, text in enumerate(texts, start=1):
            whole, links = translator.translate_linked(text)
            yield Translated(whole, words=words_of(whole, setting.target), links=links)
            setting.told(done)

    def _translator(self, setting: TranslateSetting) -> BuiltInTranslator:
        self.check(setting.source, setting.target)
        return BuiltInTranslator(
            setting.source, setting.target, noise=self.noise, seed=self.seed, unknown=self.unknown
        )
