"""A translator that knows no language: a control for everything that translations are said to do."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import ClassVar

from isogloss.plugins import Translated, TranslateSetting, Translator


@dataclass(frozen=True, kw_only=True)
class Backwards(Translator):
    """Write every word backwards, which keeps all letters, their number, and no word."""

    name: ClassVar[str] = "backwards"
    needs_model: ClassVar[bool] = False
    knows_links: ClassVar[bool] = True

    def check(self, source: str, target: str) -> None:
        """Accept all languages."""

    def translate(self, texts: Iterable[str], setting: TranslateSetting) -> Iterator[Translated]:
        """Write each text backwards, word by word."""
        for index, text in enumerate(texts, start=1):
            translation = " ".join(word[::-1] for word in text.split())
            links = zip(list_spans(text), list_spans(translation), strict=True)
            yield Translated(text=translation, links=tuple(links))
            setting.report(index)


def list_spans(text: str) -> list[tuple[int, int]]:
    """Return the start and the end of each word, in characters."""
    return [word.span() for word in re.finditer(r"\S+", text)]
