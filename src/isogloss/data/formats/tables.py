"""Rows of files in the formats that people keep labelled data in: CoNLL, TSV, CSV, JSON, parquet, lines.

Columns are named as in the file's header or keys, those of CoNLL-U as it names them (FORM, XPOS), or numbered
from 0 (from -1, backwards).
"""

import csv
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple, cast

from isogloss.core.errors import ConfigError, DataError, did_you_mean
from isogloss.data.files import File, parsed_object, some
from isogloss.data.formats.conllu import NAMES, read_sentences
from isogloss.data.formats.layouts import Layout, layout_of, read_words

FileFormat = Literal["conll", "conllu", "tsv", "csv", "jsonl", "json", "parquet", "lines", "squad"]
"""The last is that of whole questions (``questions``), not of rows."""
Column = int | str
Columns = Mapping[str, Column | tuple[Column, ...]]
"""The column that holds each part of an example, or several."""


_OPENS, _COMMA, _CLOSES = re.compile(r"\s*\[\s*"), re.compile(r"\s*,\s*"), re.compile(r"\s*\]\s*\Z")
_LIST = "a list of JSON objects and nothing else"


LONGEST_CELL = 2**31 - 1
"""Characters of a cell of CSV: the most that Python's reader can take everywhere; it would take 131,072."""


class Row(NamedTuple):
    """A row of a file, or a sentence of rows: its cells by column, and the line it begins in."""

    line: int
    cells: Mapping[Column, object]
    lines: Sequence[int] = ()
    """Of a sentence the line of each word."""


Rows = Iterator[Row | DataError]
"""Rows, and the errors of those that do not fit, after which reading goes on."""


def rows(
    file: File,
    form: FileFormat,
    columns: Sequence[Column],
    separator: str = ",",
    *,
    labels: Sequence[Column] = (),
    layout: Layout | None = None,
) -> Rows:
    """Yield the rows of a file with these columns; of CoNLL's the sentences, a list in each column.

    ``separator`` is that of the cells of CSV. Columns of ``labels`` may be absent in the whole file.
    """
    if form == "csv":
        return _headed(_csv(file, separator), file, columns, labels)
    if form == "tsv":
        return _headed(_tabbed(file), file, columns, labels)
    if form == "conll":
        return _conll(file, columns, labels, layout)
    return _READ[form](file, columns)


def _conll(file: File, columns: Sequence[Column], labels: Sequence[Column], layout: Layout | None) -> Rows:
    """Yield sentences: lines of columns separated by tabs or spaces, an empty line after each."""
    label = next((int(column) for column in labels), None)
    layout = layout or layout_of(file, label)
    numbers = [int(column) for column in columns]
    for words in read_words(file, layout, numbers, label):
        if isinstance(words, DataError):
            yield words
            continue
        cells = {column: [row[column] for _, row in words] for column in numbers}
        lines = [number for number, _ in words]
        yield Row(lines[0], cast(Mapping[Column, object], cells), lines)


def _conllu(file: File, columns: Sequence[Column]) -> Rows:
    """Yield sentences without multi-word ranges, empty nodes and comments."""
    places = {one: NAMES.index(one) if isinstance(one, str) else one for one in columns}
    for block in read_sentences(file):
        words = {name: [cells[at] for _, cells in block.rows] for name, at in places.items()}
        yield Row(block.number, words, [number for number, _ in block.rows])


def _tabbed(file: File) -> Iterator[tuple[int, list[str]]]:
    return ((number, line.split("\t")) for number, line in file.lines() if line.strip())


def _csv(file: File, separator: str) -> Iterator[tuple[int, list[str]]]:
    csv.field_size_limit(LONGEST_CELL)
    reader = csv.reader(file.read(), delimiter=separator, strict=True)
    before = 1
    try:
        for cells in reader:
            if cells:
                yield before, cells
            before = reader.line_num + 1
    except csv.Error as error:
        raise file.broken(before, str(error), "cells as CSV writes them") from error


def _headed(
    lines: Iterable[tuple[int, list[str]]], file: File, columns: Sequence[Column], labels: Sequence[Column]
) -> Rows:
    """Yield rows of cells; where columns are named, the first row is a header."""
    first: list[str] | None = None
    named = any(isinstance(column, str) for column in columns)
    for number, cells in lines:
        if first is None:
            first = [cell.strip() for cell in cells]
            if named:
                _check_header(file, number, first, [one for one in columns if isinstance(one, str)], labels)
                continue
        if len(cells) != len(first):
            advice = 'Correct the line; cells in quotation marks are CSV (format = "csv", separator = "\\t")'
            expected = f"{len(first)} as in the {'header' if named else 'first row'}"
            yield file.broken(number, f"{len(cells)} cells", expected, advice)
        else:
            named_cells = dict(zip(first if named else (), cells, strict=False))
            yield Row(
                number, {column: cell for column in columns for cell in _cell(column, named_cells, cells)}
            )


def _cell(column: Column, named: Mapping[str, str], cells: Sequence[str]) -> Sequence[str]:
    """Return the cell of a column, or nothing where the row has none."""
    if isinstance(column, str):
        return [named[column]] if column in named else []
    return cells[column : column + 1 or None]


def _check_header(
    file: File, number: int, header: Sequence[str], columns: Sequence[str], labels: Sequence[Column]
) -> None:
    """Raise DataError for a column that is not in a header; one of labels may be absent, not misspelled."""
    for column in columns:
        if header.count(column) > 1:
            raise file.broken(
                number, f"{header.count(column)} columns {column!r}", "one", "Number them from 0"
            )
        near = did_you_mean(column, header)
        if column not in header and (near or column not in labels):
            raise file.broken(
                number,
                f"a header without {column!r}{near}",
                f"the columns that the description names; there are {some(header)}",
                "Correct the columns, or number them from 0 if there is no header",
            )


def _objects(file: File, _: Sequence[Column]) -> Rows:
    for number, line in file.lines():
        if line.strip():
            try:
                yield Row(number, cast(Mapping[Column, Any], parsed_object(file, number, line)))
            except DataError as error:
                yield error


def _array(file: File, _: Sequence[Column]) -> Rows:
    """Yield the objects of one JSON list, each with the line it begins in."""
    text, read, line, closed = "".join(file.read()), 0, 1, None
    step, decode = _OPENS.match(text), json.JSONDecoder().raw_decode
    while step:
        line, read = line + text.count("\n", read, step.end()), step.end()
        try:
            body, end = decode(text, read)
        except (ValueError, RecursionError) as error:
            raise file.broken(line, f"{text[read : read + 60]!r} ({error})", _LIST) from error
        if not isinstance(body, dict):
            raise file.broken(line, f"{text[read : read + 60]!r}", _LIST)
        yield Row(line, body)
        step, closed = _COMMA.match(text, end), _CLOSES.match(text, end)
    if not closed:
        raise file.broken(line, "no list, or one that does not end", _LIST)


def _lines(file: File, columns: Sequence[Column]) -> Rows:
    for number, line in file.lines():
        yield Row(number, dict.fromkeys(columns, line))


def _parquet(file: File, _: Sequence[Column]) -> Rows:
    try:
        from pyarrow import ArrowException
        from pyarrow.parquet import ParquetFile
    except ImportError as error:
        raise ConfigError(
            f"{file.name}: parquet is read with the package pyarrow, which is not installed. Install it "
            f'(pip install "isogloss[hub]").'
        ) from error
    number = 0
    try:
        for batch in ParquetFile(file.name).iter_batches():
            for body in batch.to_pylist():
                number += 1
                yield Row(number, body)
    except (ArrowException, OSError, UnicodeDecodeError) as error:
        raise DataError(f"{file.name}: this is no parquet file, or a damaged one ({error}).") from error


_READ: Mapping[FileFormat, Callable[[File, Sequence[Column]], Rows]] = {
    "conllu": _conllu,
    "jsonl": _objects,
    "json": _array,
    "lines": _lines,
    "parquet": _parquet,
}
