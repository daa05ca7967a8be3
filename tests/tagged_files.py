"""Spans of words written as tags in every scheme and notation, for tests of their readers."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

Spans = Sequence[tuple[str, int, int]]
"""Type, words and words after it of each span of a sentence."""

LETTERS = {
    "BIO": "BIIB",
    "IOB1": "IIII",
    "IOE1": "IIII",
    "IOE2": "IIEE",
    "IOBES": "BIES",
    "BILOU": "BILU",
    "BMES": "BMES",
    "BMEWO": "BMEW",
}
"""The first, inner and last letter of a span, and the letter of a span of one word."""

SCRIPTS = {
    "Latin": ["Ana", "Li", "lives", "in", "Oslo"],
    "Devanagari": ["रवि", "कल", "दिल्ली", "गया", "था"],
    "Arabic": ["ذهب", "علي", "إلى", "القاهرة", "أمس"],
    "Chinese": list("李明住在北京"),
    "Thai": ["สมชาย", "ไป", "กรุงเทพ"],
    "Ethiopic": ["አበበ", "ወደ", "አዲስ", "አበባ", "ሄደ"],
}
"""Words of several scripts."""


@dataclass(frozen=True)
class Notation:
    """Notation of tags in a file."""

    scheme: str
    separator: str = "-"
    is_suffix: bool = False
    is_lower: bool = False
    outside: str = "O"
    has_types: bool = True

    def tags(self, spans: Spans) -> list[str]:
        """Write spans as tags."""
        tags = list[str]()
        last_type = ""
        for index, (type_name, length, gap) in enumerate(spans):
            is_followed = not gap and spans[index + 1 : index + 2] and spans[index + 1][0] == type_name
            letters = self.letters(length, follows=last_type == type_name, is_followed=bool(is_followed))
            tags += [self.tag(letter, type_name) for letter in letters]
            tags += [self.outside] * gap
            last_type = "" if gap else type_name
        return tags

    def letters(self, length: int, *, follows: bool, is_followed: bool) -> str:
        """Return the letters of a span."""
        first_letter, inner, last_letter, single = LETTERS[self.scheme]
        letters = single if length == 1 else first_letter + inner * (length - 2) + last_letter
        if self.scheme == "IOB1" and follows:
            letters = "B" + letters[1:]
        if self.scheme == "IOE1" and is_followed:
            letters = letters[:-1] + "E"
        return letters

    def tag(self, letter: str, type_name: str) -> str:
        """Write one tag."""
        letter = letter.lower() if self.is_lower else letter
        if not self.has_types:
            return letter
        return self.separator.join([type_name, letter] if self.is_suffix else [letter, type_name])


OUTSIDES = ("O", "0", "_", "-", "o", "Other", "X")
SEPARATORS = ("-", "_", ".", ":", "/")
TYPED = [
    Notation(scheme, separator, is_suffix, is_lower, outside)
    for scheme, separator, is_suffix, is_lower, outside in product(
        LETTERS, SEPARATORS, (False, True), (False, True), OUTSIDES
    )
]
"""Every notation with types."""

UNTYPED = [
    Notation(scheme, is_lower=is_lower, outside=outside, has_types=False)
    for scheme, is_lower, outside in product(LETTERS, (False, True), OUTSIDES)
    if scheme not in ("IOB1", "IOE1")
]
"""Every notation without types. Only I and O are not evidence of spans, with any outside symbol."""

SMALL = [("PER", 2, 1), ("LOC", 1, 0), ("LOC", 2, 1)]
"""Spans of a file of seven words in which each scheme shows."""


def small_spans(notation: Notation) -> list[tuple[str, int, int]]:
    """Return spans that fit a notation: without types all have one."""
    return [(type_name if notation.has_types else "SPAN", *sizes) for type_name, *sizes in SMALL]
