"""Split text into words, and locate answers, entities and tags in translations by word links.

Words are defined as in treebanks, punctuation included, except that contractions (don't, du) stay whole
because splitting them takes a dictionary. Chinese, Japanese, Thai, Lao, Khmer and Burmese have no spaces
between words. ICU's dictionaries find their words if the extra ``isogloss[icu]`` is installed. Without it
each Chinese character is a word, as is each run of hiragana or katakana, and in the other scripts each run
without a space. F1 with the words of German, English, Spanish, French and Russian treebanks is 0.94 to 0.97
(0.72 to 0.81 with spaces only), for Chinese 0.44 (with ICU 0.78), for Thai 0.09 (0.76).

Tags follow Yarowsky et al. (2001), "Inducing Multilingual Text Analysis Tools via Robust
Projection across Aligned Corpora": a word gets the tag on which all words linked to it agree. Other words,
and words without links, have no tag and do not contribute to training. An entity reaches from its first to
its last linked word. The sentence is discarded if no word of an entity is linked, or if a word outside of the
entity is linked between them, because an entity tagged O would teach a wrong label.
"""

import re
import unicodedata
from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import chain, product
from typing import TYPE_CHECKING

from isogloss.core.tag_schemes import NO_TAG, OUTSIDE, find_spans

if TYPE_CHECKING:
    from icu4py.breakers import WordBreaker


_HAN = "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U000323af"
UNSPACED = r"\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}\p{Tibetan}\u30fc"
"""Scripts without spaces between words."""

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

_ABBREVIATION = re.compile(
    r"(?:^|[\s(\[\"'“‘«])(?:\w|[A-Z][a-z]|(?:\w\.)+\w|Mrs|Drs?|Sra?|etc|vgl|bzw|usw|approx|Prof|Gen|Rev|Capt|"
    r"Jan|Feb|Aug|Sept?|Oct|Nov|Dec|Inc|Ltd|Mme|Mlle)\.$"
)
"""Initials, titles and months, whose full stop rarely ends a sentence."""

_LONGEST = 12
"""Longest abbreviation, in characters with its full stop."""


def tokenize(text: str) -> tuple[str, ...]:
    """Return the words of running text, split at spaces, with punctuation as separate words."""
    return tuple(word for chunk in _insert_spaces(text).split() for word in _split_chunk(chunk))


def word_breaking(languages: Iterable[str]) -> str:
    """Return the name and version of the dictionaries used for these languages, or "" if none is used."""
    dictionary_languages = {language.partition("_")[0] for language in languages} & _BY_DICTIONARY
    if not dictionary_languages or word_breaker() is None:
        return ""
    import icu4py

    return f"icu-{icu4py.icu_version}"


def _insert_spaces(text: str) -> str:
    """Insert spaces between words where the script has none."""
    if text.isascii():
        return text
    breaker = word_breaker()
    if breaker is None:
        return _UNSPACED.sub(r" \g<0> ", text)
    return _DICTIONARY.sub(lambda run: f" {' '.join(breaker(run[0], 'en'))} ", text)  # Any locale works.


@lru_cache(maxsize=1)
def word_breaker() -> "type[WordBreaker] | None":
    """Return ICU's word breaker, or None if it is not installed."""
    try:
        from icu4py.breakers import WordBreaker
    except ImportError:
        return None
    return WordBreaker


def word_offsets(words: Iterable[str], text: str, start: int = 0) -> list[tuple[int, int]]:
    """Return the character offsets (start, end) of words in a text, in their order from ``start``.

    A word that the text does not contain has (0, 0).
    """
    offsets = []
    for word in words:
        index = text.find(word, start)
        offsets.append((index, index + len(word)) if index >= 0 else (0, 0))
        start = max(start, offsets[-1][1])
    return offsets


def detokenize(words: Sequence[str]) -> str:
    """Join words into running text, attaching punctuation and quotation marks."""
    text = ""
    joins_next = True
    quote_end = ""
    for word in words:
        ends_quote = word == quote_end
        closes = ends_quote or all(_closes(char) for char in word) or _ENGLISH_ENDING.fullmatch(word)
        joins = joins_next or closes or any(_UNSPACED_OR_ITS_MARK.match(side) for side in (text[-1], word))
        text += word if joins else f" {word}"
        opens = word in _QUOTES or all(_opens(char) for char in word)
        joins_next = not ends_quote and (opens or bool(_ELIDED.fullmatch(word)))
        quote_end = "" if ends_quote else _QUOTES.get(word, quote_end)
    return text


@lru_cache(maxsize=1 << 16)
def _split_chunk(chunk: str) -> tuple[str, ...]:
    """Split a chunk into its word and the punctuation around it.

    Equal marks in a row are one. An elided article or preposition (l', qu') is a separate word.
    """
    start = 0
    stop = len(chunk)
    while start < stop and _is_mark(chunk[start]):
        start += 1
    while stop > start and _is_mark(chunk[stop - 1]) and not is_abbreviation(chunk, start, stop):
        stop -= 1
    elision = _ELIDED.match(chunk, start, stop)
    border = elision.end() if elision else start
    parts = (chunk[start:border], chunk[border:stop])
    return (*_runs(chunk[:start]), *(part for part in parts if part), *_runs(chunk[stop:]))


def _runs(marks: str) -> list[str]:
    return [run[0] for run in re.finditer(r"(.)\1*", marks)]


def _is_mark(char: str) -> bool:
    kind = unicodedata.category(char)
    return kind[0] == "P" or kind in ("Sc", "So")


def _opens(char: str) -> bool:
    return char in "¿¡" or unicodedata.category(char) in ("Ps", "Pi")


def _closes(char: str) -> bool:
    return char in _CLOSING or unicodedata.category(char) in ("Pe", "Pf")


def is_abbreviation(text: str, start: int, end: int) -> bool:
    """Return whether text[start:end] ends in an abbreviation."""
    return _ABBREVIATION.search(text[max(start, end - _LONGEST) : end]) is not None


Span = tuple[int, int]
"""Start and end of a word in a text, in characters."""

SpanLink = tuple[Span, Span]
"""A word of the text and its counterpart in the translation."""


Answer = tuple[int, str]
"""Character offset in the passage, and text."""


def locate_by_links(answer: Answer, translation: str, links: Iterable[SpanLink]) -> Answer | None:
    """Return the answer from the first to the last linked word, or None.

    None is for an answer without links, and for one with a word in between that is linked only outside.
    """
    start, text = answer
    stop = start + len(text)
    links = list(links)
    inside = {target for source, target in links if start <= source[0] and source[1] <= stop}
    outside = {target for source, target in links if source[1] <= start or source[0] >= stop}
    if not inside:
        return None
    target_start = min(begin for begin, _ in inside)
    target_stop = max(end for _, end in inside)
    if any(target_start <= begin < target_stop for begin, _ in outside - inside):
        return None
    return target_start, translation[target_start:target_stop]


WordLinks = Sequence[tuple[int, int]]
"""0-based words of a text and of its translation."""


def project_tags(tags: Sequence[str], count: int, links: WordLinks, *, bio: bool) -> tuple[str, ...] | None:
    """Return the tags of the ``count`` words of a translation, or None if they cannot be located.

    If the original has no tags, the result is empty.
    """
    if not tags:
        return ()
    target_tags = _project_entities(tags, count, links) if bio else _project_word_tags(tags, count, links)
    return None if target_tags is None or not any(target_tags) else tuple(target_tags)


def _project_word_tags(tags: Sequence[str], count: int, links: WordLinks) -> list[str]:
    votes_by_word: list[set[str]] = [set() for _ in range(count)]
    for source, target in links:
        votes_by_word[target].add(tags[source])
    return [votes.pop() if len(votes) == 1 else NO_TAG for votes in votes_by_word]


def _project_entities(tags: Sequence[str], count: int, links: WordLinks) -> list[str] | None:
    target_tags = [OUTSIDE] * count
    for entity in find_spans(tags):
        inside = {target for source, target in links if entity.start <= source < entity.stop}
        outside = {target for source, target in links if not entity.start <= source < entity.stop} - inside
        if not inside:
            return None
        start = min(inside)
        stop = max(inside) + 1
        overlaps = any(tag != OUTSIDE for tag in target_tags[start:stop])
        if overlaps or any(start <= word < stop for word in outside):
            return None
        target_tags[start:stop] = [f"B-{entity.type}", *[f"I-{entity.type}"] * (stop - start - 1)]
    return target_tags


def word_links(
    source: tuple[Sequence[str], str],
    target: tuple[Sequence[str], str],
    links: Iterable[SpanLink],
) -> list[tuple[int, int]]:
    """Turn links between spans of two texts (start, end) into links between their words."""
    sources, targets = (word_offsets(words, text) for words, text in (source, target))
    pairs = (product(_overlapping(sources, span), _overlapping(targets, match)) for span, match in links)
    return sorted(set(chain.from_iterable(pairs)))


def _overlapping(offsets: Sequence[Span], span: Span) -> list[int]:
    return [word for word, (start, stop) in enumerate(offsets) if start < span[1] and span[0] < stop]
