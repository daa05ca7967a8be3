"""Split text of a built-in language into sentences of words, and words into what they may mean."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from isogloss.core.errors import DataError, did_you_mean
from isogloss.data.languages.lexicon import Lexicon, Reading
from isogloss.data.languages.rendering import PUNCTUATION, has_spaces

ENDS = (".", "?")
_LONGEST_NAME = 3


class Item(NamedTuple):
    """A word, or all words of a name, with what it may mean by tag; nothing for unknown words."""

    words: tuple[str, ...]
    readings: dict[str, Reading]


def sentences_in(text: str, words: Lexicon) -> Iterator[list[str]]:
    """Give the words of each sentence; the last one may lack its end."""
    sentence: list[str] = []
    for word in _words_in(text, words):
        sentence.append(word)
        if word in ENDS:
            yield sentence
            sentence = []
    if sentence:
        yield sentence


def _words_in(text: str, words: Lexicon) -> Iterator[str]:
    for chunk in text.split():
        if not has_spaces(words):
            yield from _split_han(chunk, words)
            continue
        core = chunk.rstrip(",.?")
        if core:
            yield core
        yield from chunk[len(core) :]


def _split_han(chunk: str, words: Lexicon) -> Iterator[str]:
    """Split where words end: no word begins another, so the first that fits is the only one."""
    start = 0
    while start < len(chunk):
        end = start + 1
        while end <= len(chunk) and not _is_word(chunk[start:end], words):
            end += 1
        end = end if end <= len(chunk) else start + 1
        yield chunk[start:end]
        start = end


def _is_word(text: str, words: Lexicon) -> bool:
    return text in words.readings or text in PUNCTUATION


def items_of(sentence: Sequence[str], words: Lexicon) -> list[Item]:
    """Look the words of a sentence up; the words of a name become one item."""
    items, start = [], 0
    while start < len(sentence):
        item = _name_at(sentence, start, words) or _word_at(sentence[start], words)
        items.append(item)
        start += len(item.words)
    return items


NAME = "NAME"
"""The tag of a whole name; PROPN is a word of a name that stands alone."""

_PUNCTUATION_READING = {"PUNCT": Reading(-1)}


def _name_at(sentence: Sequence[str], start: int, words: Lexicon) -> Item | None:
    if "PROPN" not in words.readings.get(sentence[start], ()):
        return None
    for length in range(_LONGEST_NAME, 0, -1):
        name = tuple(sentence[start : start + length])
        if name in words.called:
            return Item(name, {NAME: Reading(words.called[name])})
    return None


def _word_at(word: str, words: Lexicon) -> Item:
    return Item((word,), _PUNCTUATION_READING if word in PUNCTUATION else words.readings.get(word, {}))


def unknown_word(word: str, words: Lexicon) -> DataError:
    """Build the error for a word that is not of the language."""
    language = words.language
    return DataError(
        f"text in {language.code}: {word!r} is no word of {language.name}."
        f"{did_you_mean(word, words.readings)} "
        f"Give text in {language.code}, or have such words copied (unknown='copy')."
    )
