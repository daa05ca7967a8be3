"""Find a text as whole words inside a longer text, in every script.

Words end at the word boundaries of Unicode (UAX #29). In scripts without spaces a place may be anywhere
between grapheme clusters. Hebrew and Arabic attach prepositions and conjunctions to the next word, Korean
attaches particles to the previous word; places next to them are the second choice.
"""

from typing import NamedTuple

import regex

from isogloss.data.projection.words import UNSPACED

_UNSPACED = regex.compile(rf"[{UNSPACED}]")
_WITH_PREFIXES = regex.compile(r"[\p{Hebrew}\p{Arabic}]")
_WITH_PARTICLES = regex.compile(r"\p{Hangul}")
_BOUNDARY = regex.compile(r"\b", flags=regex.WORD)
_GRAPHEME = regex.compile(r"\X")
MAX_WORD = 64
"""Characters around a place that are searched for word boundaries."""

_SPACES = r"\s+"


class WordPlace(NamedTuple):
    """Position of a text in a longer text."""

    start: int
    text: str
    word: str = ""
    """Longer word that contains the text, or "" for whole words."""


def find_words(text: str, words: str) -> list[WordPlace]:
    """Return each place of some words in a text, with any white space between them.

    Places inside longer words do not count. In Hebrew, Arabic and Korean, places next to an attached particle
    are returned if the text has no others.
    """
    word_patterns = [regex.escape(word) for word in words.split()]
    if not word_patterns:
        return []
    pattern = regex.compile(f"(?=({_SPACES.join(word_patterns)}))")  # A lookahead: places may overlap.
    whole_words: list[WordPlace] = []
    attached_places: list[WordPlace] = []
    for match in pattern.finditer(text):
        start = match.start()
        stop = start + len(match[1])
        boundaries = _find_word_boundaries(text, start, stop)
        starts_word = start in boundaries
        ends_word = stop in boundaries
        if starts_word and ends_word:
            whole_words.append(WordPlace(start, match[1]))
        elif _is_attached(text, start, stop, starts_word=starts_word, ends_word=ends_word):
            attached_places.append(
                WordPlace(start, match[1], _find_word_around(text, start, stop, boundaries))
            )
    return whole_words or attached_places


def _is_attached(text: str, start: int, stop: int, *, starts_word: bool, ends_word: bool) -> bool:
    """Return whether the words are next to an attached particle."""
    if ends_word:
        return bool(_WITH_PREFIXES.match(text[start])) and bool(_WITH_PREFIXES.match(text[start - 1]))
    if starts_word:
        return bool(_WITH_PARTICLES.match(text[stop - 1])) and bool(_WITH_PARTICLES.match(text[stop]))
    return False


def _find_word_around(text: str, start: int, stop: int, boundaries: set[int]) -> str:
    word_start = max(offset for offset in boundaries if offset <= start)
    word_stop = min(offset for offset in boundaries if offset >= stop)
    return text[word_start:word_stop]


def _find_word_boundaries(text: str, start: int, stop: int) -> set[int]:
    """Return the offsets near a place in a text at which a word may begin or end."""
    part_start = start
    while part_start > max(0, start - MAX_WORD) and not text[part_start - 1].isspace():
        part_start -= 1
    part_stop = stop
    while part_stop < min(len(text), stop + MAX_WORD) and not text[part_stop].isspace():
        part_stop += 1
    part = text[part_start:part_stop]
    graphemes = {match.start() for match in _GRAPHEME.finditer(part)} | {len(part)}
    words = {match.start() for match in _BOUNDARY.finditer(part)}
    return {part_start + offset for offset in graphemes if offset in words or _is_free(part, offset)}


def _is_free(text: str, offset: int) -> bool:
    """Return whether an offset separates words at an end, a mark, or between scripts without spaces."""
    if offset in (0, len(text)):
        return True
    sides = text[offset - 1], text[offset]
    return any(not _is_word_character(side) or _UNSPACED.match(side) for side in sides)


def _is_word_character(character: str) -> bool:
    return character.isalnum() or regex.match(r"[\p{M}\p{Cf}]", character) is not None
