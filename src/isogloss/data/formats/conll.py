"""Decide the layout of files with a line for each word (CoNLL): their comments, columns and words.

Variants of CoNLL write comments as ``# id = 1``, ``# text: …``, ``#<tab>URL``, ``# sent 1``, or not at all,
and a word may also begin with ``#``. So the layout of a file is decided once, from all of its lines: before
the first word of a sentence, a line that begins with ``#`` is a word if it has the columns and a label of the
other words, and otherwise a comment. A line that does not fit the layout is an error with its line number.
"""

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from itertools import chain
from typing import NamedTuple

from isogloss.core.errors import DataError
from isogloss.core.tag_schemes import OUTSIDE
from isogloss.data.files import File
from isogloss.data.formats.word_columns import is_header

HASH = "#"
"""Beginning of comments."""

DOCUMENT = "-DOCSTART"
"""Beginning of lines that start a document (``-DOCSTART- -X- O``; ``-DOCSTART FILE 1.xml`` in KPWr)."""


SEPARATORS = {"\t": "tab", " ": "space"}

Line = tuple[int, list[str]]
"""Number and cells of a word's line."""


class ConllLayout(NamedTuple):
    """Layout of a file with a line for each word."""

    width: int
    """Number of columns of most words."""
    ends: bool
    """Whether every line ends with a separator."""
    hashes: bool
    """Whether any line may be a comment."""
    labels: frozenset[str]
    """Labels of the words that do not begin with ``#``."""
    comment: str | None
    """Beginning of comments, wherever they are. "" for no comments. None decides for each line with ``#``."""
    label: int | None = None
    """Column of the labels."""
    separator: str = ""
    """Only separator of cells. Lines are split at its last occurrence. Default: tabs, or else spaces."""
    header: int = 0
    """Line number of the header, or 0 without a header."""

    def is_comment(self, line: str, *, is_before_words: bool) -> bool:
        """Return whether a line is a comment.

        ``is_before_words``: the line is before the first word of a sentence.
        """
        if line.startswith(DOCUMENT):
            return True
        if self.comment is not None:
            return bool(self.comment) and line.startswith(self.comment)
        if not is_before_words or not line.startswith(HASH):
            return False
        cells = self.cells(line)
        if len(cells) != self.width or not all(cells):
            return True
        label = self.label
        return label is not None and not all(
            self._is_label(cell) for cell in cells[label : label + 1 or None]
        )

    def _is_label(self, text: str) -> bool:
        spans = any(label[1:2] == "-" for label in self.labels)
        return text in self.labels or (spans and (text == OUTSIDE or text[1:2] == "-"))

    def cells(self, line: str) -> list[str]:
        """Return the cells of a line, without an empty one after the last separator."""
        if self.separator:
            return line.split("\t") if self.separator == "\t" else line.rsplit(self.separator, 1)
        cells = split_cells(line)
        return cells[:-1] if self.ends and not cells[-1] else cells


def split_cells(line: str) -> list[str]:
    """Split a line at its tabs or, if it has none, at its spaces.

    Words may contain a no-break space.
    """
    return line.split("\t") if "\t" in line else [cell for cell in line.split(" ") if cell]


def decide_layout(
    file: File, label: int | None, comment: str | None = None, *, listed_labels: Collection[str] = ()
) -> ConllLayout:
    """Decide the layout of a file from all of its lines.

    ``label`` is the column of the labels, and ``listed_labels`` are the labels of a description.
    """
    widths = Counter[int]()
    lines_with_separator_at_end = 0
    hashes = 0
    first_row: tuple[int, list[str]] | None = None
    labels = set[str](), set[str]()  # The second without the cell after the last separator.
    for line_number, line in file.lines():
        if line.startswith((comment or HASH, DOCUMENT)):
            hashes += 1
            continue
        if not line.strip():
            continue
        cells = split_cells(line)
        if first_row is None:
            first_row = line_number, cells
            if is_header(cells, cells[-1]):
                continue
        widths[len(cells)] += 1
        lines_with_separator_at_end += not cells[-1]
        if label is not None:
            labels[0].update(cells[label : label + 1 or None])
            labels[1].update((cells if cells[-1] else cells[:-1])[label : label + 1 or None])
    ends = 0 < lines_with_separator_at_end == widths.total()
    width = max(widths, key=lambda count: (widths[count], count), default=0) - ends
    all_labels = frozenset((*labels[ends], *listed_labels))
    header = 0
    if first_row is not None and widths.total() > 0:
        line_number, cells = first_row
        header = line_number if is_header(cells, cells[-1]) else 0
    return ConllLayout(width, ends, hashes > 0, all_labels, comment, label, header=header)


def read_words(file: File, layout: ConllLayout, columns: Sequence[int]) -> Iterator[list[Line] | DataError]:
    """Yield the words of each sentence, or the error of a sentence with a line that does not fit."""
    words = list[Line]()
    fits = True
    width = layout.width
    columns_exist = len(columns) <= width and all(-width <= column < width for column in columns)
    for line_number, line in chain(file.lines(), [(0, "")]):
        if line_number and line_number == layout.header:
            continue
        if line.strip():
            if not layout.hashes or not layout.is_comment(line, is_before_words=not words):
                words.append((line_number, cells := layout.cells(line)))
                fits = fits and len(cells) == width and "\r" not in line
        elif words:
            yield words if fits and columns_exist else _misfit(file, layout, columns, words) or words
            words = []
            fits = True


def _misfit(
    file: File, layout: ConllLayout, columns: Sequence[int], words: Sequence[Line]
) -> DataError | None:
    """Return the error of the first line with other columns or an inner carriage return, or None."""
    width = layout.width
    widths = Counter([len(cells) for _, cells in words])
    if all(column >= 0 for column in columns):  # Some formats have more columns in some sentences.
        width = max(widths, key=lambda count: (widths[count], count == width))
    fits = len(columns) <= width and all(-width <= column < width for column in columns)
    for line_number, cells in words if not fits or len(widths) > 1 or width not in widths else ():
        if len(cells) != width or not fits:
            advice = (
                "Correct the line, the columns or, where such lines are comments, comments of the description"
            )
            expectation = f"{_columns(width)}, among them {', '.join(str(column) for column in columns)}"
            text = " ".join(cells)[:60]
            if layout.separator:
                expectation = f"a word, a {SEPARATORS[layout.separator]} and its tag"
                advice = "Correct the line"
            return file.broken(line_number, f"{_columns(len(cells))} in {text!r}", expectation, advice)
    for line_number, cells in words:
        if "\r" in "".join(cells):
            return file.broken(line_number, "a carriage return inside the line", "one at most, at its end")
    return None


def _columns(count: int) -> str:
    return f"{count} column{'s' * (count != 1)}"
