"""Formats of files with labelled examples: how a format is recognised, and how its rows are read.

A row has cells by column. ``ExampleColumns`` states the column of each part of an example: by its name in the
header or its key, by any of the names in use, by CoNLL-U's name (FORM, XPOS), by its index from 0 (from -1,
backwards), or by several columns. ``tables`` reads rows, and ``kinds`` makes an example of each.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from isogloss.core.errors import DataError, missing_feature
from isogloss.core.registry import Registry
from isogloss.data.examples import Example
from isogloss.data.files import File

WORDS_COLUMN = "words of the text"
"""Column of words that rows have after their offsets were read."""

TAGS_COLUMN = "tags of the text"
"""Column of tags that rows have after their offsets were read."""

OVERLAPS_COLUMN = "overlapping spans"
"""Column of the number of overlapping spans after offsets were read."""

OF_SPANS: Mapping[str, str] = {"words": WORDS_COLUMN, "labels": TAGS_COLUMN, "overlaps": OVERLAPS_COLUMN}
"""Column of each part of a sentence with spans marked by offsets."""

Column = int | str


@dataclass(frozen=True)
class AnyOf:
    """A column under any of the names in use, the preferred one first."""

    names: tuple[str, ...]


PartColumns = Column | tuple[Column, ...] | AnyOf
"""Column of a part of an example, several columns, or any of several names."""


Columns = Mapping[str, PartColumns]
"""Column of each part of an example, or several."""


@dataclass(frozen=True, kw_only=True)
class ExampleColumns:
    """Columns of the parts of an example, and the selection of rows."""

    format: str
    columns: Mapping[str, PartColumns]
    chosen: Mapping[Column, tuple[str, ...]] = field(default_factory=dict)
    """Texts by column. Rows with a different text in one of these columns are skipped."""
    optional: Collection[str] = ()
    """Parts, and columns of ``chosen``, that a file may lack."""
    headerless: Mapping[int, tuple[str, ...]] = field(default_factory=dict)
    """Parts by position, for each number of cells. A first row without any name of the first part is not a
    header."""
    separator: str = ","
    """Separator of the cells of CSV."""
    skip_blank: bool = True
    """Whether blank lines of TSV are skipped."""
    has_offsets: bool = False
    """Whether rows have a text with spans marked by offsets."""
    lossy: bool = False
    """Whether a row with the wrong number of cells counts as a row of empty cells."""

    def columns_of(self, part: str) -> tuple[Column, ...]:
        """Return the columns of a part, or the names in use."""
        column = self.columns[part]
        if isinstance(column, AnyOf):
            return column.names
        return column if isinstance(column, tuple) else (column,)


class Cells(NamedTuple):
    """Cells of a row by column, and the line of each word of a sentence."""

    line: int
    cells: Mapping[Any, Any]
    lines: Sequence[int] = ()


CellRows = Iterator[Cells | DataError]
"""Rows, and the errors of rows that do not fit."""


@dataclass(frozen=True, kw_only=True)
class Format:
    """A format of files. It has rows, or whole examples."""

    suffixes: tuple[str, ...] = ()
    """Ends of the names of its files."""
    is_named: bool = False
    """Whether the parts of an example have columns or keys by their names, in every kind of corpus."""
    columns: Mapping[str, Columns] = field(default_factory=dict)
    """Default columns by kind of corpus, if they are not named."""
    header: str = ""
    """Beginning of the first line, which shows the format whatever the name of the file is. Default: none."""
    read_rows: Callable[[File, ExampleColumns], CellRows] | None = None
    """Function from a file and its columns to its rows."""
    read_examples: Callable[[File, Collection[str]], Iterator[Example]] | None = None
    """Function from a file, and labels whose examples are skipped, to its examples, if they are not rows."""


FORMATS: Registry[Format] = Registry(
    {
        name: f"isogloss.data.formats.tables:{name.upper()}"
        for name in ("conll", "conllu", "tsv", "csv", "jsonl", "json", "parquet", "lines")
    },
    "formats",
    "isogloss.data.formats.formats:Format",
)
"""Formats by name. Features and packages add formats."""


def list_suffixes() -> dict[str, str]:
    """Return the format of each suffix. The suffix of a package's format is its name."""
    own_suffixes = {suffix: name for name in FORMATS.places for suffix in FORMATS[name].suffixes}
    return {f".{name}": name for name in FORMATS if name not in FORMATS.places} | own_suffixes


def find_by_header(file: File) -> str:
    """Return the format that the first line of a file shows, or "" if it shows none."""
    line = next(iter(file.read()), "")
    forms = {name: FORMATS[name] for name in FORMATS.places}
    return next((name for name, form in forms.items() if form.header and line.startswith(form.header)), "")


@dataclass(frozen=True, kw_only=True)
class SpanMarks:
    """A way to mark spans in the text of an object, such as offsets of characters."""

    add_words: Callable[[File, CellRows], CellRows]
    """Function from rows with a text to rows with the columns ``OF_SPANS``."""
    describe: Callable[[Sequence[Mapping[str, Any]]], Iterator[str]]
    """Function from the objects of a file to remarks on them."""
    are_in: Callable[[Iterable[Mapping[str, Any]]], bool]
    """Whether objects have such spans."""
    are_spans: Callable[[object], bool]
    """Whether a single value is a list of such spans."""
    split_words: Callable[[str], Sequence[str]]
    """Function from a text to its words."""


MARKS: Registry[SpanMarks] = Registry({}, features="span-marks")
"""Ways to mark spans, by their names in a description (``annotated``)."""

OFFSETS = "offsets"


def find_marks(name: str = OFFSETS) -> SpanMarks:
    """Return a way to mark spans. Raises ConfigError if the feature that adds it is missing."""
    if name not in MARKS:
        raise missing_feature(f"{name}: this way to mark spans", "Install isogloss again.")
    return MARKS[name]
