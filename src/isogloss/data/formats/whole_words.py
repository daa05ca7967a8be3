"""Find a text as whole words in another, in every script.

Words end at the word boundaries of Unicode (UAX #29). In scripts without spaces a place may be anywhere
between grapheme clusters. Hebrew and Arabic write prepositions and conjunctions before a word, Korean writes
particles after it: a place next to them is the second choice.
"""

from typing import NamedTuple

import regex

from isogloss.data.formats.offsets import UNSPACED

_UNSPACED = regex.compile(rf"[{UNSPACED}]")
_WITH_PREFIXES = regex.compile(r"[\p{Hebrew}\p{Arabic}]")
_WITH_PARTICLES = regex.compile(r"\p{Hangul}")
_BOUNDARY = regex.compile(r"\b", flags=regex.WORD)
_GRAPHEME = regex.compile(r"\X")
MAX_WORD = 64
"""Characters around a place in which the boundaries of words are looked for."""

_SPACES = r"\s+"


class WordPlace(NamedTuple):
    """Where a text is found."""

    start: int
    text: str
    word: str = ""
    """The longer word that it is a part of; empty for whole words."""


def find_words(text: str, words: str) -> list[WordPlace]:
    """Return each place of some words in a text, with any white space between them.

    Places inside longer words are left out. Where words are joined with particles, as in Hebrew, Arabic and
    Korean, these places are returned if there are no others.
    """
    escaped = [regex.escape(word) for word in words.split()]
    if not escaped:
        return []
    pattern = regex.compile(f"(?=({_SPACES.join(escaped)}))")  # A lookahead: places may overlap.
    whole_words: list[WordPlace] = []
    joined: list[WordPlace] = []
    for match in pattern.finditer(text):
        start = match.start()
        stop = start + len(match[1])
        boundaries = _find_word_boundaries(text, start, stop)
        starts_word = start in boundaries
        ends_word = stop in boundaries
        if starts_word and ends_word:
            whole_words.append(WordPlace(start, match[1]))
        elif _is_joined(text, start, stop, starts_word=starts_word, ends_word=ends_word):
            joined.append(WordPlace(start, match[1], _find_word_around(text, start, stop, boundaries)))
    return whole_words or joined


def _is_joined(text: str, start: int, stop: int, *, starts_word: bool, ends_word: bool) -> bool:
    """Return whether words stand next to a particle that is written together with them."""
    if ends_word:
        return bool(_WITH_PREFIXES.match(text[start])) and bool(_WITH_PREFIXES.match(text[start - 1]))
    if starts_word:
        return bool(_WITH_PARTICLES.match(text[stop - 1])) and bool(_WITH_PARTICLES.match(text[stop]))
    return False


def _find_word_around(text: str, start: int, stop: int, boundaries: set[int]) -> str:
    first = max(offset for offset in boundaries if offset <= start)
    last = min(offset for offset in boundaries if offset >= stop)
    return text[first:last]


def _find_word_boundaries(text: str, start: int, stop: int) -> set[int]:
    """Return the offsets at which a word may begin or end, near a place in a text."""
    first = start
    while first > max(0, start - MAX_WORD) and not text[first - 1].isspace():
        first -= 1
    last = stop
    while last < min(len(text), stop + MAX_WORD) and not text[last].isspace():
        last += 1
    part = text[first:last]
    graphemes = {match.start() for match in _GRAPHEME.finditer(part)} | {len(part)}
    words = {match.start() for match in _BOUNDARY.finditer(part)}
    return {first + offset for offset in graphemes if offset in words or _is_free(part, offset)}


def _is_free(text: str, offset: int) -> bool:
    """Return whether an offset separates words at an end, a mark, or between scripts without spaces."""
    if offset in (0, len(text)):
        return True
    sides = text[offset - 1], text[offset]
    return any(not _is_of_word(side) for side in sides) or any(map(_UNSPACED.match, sides))


def _is_of_word(character: str) -> bool:
    return character.isalnum() or regex.match(r"[\p{M}\p{Cf}]", character) is not None
