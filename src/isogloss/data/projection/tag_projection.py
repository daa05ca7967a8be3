"""Tags of words carried to a translation along word links (annotation projection).

Yarowsky et al. (2001), "Inducing Multilingual Text Analysis Tools via Robust Projection across Aligned
Corpora". A word takes the tag on which all words linked to it agree; others, and words without links, go
without one, and nothing is learned from them. An entity reaches from its first to its last linked word; where
none is linked, or a word of something else stands between, the sentence is given up, as an entity tagged as
none would teach the wrong thing.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from isogloss.data.projection.tokenization import word_offsets

NO_TAG = ""
"""The tag of a word that has none in a sentence where others have."""

OUTSIDE = "O"
WordLinks = Sequence[tuple[int, int]]
"""0-based words of a text and of its translation."""


class Entity(NamedTuple):
    """An entity: its type, and its words from start to before stop."""

    type: str
    start: int
    stop: int


def are_bio(tags: Iterable[str]) -> bool:
    """Return whether tags mark entities (O, B-…, I-…) and not each word by itself."""
    distinct = set(tags) - {NO_TAG}
    return bool(distinct) and all(tag == OUTSIDE or tag[:2] in ("B-", "I-") for tag in distinct)


def projected_tags(tags: Sequence[str], count: int, links: WordLinks, *, bio: bool) -> tuple[str, ...] | None:
    """Return the tags of the ``count`` words of a translation; None where they cannot be located.

    Without tags to carry there are none in the translation either.
    """
    if not tags:
        return ()
    found = _entities_projected(tags, count, links) if bio else _words_projected(tags, count, links)
    return None if found is None or not any(found) else tuple(found)


def _words_projected(tags: Sequence[str], count: int, links: WordLinks) -> list[str]:
    heard: list[set[str]] = [set() for _ in range(count)]
    for one, other in links:
        heard[other].add(tags[one])
    return [said.pop() if len(said) == 1 else NO_TAG for said in heard]


def _entities_projected(tags: Sequence[str], count: int, links: WordLinks) -> list[str] | None:
    found = [OUTSIDE] * count
    for entity in entities(tags):
        inside = {other for one, other in links if entity.start <= one < entity.stop}
        outside = {other for one, other in links if not entity.start <= one < entity.stop} - inside
        if not inside:
            return None
        first, last = min(inside), max(inside)
        taken = any(tag != OUTSIDE for tag in found[first : last + 1])
        if taken or any(first <= word <= last for word in outside):
            return None
        found[first : last + 1] = [f"B-{entity.type}", *[f"I-{entity.type}"] * (last - first)]
    return found


def entities(tags: Sequence[str]) -> Iterator[Entity]:
    """Yield the entities of BIO tags; I- without its like before it begins one."""
    start, kind = 0, ""
    for place, tag in enumerate((*tags, OUTSIDE)):
        mark, _, name = tag.partition("-")
        if kind and not (mark == "I" and name == kind):
            yield Entity(kind, start, place)
            kind = ""
        if name and not kind:
            start, kind = place, name


def word_links(
    source: tuple[Sequence[str], str],
    target: tuple[Sequence[str], str],
    links: Iterable[tuple[tuple[int, int], tuple[int, int]]],
) -> list[tuple[int, int]]:
    """Turn links between places in two texts (start, end) into links between their words."""
    sources, targets = (word_offsets(words, text) for words, text in (source, target))
    return sorted(
        {
            (one, other)
            for here, there in links
            for one in _within(sources, here)
            for other in _within(targets, there)
        }
    )


def _within(places: Sequence[tuple[int, int]], span: tuple[int, int]) -> list[int]:
    """Return the words that overlap a span."""
    return [word for word, (start, stop) in enumerate(places) if start < span[1] and span[0] < stop]
