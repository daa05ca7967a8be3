"""Rows of files in the formats that people keep labelled data in: CoNLL, TSV, CSV, JSON, parquet, lines.

Columns are named as in the file's header or keys, those of CoNLL-U as it names them (FORM, XPOS), or numbered
from 0 (from -1, backwards).
"""

import csv
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, Literal, NamedTuple, cast

from isogloss.core.errors import ConfigError, DataError, did_you_mean
from isogloss.data.conllu import NAMES, read_sentences
from isogloss.data.files import File, numbered_objects, some

FileFormat = Literal["conll", "conllu", "tsv", "csv", "jsonl", "json", "parquet", "lines", "squad"]
"""The last is that of whole questions (``questions``), not of rows."""
Column = int | str
Columns = Mapping[str, Column | tuple[Column, ...]]
"""The column that holds each part of an example, or several."""


_COMMENT = re.compile(r"-DOCSTART-|# id |# new(doc|par)\s*$|# .* = ")
"""The beginning of a line of CoNLL that is no word: ``# _ _ O`` is one."""


_OPENS, _COMMA, _CLOSES = re.compile(r"\s*\[\s*"), re.compile(r"\s*,\s*"), re.compile(r"\s*\]\s*\Z")
_LIST = "a list of JSON objects and nothing else"


LONGEST_CELL = 2**31 - 1
"""Characters of a cell of CSV: the most that Python's reader can take everywhere; it would take 131,072."""


class Row(NamedTuple):
    """A row of a file, or a sentence of rows: its cells by column, and the line it begins in."""

    line: int
    cells: Mapping[Column, object]


def rows(file: File, form: FileFormat, columns: Sequence[Column], separator: str = ",") -> Iterator[Row]:
    """Yield the rows of a file with these columns; of CoNLL's the sentences, a list in each column.

    ``separator`` is that of the cells of CSV.
    """
    if form == "csv":
        yield from _headed(_csv(file, separator), file, columns)
    else:
        yield from _READ[form](file, columns)


def _conll(file: File, columns: Sequence[Column]) -> Iterator[Row]:
    """Yield sentences: lines of columns separated by tabs or spaces, an empty line after each."""
    lines = ((number, line) for number, line in file.lines() if not _COMMENT.match(line))
    for has_words, sentence in groupby(lines, key=lambda numbered: bool(numbered[1].strip())):
        if has_words:
            numbered = [(number, _cells(file, number, line, columns)) for number, line in sentence]
            words = {column: [cells[int(column)] for _, cells in numbered] for column in columns}
            yield Row(numbered[0][0], words)


def _cells(file: File, number: int, line: str, columns: Sequence[Column]) -> list[str]:
    # Of white space, spaces alone part cells: a number may hold a no-break space.
    cells = line.split("\t") if "\t" in line else [*filter(None, line.split(" "))]
    if not all(_has(column, cells) for column in columns) or len(cells) < len(columns):
        raise file.broken(number, f"{line[:60]!r}", f"columns {', '.join(map(str, columns))}")
    return cells


def _conllu(file: File, columns: Sequence[Column]) -> Iterator[Row]:
    """Yield sentences without multi-word ranges, empty nodes and comments."""
    for block in read_sentences(file):
        kept = [cells for _, cells in block.rows]
        places = {one: NAMES.index(one) if isinstance(one, str) else one for one in columns}
        yield Row(block.number, {one: [cells[at] for cells in kept] for one, at in places.items()})


def _tabbed(file: File, columns: Sequence[Column]) -> Iterator[Row]:
    lines = ((number, line.split("\t")) for number, line in file.lines() if line.strip())
    return _headed(lines, file, columns)


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


def _headed(lines: Iterable[tuple[int, list[str]]], file: File, columns: Sequence[Column]) -> Iterator[Row]:
    """Yield rows of cells; where columns are named, the first row is a header."""
    header: list[str] | None = None
    named = any(isinstance(column, str) for column in columns)
    for number, cells in lines:
        if named and header is None:
            header = [cell.strip() for cell in cells]
            missing = [one for one in columns if isinstance(one, str) and one not in header]
            if missing:
                near = did_you_mean(str(missing[0]), header)
                raise file.broken(
                    number,
                    f"a header without {missing[0]!r}{near}",
                    f"the columns that the description names; there are {some(header)}",
                    "Correct the columns, or number them from 0 if there is no header",
                )
            continue
        if header is not None and len(cells) != len(header):
            advice = 'Correct the line; cells in quotation marks are CSV (format = "csv", separator = "\\t")'
            raise file.broken(number, f"{len(cells)} cells", f"{len(header)} as in the header", advice)
        by_name = dict(zip(header or (), cells, strict=False))
        yield Row(
            number,
            {c: by_name[c] if isinstance(c, str) else cells[c] for c in columns if _has(c, cells)},
        )


def _has(column: Column, cells: Sequence[str]) -> bool:
    return isinstance(column, str) or -len(cells) <= column < len(cells)


def _objects(file: File, _: Sequence[Column]) -> Iterator[Row]:
    for number, _line, body in numbered_objects(file):
        yield Row(number, cast(Mapping[Column, Any], body))


def _array(file: File, _: Sequence[Column]) -> Iterator[Row]:
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


def _lines(file: File, columns: Sequence[Column]) -> Iterator[Row]:
    for number, line in file.lines():
        yield Row(number, dict.fromkeys(columns, line))


def _parquet(file: File, _: Sequence[Column]) -> Iterator[Row]:
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


_READ: Mapping[FileFormat, Callable[[File, Sequence[Column]], Iterator[Row]]] = {
    "conll": _conll,
    "conllu": _conllu,
    "tsv": _tabbed,
    "jsonl": _objects,
    "json": _array,
    "lines": _lines,
    "parquet": _parquet,
}
