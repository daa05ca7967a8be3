"""Rows of annotated files: brat, WebAnno, and objects with spans that are marked by offsets in a text."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from isogloss.core.errors import DataError
from isogloss.data.files import File
from isogloss.data.formats.formats import (
    OF_SPANS,
    OVERLAPS_COLUMN,
    TAGS_COLUMN,
    WORDS_COLUMN,
    CellRows,
    Cells,
    ExampleColumns,
    Format,
    SpanMarks,
)
from isogloss.features.annotation_tools.annotation_files import (
    LABEL_COLUMN,
    WEBANNO_HEADER,
    AnnotatedSentence,
    read_brat,
    read_webanno,
)
from isogloss.features.annotation_tools.offsets import (
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
    marks_spans,
    split_into_words,
    tag_object,
)


def add_words(file: File, cell_rows: CellRows) -> CellRows:
    """Yield rows with the words and tags of their texts, without rows that an annotator rejected."""
    style: Style | None = None
    for row in cell_rows:
        if isinstance(row, DataError):
            yield row
        elif not is_rejected(row.cells):
            row_style = find_style(row.cells)
            style = row_style if row_style is not None and row_style.form != "empty" else style or row_style
            yield _add_words_of_text(file, row, row_style and style)


def describe_annotations(bodies: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield remarks on the tool that wrote a file's spans, and on skipped or multiply annotated texts."""
    styles = [style for body in bodies if (style := find_style(body)) is not None and style.form != "empty"]
    if styles:
        yield f"spans by offsets as {styles[0].name} writes them"
    utf16 = sum((style := find_style(body)) is not None and counts_utf16(body, style) for body in bodies)
    if utf16:
        yield f"{utf16:,} texts with offsets in units of UTF-16, as the texts of their spans show"
    if wide := sum(has_wide_characters(body) for body in bodies) - utf16:
        yield f"{wide:,} texts with characters such as emoji, each read as one character of an offset"
    if rejections := sum(is_rejected(body) for body in bodies):
        yield f"{rejections:,} rejected texts skipped"
    if several := sum(count_annotators(body) > 1 for body in bodies):
        yield f"{several:,} texts with several annotations, of which the first is read"


def _add_words_of_text(file: File, row: Cells, style: Style | None) -> Cells | DataError:
    try:
        if style is None:
            text = find_text(row.cells)
            span_key = next((key for key in SPAN_KEYS if row.cells.get(key)), "")
            if span_key:
                raise OffsetError(f"{span_key} is {str(row.cells[span_key])[:60]!r}", "spans with offsets")
            words = [text[extent.start : extent.stop] for extent in locate_words(text)]
            return row._replace(cells={**row.cells, WORDS_COLUMN: words})
        sentence = tag_object(row.cells, style)
    except OffsetError as error:
        return file.broken(row.line, error.problem, error.expected)
    new_cells = {
        WORDS_COLUMN: sentence.words,
        TAGS_COLUMN: sentence.tags,
        OVERLAPS_COLUMN: sentence.overlapping,
    }
    return row._replace(cells={**row.cells, **new_cells})


def have_spans(bodies: Iterable[Mapping[str, Any]]) -> bool:
    """Return whether any object has spans that are marked by offsets."""
    styles = (find_style(body) for body in bodies)
    return any(style is not None and style.form != "empty" for style in styles)


OFFSETS = SpanMarks(
    add_words=add_words,
    describe=describe_annotations,
    are_in=have_spans,
    are_spans=marks_spans,
    split_words=split_into_words,
)
"""Spans by offsets of characters."""


def _read_brat_cells(file: File, _: ExampleColumns) -> CellRows:
    yield from (_make_cells(sentence) for sentence in read_brat(file))


def _read_webanno_cells(file: File, table: ExampleColumns) -> CellRows:
    column = table.columns.get("column", LABEL_COLUMN)
    sentences = read_webanno(file, column if isinstance(column, int) else LABEL_COLUMN)
    yield from (_make_cells(sentence) for sentence in sentences)


def _make_cells(sentence: AnnotatedSentence | DataError) -> Cells | DataError:
    if isinstance(sentence, DataError):
        return sentence
    words, tags, overlapping = sentence.tagged
    cells = {"id": sentence.id, WORDS_COLUMN: words, TAGS_COLUMN: tags, OVERLAPS_COLUMN: overlapping}
    return Cells(sentence.line, cells, sentence.lines)


BRAT = Format(suffixes=(".ann",), columns={"tagging": {**OF_SPANS, "id": "id"}}, read_rows=_read_brat_cells)
WEBANNO = Format(columns={"tagging": {**OF_SPANS}}, header=WEBANNO_HEADER, read_rows=_read_webanno_cells)
