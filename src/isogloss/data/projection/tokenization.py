"""Words, sentences and the running text they make, in the scripts of the corpora read here.

Words are those of treebanks, punctuation included, except where that takes a dictionary: contractions
(don't, du) stay whole. Chinese, Japanese, Thai, Lao, Khmer and Burmese have no spaces between words. ICU's
dictionaries find their words where the extra ``isogloss[icu]`` is installed; without it each Chinese
character is a word, each run of hiragana or katakana, and whatever the others write without a space. F1 with
the words of German, English, Spanish, French and Russian treebanks is .94 to .97 (of spaces alone .72 to
.81), with those of Chinese .44 (with ICU .78), of
Thai .09 (.76). Sentence ends are found by punctuation alone.
"""

import re
import unicodedata
from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from icu4py.breakers import WordBreaker

_HAN = "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U000323af"
_UNSPACED = re.compile(rf"[{_HAN}]|[\u3041-\u309f]+|[\u30a0-\u30ff]+")
"""A Chinese character, or a run of hiragana or katakana."""

_DICTIONARY = re.compile(
    rf"[{_HAN}\u3005-\u3007\u3041-\u309f\u30a0-\u30ff]+|[\u0e00-\u0eff]+|[\u1000-\u109f]+|[\u1780-\u17ff]+"
)
"""Runs that ICU's dictionaries split: Chinese and Japanese, Thai and Lao, Burmese, Khmer."""

_BY_DICTIONARY = frozenset({"cmn", "ja", "km", "lo", "my", "th", "wuu", "yue", "zh"})
"""Languages in these scripts."""

_UNSPACED_OR_ITS_MARK = re.compile(rf"[{_HAN}\u3000-\u30ff\uff01-\uff65]")
_ELIDED = re.compile(r"(?:[cdjlmnst]|\w*qu|un|\w{0,2}[aeu]ll)['’]", re.IGNORECASE)
"""French, Italian and Catalan words that lost their last vowel: l', qu', dell'."""

_QUOTES = {'"': '"', "„": "“", "‚": "‘"}
"""Opening quotation marks whose closing mark is ambiguous, and that mark."""

_CLOSING = frozenset(",.;:!?…%،؛؟۔।")
_ENGLISH_ENDING = re.compile(r"n['’]t|['’](?:s|m|d|re|ve|ll)", re.IGNORECASE)
"""Endings that English treebanks split off."""

_CLOSERS = "\"'”’»)\\]」』】）"
_ABBREVIATION = re.compile(
    r"(?:^|[\s(\[\"'“‘«])(?:\w|[A-Z][a-z]|(?:\w\.)+\w|Mrs|Drs?|Sra?|etc|vgl|bzw|usw|approx|Prof|Gen|Rev|Capt|"
    r"Jan|Feb|Aug|Sept?|Oct|Nov|Dec|Inc|Ltd|Mme|Mlle)\.$"
)
"""Initials, titles and months, whose full stop rarely ends a sentence."""

_LONGEST = 12
"""Longest abbreviation, in characters with its full stop."""

_WITH_SPACE = re.compile(rf"[.!?…؟۔।॥።][.!?…]*[{_CLOSERS}]*(?=\s)")
_NOT_SPACE = re.compile(r"\S")
_WITHOUT = re.compile(rf"[。！？｡][。！？｡]*[{_CLOSERS}]*")


def tokenize(text: str) -> tuple[str, ...]:
    """Return the words of running text, split at spaces, with punctuation as words of its own."""
    return tuple(word for chunk in _spaced(text).split() for word in _parted(chunk))


def word_breaking(languages: Iterable[str]) -> str:
    """Return the name and version of the dictionaries used for these languages; empty for none."""
    needed = {language.partition("_")[0] for language in languages} & _BY_DICTIONARY
    if not needed or word_breaker() is None:
        return ""
    import icu4py

    return f"icu-{icu4py.icu_version}"


def _spaced(text: str) -> str:
    """Insert spaces between words where the script has none."""
    if text.isascii():
        return text
    breaker = word_breaker()
    if breaker is None:
        return _UNSPACED.sub(r" \g<0> ", text)
    return _DICTIONARY.sub(lambda run: f" {' '.join(breaker(run[0], 'en'))} ", text)  # any locale does


@lru_cache(maxsize=1)
def word_breaker() -> "type[WordBreaker] | None":
    """Return ICU's word breaker; None where it is not installed."""
    try:
        from icu4py.breakers import WordBreaker
    except ImportError:
        return None
    return WordBreaker


def word_offsets(words: Iterable[str], text: str, start: int = 0) -> list[tuple[int, int]]:
    """Return the character offsets (start, end) of words in a text, in their order from ``start`` on.

    (0, 0) for a word that is written otherwise.
    """
    offsets = []
    for word in words:
        index = text.find(word, start)
        offsets.append((index, index + len(word)) if index >= 0 else (0, 0))
        start = max(start, offsets[-1][1])
    return offsets


def detokenize(words: Sequence[str]) -> str:
    """Join words to running text, attaching punctuation and quotation marks."""
    text, glued, quote_end = "", True, ""
    for word in words:
        ends = word == quote_end
        closes = ends or all(map(_closes, word)) or _ENGLISH_ENDING.fullmatch(word)
        together = glued or closes or any(map(_UNSPACED_OR_ITS_MARK.match, (text[-1], word)))
        text += word if together else f" {word}"
        glued = not ends and (word in _QUOTES or all(map(_opens, word)) or bool(_ELIDED.fullmatch(word)))
        quote_end = "" if ends else _QUOTES.get(word, quote_end)
    return text


def sentences_in(text: str) -> list[str]:
    """Split text into sentences, stripped of white space; text without an end is one sentence."""
    ends = {match.end() for match in _WITH_SPACE.finditer(text) if _is_end(text, match)}
    ends |= {match.end() for match in _WITHOUT.finditer(text)}
    indices = [0, *sorted(ends), len(text)]
    parts = [text[start:end].strip() for start, end in pairwise(indices)]
    return [part for part in parts if part]


@lru_cache(maxsize=1 << 16)
def _parted(chunk: str) -> tuple[str, ...]:
    """Split punctuation before and after a word from it; equal marks in a row are one."""
    first, last = 0, len(chunk)
    while first < last and _is_mark(chunk[first]):
        first += 1
    while last > first and _is_mark(chunk[last - 1]) and not _is_abbreviation(chunk, first, last):
        last -= 1
    elided = _ELIDED.match(chunk, first, last)
    parts = (chunk[first : elided.end()], chunk[elided.end() : last]) if elided else (chunk[first:last],)
    return (*_runs(chunk[:first]), *filter(None, parts), *_runs(chunk[last:]))


def _runs(marks: str) -> list[str]:
    return [run[0] for run in re.finditer(r"(.)\1*", marks)]


def _is_mark(char: str) -> bool:
    kind = unicodedata.category(char)
    return kind[0] == "P" or kind in ("Sc", "So")


def _opens(char: str) -> bool:
    return char in "¿¡" or unicodedata.category(char) in ("Ps", "Pi")


def _closes(char: str) -> bool:
    return char in _CLOSING or unicodedata.category(char) in ("Pe", "Pf")


def _is_abbreviation(text: str, start: int, end: int) -> bool:
    """Return whether text[start:end] ends in an abbreviation."""
    return _ABBREVIATION.search(text[max(start, end - _LONGEST) : end]) is not None


def _is_end(text: str, match: re.Match[str]) -> bool:
    after = _NOT_SPACE.search(text, match.end())
    if after and after[0].islower():
        return False
    return match[0] != "." or not _is_abbreviation(text, 0, match.end())
