"""CoNLL-U that is to be labelled: the words of each sentence, every line as it stood, columns filled in.

Other than a treebank's, such a file may have nothing in its columns but words; what is not filled in
(comments, multi-word ranges, empty nodes, other columns, further empty lines) is written as it was read.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from isogloss.data.conllu import COLUMNS, FORM
from isogloss.data.files import File

NOTHING = "_"
MISC = 9
"""Column of everything else, as in ``SpaceAfter=No|NER=B-PER``, counted from 0."""

_WORD = re.compile(r"[1-9][0-9]{0,8}")
_RANGE_OR_EMPTY = re.compile(r"[1-9][0-9]*-[1-9][0-9]*|[0-9]+\.[1-9][0-9]*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """Lines as they stood and the words in them: a sentence, or the empty line after one."""

    number: int
    """Number of the first line."""

    lines: tuple[str, ...]
    words: tuple[str, ...] = ()

    @property
    def sent_id(self) -> str:
        """The sentence's name; empty without."""
        for line in self.lines:
            name, is_there, value = line.removeprefix("#").partition("=")
            if is_there and line.startswith("#") and name.strip() == "sent_id" and value.strip():
                return value.strip()
        return ""


def read_blocks(file: File) -> Iterator[Block]:
    """Give every line of a file, sentence by sentence; DataError at a line that is none of the format."""
    first, lines, words = 1, list[str](), list[str]()
    for number, line in file.lines():
        if not line.strip():
            if lines:
                yield Block(number=first, lines=tuple(lines), words=tuple(words))
            yield Block(number=number, lines=(line,))
            first, lines, words = number + 1, [], []
            continue
        lines.append(line)
        if not line.startswith("#"):
            words += _word(file, number, line, len(words) + 1)
    if lines:
        yield Block(number=first, lines=tuple(lines), words=tuple(words))


def with_columns(lines: Sequence[str], columns: Mapping[int, Sequence[str]]) -> Iterator[str]:
    """Give a sentence's lines with columns, counted from 0, filled in: one value for each word."""
    values = zip(*columns.values(), strict=True)
    for line in lines:
        cells = line.split("\t")
        if _is_word(line, cells):
            for column, value in zip(columns, next(values), strict=True):
                cells[column] = value
        yield "\t".join(cells)


def with_misc(lines: Sequence[str], key: str, values: Sequence[str]) -> Iterator[str]:
    """Give a sentence's lines with ``key=value`` in the last column, for each word; other keys are kept."""
    given = iter(values)
    for line in lines:
        cells = line.split("\t")
        if _is_word(line, cells):
            kept = [part for part in cells[MISC].split("|") if part.partition("=")[0] != key]
            kept = [part for part in kept if part not in ("", NOTHING)]
            cells[MISC] = "|".join([*kept, f"{key}={next(given)}"])
        yield "\t".join(cells)


def _word(file: File, number: int, line: str, position: int) -> list[str]:
    """Return the word of a line; none for a multi-word range or an empty node."""
    cells = line.split("\t")
    if len(cells) != COLUMNS:
        raise file.broken(number, f"{len(cells)} columns in {line[:60]!r}", f"{COLUMNS}, split by tabs")
    if _RANGE_OR_EMPTY.fullmatch(cells[0]):
        return []
    if cells[0] != str(position):
        expected = f"word number {position}, a range (3-4) or an empty node (3.1)"
        raise file.broken(number, f"ID {cells[0]!r}", expected)
    if not cells[FORM]:
        raise file.broken(number, "an empty FORM", "the word")
    return [cells[FORM]]


def _is_word(line: str, cells: Sequence[str]) -> bool:
    return not line.startswith("#") and bool(_WORD.fullmatch(cells[0]))
