"""Rows of files of labelled data in the usual formats: CoNLL, TSV, CSV, JSON, parquet, lines.

Readers of rows see parts of examples instead of columns.
"""

import csv
import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, cast

from isogloss.core.errors import DataError, did_you_mean
from isogloss.data.files import File, parse_object, some
from isogloss.data.formats.conll import ConllLayout, decide_layout, read_words
from isogloss.data.formats.conllu import MISC, NAMES, make_cell_reader, read_sentences
from isogloss.data.formats.formats import (
    FORMATS,
    AnyOf,
    CellRows,
    Cells,
    Column,
    ExampleColumns,
    Format,
    PartColumns,
    find_marks,
)
from isogloss.data.formats.parquet import parquet_rows

SENTENCE = "sentence"
"""Part that separates the sentences of a table with a line for each word. A sentence begins where its cell
changes and is not empty."""

BY_WORD = ("conll", "conllu")
"""Formats with a line for each word."""

LONGEST_CELL = 2**31 - 1
"""Maximum characters in a cell of CSV, the largest limit that Python's reader accepts on every system. Its
default is 131,072."""


class FileRow(NamedTuple):
    """A row of a file, or a sentence of rows."""

    number: int
    """Index in the file, from 0."""
    line: int
    parts: Mapping[str, Any]
    """Cells of the existing parts: a tuple for a part in several columns, a list for each part of a
    sentence."""
    lines: Sequence[int] = ()
    """Line of each word of a sentence."""
    columns: Collection[Column] = ()
    """Existing columns of the row."""


Rows = Iterator[FileRow | DataError]
"""Rows, and the errors of rows that do not fit. Reading continues after an error."""


def rows(file: File, table: ExampleColumns, layout: ConllLayout | None = None) -> Rows:
    """Yield the selected rows of a file, or the sentences of a CoNLL file.

    ``layout`` is the layout of a CoNLL file. Default: decided from its lines.
    """
    is_conll = table.format == "conll"
    cell_rows = _read_conll(file, table, layout) if is_conll else read_cells(file, table)
    if table.has_offsets:
        cell_rows = find_marks().add_words(file, cell_rows)
    if SENTENCE in table.columns:
        cell_rows = _group_words(cell_rows, table.columns_of(SENTENCE)[0])
    required_columns = set(table.chosen).difference(table.optional)
    for index, row in enumerate(cell_rows):
        if isinstance(row, DataError):
            yield row
            continue
        line, cells, lines = row
        if missing := [column for column in required_columns if column not in cells]:
            yield no_column(file, line, f"{missing[0]!r} for where", cells)
        elif all(str(cells[column]) in texts for column, texts in table.chosen.items() if column in cells):
            yield FileRow(index, line, _parts(cells, table.columns), lines, cells)


def _group_words(cell_rows: CellRows, sentence: Column) -> CellRows:
    """Yield the sentences of a table with a line for each word, each column as a list."""
    words = list[Cells]()
    name = ""
    for row in cell_rows:
        if isinstance(row, DataError):
            yield row
            continue
        cell = str(row.cells.get(sentence) or "").strip()
        if words and cell not in ("", name):
            yield _join_words(words)
            words = []
        name = cell or name
        words.append(row)
    if words:
        yield _join_words(words)


def _join_words(words: Sequence[Cells]) -> Cells:
    columns = {column: [word.cells[column] for word in words] for column in words[0].cells}
    return Cells(words[0].line, columns, [word.line for word in words])


def read_cells(file: File, table: ExampleColumns) -> CellRows:
    """Yield the rows of a file as cells by column. A format without rows has none."""
    read_rows = FORMATS[table.format].read_rows
    return iter(()) if read_rows is None else read_rows(file, table)


def read_bodies(file: File, form: str) -> Iterator[Mapping[str, Any]]:
    """Yield the objects of a file, skipping unreadable ones."""
    for row in read_cells(file, ExampleColumns(format=form, columns={})):
        if not isinstance(row, DataError):
            yield row.cells


def _parts(cells: Mapping[Any, Any], columns: Mapping[str, PartColumns]) -> dict[str, Any]:
    """Return the cell of each existing part, or a tuple of the cells of several columns."""
    parts = dict[str, Any]()
    for part, column in columns.items():
        if isinstance(column, tuple):
            if all(name in cells for name in column):
                parts[part] = tuple(cells[name] for name in column)
            continue
        names = column.names if isinstance(column, AnyOf) else (column,)
        present = [cells[name] for name in names if name in cells]
        if present:
            parts[part] = present[0]
    return parts


OFFICIAL = "Use the official file; only a test split may lack labels"


def no_column(
    file: File, line: int, missing: str, columns: Iterable[Column], advice: str = "Add it, or correct columns"
) -> DataError:
    """Build the error for a row without a column."""
    return file.broken(
        line, f"no column {missing} in {', '.join(str(column) for column in columns)}", "it", advice
    )


def header_of(file: File, form: str) -> list[str]:
    """Return the cells of the first row, or the keys of the first object."""
    table = ExampleColumns(format=form, columns={})
    if form in ("csv", "tsv"):
        cells: Iterable[Any] = next((cells for _, cells in _lines_of_cells(file, table)), ())
    else:
        rows_of_cells = read_cells(file, table)
        cells = next((row.cells for row in rows_of_cells if not isinstance(row, DataError)), ())
    return [str(cell).strip() for cell in cells]


def _read_delimited(file: File, table: ExampleColumns) -> CellRows:
    """Yield rows of cells.

    The first row is a header if columns are named.
    """
    columns = [column for part in table.columns for column in table.columns_of(part)]
    columns += table.chosen
    width = 0
    has_header = False
    indices = dict[Column, int]()
    for line_number, cells in _lines_of_cells(file, table):
        if not width:
            header = [cell.strip() for cell in cells]
            has_header = _is_header(table, header, columns)
            width = len(cells)
            if table.headerless and not has_header:
                width = width if width in table.headerless else next(iter(table.headerless))
                parts = [(index, part) for index, part in enumerate(table.headerless[width]) if part]
                indices = {table.columns_of(part)[0]: index for index, part in parts if part in table.columns}
            else:
                indices = {column: header.index(column) for column in columns if column in header}
                numbers = (column for column in columns if isinstance(column, int))
                indices |= {column: column for column in numbers if -width <= column < width}
            if has_header:
                _check_header(file, line_number, header, table)
                continue
        if len(cells) == width:
            yield Cells(line_number, {column: cells[index] for column, index in indices.items()})
        elif table.lossy:
            yield Cells(line_number, dict.fromkeys(indices, ""))
        else:
            csv_advice = '; cells in quotation marks are CSV (format = "csv", separator = "\\t")'
            advice = f"Correct the line{'' if table.headerless else csv_advice}"
            expectation = f"{width} as in the {'header' if has_header else 'first row'}"
            yield file.broken(line_number, f"{len(cells)} cell{'s' * (len(cells) != 1)}", expectation, advice)


def _is_header(table: ExampleColumns, cells: Sequence[str], columns: Sequence[Column]) -> bool:
    if table.headerless:
        return not set(cells).isdisjoint(table.columns_of(next(iter(table.columns))))
    return any(isinstance(column, str) for column in columns)


def _check_header(file: File, line_number: int, header: Sequence[str], table: ExampleColumns) -> None:
    """Raise DataError for a column that is not in a header.

    An optional column may be absent, but not misspelled.
    """
    required_parts: list[tuple[str, tuple[Column, ...]]] = [
        (str(column), (column,)) for column in table.chosen
    ]
    for part, column in table.columns.items():
        names = table.columns_of(part)
        required_parts += (
            [(part, names)] if isinstance(column, AnyOf) else [(part, (name,)) for name in names]
        )
    for part, columns in required_parts:
        column_names = [column for column in columns if isinstance(column, str)]
        repeated_name = next((name for name in column_names if header.count(name) > 1), None)
        if repeated_name is not None:
            count = f"{header.count(repeated_name)} columns {repeated_name!r}"
            raise file.broken(line_number, count, "one", "Number them from 0")
        if not column_names or not set(column_names).isdisjoint(header):
            continue
        is_official = bool(table.headerless)
        suggestion = did_you_mean(column_names[0], header)
        if part not in table.optional or (suggestion and not is_official):
            raise file.broken(
                line_number,
                f"a header without {' or '.join(repr(name) for name in column_names)}{suggestion}",
                f"the columns that the {'corpus' if is_official else 'description'} names; "
                f"the file has {some(header)}",
                OFFICIAL if is_official else "Correct the columns, or number them from 0 without a header",
            )


def _lines_of_cells(file: File, table: ExampleColumns) -> Iterator[tuple[int, list[str]]]:
    if table.format == "csv":
        return read_csv(file, table.separator)
    lines = file.lines()
    return (
        (line_number, line.split("\t")) for line_number, line in lines if not table.skip_blank or line.strip()
    )


def read_csv(file: File, separator: str = ",") -> Iterator[tuple[int, list[str]]]:
    """Yield the cells of each line of a CSV file, with the number of its first line.

    Raises DataError for wrong quotes.
    """
    csv.field_size_limit(LONGEST_CELL)
    reader = csv.reader(file.read(), delimiter=separator, strict=True)
    begin = 1
    try:
        for cells in reader:
            if cells:
                yield begin, cells
            begin = reader.line_num + 1
    except csv.Error as error:
        raise file.broken(begin, str(error), "cells as CSV writes them") from error


def _read_conll(file: File, table: ExampleColumns, layout: ConllLayout | None = None) -> CellRows:
    """Yield sentences: lines of columns separated by tabs or spaces, an empty line after each."""
    label = table.columns.get("label")
    layout = layout or decide_layout(file, label if isinstance(label, int) else None)
    columns = cast(list[int], list(table.columns.values()))
    for words in read_words(file, layout, columns):
        if isinstance(words, DataError):
            yield words
        else:
            lines = [line_number for line_number, _ in words]
            yield Cells(lines[0], {column: [row[column] for _, row in words] for column in columns}, lines)


def _read_conllu(file: File, table: ExampleColumns) -> CellRows:
    """Yield sentences without multi-word ranges, empty nodes and comments."""
    columns = cast(list[Column], list(table.columns.values()))
    cell_readers = {column: make_cell_reader(column) for column in columns}
    for block in read_sentences(file):
        cells = {column: [cell_of(row) for _, row in block.rows] for column, cell_of in cell_readers.items()}
        lines_with_keys = [line for line, row in block.rows if "=" in row[MISC]]
        if lines_with_keys and NAMES[MISC] in columns:
            advice = 'Name one of its keys, as in columns = { label = "MISC:NER" }'
            yield file.broken(
                lines_with_keys[0], "keys and values in MISC", "one label for each word", advice
            )
            continue
        yield Cells(block.number, cells, [line for line, _ in block.rows])


def _read_objects(file: File, _: ExampleColumns) -> CellRows:
    for line_number, line in file.lines():
        if line.strip():
            try:
                yield Cells(line_number, parse_object(file, line_number, line))
            except DataError as error:
                yield error


_OPENS = re.compile(r"\s*\[\s*")
_COMMA = re.compile(r"\s*,\s*")
_CLOSES = re.compile(r"\s*\]\s*\Z")
_LIST = "a list of JSON objects and nothing else"


def _read_array(file: File, _: ExampleColumns) -> CellRows:
    """Yield the objects of one JSON list, each with the line at which it begins."""
    text = "".join(file.read())
    decode = json.JSONDecoder().raw_decode
    position = 0
    line = 1
    end_match = None
    separator = _OPENS.match(text)
    while separator:
        line += text.count("\n", position, separator.end())
        position = separator.end()
        excerpt = text[position : position + 60]
        try:
            body, stop = decode(text, position)
        except (ValueError, RecursionError) as error:
            raise file.broken(line, f"{excerpt!r} ({error})", _LIST) from error
        if not isinstance(body, dict):
            raise file.broken(line, f"{excerpt!r}", _LIST)
        yield Cells(line, body)
        separator = _COMMA.match(text, stop)
        end_match = _CLOSES.match(text, stop)
    if not end_match:
        raise file.broken(line, "no list, or one that does not end", _LIST)


def _read_lines(file: File, _: ExampleColumns) -> CellRows:
    for line_number, line in file.lines():
        yield Cells(line_number, {0: line})


def _read_parquet(file: File, _: ExampleColumns) -> CellRows:
    for row_number, body in enumerate(parquet_rows(file)[1], start=1):
        yield Cells(row_number, body)


CONLL = Format(
    suffixes=(".txt", ".conll"), columns={"tagging": {"word": 0, "label": -1}}, read_rows=_read_conll
)
CONLLU = Format(
    suffixes=(".conllu",), columns={"tagging": {"word": "FORM", "label": "UPOS"}}, read_rows=_read_conllu
)
TSV = Format(suffixes=(".tsv",), is_named=True, read_rows=_read_delimited)
CSV = Format(suffixes=(".csv",), is_named=True, read_rows=_read_delimited)
JSONL = Format(suffixes=(".jsonl", ".json", ".ndjson"), is_named=True, read_rows=_read_objects)
JSON = Format(is_named=True, read_rows=_read_array)
PARQUET = Format(suffixes=(".parquet",), is_named=True, read_rows=_read_parquet)
LINES = Format(columns={"bitext": {"first": 0, "second": 0}, "raw": {"text": 0}}, read_rows=_read_lines)
