"""Tables of texts, or of pairs, with a header: a row keeps its characters and gets a column of labels."""

import csv
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain
from typing import Literal, NamedTuple

from isogloss.core.errors import ConfigError
from isogloss.data.corpora.labelled import FIRST, SECOND
from isogloss.data.examples import LabelledText, SentencePair
from isogloss.data.files import File, some
from isogloss.data.formats.tables import LONGEST_CELL
from isogloss.recipes.starting import TEXT_NAMES
from isogloss.using.formats import Answered, Entry, Prediction

TEXTS = (TEXT_NAMES,)
PAIRS = (("first", *FIRST), ("second", *SECOND))
"""Usual names of the columns of texts, in any case; the first that the header has is taken."""

ADDED = (("label", "predicted"), ("scores", "predicted_scores"))
"""Names of the columns that are added; the first that the header lacks is taken."""


class _Table(NamedTuple):
    separator: str
    width: int
    columns: Sequence[int]
    """Those of the texts."""
    names: tuple[str, ...] = ()
    """Of the columns to add; none without a header."""


def read_table(
    file: File, _: str, text: str = "", *, pairs: bool = False, quoted: bool = False
) -> Iterator[Entry]:
    """Read a text per row, or two, from the columns ``text`` (names or numbers), or those with usual names.

    ``quoted`` cells are those of CSV; others are separated by tabs, and pairs may have no header and are the
    first two columns.
    """
    lines = iter(file.read())
    first = next(lines, "")
    separator = (";" if first.count(";") > first.count(",") else ",") if quoted else "\t"
    columns: Sequence[Sequence[str]] = PAIRS if pairs else TEXTS
    if text:
        columns = [[name.strip().casefold()] for name in (text.split(",") if pairs else [text])]
    if pairs and len(columns) != len(PAIRS):
        raise ConfigError(f"--text {text!r}: expected the names of two columns, as in first,second.")
    table: _Table | None = None
    for number, line, cells in _records(file, chain([first] if first else [], lines), separator):
        if not line.strip():
            yield Entry(lines=(line,), about={"line": number})
        elif table is None:
            table = _table(file, number, cells, separator, columns)
            names = table.names
            yield (
                Entry(lines=(line,), names=names, separator=separator)
                if names
                else _row(file, number, line, cells, table)
            )
        else:
            yield _row(file, number, line, cells, table)


def _records(file: File, lines: Iterable[str], separator: str) -> Iterator[tuple[int, str, list[str]]]:
    """Yield number, characters (but for the last line feed) and cells of each record."""
    record, number = list[str](), 1
    csv.field_size_limit(LONGEST_CELL)
    recorded = (record.append(line) or line for line in lines)  # type: ignore[func-returns-value]
    quoting: Literal[0, 3] = csv.QUOTE_NONE if separator == "\t" else csv.QUOTE_MINIMAL
    reader = csv.reader(recorded, delimiter=separator, quoting=quoting, strict=True)
    try:
        for cells in reader:
            yield number, "".join(record).removesuffix("\n"), cells
            record.clear()
            number = reader.line_num + 1
    except csv.Error as error:
        raise file.broken(number, str(error), "cells as CSV writes them") from error


def _table(
    file: File, number: int, cells: Sequence[str], separator: str, columns: Sequence[Sequence[str]]
) -> _Table:
    if all(number.isdecimal() and int(number) < len(cells) for number, *_ in columns):
        return _Table(separator, len(cells), [int(number) for number, *_ in columns])
    header = [cell.strip().casefold() for cell in cells]
    names = [next((name for name in usual if name in header), "") for usual in columns]
    if columns is PAIRS and separator == "\t" and not all(names):
        return _Table(separator, max(len(cells), 2), (0, 1))
    if not all(names):
        lacking = " or ".join(columns[names.index("")][:2])
        expected = f"the texts' column; the header has {some(cells)}"
        advice = "Say which: --text COLUMN (of pairs with a comma; numbers from 0 without a header)"
        raise file.broken(number, f"a header without {lacking}", expected, advice)
    added = tuple(next((name for name in pair if name not in header), "") for pair in ADDED)
    if not all(added):
        raise file.broken(number, "the columns label and predicted", "one of them to be free", "Rename one")
    return _Table(separator, len(cells), [header.index(name) for name in names], added)


def _row(file: File, number: int, line: str, cells: Sequence[str], table: _Table) -> Entry:
    texts = [cells[column] for column in table.columns if column < len(cells)]
    is_whole, is_blank = len(cells) == table.width, not all(text.strip() for text in texts)
    if not is_whole or (is_blank and len(texts) > 1):
        expected = "two texts" if is_whole else f"{table.width} columns as in the first row"
        if (table.width, table.separator) == (2, "\t"):
            expected = "two texts with one tab between them"
        text = f"{'a blank text in ' if is_whole else ''}{line[:60]!r}"
        raise file.broken(number, text, expected, "Take the row out" if is_whole else "Correct the line")
    entry = Entry(lines=(line,), about={"line": number}, separator=table.separator)
    if len(texts) > 1:
        return replace(entry, example=SentencePair(id=str(number), first=texts[0], second=texts[1], label=""))
    return (
        entry if is_blank else replace(entry, example=LabelledText(id=str(number), text=texts[0], label=""))
    )


def write_table(entries: Iterable[Answered]) -> Iterator[str]:
    """Yield the rows with their labels, below the names of the new columns; without a text, empty cells."""
    held, width = list[Entry](), 0  # How many columns are new is known at the first prediction.
    for entry, prediction in entries:
        cells = answer_cells(prediction)
        if cells and not width:
            width = len(cells)
            yield from (_with_cells(row, width) for row in held)
        if width:
            yield _with_cells(entry, width, cells)
        else:
            held.append(entry)
    if not width:
        yield from (_with_cells(row, 1) for row in held)


def _with_cells(entry: Entry, width: int, cells: Sequence[str] = ()) -> str:
    (line,) = entry.lines
    if not line.strip():
        return line
    cells = cells or entry.names[:width] or [""] * width
    if entry.separator != "\t":
        marked = (entry.separator, '"', "\n")
        cells = [
            f'"{cell.replace(chr(34), chr(34) * 2)}"' if any(mark in cell for mark in marked) else cell
            for cell in cells
        ]
    body = line.removesuffix("\r")
    return entry.separator.join([body, *cells]) + line[len(body) :]


def answer_cells(prediction: Prediction | None) -> list[str]:
    """Return the label, several with commas between, and the probabilities of all, if any."""
    if prediction is None:
        return []
    answer = prediction.answer
    label = ",".join(answer) if isinstance(answer, tuple) else str(answer)
    if prediction.scores is None:
        return [label]
    return [label, " ".join(f"{name}={score:.4f}" for name, score in prediction.scores.items())]
