"""Decide the layout of files with a line for each word (CoNLL): their comments, columns and words.

Variants of CoNLL write comments as ``# id = 1``, ``# text: …``, ``#<tab>URL``, ``# sent 1``, or not at all,
and a word may begin with ``#`` as well. So the layout of a file is decided once, from all of its lines:
before the first word of a sentence, a line that begins with ``#`` is a word if it has the columns and a label
of the other words, and a comment if not. What does not fit the layout is an error with its own line.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import chain
from typing import NamedTuple

from isogloss.core.errors import DataError
from isogloss.core.tag_schemes import OUTSIDE
from isogloss.data.files import File
from isogloss.data.formats.word_columns import describe_other_column, is_header

HASH, DOCUMENT = "#", "-DOCSTART"
"""Beginnings of comments and lines of documents (``-DOCSTART- -X- O``; ``-DOCSTART FILE 1.xml`` in KPWr)."""

BEGIN_DOCUMENT = "#begin document"
"""What files of CoNLL-2012 begin with."""

SEPARATORS = {"\t": "tab", " ": "space"}

Line = tuple[int, list[str]]
"""Number and cells of a word's line."""


class ConllLayout(NamedTuple):
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
    header: int = 0
    """The line of a header, from 1; 0 without a header."""

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


def layout_of(
    file: File, label: int | None, comment: str | None = None, *, listed: Collection[str] = ()
) -> ConllLayout:
    """Decide the layout of a file from all of its lines.

    ``label`` is the column of the labels, and ``listed`` are labels that a description lists.
    """
    widths, ending, hashes = Counter[int](), 0, 0
    first: tuple[int, list[str]] | None = None
    labels = set[str](), set[str]()  # The second without the cell after the last separator.
    for number, line in file.lines():
        if line.startswith((comment or HASH, DOCUMENT)):
            hashes += 1
            continue
        if not line.strip():
            continue
        cells = split_cells(line)
        if first is None:
            first = number, cells
            if is_header(cells, cells[-1]):
                continue
        widths[len(cells)] += 1
        ending += not cells[-1]
        if label is not None:
            labels[0].update(cells[label : label + 1 or None])
            labels[1].update((cells if cells[-1] else cells[:-1])[label : label + 1 or None])
    ends = 0 < ending == widths.total()
    width = max(widths, key=lambda count: (widths[count], count), default=0) - ends
    all_labels = frozenset((*labels[ends], *listed))
    has_header = first is not None and widths.total() > 0 and is_header(first[1], first[1][-1])
    header = first[0] if first is not None and has_header else 0
    return ConllLayout(width, ends, hashes > 0, all_labels, comment, label, header=header)


def count_comments(file: File, layout: ConllLayout) -> int:
    """Return the number of comment lines."""
    first, count = True, 0
    for number, line in file.lines() if layout.hashes else ():
        if number == layout.header:
            continue
        comment = layout.is_comment(line, first=first)
        count += comment
        first = not line.strip() or (first and comment)
    return count


def read_words(file: File, layout: ConllLayout, columns: Sequence[int]) -> Iterator[list[Line] | DataError]:
    """Yield the words of each sentence, or the error of a sentence with a line that does not fit."""
    words, fits, width = list[Line](), True, layout.width
    in_range = len(columns) <= width and all(-width <= column < width for column in columns)
    for number, line in chain(file.lines(), [(0, "")]):
        if number and number == layout.header:
            continue
        if line.strip():
            if not layout.hashes or not layout.is_comment(line, first=not words):
                words.append((number, cells := layout.cells(line)))
                fits = fits and len(cells) == width and "\r" not in line
        elif words:
            yield words if fits and in_range else _misfit(file, layout, columns, words) or words
            words, fits = [], True


def _misfit(
    file: File, layout: ConllLayout, columns: Sequence[int], words: Sequence[Line]
) -> DataError | None:
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
    """Raise DataError where the column of words contains numbers, identifiers, tags, or one text."""
    content = describe_other_column(sentences)
    if content:
        advice = "Write the columns of both, counted from 0 (columns = { word = 1, label = 2 })"
        if next(iter(file.read()), "").startswith(BEGIN_DOCUMENT):
            advice = "Of CoNLL-2012 write columns = { word = 3, label = 10 } for names, label = 4 for tags"
        if content.endswith("before each word"):
            advice = 'Take it out, or use corpus = "wikiann"'
        raise file.broken(1, f"column {column} with {content}", "words and their labels", advice)
