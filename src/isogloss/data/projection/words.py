"""Words, sentences and the running text they make; answers, entities and tags located in translations.

Words are those of treebanks, punctuation included, except where that takes a dictionary: contractions (don't,
du) stay whole. Chinese, Japanese, Thai, Lao, Khmer and Burmese have no spaces between words. ICU's
dictionaries find their words where the extra ``isogloss[icu]`` is installed; without it each Chinese
character is a word, each run of hiragana or katakana, and whatever the others write without a space. F1 with
the words of German, English, Spanish, French and Russian treebanks is 0.94 to 0.97 (of spaces alone 0.72 to
0.81), with those of Chinese 0.44 (with ICU 0.78), of Thai 0.09 (0.76). Sentence ends are found by punctuation
alone.

What is located is found by marks, by word links, or by its own translation; None where its position is
ambiguous. Tags follow Yarowsky et al. (2001), "Inducing Multilingual Text Analysis Tools via Robust
Projection across Aligned Corpora": a word takes the tag on which all words linked to it agree; others, and
words without links, have none, and nothing is learned from them. An entity reaches from its first to its last
linked word; where none is linked, or a word outside of the entity is linked between them, the sentence is
given up, as an entity tagged O would teach a wrong label.
"""

import re
import unicodedata
from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import chain, pairwise, product
from typing import TYPE_CHECKING, NamedTuple

from isogloss.core.tag_schemes import NO_TAG, OUTSIDE, find_spans

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


Span = tuple[int, int]
"""Start and end of a word in a text, in characters."""

SpanLink = tuple[Span, Span]
"""A word of the text and its counterpart in the translation."""


Answer = tuple[int, str]
"""Character offset in the passage, and text."""


class MarkerPair(NamedTuple):
    """Markers around an answer, and regular expressions of their translations."""

    left: str
    right: str
    lefts: str
    """Regular expression of the left one's translations."""
    rights: str


MARKS = (
    MarkerPair("[", "]", r"[\[［【]", r"[\]］】]"),
    MarkerPair("<b>", "</b>", r"<\s*[bB]\s*>", r"<\s*/\s*[bB]\s*>"),
    MarkerPair("“", "”", r"[\"“„«»”「『]", r"[\"“”»«」』]"),
)
"""Brackets and tags survive translation best (Chen et al. 2023, "EasyProject", Section 4); then quotes."""

_NO_SPACE_BEFORE = re.compile(r"[,.;:!?…)\]}»”%、。，！？：；]")


def marked(passage: str, answer: Answer, mark: MarkerPair) -> str | None:
    """Write marks around an answer; None where the passage contains such marks itself."""
    if re.search(f"{mark.lefts}|{mark.rights}", passage):
        return None
    start, text = answer
    stop = start + len(text)
    return passage[:start] + mark.left + passage[start:stop] + mark.right + passage[stop:]


def unmarked(translation: str, mark: MarkerPair) -> tuple[str, Answer] | None:
    """Remove the marks from a translation; return it and the answer between them."""
    lefts = list(re.finditer(mark.lefts, translation))
    first = lefts[0] if lefts else None
    all_rights = list(re.finditer(mark.rights, translation))
    rights = [match for match in all_rights if first and match.start() >= first.end()]
    if first is None or len(rights) != 1 or len({match.span() for match in (*lefts, *all_rights)}) != 2:
        return None
    left, after = translation[: first.start()], translation[rights[0].end() :]
    inner = translation[first.end() : rights[0].start()]
    answer = inner.strip()
    if not answer:
        return None
    start = left.rstrip() + _gap(left, inner)
    spaced = _gap(inner, after)
    if _NO_SPACE_BEFORE.match(after.lstrip()) and not after[:1].isspace():
        spaced = ""  # The space was the mark's.
    return start + answer + spaced + after.lstrip(), (len(start), answer)


def _gap(left: str, right: str) -> str:
    """Return a space if either part had one at the joint, else nothing."""
    inside = bool(left.strip() and right.strip())
    return " " if inside and (left[-1].isspace() or right[0].isspace()) else ""


def by_links(answer: Answer, translation: str, links: Iterable[SpanLink]) -> Answer | None:
    """Return the span from the first to the last word linked to the answer; None if others are within."""
    start, stop = answer[0], answer[0] + len(answer[1])
    links = list(links)
    inside = {target for source, target in links if start <= source[0] and source[1] <= stop}
    outside = {target for source, target in links if source[1] <= start or source[0] >= stop}
    if not inside:
        return None
    first, last = min(begin for begin, _ in inside), max(end for _, end in inside)
    if any(first <= begin < last for begin, _ in outside - inside):
        return None
    return first, translation[first:last]


def by_text(answer: str, translation: str) -> Answer | None:
    """Return the only occurrence of a translated answer, ignoring case, at word boundaries; else None."""
    core = answer.strip().rstrip(".。").strip()
    if not core:
        return None
    pattern = rf"{_border(core[0])}{re.escape(core)}{_border(core[-1])}"
    matches = list(re.finditer(pattern, translation, re.IGNORECASE))
    return (matches[0].start(), matches[0][0]) if len(matches) == 1 else None


def _border(letter: str) -> str:
    """Return the expression of a word boundary, in scripts that separate words."""
    spaced = letter.isalnum() and not re.match(
        r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u2e80-\uffee]", letter
    )
    return r"\b" if spaced else ""


def span_links(text: str, translation: str, links: Iterable[tuple[int, int]]) -> list[SpanLink]:
    """Turn links between the numbers of words into links between their character offsets."""
    sources, targets = (word_offsets(tokenize(side), side) for side in (text, translation))
    return [(sources[i], targets[j]) for i, j in links]


WordLinks = Sequence[tuple[int, int]]
"""0-based words of a text and of its translation."""


def projected_tags(tags: Sequence[str], count: int, links: WordLinks, *, bio: bool) -> tuple[str, ...] | None:
    """Return the tags of the ``count`` words of a translation; None where they cannot be located.

    Without tags to carry there are none in the translation either.
    """
    if not tags:
        return ()
    projected = _entities_projected(tags, count, links) if bio else _words_projected(tags, count, links)
    return None if projected is None or not any(projected) else tuple(projected)


def _words_projected(tags: Sequence[str], count: int, links: WordLinks) -> list[str]:
    linked: list[set[str]] = [set() for _ in range(count)]
    for source, target in links:
        linked[target].add(tags[source])
    return [votes.pop() if len(votes) == 1 else NO_TAG for votes in linked]


def _entities_projected(tags: Sequence[str], count: int, links: WordLinks) -> list[str] | None:
    projected = [OUTSIDE] * count
    for entity in find_spans(tags):
        inside = {target for source, target in links if entity.start <= source < entity.stop}
        outside = {target for source, target in links if not entity.start <= source < entity.stop} - inside
        if not inside:
            return None
        first, last = min(inside), max(inside)
        overlaps = any(tag != OUTSIDE for tag in projected[first : last + 1])
        if overlaps or any(first <= word <= last for word in outside):
            return None
        projected[first : last + 1] = [f"B-{entity.type}", *[f"I-{entity.type}"] * (last - first)]
    return projected


def word_links(
    source: tuple[Sequence[str], str],
    target: tuple[Sequence[str], str],
    links: Iterable[SpanLink],
) -> list[tuple[int, int]]:
    """Turn links between spans of two texts (start, end) into links between their words."""
    sources, targets = (word_offsets(words, text) for words, text in (source, target))
    pairs = (product(_overlapping(sources, span), _overlapping(targets, other)) for span, other in links)
    return sorted({*chain.from_iterable(pairs)})


def _overlapping(offsets: Sequence[Span], span: Span) -> list[int]:
    return [word for word, (start, stop) in enumerate(offsets) if start < span[1] and span[0] < stop]
