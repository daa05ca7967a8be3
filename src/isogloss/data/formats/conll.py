"""Files with a line for each word (CoNLL): which lines are comments, which columns and which tags they have.

Variants of CoNLL write comments as ``# id = 1``, ``# text: …``, ``#<tab>URL``, ``# sent 1``, or not at all,
and a word may begin with ``#`` as well. So the layout of a file is decided once, from all of its lines:
before the first word of a sentence, a line that begins with ``#`` is a word if it has the columns and a label
of the other words, and a comment if not. What does not fit the layout is an error with its own line.

Tags of spans are read as BIO (IOB2). IOB1 (Ramshaw and Marcus, 1995) writes B- only where a span follows
another of its type; IOBES, BILOU (Ratinov and Roth, 2009) and BMES mark the last word of a span and spans of
one word; CoNLL-2012 writes brackets. The scheme of a file is decided once, from all of its tags.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, islice
from os.path import commonprefix
from typing import NamedTuple

from isogloss.core.errors import DataError
from isogloss.data.files import File

NO_TAG = ""
"""The tag of a word that has none in a sentence where others have."""

OUTSIDE = "O"

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


class Entity(NamedTuple):
    """An entity: its type, and its words from start to before stop."""

    type: str
    start: int
    stop: int


def are_bio(tags: Iterable[str]) -> bool:
    """Return whether tags mark entities (O, B-…, I-…) and not each word by itself."""
    distinct = set(tags) - {NO_TAG}
    return bool(distinct) and all(tag == OUTSIDE or tag[:2] in ("B-", "I-") for tag in distinct)


def entities(tags: Sequence[str]) -> Iterator[Entity]:
    """Yield the entities of BIO tags; I- that does not continue an entity of its type begins one."""
    start, kind = 0, ""
    for index, tag in enumerate((*tags, OUTSIDE)):
        mark, _, name = tag.partition("-")
        if kind and not (mark == "I" and name == kind):
            yield Entity(kind, start, index)
            kind = ""
        if name and not kind:
            start, kind = index, name


HASH, DOCUMENT = "#", "-DOCSTART-"

SEPARATORS = {"\t": "tab", " ": "space"}

Line = tuple[int, list[str]]
"""Number and cells of a word's line."""

LOOKED_AT = 1_000
"""Sentences that show whether a column contains words."""

SAME = 10
"""Words that are the same, or begin so, before their column is taken for another one."""

_LANGUAGE = re.compile(r"[a-z]{2,3}(-[a-z-]+)?:")
"""The code that the original WikiANN has before each word."""


class Layout(NamedTuple):
    """What a file with a line for each word is."""

    width: int
    """Columns of most words."""
    ends: bool
    """Whether every line ends with a separator."""
    hashes: bool
    """Whether a line may be a comment at all."""
    labels: frozenset[str]
    """Labels of the words that do not begin with ``#``."""
    comment: str | None
    """What comments begin with, anywhere; None where lines with ``#`` are looked at one by one."""
    label: int | None = None
    """The column of the labels."""
    separator: str = ""
    """What alone separates cells, of several spaces the last; empty: tabs or, in a line without, spaces."""

    def is_comment(self, line: str, *, first: bool) -> bool:
        """Return whether a line is a comment; ``first`` before the first word of a sentence."""
        if line.startswith(DOCUMENT):
            return True
        if self.comment is not None:
            return bool(self.comment) and line.startswith(self.comment)
        if not first or not line.startswith(HASH):
            return False
        cells = self.cells(line)
        if len(cells) != self.width or not all(cells):
            return True
        label = self.label
        return label is not None and not all(map(self._is_label, cells[label : label + 1 or None]))

    def _is_label(self, text: str) -> bool:
        spans = any(label[1:2] == "-" for label in self.labels)
        return text in self.labels or (spans and (text == OUTSIDE or text[1:2] == "-"))

    def cells(self, line: str) -> list[str]:
        """Return the cells of a line; the empty one after the last separator is none."""
        if self.separator:
            return line.split("\t") if self.separator == "\t" else line.rsplit(self.separator, 1)
        cells = split_cells(line)
        return cells[:-1] if self.ends and not cells[-1] else cells


def split_cells(line: str) -> list[str]:
    """Split a line at its tabs or, where it has none, at its spaces; words may have a no-break space."""
    return line.split("\t") if "\t" in line else [*filter(None, line.split(" "))]


def layout_of(file: File, label: int | None, comment: str | None = None) -> Layout:
    """Decide the layout of a file from all of its lines; ``label`` is the column of the labels."""
    widths, ending, hashes = Counter[int](), 0, 0
    labels = set[str](), set[str]()  # The second without the cell after the last separator.
    for _, line in file.lines():
        if line.startswith((comment or HASH, DOCUMENT)):
            hashes += 1
            continue
        if not line.strip():
            continue
        cells = split_cells(line)
        widths[len(cells)] += 1
        ending += not cells[-1]
        if label is not None:
            labels[0].update(cells[label : label + 1 or None])
            labels[1].update((cells if cells[-1] else cells[:-1])[label : label + 1 or None])
    ends = 0 < ending == widths.total()
    width = max(widths, key=lambda count: (widths[count], count), default=0) - ends
    return Layout(width, ends, hashes > 0, frozenset(labels[ends]), comment, label)


def count_comments(file: File, layout: Layout) -> int:
    """Return the number of comment lines."""
    first, count = True, 0
    for _, line in file.lines() if layout.hashes else ():
        comment = layout.is_comment(line, first=first)
        count += comment
        first = not line.strip() or (first and comment)
    return count


def read_words(file: File, layout: Layout, columns: Sequence[int]) -> Iterator[list[Line] | DataError]:
    """Yield the words of each sentence, or the error of a sentence with a line that does not fit."""
    words, fits, width = list[Line](), True, layout.width
    in_range = len(columns) <= width and all(-width <= column < width for column in columns)
    for number, line in chain(file.lines(), [(0, "")]):
        if line.strip():
            if not layout.hashes or not layout.is_comment(line, first=not words):
                words.append((number, cells := layout.cells(line)))
                fits = fits and len(cells) == width and "\r" not in line
        elif words:
            yield words if fits and in_range else _misfit(file, layout, columns, words) or words
            words, fits = [], True


def _misfit(file: File, layout: Layout, columns: Sequence[int], words: Sequence[Line]) -> DataError | None:
    """Return the error of the first line that has other columns or a carriage return inside."""
    width, widths = layout.width, Counter([len(cells) for _, cells in words])
    if all(column >= 0 for column in columns):  # Some formats have more columns in some sentences.
        width = max(widths, key=lambda count: (widths[count], count == width))
    fits = len(columns) <= width and all(-width <= column < width for column in columns)
    for number, cells in words if not fits or len(widths) > 1 or width not in widths else ():
        if len(cells) != width or not fits:
            advice = (
                "Correct the line, the columns or, where such lines are comments, comments of the description"
            )
            expected = f"{_columns(width)}, among them {', '.join(map(str, columns))}"
            text = " ".join(cells)[:60]
            if layout.separator:
                expected, advice = f"a word, a {SEPARATORS[layout.separator]} and its tag", "Correct the line"
            return file.broken(number, f"{_columns(len(cells))} in {text!r}", expected, advice)
    if number := next((number for number, cells in words if "\r" in "".join(cells)), 0):
        return file.broken(number, "a carriage return inside the line", "one at most, at its end")
    return None


def _columns(count: int) -> str:
    return f"{count} column{'s' * (count != 1)}"


def check_words(file: File, sentences: Iterable[Sequence[str]], column: int) -> None:
    """Raise DataError where the column of words counts them (1, 2, 3 …) or always has the same text."""
    distinct, counts, length = dict[str, None](), True, 0
    for words in islice(sentences, LOOKED_AT):
        distinct.update(dict.fromkeys(words))
        counts = counts and list(words) == [str(number) for number in range(1, len(words) + 1)]
        length += len(words)
    columns = "Write the columns of both, counted from 0 (columns = { word = 1, label = 2 })"
    prefix = _LANGUAGE.match(commonprefix([*distinct]))  # noqa: RUF071
    for what, advice, is_so in (
        ("the numbers of words (1, 2, 3 …)", columns, counts and length > 1),
        (f"{next(iter(distinct), '')[:60]!r} alone", columns, len(distinct) == 1 and length >= SAME),
        (
            f"{prefix and prefix[0]!r} before each word",
            'Take it out, or use corpus = "wikiann"',
            prefix and length >= SAME,
        ),
    ):
        if is_so:
            raise file.broken(1, f"column {column} with {what}", "words and their labels", advice)
