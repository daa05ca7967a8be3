"""Answers, entities and tags located in translations: by marks, by word links, by their own translation.

Each function returns None where the position is ambiguous. Tags follow Yarowsky et al. (2001), "Inducing
Multilingual Text Analysis Tools via Robust Projection across Aligned Corpora": a word takes the tag on which
all words linked to it agree; others, and words without links, have none, and nothing is learned from them. An
entity reaches from its first to its last linked word; where none is linked, or a word outside of the entity
is linked between them, the sentence is given up, as an entity tagged O would teach a wrong label.
"""

import re
from collections.abc import Iterable, Sequence
from itertools import chain, product
from typing import NamedTuple

from isogloss.data.formats.conll import NO_TAG, OUTSIDE, entities
from isogloss.data.projection.tokenization import tokenize, word_offsets

Span = tuple[int, int]
"""Start and end of a word in a text, in characters."""

SpanLink = tuple[Span, Span]
"""A word of the text and its counterpart in the translation."""


Answer = tuple[int, str]
"""Character offset in the passage, and text."""


class Mark(NamedTuple):
    """Markers around an answer, and regular expressions of their translations."""

    left: str
    right: str
    lefts: str
    """Regular expression of the left one's translations."""
    rights: str


MARKS = (
    Mark("[", "]", r"[\[［【]", r"[\]］】]"),
    Mark("<b>", "</b>", r"<\s*[bB]\s*>", r"<\s*/\s*[bB]\s*>"),
    Mark("“", "”", r"[\"“„«»”「『]", r"[\"“”»«」』]"),
)
"""Brackets and tags survive translation best (Chen et al. 2023, "EasyProject", Section 4); then quotes."""

_NO_SPACE_BEFORE = re.compile(r"[,.;:!?…)\]}»”%、。，！？：；]")


def marked(passage: str, answer: Answer, mark: Mark) -> str | None:
    """Write marks around an answer; None where the passage contains such marks itself."""
    if re.search(f"{mark.lefts}|{mark.rights}", passage):
        return None
    start, text = answer
    stop = start + len(text)
    return passage[:start] + mark.left + passage[start:stop] + mark.right + passage[stop:]


def unmarked(translation: str, mark: Mark) -> tuple[str, Answer] | None:
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
    for entity in entities(tags):
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
    """Return the words that overlap a span."""
    return [word for word, (start, stop) in enumerate(offsets) if start < span[1] and span[0] < stop]
