"""What a file of a described corpus is: its layout, its scheme of tags, whether it has labels at all.

Decided once, from the whole file, and reported; what does not fit is an error with its own line.
"""

import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import cast

from isogloss.data.files import File
from isogloss.data.formats.layouts import Layout, check_words, count_comments, layout_of
from isogloss.data.formats.reading import LINES, NUMBER, FileFacts, Reading, label_text
from isogloss.data.formats.tables import Row, rows
from isogloss.data.formats.tag_schemes import BIO, WORDS, TagCounts
from isogloss.data.projection.tag_projection import OUTSIDE

HEADINGS = frozenset(
    {"label", "labels", "gold_label", "class", "category", "target", "tag", "tags", "ner_tags"}
)
"""Labels of a first row that is a header."""

SUSPICIOUS = 20
"""Rows at least, before it is odd that none of them has the first option."""

_MARK = re.compile(r"(?i)[bi][-_.:]\S+|\S+[-_.:][bi]")


def facts_of(file: File, reading: Reading) -> FileFacts:
    """Decide what a file is from the rows that are read."""
    if not reading.label_parts:
        return LINES
    layout, remarks = _layout(file, reading) if reading.table.format == "conll" else (None, [])
    look = _Look(reading)
    for row in reading.rows(file, layout):
        if isinstance(row, Row):
            look.add(row)
    look.check_header(file)
    lacks = (layout is not None and layout.width == 1) or (look.rows > 0 and not look.labelled)
    unlabelled = lacks and reading.may_lack_labels
    scheme = (reading.scheme or look.tags.scheme) if reading.kind == "tagging" and not unlabelled else WORDS
    return FileFacts(
        layout=layout,
        scheme=scheme,
        unlabelled=unlabelled,
        numbered=all(map(NUMBER.match, look.labels)),
        remarks=(*remarks, *(["no labels"] if unlabelled else look.remarks(scheme))),
    )


@dataclass
class _Look:
    """What the rows of a file have, while it is looked through."""

    reading: Reading
    rows: int = 0
    labelled: bool = False
    labels: Counter[str] = field(default_factory=Counter)
    """Of words, or of rows with labels of an inventory."""
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
        table = self.reading.table
        columns = [column for part in self.reading.label_parts for column in table.columns_of(part)]
        numbered = all(isinstance(column, int) for column in columns)
        headed = numbered and table.format in ("conll", "tsv", "csv") and label.lower() in HEADINGS
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
        variants = defaultdict[str, list[str]](list)
        for label in self.labels:
            variants[unicodedata.normalize("NFKC", label).casefold()].append(label)
        yield from (
            f"labels that look alike: {', '.join(same)}" for same in variants.values() if len(same) > 1
        )
        counted = self.reading.kind == "choice" and not self.reading.labels
        if counted and self.rows >= SUSPICIOUS and not self.labels["0"]:
            yield "no row with the label 0, from which options are counted"


def _layout(file: File, reading: Reading) -> tuple[Layout, list[str]]:
    """Decide the layout of a file with a line a word; DataError where its words are none."""
    table = reading.table
    word = cast(int, table.columns["word"])
    layout = layout_of(file, cast(int, table.columns["label"]), reading.comments)
    lines = (
        row.parts["word"]
        for row in rows(file, replace(table, columns={"word": word}), layout)
        if isinstance(row, Row)
    )
    check_words(file, lines, word)
    comments = count_comments(file, layout)
    remarks = [f"{comments:,} comment line{'s' * (comments > 1)} skipped"] if comments else []
    return layout, remarks + ["a separator at the end of every line left out"] * layout.ends
