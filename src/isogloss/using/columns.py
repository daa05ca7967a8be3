"""The layout of a file with a line a word, decided once from its lines: comments, tags, running numbers."""

import re
from collections.abc import Sequence
from typing import NamedTuple

from isogloss.data.files import File
from isogloss.data.formats import conll
from isogloss.data.formats.conll import DOCUMENT, HASH, split_cells
from isogloss.data.formats.conllu import UPOS

NO_WORDS = (HASH, DOCUMENT)
"""Begin comments, though # may be a word."""

_BIO = re.compile(r"O|[BIESLUMW]-\S+")
"""Tags of spans in any scheme of letters (``formats.conll``)."""

_NUMBER = re.compile(r"\d[\d.,:/-]*")


class Layout(NamedTuple):
    """How a file with a line a word is laid out."""

    plain: conll.Layout
    """As it is without running numbers."""
    tags: tuple[int, ...]
    """Columns after the first that hold tags of spans (or parts of speech) alone."""
    separator: str
    """Parts the cells: a tab, or a space."""
    spaces: bool
    """Whether spaces part the cells of a line without a tab."""
    indexed: bool = False
    """Whether the first column numbers the words of each sentence, 1, 2, 3, and words follow it."""
    numbers: int = 0
    """The line of the first word, from 1, where the first column holds other numbers alone; else 0."""
    chosen: int | None = None
    """The column of words, where somebody says it."""

    def is_comment(self, line: str) -> bool:
        """Return whether a line before a sentence is no word; with running numbers a # never is one."""
        if self.indexed:
            return line.startswith(NO_WORDS)
        if not self.spaces and "\t" not in line and line.startswith(HASH):
            return self.separator == "\t" or line.startswith("# ")
        return self.plain.is_comment(line, first=True)

    def cells(self, line: str) -> list[str]:
        """Return the cells of a line."""
        return split_cells(line) if self.spaces else line.split("\t")


def layout_of(lines: Sequence[str], *, spaces: bool = True) -> Layout:
    """Return the layout of a file, from its lines (without line ends) or the first of them."""
    words = [line for line in lines if line.strip() and not line.startswith(NO_WORDS)]
    columns = [*zip(*map(split_cells, words), strict=False)]
    tags = tuple(number for number, column in enumerate(columns) if number and _are_tags(column))
    file = File("", lambda: iter(lines), str)
    plain = conll.layout_of(file, tags[-1] if tags else -1)
    plain = plain._replace(label=tags[-1] if tags else -1 if plain.width > 1 else None)
    layout = Layout(
        plain=plain._replace(labels=plain.labels | UPOS) if tags and plain.labels <= UPOS else plain,
        tags=tags,
        separator="\t" if any("\t" in line for line in words) else " ",
        spaces=spaces,
    )
    if len(columns) > 1 and 1 not in tags and _are_numbered(lines):
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
    words = [line for line in lines if line.strip() and not (line[0] == HASH and layout.is_comment(line))]
    widths = {len(split_cells(line)) for line in words if not line.startswith(NO_WORDS)}
    if len(words) < 2 or len(widths) != 1 or not layout.tags:
        return False
    return layout.separator == "\t" or layout.indexed or layout.tags[-1] == max(widths) - 1


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
