"""Rows of files of labelled data in the usual formats: CoNLL, TSV, CSV, JSON, parquet, lines.

``ExampleColumns`` gives the column of each part of an example: by its name in the header or its key, by any
of the names in use, by CoNLL-U's name (FORM, XPOS), by its number from 0 (from -1, backwards), or
by several columns.
Readers of rows see parts and no columns.
"""

import csv
import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, cast

from isogloss.core.errors import ConfigError, DataError, did_you_mean
from isogloss.data.files import File, parsed_object, some
from isogloss.data.formats.annotation_files import LABEL_COLUMN, AnnotatedSentence, read_brat, read_webanno
from isogloss.data.formats.conll import ConllLayout, layout_of, read_words
from isogloss.data.formats.conllu import MISC, NAMES, make_cell_reader, read_sentences
from isogloss.data.formats.offsets import (
    SPAN_KEYS,
    OffsetError,
    Style,
    count_annotators,
    counts_utf16,
    find_style,
    find_text,
    has_wide_characters,
    is_rejected,
    locate_words,
    tag_object,
)

FileFormat = Literal[
    "conll", "conllu", "tsv", "csv", "jsonl", "json", "parquet", "lines", "squad", "brat", "webanno",
]  # fmt: skip
"""``squad`` is that of whole questions (``questions``), not of rows."""

SUFFIXES: Mapping[str, FileFormat] = {
    ".txt": "conll", ".conll": "conll", ".conllu": "conllu", ".tsv": "tsv", ".csv": "csv",
    ".jsonl": "jsonl", ".json": "jsonl", ".ndjson": "jsonl", ".parquet": "parquet", ".ann": "brat",
}  # fmt: skip

WORDS_COLUMN, TAGS_COLUMN, OVERLAPS_COLUMN = "words of the text", "tags of the text", "overlapping spans"
"""The columns of words and labels that rows have after their offsets were read."""

OF_SPANS: Mapping[str, str] = {"words": WORDS_COLUMN, "labels": TAGS_COLUMN, "overlaps": OVERLAPS_COLUMN}
"""The column of each part of a sentence whose spans are marked by offsets."""

SENTENCE = "sentence"
"""The part that separates the sentences of a table with a line for each word: its cell is another one, or is
empty but for the first word."""

BY_WORD = ("conll", "conllu")
"""Formats with a line a word."""

Column = int | str


@dataclass(frozen=True)
class AnyOf:
    """A column by any of the names in use, the preferred one first."""

    names: tuple[str, ...]


PartColumns = Column | tuple[Column, ...] | AnyOf
"""The column of a part of an example, several columns, or one by any of its names."""

Columns = Mapping[str, PartColumns]
"""The column of each part of an example, or several."""

LONGEST_CELL = 2**31 - 1
"""Characters of a cell of CSV: the most that Python's reader can take everywhere; it would take 131,072."""


@dataclass(frozen=True, kw_only=True)
class ExampleColumns:
    """The columns of the parts of an example, and the rows that are read."""

    format: FileFormat
    columns: Mapping[str, PartColumns]
    chosen: Mapping[Column, tuple[str, ...]] = field(default_factory=dict)
    """The texts of which a row must have one in a column; other rows are skipped."""
    optional: Collection[str] = ()
    """Parts, and columns of ``chosen``, that a file may lack."""
    headerless: Mapping[int, tuple[str, ...]] = field(default_factory=dict)
    """Parts by position, by the number of cells; a row without any name of the first part is no header."""
    separator: str = ","
    """Separator of the cells of CSV."""
    skip_blank: bool = True
    """Whether blank lines of TSV are skipped."""
    has_offsets: bool = False
    """Whether rows have a text, and spans that are marked by offsets in it."""
    lossy: bool = False
    """Whether a row with the wrong number of cells counts as a row of empty ones."""

    def columns_of(self, part: str) -> tuple[Column, ...]:
        """Return the columns of a part, or the names in use."""
        column = self.columns[part]
        if isinstance(column, AnyOf):
            return column.names
        return column if isinstance(column, tuple) else (column,)


class FileRow(NamedTuple):
    """A row of a file, or a sentence of rows."""

    number: int
    """Counted from 0 in the file."""
    line: int
    parts: Mapping[str, Any]
    """A tuple for a part in several columns, a list for each part of a sentence; without those it lacks."""
    lines: Sequence[int] = ()
    """The line of each word of a sentence."""
    columns: Collection[Column] = ()
    """The columns that the row has."""


Rows = Iterator[FileRow | DataError]
"""Rows, and the errors of those that do not fit, after which reading goes on."""


class _Cells(NamedTuple):
    """A row before its parts are known: its cells by column."""

    line: int
    cells: Mapping[Any, Any]
    lines: Sequence[int] = ()


_CellRows = Iterator[_Cells | DataError]


def rows(file: File, table: ExampleColumns, layout: ConllLayout | None = None) -> Rows:
    """Yield the chosen rows of a file; of CoNLL, which has a ``layout``, the sentences."""
    is_conll = table.format == "conll"
    cell_rows = _conll(file, table, layout) if is_conll else _READERS[table.format](file, table)
    if table.has_offsets:
        cell_rows = _add_words(file, cell_rows)
    if SENTENCE in table.columns:
        cell_rows = _group_words(cell_rows, table.columns_of(SENTENCE)[0])
    needed = {*table.chosen} - {*table.optional}
    for number, row in enumerate(cell_rows):
        if isinstance(row, DataError):
            yield row
            continue
        line, cells, lines = row
        if missing := [column for column in needed if column not in cells]:
            yield no_column(file, line, f"{missing[0]!r} for where", cells)
        elif all(str(cells[column]) in texts for column, texts in table.chosen.items() if column in cells):
            yield FileRow(number, line, _parts(cells, table.columns), lines, cells)


def _add_words(file: File, cell_rows: _CellRows) -> _CellRows:
    """Yield rows with the words and tags of their texts; rows that an annotator rejected are left out."""
    style: Style | None = None
    for row in cell_rows:
        if isinstance(row, DataError):
            yield row
        elif not is_rejected(row.cells):
            row_style = find_style(row.cells)
            style = row_style if row_style is not None and row_style.form != "empty" else style or row_style
            yield _add_words_of_text(file, row, row_style and style)


def _group_words(cell_rows: _CellRows, sentence: Column) -> _CellRows:
    """Yield the sentences of a table with a line for each word, each column as a list."""
    words = list[_Cells]()
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


def _join_words(words: Sequence[_Cells]) -> _Cells:
    columns = {column: [word.cells[column] for word in words] for column in words[0].cells}
    return _Cells(words[0].line, columns, [word.line for word in words])


def read_bodies(file: File, form: FileFormat) -> Iterator[Mapping[str, Any]]:
    """Yield the objects of a file, without those that cannot be read."""
    for row in _READERS[form](file, ExampleColumns(format=form, columns={})):
        if not isinstance(row, DataError):
            yield row.cells


def describe_annotations(file: File, table: ExampleColumns) -> Iterator[str]:
    """Yield what wrote the spans of a file, and how many texts are left out or have several annotations."""
    bodies = list(read_bodies(file, table.format))
    styles = [style for body in bodies if (style := find_style(body)) is not None and style.form != "empty"]
    if styles:
        yield f"spans by offsets as {styles[0].name} writes them"
    utf16 = sum((style := find_style(body)) is not None and counts_utf16(body, style) for body in bodies)
    if utf16:
        yield f"{utf16:,} texts with offsets in units of UTF-16, as the texts of their spans show"
    if wide := sum(map(has_wide_characters, bodies)) - utf16:
        yield f"{wide:,} texts with characters such as emoji, each read as one character of an offset"
    if rejected := sum(map(is_rejected, bodies)):
        yield f"{rejected:,} rejected texts left out"
    if several := sum(count_annotators(body) > 1 for body in bodies):
        yield f"{several:,} texts with several annotations, of which the first is read"


def _add_words_of_text(file: File, row: _Cells, style: Style | None) -> _Cells | DataError:
    try:
        if style is None:
            text = find_text(row.cells)
            marked = next((key for key in SPAN_KEYS if row.cells.get(key)), "")
            if marked:
                raise OffsetError(f"{marked} is {str(row.cells[marked])[:60]!r}", "spans with their offsets")
            words = [text[extent.start : extent.stop] for extent in locate_words(text)]
            return row._replace(cells={**row.cells, WORDS_COLUMN: words})
        tagged = tag_object(row.cells, style)
    except OffsetError as error:
        return file.broken(row.line, error.problem, error.expected)
    read = {
        WORDS_COLUMN: tagged.words,
        TAGS_COLUMN: tagged.tags,
        OVERLAPS_COLUMN: tagged.overlapping,
    }
    return row._replace(cells={**row.cells, **read})


def _parts(cells: Mapping[Any, Any], columns: Mapping[str, PartColumns]) -> dict[str, Any]:
    """Return the cell of each part, or those of several columns; none for a part that is lacking."""
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


OFFICIAL = "Take the official file; only a test split may lack labels"


def no_column(
    file: File, line: int, missing: str, columns: Iterable[Column], advice: str = "Add it, or correct columns"
) -> DataError:
    """Build the error for a row without a column."""
    return file.broken(line, f"no column {missing} in {', '.join(map(str, columns))}", "it", advice)


def header_of(file: File, form: FileFormat) -> list[str]:
    """Return the cells of the first row, or the keys of the first object."""
    table = ExampleColumns(format=form, columns={})
    if form in ("csv", "tsv"):
        cells: Iterable[Any] = next((cells for _, cells in _lines_of_cells(file, table)), ())
    else:
        rows_of_cells = _READERS[form](file, table)
        cells = next((row.cells for row in rows_of_cells if not isinstance(row, DataError)), ())
    return [str(cell).strip() for cell in cells]


def _delimited(file: File, table: ExampleColumns) -> _CellRows:
    """Yield rows of cells; where columns are named, the first row is a header."""
    columns = [column for part in table.columns for column in table.columns_of(part)] + [*table.chosen]
    width, has_header, indices = 0, False, dict[Column, int]()
    for number, cells in _lines_of_cells(file, table):
        if not width:
            header = [cell.strip() for cell in cells]
            has_header, width = _is_header(table, header, columns), len(cells)
            if table.headerless and not has_header:
                width = width if width in table.headerless else next(iter(table.headerless))
                parts = [(index, part) for index, part in enumerate(table.headerless[width]) if part]
                indices = {table.columns_of(part)[0]: index for index, part in parts if part in table.columns}
            else:
                indices = {column: header.index(column) for column in columns if column in header}
                numbers = (column for column in columns if isinstance(column, int))
                indices |= {column: column for column in numbers if -width <= column < width}
            if has_header:
                _check_header(file, number, header, table)
                continue
        if len(cells) == width:
            yield _Cells(number, {column: cells[index] for column, index in indices.items()})
        elif table.lossy:
            yield _Cells(number, dict.fromkeys(indices, ""))
        else:
            csv_advice = '; cells in quotation marks are CSV (format = "csv", separator = "\\t")'
            advice = f"Correct the line{'' if table.headerless else csv_advice}"
            expected = f"{width} as in the {'header' if has_header else 'first row'}"
            yield file.broken(number, f"{len(cells)} cell{'s' * (len(cells) != 1)}", expected, advice)


def _is_header(table: ExampleColumns, cells: Sequence[str], columns: Sequence[Column]) -> bool:
    if table.headerless:
        return not {*cells}.isdisjoint(table.columns_of(next(iter(table.columns))))
    return any(isinstance(column, str) for column in columns)


def _check_header(file: File, number: int, header: Sequence[str], table: ExampleColumns) -> None:
    """Raise DataError for a column that is not in a header; an optional one may be absent, not misspelled."""
    needed: list[tuple[str, tuple[Column, ...]]] = [(str(column), (column,)) for column in table.chosen]
    for part, column in table.columns.items():
        names = table.columns_of(part)
        needed += [(part, names)] if isinstance(column, AnyOf) else [(part, (name,)) for name in names]
    for part, columns in needed:
        named = [column for column in columns if isinstance(column, str)]
        repeated = next((name for name in named if header.count(name) > 1), None)
        if repeated is not None:
            count = f"{header.count(repeated)} columns {repeated!r}"
            raise file.broken(number, count, "one", "Number them from 0")
        if not named or not {*named}.isdisjoint(header):
            continue
        official, near = bool(table.headerless), did_you_mean(named[0], header)
        if part not in table.optional or (near and not official):
            raise file.broken(
                number,
                f"a header without {' or '.join(map(repr, named))}{near}",
                f"the columns that the {'corpus' if official else 'description'} names; "
                f"the file has {some(header)}",
                OFFICIAL if official else "Correct the columns, or number them from 0 without a header",
            )


def _lines_of_cells(file: File, table: ExampleColumns) -> Iterator[tuple[int, list[str]]]:
    if table.format == "csv":
        return _csv(file, table.separator)
    lines = ((number, line) for number, line in file.lines() if not table.skip_blank or line.strip())
    return ((number, line.split("\t")) for number, line in lines)


def _csv(file: File, separator: str) -> Iterator[tuple[int, list[str]]]:
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


def _conll(file: File, table: ExampleColumns, layout: ConllLayout | None) -> _CellRows:
    """Yield sentences: lines of columns separated by tabs or spaces, an empty line after each."""
    label = table.columns.get("label")
    layout = layout or layout_of(file, label if isinstance(label, int) else None)
    columns = cast(list[int], [*table.columns.values()])
    for words in read_words(file, layout, columns):
        if isinstance(words, DataError):
            yield words
        else:
            lines = [number for number, _ in words]
            yield _Cells(lines[0], {column: [row[column] for _, row in words] for column in columns}, lines)


def _conllu(file: File, table: ExampleColumns) -> _CellRows:
    """Yield sentences without multi-word ranges, empty nodes and comments."""
    columns = cast(list[Column], [*table.columns.values()])
    cell_readers = {column: make_cell_reader(column) for column in columns}
    for block in read_sentences(file):
        cells = {column: [cell_of(row) for _, row in block.rows] for column, cell_of in cell_readers.items()}
        keyed = [number for number, row in block.rows if "=" in row[MISC]] if NAMES[MISC] in columns else []
        if keyed:
            advice = 'Name one of its keys, as in columns = { label = "MISC:NER" }'
            yield file.broken(keyed[0], "keys and values in MISC", "one label for each word", advice)
            continue
        yield _Cells(block.number, cells, [number for number, _ in block.rows])


def _objects(file: File, _: ExampleColumns) -> _CellRows:
    for number, line in file.lines():
        if line.strip():
            try:
                yield _Cells(number, parsed_object(file, number, line))
            except DataError as error:
                yield error


_OPENS, _COMMA, _CLOSES = re.compile(r"\s*\[\s*"), re.compile(r"\s*,\s*"), re.compile(r"\s*\]\s*\Z")
_LIST = "a list of JSON objects and nothing else"


def _array(file: File, _: ExampleColumns) -> _CellRows:
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
        yield _Cells(line, body)
        step, closed = _COMMA.match(text, end), _CLOSES.match(text, end)
    if not closed:
        raise file.broken(line, "no list, or one that does not end", _LIST)


def _lines(file: File, _: ExampleColumns) -> _CellRows:
    for number, line in file.lines():
        yield _Cells(number, {0: line})


def _read_brat_cells(file: File, _: ExampleColumns) -> _CellRows:
    yield from map(_make_cells, read_brat(file))


def _read_webanno_cells(file: File, table: ExampleColumns) -> _CellRows:
    column = table.columns.get("column", LABEL_COLUMN)
    yield from map(_make_cells, read_webanno(file, column if isinstance(column, int) else LABEL_COLUMN))


def _make_cells(sentence: AnnotatedSentence | DataError) -> _Cells | DataError:
    if isinstance(sentence, DataError):
        return sentence
    words, tags, overlapping = sentence.tagged
    cells = {"id": sentence.id, WORDS_COLUMN: words, TAGS_COLUMN: tags, OVERLAPS_COLUMN: overlapping}
    return _Cells(sentence.line, cells, sentence.lines)


def _parquet(file: File, _: ExampleColumns) -> _CellRows:
    for number, body in enumerate(parquet_rows(file)[1], start=1):
        yield _Cells(number, body)


def parquet_rows(file: File) -> tuple[dict[str, list[str]], Iterator[dict[str, Any]]]:
    """Return the names of labels that are numbers, by column, and the rows of a parquet file.

    The library ``datasets`` writes the names into the file. DataError for a damaged file.
    """
    try:
        from pyarrow import ArrowException
        from pyarrow.parquet import ParquetFile
    except ImportError as error:
        raise ConfigError(
            f"{file.name}: parquet is read with the package pyarrow, which is not installed. Install it "
            f'(pip install "isogloss[hub]").'
        ) from error
    broken = (ArrowException, OSError, UnicodeDecodeError)

    def damaged(error: Exception) -> DataError:
        return DataError(f"{file.name}: this is no parquet file, or a damaged one ({error}).")

    def bodies() -> Iterator[dict[str, Any]]:
        try:
            for batch in opened.iter_batches():
                yield from batch.to_pylist()
        except broken as error:
            raise damaged(error) from error

    try:
        opened = ParquetFile(file.name)
    except broken as error:
        raise damaged(error) from error
    written = json.loads((opened.schema_arrow.metadata or {}).get(b"huggingface", b"{}"))
    features = written.get("info", {}).get("features", {})
    kinds = {column: kind.get("feature", kind) for column, kind in features.items() if isinstance(kind, dict)}
    classes = {
        column: list(kind["names"])
        for column, kind in kinds.items()
        if isinstance(kind, dict) and kind.get("_type") == "ClassLabel"
    }
    return classes, bodies()


_READERS: Mapping[FileFormat, Callable[[File, ExampleColumns], _CellRows]] = {
    "conllu": _conllu,
    "tsv": _delimited,
    "csv": _delimited,
    "jsonl": _objects,
    "json": _array,
    "lines": _lines,
    "parquet": _parquet,
    "brat": _read_brat_cells,
    "webanno": _read_webanno_cells,
}
