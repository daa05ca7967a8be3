"""The layout of a file with a line a word, decided once from its lines: comments, tags, running numbers."""

import re
from collections.abc import Sequence
from typing import NamedTuple

from isogloss.data.conllu import UPOS
from isogloss.data.layouts import DOCUMENT, HASH, split_cells

NO_WORDS = (HASH, DOCUMENT)
"""Begin comments, though # may be a word."""

_BIO = re.compile(r"O|[BIESLUMW]-\S+")
"""Tags of spans in any scheme of letters (``tag_schemes``)."""

_NUMBER = re.compile(r"\d[\d.,:/-]*")


class Layout(NamedTuple):
    """How a file with a line a word is laid out."""

    separator: str
    """Parts the cells: a tab, or a space."""
    shapes: frozenset[tuple[bool, int]]
    """For each line of a word: whether it has tabs, and how many cells."""
    tags: tuple[int, ...]
    """Columns after the first that hold tags of spans (or parts of speech) alone."""
    labels: frozenset[str]
    """What stands in the last column."""
    indexed: bool
    """Whether the first column numbers the words of each sentence, 1, 2, 3, and words follow it."""
    numbers: int
    """The line of the first word, from 1, where the first column holds other numbers alone; else 0."""
    spaces: bool = True
    """Whether spaces part the cells of a line without a tab."""
    chosen: int | None = None
    """The column of words, where somebody says it."""

    def is_comment(self, line: str) -> bool:
        """Return whether a line before a sentence is no word: a # that is one has a word's cells and tags."""
        if not line.startswith(HASH) or self.indexed:
            return line.startswith(NO_WORDS)
        cells = self.cells(line)
        if not self.shapes and self.spaces:
            return len(cells) > 1 and not _are_tags(cells[-1:])
        if ("\t" in line, len(cells)) not in self.shapes:
            return True
        if not self.spaces and len(cells) == 1:
            return line.startswith("# ")
        if self.tags:
            return not all(_are_tags([cells[column]]) for column in self.tags)
        return self.separator == " " and len(cells) > 1 and cells[-1] not in self.labels

    def cells(self, line: str) -> list[str]:
        """Return the cells of a line."""
        return split_cells(line) if self.spaces else line.split("\t")


def layout_of(lines: Sequence[str], *, spaces: bool = True) -> Layout:
    """Return the layout of a file, from its lines (without line ends) or the first of them."""
    words = [line for line in lines if line.strip() and not line.startswith(NO_WORDS)]
    cells = [split_cells(line) if spaces else line.split("\t") for line in words]
    columns = [*zip(*cells, strict=False)]
    shapes = frozenset(("\t" in line, len(row)) for line, row in zip(words, cells, strict=True))
    layout = Layout(
        separator="\t" if not spaces or any(has_tab for has_tab, _ in shapes) else " ",
        shapes=shapes,
        tags=tuple(number for number, column in enumerate(columns) if number and _are_tags(column)),
        labels=frozenset(row[-1] for row in cells),
        indexed=False,
        numbers=0,
        spaces=spaces,
    )
    if len(columns) > 1 and 1 not in layout.tags and _are_numbered(lines):
        return layout._replace(indexed=True)
    firsts = [
        (number, layout.cells(line)[0])
        for number, line in enumerate(lines, start=1)
        if line.strip() and not layout.is_comment(line)
    ]
    are_numbers = len(columns) > 1 and all(_NUMBER.fullmatch(cell) for _, cell in firsts)
    return layout._replace(numbers=firsts[0][0]) if are_numbers else layout


def are_tagged(lines: Sequence[str]) -> bool:
    """Return whether no plain text would look like these lines: of one width, with a column of tags."""
    layout = layout_of(lines)
    widths = [width for _, width in layout.shapes]
    words = [line for line in lines if line.strip() and not (line[0] == HASH and layout.is_comment(line))]
    if len(words) < 2 or len(widths) != 1 or not layout.tags:
        return False
    return layout.separator == "\t" or layout.indexed or layout.tags[-1] == widths[0] - 1


def _are_tags(cells: Sequence[str]) -> bool:
    return all(map(_BIO.fullmatch, cells)) or all(cell in UPOS for cell in cells)


def _are_numbered(lines: Sequence[str]) -> bool:
    """Return whether the lines of each sentence begin with 1, 2, 3, and some sentence has two words."""
    running = longest = 0
    for line in lines:
        if not line.strip():
            running = 0
        elif not line.startswith(NO_WORDS):
            running += 1
            longest = max(longest, running)
            if split_cells(line)[0] != str(running):
                return False
    return longest > 1
