"""Schemes of tags that mark spans of words, and their reading as BIO (IOB2).

IOB1 (Ramshaw and Marcus, 1995) writes B- only where a span follows another of its type; IOBES, BILOU (Ratinov
and Roth, 2009) and BMES mark the last word of a span and spans of one word; CoNLL-2012 writes brackets. Which
scheme a file has is decided once, from all of its tags.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from isogloss.data.projection.tag_projection import NO_TAG, OUTSIDE

BIO, IOB1, BRACKETS, WORDS = "BIO", "IOB1", "brackets", "words"
"""The last is no scheme: each word has a label of its own."""

MARKS: Mapping[str, str] = {
    BIO: "BI", IOB1: "BI", "IOBES": "BIES", "BILOU": "BILU", "BMES": "BMES", "BMEWO": "BMEW", BRACKETS: "",
}  # fmt: skip
"""What may stand before the hyphen in each scheme; a file has the first that fits it best."""

SCHEMES = (*MARKS, WORDS)

_BEGINS, _SHAPE = "BSUW", re.compile(r"([BIESLUMW])-(.*\S)")
_SEVERAL = re.compile(r"[,;|]\s*[BIESLUMW]-")
_BRACKET = re.compile(r"(\([^()*\s]+)?\*?\)?")


@dataclass
class TagCounts:
    """What decides the scheme of a file: its tags, and where its spans begin."""

    tags: Counter[str] = field(default_factory=Counter)
    begun_inside: int = 0
    """Spans that begin with I-."""
    begun: int = 0
    """Spans that begin with B- and do not follow another of their type."""

    def add(self, sentence: Sequence[str]) -> None:
        """Count the tags of a sentence."""
        self.tags.update(sentence)
        for previous, tag in zip((OUTSIDE, *sentence), sentence, strict=False):
            if tag[:2] in ("B-", "I-") and previous[1:] != tag[1:]:
                self.begun_inside += tag[0] == "I"
                self.begun += tag[0] == "B"

    @property
    def scheme(self) -> str:
        """The scheme that most words fit, as a few may be misspelled."""
        marked = Counter[str]()
        for tag, count in self.tags.items():
            if match := _SHAPE.fullmatch(tag):
                marked[match[1]] += count
        words = self.tags.total() - self.tags[NO_TAG]
        if self.tags["*"] and 2 * sum(n for tag, n in self.tags.items() if is_bracket(tag)) > words:
            return BRACKETS
        if not marked or 2 * (marked.total() + self.tags[OUTSIDE]) <= words:
            return WORDS
        best = max(MARKS, key=lambda scheme: sum(marked[mark] for mark in MARKS[scheme]))
        return IOB1 if best == BIO and self.begun_inside and not self.begun else best


def is_bracket(tag: str) -> bool:
    """Return whether a tag is one of CoNLL-2012's: ``(PERSON*``, ``*``, ``*)``, ``(PERSON)``."""
    return bool(tag) and bool(_BRACKET.fullmatch(tag))


def misfit(tags: Sequence[str], scheme: str) -> int | None:
    """Return the index of the first tag that a scheme does not have; None where all fit."""
    for index, tag in enumerate(tags):
        shape = _SHAPE.fullmatch(tag)
        marks = bool(shape) and shape[1] in MARKS[scheme] and not _SEVERAL.search(shape[2])  # type: ignore[index]
        if not (is_bracket(tag) if scheme == BRACKETS else marks or tag in (OUTSIDE, NO_TAG)):
            return index
    return None


def as_bio(tags: Sequence[str], scheme: str) -> tuple[str, ...]:
    """Return the tags of a sentence as BIO; those of a file without a scheme, or in BIO, as they are."""
    if scheme in (BIO, WORDS):
        return tuple(tags)
    return tuple(_from_brackets(tags) if scheme == BRACKETS else _from_marks(tags, scheme))


def _from_marks(tags: Sequence[str], scheme: str) -> Iterator[str]:
    previous = OUTSIDE
    for tag in tags:
        mark, hyphen, name = tag.partition("-")
        begins = mark in _BEGINS or (scheme == IOB1 and previous.partition("-")[2] != name)
        yield f"{'B' if begins else 'I'}-{name}" if hyphen else tag
        previous = tag


def _from_brackets(tags: Sequence[str]) -> Iterator[str]:
    name = ""
    for tag in tags:
        opens = tag.startswith("(")
        name = tag.strip("(*)") if opens else name
        yield f"{'B' if opens else 'I'}-{name}" if name else OUTSIDE
        name = "" if tag.endswith(")") else name
