"""What a translator gives back for one text."""

from collections.abc import Callable, Iterable
from typing import NamedTuple

Place = tuple[int, int]
"""Where a word begins in a text, and where it ends, in characters."""

PlaceLink = tuple[Place, Place]
"""A word of the text and one of its translation that express something in common."""


class Translated(NamedTuple):
    """The translation of one text."""

    text: str
    """In one line; empty for an empty text."""
    cuts: int = 0
    """Places at which the text was cut because it was too long for the model."""
    words: tuple[str, ...] | None = None
    """The words of the translation, where the translator knows them; else ``tokenize`` finds them."""
    links: tuple[PlaceLink, ...] | None = None
    """Which words belong together, where the translator knows."""


TranslateTexts = Callable[[Iterable[str]], Iterable[Translated]]
"""One translation for each text, in order."""
