"""What a file of a described corpus is: its layout, its scheme of tags, whether it has labels at all.

Decided once, from the whole file, and reported; what does not fit is an error with its own line.
"""

import math
import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import cast

from isogloss.data.files import File
from isogloss.data.formats.forms import Kind, Predicts
from isogloss.data.formats.layouts import Layout, check_words, count_comments, layout_of
from isogloss.data.formats.tables import Column, Columns, FileFormat, Row, Rows, rows
from isogloss.data.formats.tag_schemes import BIO, WORDS, TagCounts
from isogloss.data.projection.tag_projection import OUTSIDE

LABELS: Mapping[Kind, tuple[str, ...]] = {
    "tagging": ("label", "labels"), "text": ("label",), "pair": ("label",), "choice": ("label",),
    "span": ("answers",),
}  # fmt: skip
"""The part of an example that contains its label."""

NO_LABEL = frozenset({"", "nan", "NaN", "null", "NULL", "<NA>", "#N/A"})
"""What programs write where there is no label; each may be one of the inventory, too."""

HEADINGS = frozenset(
    {"label", "labels", "gold_label", "class", "category", "target", "tag", "tags", "ner_tags"}
)
"""Labels of a first row that is a header."""

SUSPICIOUS = 20
"""Rows at least, before it is odd that none of them has the first option."""

_MARK = re.compile(r"(?i)[bi][-_.:]\S+|\S+[-_.:][bi]")

_NUMBER = re.compile(r"\d{1,9}(?=(\.0)?$)")


@dataclass(frozen=True, kw_only=True)
class FileFacts:
    """What a file is."""

    layout: Layout | None = None
    """Of a file with a line for each word."""
    scheme: str = WORDS
    """The scheme of its tags."""
    unlabelled: bool = False
    """Whether no row has a label."""
    numbered: bool = False
    """Whether all labels are numbers."""
    remarks: tuple[str, ...] = ()
    """What was decided, in words."""


LINES = FileFacts()
"""A file of lines of text, about which nothing is to be decided."""


@dataclass(frozen=True, kw_only=True)
class Reading:
    """How the rows of a corpus are read; its fields are those of ``described.DescribedCorpus``."""

    kind: Kind
    format: FileFormat
    columns: Columns
    separator: str | None
    predicts: Predicts
    between: str
    labels: tuple[str, ...]
    spelled: Mapping[str, str]
    skip: tuple[str, ...]
    comments: str | None
    scheme: str
    may_lack_labels: bool = True
    """Whether a file may have no labels at all, as one of dev or test may."""

    def spell(self, cell: object, *, numbered: bool = False) -> str:
        """Return the label in a cell: by its spelling, or by its number in the inventory.

        Texts are numbers where all labels of a file are: a 0 among other labels is a misspelled O.
        """
        text = label_text(cell)
        if text in self.no_labels and text not in (*self.labels, *self.spelled):
            return ""
        label = self.spelled.get(text, text)
        is_number = type(cell) is int or (numbered and _NUMBER.match(text))
        if label in self.labels or self.spelled or not is_number:
            return label
        number = int(float(text))
        return self.labels[number] if 0 <= number < len(self.labels) else text

    @property
    def label_columns(self) -> tuple[Column, ...]:
        """The columns of the labels."""
        parts = [self.columns[part] for part in LABELS.get(self.kind, ()) if part in self.columns]
        return tuple(column for part in parts for column in (part if isinstance(part, tuple) else (part,)))

    def rows(self, file: File, columns: Sequence[Column], layout: Layout | None) -> Rows:
        """Yield the rows of a file."""
        labels = self.label_columns if self.may_lack_labels or self.format == "conll" else ()
        return rows(file, self.format, columns, self.separator or ",", labels=labels, layout=layout)

    def has_label(self, row: Row) -> bool:
        """Return whether a row has a label at all, right or wrong."""
        if self.kind == "text" and self.predicts == "labels":  # A row may have none of the labels.
            return any(row.cells.get(column) is not None for column in self.label_columns)
        nothing = {*self.no_labels, "_"} if self.kind == "tagging" else self.no_labels
        return any(label_text(cell) not in nothing for cell in self.label_cells(row))

    @property
    def no_labels(self) -> Collection[str]:
        """Ways to write that a row has no label."""
        return {*NO_LABEL, "_"} if self.columns.get("label") == "UPOS" else NO_LABEL

    def label_cells(self, row: Row) -> list[object]:
        """Return the cells of the labels, those of lists one by one."""
        cells = [row.cells.get(column) for column in self.label_columns]
        return [label for cell in cells for label in (cell if isinstance(cell, list | tuple) else [cell])]


def label_text(cell: object) -> str:
    """Return the text of a cell of labels; empty for null and for pandas' nan."""
    return "" if cell is None or (isinstance(cell, float) and math.isnan(cell)) else str(cell).strip()


def facts_of(
    file: File, reading: Reading, columns: Sequence[Column], is_meant: Callable[[Row], bool]
) -> FileFacts:
    """Look through a file; ``is_meant`` tells which of its rows are read."""
    if not reading.label_columns:
        return LINES
    layout, remarks = _layout(file, reading) if reading.format == "conll" else (None, [])
    look = _Look(reading)
    for row in reading.rows(file, columns, layout):
        if isinstance(row, Row) and is_meant(row):
            look.add(row)
    look.check_header(file)
    lacks = (layout is not None and layout.width == 1) or (look.rows > 0 and not look.labelled)
    unlabelled = lacks and reading.may_lack_labels
    scheme = (reading.scheme or look.tags.scheme) if reading.kind == "tagging" and not unlabelled else WORDS
    return FileFacts(
        layout=layout,
        scheme=scheme,
        unlabelled=unlabelled,
        numbered=all(map(_NUMBER.match, look.labels)),
        remarks=(*remarks, *(["no labels"] if unlabelled else look.remarks(scheme))),
    )


@dataclass
class _Look:
    """What the rows of a file have, while it is looked through."""

    reading: Reading
    rows: int = 0
    labelled: bool = False
    labels: Counter[str] = field(default_factory=Counter)
    """Of words, or of rows where there is an inventory."""
    tags: TagCounts = field(default_factory=TagCounts)
    first: tuple[int, str] = (0, "")
    """Line and label of the first word or row."""

    def add(self, row: Row) -> None:
        self.rows += 1
        self.labelled = self.labelled or self.reading.has_label(row)
        if self.reading.kind == "span" or self.reading.predicts != "label":
            return
        labels = [label_text(cell) for cell in self.reading.label_cells(row)]
        self.labels.update(labels)
        if self.reading.kind == "tagging":
            self.tags.add([self.reading.spell(label) for label in labels])
        if self.rows == 1:
            self.first = row.line, next(iter(labels), "")

    def check_header(self, file: File) -> None:
        """Raise DataError where the first row, read as others, is the header."""
        line, label = self.first
        numbered = all(isinstance(column, int) for column in self.reading.label_columns)
        headed = numbered and self.reading.format in ("conll", "tsv", "csv") and label.lower() in HEADINGS
        if headed and self.labels[label] == 1 and len(self.labels) > 1:
            advice = "Name the columns of the header (columns = { text = …, label = … }), or take it out"
            raise file.broken(
                line, f"a header, with {label!r}", "rows alone where columns are numbered", advice
            )

    def remarks(self, scheme: str) -> Iterator[str]:
        if scheme not in (BIO, WORDS):
            yield f"{scheme} read as {BIO}"
        if scheme == BIO and self.tags.begun_inside:
            yield f"{self.tags.begun_inside:,} spans begin with I-"
        odd = [tag for tag in self.tags.tags if _MARK.fullmatch(tag)] if scheme == WORDS else []
        if odd and self.labels[OUTSIDE]:
            yield f"labels of words, though {odd[0]!r} looks like one of spans"
        alike = defaultdict[str, list[str]](list)
        for label in self.labels:
            alike[unicodedata.normalize("NFKC", label).casefold()].append(label)
        yield from (f"labels that look alike: {', '.join(same)}" for same in alike.values() if len(same) > 1)
        counted = self.reading.kind == "choice" and not self.reading.labels
        if counted and self.rows >= SUSPICIOUS and not self.labels["0"]:
            yield "no row with the label 0, from which options are counted"


def _layout(file: File, reading: Reading) -> tuple[Layout, list[str]]:
    """Decide the layout of a file with a line for each word; DataError where its words are none."""
    label, word = int(reading.label_columns[0]), int(cast(int, reading.columns["word"]))
    layout = layout_of(file, label, reading.comments)
    lines = (row.cells[word] for row in reading.rows(file, [word], layout) if isinstance(row, Row))
    check_words(file, cast(Iterator[list[str]], lines), word)
    comments = count_comments(file, layout, label)
    remarks = [f"{comments:,} comment line{'s' * (comments > 1)} skipped"] if comments else []
    return layout, remarks + ["a separator at the end of every line left out"] * layout.ends
