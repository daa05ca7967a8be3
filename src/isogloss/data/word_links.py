"""Word alignments as text: ``0-0 1-2 2p1``, Pharaoh's format with ``p`` for a link that is only possible."""

import re
from dataclasses import replace

from isogloss.data.corpora import not_writable
from isogloss.data.examples import Translation
from isogloss.data.files import File

NO_LINKS = "-"
"""In a table: gold alignments exist, and this pair has no link (an empty cell: none exist)."""

LINKED_WORD = re.compile("[^ \t]+")
"""What links count as a word: spaces (U+0020) and tabs part words, and no other white space does."""

_LINK = re.compile(r"([0-9]{1,6})([-p])([0-9]{1,6})")


def linked_words(text: str) -> list[str]:
    """Return the words that links count."""
    return LINKED_WORD.findall(text)


def linked(pair: Translation, text: str, file: File, number: int, first_is: int = 0) -> Translation:
    """Give the pair its links; ``first_is`` (0 or 1) is how the format counts a sentence's first word."""
    sizes = len(linked_words(pair.first)), len(linked_words(pair.second))
    sure: list[tuple[int, int]] = []
    possible: list[tuple[int, int]] = []
    for link in linked_words(text):
        match = _LINK.fullmatch(link)
        i, j = (int(match[1]) - first_is, int(match[3]) - first_is) if match else (-1, -1)
        if not match or not (0 <= i < sizes[0] and 0 <= j < sizes[1]):
            raise file.broken(
                number,
                f"link {link!r}",
                f"i-j (or ipj, only possible) from {first_is} for {sizes[0]} and {sizes[1]} words",
            )
        (sure if match[2] == "-" else possible).append((i, j))
    return replace(pair, links=tuple(sure), possible=tuple(possible))


def flipped(pair: Translation) -> Translation:
    """Exchange the two languages."""
    return Translation(
        id=pair.id,
        first=pair.second,
        second=pair.first,
        links=None if pair.links is None else tuple((j, i) for i, j in pair.links),
        possible=tuple((j, i) for i, j in pair.possible),
    )


def format_links(pair: Translation, corpus: str) -> str:
    """Write the links, counted from 0."""
    sizes = len(linked_words(pair.first)), len(linked_words(pair.second))
    for i, j in (*(pair.links or ()), *pair.possible):
        if pair.links is None or not (0 <= i < sizes[0] and 0 <= j < sizes[1]):
            where = f"{sizes[0]} and {sizes[1]} words" if pair.links is not None else "a pair without links"
            raise not_writable(corpus, repr(pair.id), f"link {i}-{j} in {where}")
    if pair.links is None:
        return ""
    links = [*(f"{i}-{j}" for i, j in pair.links), *(f"{i}p{j}" for i, j in pair.possible)]
    return " ".join(links) or NO_LINKS
