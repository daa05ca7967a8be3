"""Languages that a feature generates, with codes from qaa to qai (``core.languages.is_built_in``)."""

from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

from isogloss.core.errors import ConfigError
from isogloss.core.progress import OnProgress
from isogloss.core.registry import Registry
from isogloss.data.corpus import Source, Split


class GeneratedLanguages(Source, Protocol):
    """Generated languages: a source of corpora, with facts of each language."""

    @property
    def names(self) -> Mapping[str, str]:
        """The name of each language, by code."""

    @property
    def labelled_corpora(self) -> tuple[str, ...]:
        """The corpora with labels or raw text."""

    def size(self, corpus: str, language: str, split: Split) -> int | None:
        """Return the number of examples in a split without generating them. None if it is unknown."""

    def cards(self) -> Mapping[str, Mapping[str, str]]:
        """Return facts of each language, by their heads."""

    def share_of_common_words(self, language: str) -> float:
        """Return the share of words that a language shares with the first one."""

    def export(self, folder: Path, on_progress: OnProgress) -> None:
        """Write the files of all corpora."""


GENERATED: Registry[GeneratedLanguages] = Registry({}, features="generated-languages")


def generated_languages() -> GeneratedLanguages:
    """Return the generated languages. Raises ConfigError if no feature has some."""
    for name in GENERATED:
        return GENERATED[name]
    raise ConfigError(
        "the built-in languages (qaa to qai) belong to a feature whose folder in isogloss/features is "
        "missing. Choose natural languages, or install isogloss again."
    )


def generated_size(corpus: str, language: str, split: Split) -> int | None:
    """Return the number of examples in a generated split. None for other languages and unknown sizes."""
    return generated_languages().size(corpus, language, split) if len(GENERATED) else None
