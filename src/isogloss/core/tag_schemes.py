"""Decide how tags mark spans of words, and find the spans that they mark.

BIO (IOB2) begins each span with B-. IOB1 (Ramshaw and Marcus, 1995) writes B- only where a span follows
another of its type, IOE1 and IOE2 mark ends with E- instead of beginnings. IOBES, BILOU (Ratinov and Roth,
2009), BMES and BMEWO mark the last word of a span and spans of one word. CoNLL-2012 writes brackets.

Files also differ in their notation: ``B_PER`` or ``PER-B`` for ``B-PER``, ``b-per``, tags without a type (B,
I, O), and any symbol for words outside of spans. ``TagCounts.decide`` finds scheme and notation from all tags
of a file. ``find_spans`` is the only function from tags to spans. It reads invalid tags as seqeval and
conlleval do. E- and S- end a span. B- and S- begin a span, like any tag that cannot continue one.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import NamedTuple

from isogloss.core.arguments import never

NO_TAG = ""
"""The tag of a word that has none in a sentence where others have."""

OUTSIDE = "O"

UNTYPED = "SPAN"
"""The type of spans whose tags contain no type."""

BIO, IOB1, IOE1, IOE2, BRACKETS, WORDS = "BIO", "IOB1", "IOE1", "IOE2", "brackets", "words"
"""Tagging schemes. ``WORDS`` means no scheme: each word has a separate label."""

MARKS: Mapping[str, str] = {
    BIO: "BI", IOB1: "BI", "IOBES": "BIES", "BILOU": "BILU", "BMES": "BMES", "BMEWO": "BMEW",
    IOE1: "IE", IOE2: "IE", BRACKETS: "",
}  # fmt: skip
"""The marks of each scheme. A file has the first scheme that fits it best."""

SCHEMES = (*MARKS, WORDS)

_LETTERS = "BIESLUMW"
_BEGINNINGS = frozenset("BSUW")
_CONTINUATIONS = frozenset("IELM")
_AS_IOBES = str.maketrans("LUMW", "ESIS")
_PREFIX = re.compile(r"([BIESLUMW])([-_.:/|=])(.*\S)", re.IGNORECASE)
_SUFFIX = re.compile(r"(.*\S)([-_.:/|=])([BIESLUMW])", re.IGNORECASE)
_SEVERAL = re.compile(r"(?:[^\w\s-]|__)\s*[BIESLUMW][-_.:/|=]|[-_.:/|=][BIESLUMW]\s*(?:[^\w\s-]|__)")
_LIKELY = re.compile(r"[BI][-_.:/|]\S+|\S+[-_.:/|][BI]", re.IGNORECASE)
_BRACKET = re.compile(r"(\([^()*\s]+)?\*?\)?")
_ODD_EDGES = "-.,;:"
_MAX_OTHER_TAGS = 2
"""The maximum number of other tags in a file with an unusual notation: the outside symbol and one misspelled
tag. Features of words such as End=b, End=i and End=n have more."""


class Span(NamedTuple):
    """Words ``start`` to ``stop`` (excluded) are of one type."""

    type: str
    start: int
    stop: int


class _Mark(NamedTuple):
    """The mark of a tag as IOBES has it (O outside of spans), and its type."""

    letter: str
    type: str


_OUTSIDE_MARK = _Mark(OUTSIDE, "")


@dataclass(frozen=True, slots=True, kw_only=True)
class TagScheme:
    """The scheme of the tags of a file, and how they are written."""

    name: str = WORDS
    outside: str = OUTSIDE
    """The tag of words outside of spans."""
    separator: str = "-"
    """The character between mark and type."""
    is_suffix: bool = False
    """Whether the mark follows the type."""
    is_lower: bool = False
    """Whether marks are small letters."""
    has_types: bool = True
    """Whether tags have a type after their mark."""

    @property
    def marks_spans(self) -> bool:
        """Whether the tags mark spans, and do not label each word by itself."""
        return self.name != WORDS

    @property
    def is_plain_bio(self) -> bool:
        """Whether tags are written as O, B-TYPE and I-TYPE."""
        return self == PLAIN_BIO

    def tag(self, letter: str, type_name: str = "TYPE") -> str:
        """Write a mark and a type as a tag."""
        letter = letter.lower() if self.is_lower else letter
        if not self.has_types:
            return letter
        return self.separator.join((type_name, letter) if self.is_suffix else (letter, type_name))

    def describe_tags(self) -> str:
        """Return the tags of the scheme as a text for error messages."""
        if self.name == BRACKETS:
            return "(TYPE*, *, *)"
        return ", ".join([self.outside, *(self.tag(mark) for mark in MARKS[self.name])])

    def remarks(self) -> Iterator[str]:
        """Yield how the tags differ from plain BIO, in words."""
        if not self.marks_spans:
            return
        if self.name != BIO:
            yield f"{self.name} read as {BIO}"
        if self.outside != OUTSIDE:
            yield f"{self.outside!r} read as {OUTSIDE}"
        if not self.has_types:
            yield f"tags without a type read as spans of the type {UNTYPED}"
        elif self.name != BRACKETS and self.tag("B") != "B-TYPE":
            yield f"{self.tag('B')!r} read as 'B-TYPE'"

    def has_tag(self, tag: str) -> bool:
        """Return whether a tag is one of the scheme."""
        if self.name == BRACKETS:
            return is_bracket(tag) or tag == NO_TAG
        return self._read_mark(tag) is not None

    def marks(self, tags: Iterable[str]) -> Iterator[_Mark]:
        """Yield the mark of each tag. Tags of no scheme are outside of spans."""
        if self.name == BRACKETS:
            yield from _read_bracket_marks(tags)
            return
        for tag in tags:
            yield self._read_mark(tag) or _OUTSIDE_MARK

    def _read_mark(self, tag: str) -> _Mark | None:
        if tag in (self.outside, NO_TAG):
            return _OUTSIDE_MARK
        if self.has_types:
            parts = _parts(tag, self)
            if parts is None or _has_odd_type(parts.type, self):
                return None
        else:
            parts = _Mark(tag, UNTYPED)
        letter = parts.letter.upper() if self.is_lower else parts.letter
        if len(letter) != 1 or letter not in MARKS[self.name]:
            return None
        return _Mark(letter.translate(_AS_IOBES), parts.type)


PLAIN_BIO = TagScheme(name=BIO)
NO_SCHEME = TagScheme()
"""Labels of words."""


def _has_odd_type(type_name: str, scheme: TagScheme) -> bool:
    """Return whether a type contains another tag, or begins or ends with punctuation."""
    text = type_name.upper() if scheme.is_lower else type_name
    is_cut = type_name[0] in _ODD_EDGES or type_name[-1] in _ODD_EDGES
    return is_cut or bool(_SEVERAL.search(text))


def _parts(tag: str, scheme: TagScheme) -> _Mark | None:
    """Split a tag at its separator into its letter, as written, and its type."""
    if scheme.is_suffix:
        type_name, separator, letter = tag.rpartition(scheme.separator)
    else:
        letter, separator, type_name = tag.partition(scheme.separator)
    is_mark = len(letter) == 1 and letter.upper() in _LETTERS and letter.islower() == scheme.is_lower
    return _Mark(letter, type_name) if separator and type_name.strip() and is_mark else None


def find_spans(tags: Sequence[str], scheme: TagScheme = PLAIN_BIO) -> list[Span]:
    """List the spans of a sentence from left to right."""
    return list(find_spans_of_marks(chain(scheme.marks(tags), (_OUTSIDE_MARK,))))


def find_spans_of_marks(marks: Iterable[tuple[str, str]]) -> Iterator[Span]:
    """Yield the spans of marks of IOBES and their types, by the rules of seqeval's default mode.

    ``marks`` end with an O. Other letters begin a span where the type changes, as in seqeval.
    """
    begin, last_letter, last_type = 0, OUTSIDE, ""
    for index, (letter, type_name) in enumerate(marks):
        ends = last_letter in "ES" or (last_letter in "BI" and letter in "BSO")
        if ends or (last_letter not in "O." and last_type != type_name):
            yield Span(last_type, begin, index)
        begins = letter in "BS" or (last_letter in "ESO" and letter in "EI")
        if begins or (letter not in "O." and last_type != type_name):
            begin = index
        last_letter, last_type = letter, type_name


def as_bio(tags: Sequence[str], scheme: TagScheme) -> tuple[str, ...]:
    """Return the tags of a sentence as BIO. Labels of words and plain BIO stay the same."""
    if not scheme.marks_spans or scheme.is_plain_bio:
        return tuple(tags)
    bio = [tag if tag == NO_TAG else OUTSIDE for tag in tags]
    for span in find_spans(tags, scheme):
        bio[span.start : span.stop] = [f"{letter}-{span.type}" for letter in _write_letters(span)]
    return tuple(bio)


def _write_letters(span: Span) -> str:
    return "B" + "I" * (span.stop - span.start - 1)


def find_misfit(tags: Sequence[str], scheme: TagScheme) -> int | None:
    """Return the index of the first tag that a scheme does not have. None if all fit."""
    return next((index for index, tag in enumerate(tags) if not scheme.has_tag(tag)), None)


def is_bracket(tag: str) -> bool:
    """Return whether a tag is one of CoNLL-2012's: ``(PERSON*``, ``*``, ``*)``, ``(PERSON)``."""
    return bool(tag) and bool(_BRACKET.fullmatch(tag))


def normalize_tags(tags: Sequence[str]) -> tuple[str, ...]:
    """Return an inventory of tags in the notation of BIO or IOBES. Labels of words stay the same."""
    scheme = decide_scheme(tags)
    if not scheme.marks_spans or scheme.is_plain_bio:
        return tuple(tags)
    return tuple(f"{mark.letter}-{mark.type}" if mark.type else OUTSIDE for mark in scheme.marks(tags))


def convert_inventory(tags: Sequence[str]) -> tuple[str, ...]:
    """Return the BIO tag of each tag of an inventory: B- where it begins a span, else I-."""
    scheme = decide_scheme(tags)
    if not scheme.marks_spans or scheme.is_plain_bio:
        return tuple(tags)
    letters = {"S": "B", "E": "I"}
    return tuple(
        f"{letters.get(mark.letter, mark.letter)}-{mark.type}" if mark.type else OUTSIDE
        for mark in scheme.marks(tags)
    )


def are_bio(tags: Iterable[str]) -> bool:
    """Return whether tags mark entities (O, B-…, I-…) and not each word by itself."""
    distinct = set(tags) - {NO_TAG}
    return bool(distinct) and all(tag == OUTSIDE or tag[:2] in ("B-", "I-") for tag in distinct)


def _read_bracket_marks(tags: Iterable[str]) -> Iterator[_Mark]:
    type_name = ""
    for tag in tags:
        opens = tag.startswith("(")
        type_name = tag.strip("(*)") if opens else type_name
        yield _Mark("B" if opens else "I", type_name) if type_name else _OUTSIDE_MARK
        type_name = "" if tag.endswith(")") else type_name


def decide_scheme(tags: Iterable[str], name: str = "") -> TagScheme:
    """Return the scheme of an inventory of tags, counting each tag once."""
    counts = TagCounts()
    counts.add(list(tags))
    return counts.decide(name)


def _begins_inside(previous: "_Mark", mark: "_Mark", _: "_Mark") -> bool:
    return mark.letter == "I" and previous.type != mark.type


def _begins_after_other(previous: "_Mark", mark: "_Mark", _: "_Mark") -> bool:
    return mark.letter == "B" and previous.type != mark.type


@dataclass
class TagCounts:
    """Counts of the tags of a file, which decide its scheme."""

    tags: Counter[str] = field(default_factory=Counter)
    neighbours: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    """Tags that may be marks, each between the tags before and after it."""
    _may_mark: dict[str, bool] = field(default_factory=dict)

    def add(self, sentence: Sequence[str]) -> None:
        """Count the tags of a sentence."""
        self.tags.update(sentence)
        for tag in sentence:
            if tag not in self._may_mark:
                self._may_mark[tag] = _may_mark(tag)
        befores = (NO_TAG, *sentence)
        afters = (*sentence[1:], NO_TAG)
        triples = zip(befores, sentence, afters, strict=False)
        self.neighbours.update(triple for triple in triples if self._may_mark[triple[1]])

    def decide(self, name: str = "", labels: Collection[str] = ()) -> TagScheme:
        """Return the scheme that most words fit, as a few may be misspelled.

        ``name`` is the scheme if it is known; only its notation is decided then. ``labels`` is a known
        inventory. If that is BIO, a single unknown tag on every word is the outside symbol.
        """
        if name == WORDS or not self._words:
            return TagScheme()
        brackets = sum(count for tag, count in self.tags.items() if is_bracket(tag))
        if name == BRACKETS or (not name and self.tags["*"] and 2 * brackets > self._words):
            return TagScheme(name=BRACKETS)
        notation = self._find_notation() or self._find_untyped_notation()
        if notation is not None:
            return replace(notation, name=name or self._choose_scheme(notation))
        if name:
            return TagScheme(name=name)
        distinct = self.tags.keys() - {NO_TAG}
        if are_bio(labels) and len(distinct) == 1 and not distinct & {*labels, OUTSIDE}:
            return TagScheme(name=BIO, outside=next(iter(distinct)))
        return TagScheme()

    def count_begun_inside(self, scheme: TagScheme) -> int:
        """Count the spans that begin with I-."""
        return self._count(scheme, _begins_inside)

    def count_odd(self, scheme: TagScheme) -> int:
        """Count the tags that do not follow their scheme."""
        rule = _ODD.get(scheme.name, _is_odd_in_iobes)
        return self._count(scheme, rule)

    def list_likely_spans(self) -> list[str]:
        """List the tags that look like B- and I- of spans."""
        return [tag for tag in self.tags if _LIKELY.fullmatch(tag)]

    @property
    def _words(self) -> int:
        return self.tags.total() - self.tags[NO_TAG]

    def _count(self, scheme: TagScheme, rule: "_Rule") -> int:
        count = 0
        for triple, frequency in self.neighbours.items():
            previous, mark, following = scheme.marks(triple)
            if mark.type and rule(previous, mark, following):
                count += frequency
        return count

    def _find_notation(self) -> TagScheme | None:
        """Return the notation of tags with types, with their outside symbol. None for labels of words."""
        matching = defaultdict[TagScheme, Counter[str]](Counter)
        for tag, count in self.tags.items():
            for candidate in _list_notations(tag):
                matching[candidate][tag] = count
        if not matching:
            return None
        notation = max(matching, key=lambda candidate: (matching[candidate].total(), candidate == PLAIN_BIO))
        outside = self._find_outside(notation, matching[notation])
        return None if outside is None else replace(notation, outside=outside)

    def _find_outside(self, notation: TagScheme, typed_tags: Counter[str]) -> str | None:
        """Return the outside symbol of a notation. None if too many tags do not fit it."""
        other_tags = Counter(
            {tag: count for tag, count in self.tags.items() if tag and tag not in typed_tags}
        )
        letter_o = OUTSIDE.lower() if notation.is_lower and not other_tags[OUTSIDE] else OUTSIDE
        symbol = max(other_tags, key=lambda tag: (other_tags[tag], tag == letter_o), default=OUTSIDE)
        letters = defaultdict[str, set[str]](set)
        for tag in typed_tags:
            if parts := _parts(tag, notation):
                letters[parts.type].add(parts.letter.upper())
        is_paired = any(_are_paired(type_letters) for type_letters in letters.values())
        is_plain = notation == PLAIN_BIO
        begins = {"B", "I"} & set().union(*letters.values())
        if other_tags[letter_o] and self._fits(typed_tags, other_tags[letter_o]):
            return letter_o if is_plain or is_paired or (begins and len(other_tags) == 1) else None
        is_usual = not notation.is_lower and not notation.is_suffix
        if (
            is_paired
            and self._fits(typed_tags, other_tags[symbol])
            and (is_usual or len(other_tags) <= _MAX_OTHER_TAGS)
        ):
            return symbol
        if is_plain and begins and len(other_tags) == 1:
            return symbol
        return OUTSIDE if is_plain and self._fits(typed_tags, 0) else None

    def _fits(self, typed_tags: Counter[str], outside: int) -> bool:
        return 2 * (typed_tags.total() + outside) > self._words

    def _find_untyped_notation(self) -> TagScheme | None:
        """Return the notation of tags such as B, I, O. None for labels of words."""
        for is_lower in (False, True):
            letters = _LETTERS.lower() if is_lower else _LETTERS
            mark_tags = Counter({tag: count for tag, count in self.tags.items() if tag and tag in letters})
            mark_tags = Counter({tag: count for tag, count in mark_tags.items() if len(tag) == 1})
            other_tags = Counter(
                {tag: count for tag, count in self.tags.items() if tag and tag not in mark_tags}
            )
            used_marks = {tag.upper() for tag in mark_tags}
            letter_o = OUTSIDE.lower() if is_lower else OUTSIDE
            has_scheme = any(used_marks <= set(marks) for marks in MARKS.values())
            if not mark_tags or not has_scheme or len(other_tags) > _MAX_OTHER_TAGS:
                continue
            symbol = (
                letter_o
                if letter_o in other_tags
                else max(other_tags, key=other_tags.__getitem__, default=letter_o)
            )
            if not self._fits(mark_tags, other_tags[symbol]):
                continue
            if _are_paired(used_marks) or (other_tags[letter_o] and used_marks & {"B", "I"}):
                return TagScheme(name=BIO, outside=symbol, is_lower=is_lower, has_types=False)
        return None

    def _choose_scheme(self, notation: TagScheme) -> str:
        """Return the first scheme whose marks most tags have."""
        letters = Counter[str]()
        for tag, count in self.tags.items():
            parts = _parts(tag, notation) if notation.has_types else _Mark(tag, UNTYPED)
            if parts is not None and tag != notation.outside and len(parts.letter) == 1:
                letters[parts.letter.upper()] += count
        if letters["E"] and letters.keys() <= {"I", "E"}:
            ioe1 = replace(notation, name=IOE1)
            ioe2 = replace(notation, name=IOE2)
            return IOE1 if self.count_odd(ioe1) < self.count_odd(ioe2) else IOE2
        scheme = max(MARKS, key=lambda name: sum(letters[mark] for mark in MARKS[name]))
        if scheme != BIO:
            return scheme
        begun = self._count(notation, _begins_after_other)
        return IOB1 if self.count_begun_inside(notation) and not begun else BIO


def _may_mark(tag: str) -> bool:
    is_letter = len(tag) == 1 and tag.upper() in _LETTERS
    return is_letter or bool(_PREFIX.fullmatch(tag) or _SUFFIX.fullmatch(tag))


def _list_notations(tag: str) -> Iterator[TagScheme]:
    """Yield each notation in which a tag is a mark and a type."""
    if prefix := _PREFIX.fullmatch(tag):
        yield TagScheme(name=BIO, separator=prefix[2], is_lower=prefix[1].islower())
    if suffix := _SUFFIX.fullmatch(tag):
        yield TagScheme(name=BIO, separator=suffix[2], is_suffix=True, is_lower=suffix[3].islower())


def _are_paired(letters: Collection[str]) -> bool:
    """Return whether the marks of one type begin and continue spans."""
    marks = set(letters)
    return bool(marks & _BEGINNINGS and marks & _CONTINUATIONS) or {"I", "E"} <= marks


_Rule = Callable[[_Mark, _Mark, _Mark], bool]
"""Decides from the previous, the current and the next mark whether the current one violates its scheme."""


def _is_odd_in_bio(previous: _Mark, mark: _Mark, _: _Mark) -> bool:
    return mark.letter == "I" and previous.type != mark.type


def _is_odd_in_iob1(previous: _Mark, mark: _Mark, _: _Mark) -> bool:
    return mark.letter == "B" and previous.type != mark.type


def _is_odd_in_ioe1(_: _Mark, mark: _Mark, following: _Mark) -> bool:
    return mark.letter == "E" and following.type != mark.type


def _is_odd_in_ioe2(_: _Mark, mark: _Mark, following: _Mark) -> bool:
    return mark.letter == "I" and following.type != mark.type


def _is_odd_in_iobes(previous: _Mark, mark: _Mark, following: _Mark) -> bool:
    continues = previous.type == mark.type and previous.letter in "BI"
    is_continued = following.type == mark.type and following.letter in "IE"
    return (mark.letter in "IE" and not continues) or (mark.letter in "BI" and not is_continued)


_ODD: Mapping[str, _Rule] = {
    BIO: _is_odd_in_bio,
    IOB1: _is_odd_in_iob1,
    IOE1: _is_odd_in_ioe1,
    IOE2: _is_odd_in_ioe2,
    BRACKETS: never,
}
