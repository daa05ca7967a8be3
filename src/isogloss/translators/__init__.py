"""Floor 5: one translator per file.

Existing translations need no translator: corpora read them, in XTREME's translate-train and translate-test
layouts, as examples of a pair such as ``en-sw``.
"""

from collections.abc import Iterable, Iterator
from typing import ClassVar, Protocol

from isogloss.core.run_parts import Named
from isogloss.data.projection.label_projection import Translated
from isogloss.translators.built_in import BuiltIn
from isogloss.translators.seq2seq import CTranslate2, Seq2Seq
from isogloss.translators.setting import TranslateSetting


class Translator(Named, Protocol):
    """A translator; its fields are its hyper-parameters."""

    needs_model: ClassVar[bool]
    """Whether the setting must name a model's folder."""
    knows_links: ClassVar[bool]
    """Whether it returns word alignments."""

    def check(self, source: str, target: str) -> None:
        """Raise ConfigError, before any run starts, if it cannot translate between these languages."""
        ...

    def translate(self, texts: Iterable[str], setting: TranslateSetting) -> Iterator[Translated]:
        """Yield a translation, of one line, for each text, in order; that of an empty text is empty.

        Translations stored in the setting's folder are used again.
        """
        ...


_ALL: tuple[type[Translator], ...] = (Seq2Seq, CTranslate2, BuiltIn)
TRANSLATORS: dict[str, type[Translator]] = {translator.name: translator for translator in _ALL}

__all__ = ["TRANSLATORS", "TranslateSetting", "Translated", "Translator"]
