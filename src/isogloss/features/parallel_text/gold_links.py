"""Gold links of words in parallel text, as text."""

from dataclasses import replace

from isogloss.data.corpus import cannot_write
from isogloss.data.examples import Translation
from isogloss.data.files import File
from isogloss.data.formats.word_links import SPACED_WORD, parse_links

NO_LINKS = "-"
"""Cell of a pair without links in a table of gold alignments. An empty cell has no gold alignment."""


def add_gold_links(
    pair: Translation, text: str, file: File, line_number: int, first_is: int = 0
) -> Translation:
    """Return the pair with gold links, which count words separated by spaces.

    ``first_is`` (0 or 1) is the index of a sentence's first word in the format. Raises DataError, with the
    line, for links that do not fit the words.
    """
    words = tuple(SPACED_WORD.findall(pair.first)), tuple(SPACED_WORD.findall(pair.second))
    sure_links, possible_links = parse_links(text, words, file, line_number, first_is)
    return replace(pair, links=sure_links, possible=possible_links, words=words)


def flip_languages(pair: Translation) -> Translation:
    """Return the pair with its languages exchanged."""
    return Translation(
        id=pair.id,
        first=pair.second,
        second=pair.first,
        links=None if pair.links is None else tuple((j, i) for i, j in pair.links),
        possible=tuple((j, i) for i, j in pair.possible),
        words=None if pair.words is None else pair.words[::-1],
    )


def format_links(pair: Translation, corpus: str) -> str:
    """Format gold links, counted from 0.

    Raises DataError for links outside of the words.
    """
    sizes = len(SPACED_WORD.findall(pair.first)), len(SPACED_WORD.findall(pair.second))
    for i, j in (*(pair.links or ()), *pair.possible):
        if pair.links is None or not (0 <= i < sizes[0] and 0 <= j < sizes[1]):
            sides = f"{sizes[0]} and {sizes[1]} words" if pair.links is not None else "a pair without links"
            raise cannot_write(corpus, repr(pair.id), f"link {i}-{j} in {sides}")
    if pair.links is None:
        return ""
    links = [*(f"{i}-{j}" for i, j in pair.links), *(f"{i}p{j}" for i, j in pair.possible)]
    return " ".join(links) or NO_LINKS
