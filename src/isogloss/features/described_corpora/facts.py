"""Decide the facts of a file from all of its rows: its layout, its scheme of tags, rules for its labels."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import cast

from isogloss.core.tag_schemes import BIO, NO_SCHEME, OUTSIDE, TagCounts, TagScheme, are_bio
from isogloss.data.files import File
from isogloss.data.formats.conll import ConllLayout, decide_layout
from isogloss.data.formats.formats import FORMATS, find_by_header, find_marks
from isogloss.data.formats.label_cells import MISSING, PLAIN_LABELS, LabelFacts, read_cell_text
from isogloss.data.formats.reading import LINES, FileFacts, Reading
from isogloss.data.formats.tables import FileRow, read_bodies, rows
from isogloss.data.formats.word_columns import describe_other_column
from isogloss.features.described_corpora.label_facts import (
    decide_labels,
    describe_spellings,
    describe_type,
    describe_types,
)

HEADINGS = frozenset(
    {"label", "labels", "gold_label", "class", "category", "target", "tag", "tags", "ner_tags"}
)
"""Labels of a first row that is probably a header."""


SUSPICIOUS = 20
"""Minimum number of rows for a remark that none has the first option."""


BEGIN_DOCUMENT = "#begin document"
"""Beginning of files of CoNLL-2012."""


def facts_of(file: File, reading: Reading) -> FileFacts:
    """Decide the facts of a file from all of its rows."""
    if not reading.label_parts:
        return LINES
    layout, remarks = _layout(file, reading) if reading.table.format == "conll" else (None, [])
    counts = _Counts(reading)
    for row in reading.rows(file, layout):
        if isinstance(row, FileRow):
            counts.add(row)
    counts.check_header(file)
    lacks = (layout is not None and layout.width == 1) or (counts.rows > 0 and not counts.labelled)
    is_unlabelled = lacks and reading.may_lack_labels
    labels = counts.decide_label_facts()
    if labels.are_positions and reading.kind == "tagging":
        counts.tags = _count_tags_by_position(file, reading, layout, labels)
    is_tagged = reading.kind == "tagging" and not is_unlabelled
    scheme = counts.tags.decide(reading.scheme, reading.labels) if is_tagged else NO_SCHEME
    if reading.table.has_offsets:
        remarks = [*remarks, *find_marks().describe(list(read_bodies(file, reading.table.format)))]
    return FileFacts(
        layout=layout,
        scheme=scheme,
        unlabelled=is_unlabelled,
        labels=labels,
        remarks=(*remarks, *(("no labels",) if is_unlabelled else counts.remarks(scheme, labels))),
    )


def _count_tags_by_position(
    file: File, reading: Reading, layout: ConllLayout | None, labels: LabelFacts
) -> TagCounts:
    """Count the tags that the numbers of a file stand for."""
    counts = TagCounts()
    for row in reading.rows(file, layout):
        if isinstance(row, FileRow):
            counts.add([reading.spell(cell, labels) for cell in reading.label_cells(row)])
    return counts


@dataclass
class _Counts:
    """Counts of the rows, labels and tags of a file."""

    reading: Reading
    rows: int = 0
    labelled: bool = False
    labels: Counter[str] = field(default_factory=Counter)
    """Labels of words, or of rows with labels from an inventory."""
    tags: TagCounts = field(default_factory=TagCounts)
    cells: Counter[tuple[str, bool]] = field(default_factory=Counter)
    """Texts of the cells of labels, and whether each is a number in JSON."""
    overlapping: int = 0
    """Number of spans that overlap with a longer one."""
    types: Counter[str] = field(default_factory=Counter)
    """Texts, numbers and truth values among the labels of rows."""
    lists_of_one: int = 0
    """Number of rows with a label inside a list of one."""
    first: tuple[int, str] = (0, "")
    """Line and label of the first word or row."""

    def add(self, row: FileRow) -> None:
        self.rows += 1
        self.labelled = self.labelled or self.reading.has_label(row)
        if self.reading.kind == "span" or self.reading.predicts not in ("label", "labels"):
            return
        self.overlapping += cast(int, row.parts.get("overlaps", 0))
        cells = self.reading.label_cells(row)
        if self.reading.predicts == "labels":
            cells = [part for cell in cells for part in self.reading.split_labels(cell)]
        labels = [read_cell_text(cell) for cell in cells]
        self.labels.update(labels)
        self.cells.update((label, type(cell) is int) for label, cell in zip(labels, cells, strict=True))
        if self.reading.kind == "tagging":
            self.tags.add([self.reading.spell(label) for label in labels])
        elif self.reading.predicts == "label":
            types = (describe_type(cell) for cell in cells)
            self.types.update(name for name in types if name)
            self.lists_of_one += any(
                isinstance(row.parts.get(part), list) for part in self.reading.label_parts
            )
        if self.rows == 1:
            self.first = row.line, next(iter(labels), "")

    def check_header(self, file: File) -> None:
        """Raise DataError if the first row, which was read as data, is a header."""
        line, label = self.first
        table = self.reading.table
        columns = [column for part in self.reading.label_parts for column in table.columns_of(part)]
        are_numbered = all(isinstance(column, int) for column in columns)
        may_be_header = are_numbered and table.format in ("conll", "tsv", "csv") and label.lower() in HEADINGS
        if may_be_header and self.labels[label] == 1 and len(self.labels) > 1:
            advice = "Name the columns of the header (columns = { text = …, label = … }), or remove it"
            raise file.broken(line, f"a header, with {label!r}", "only rows if columns are numbered", advice)

    def decide_label_facts(self) -> LabelFacts:
        """Decide the rules for reading the cells of labels."""
        reading = self.reading
        if reading.kind not in ("tagging", "text", "pair"):
            return PLAIN_LABELS
        is_word = reading.kind == "tagging"
        cells = Counter({cell: count for cell, count in self.cells.items() if cell[0] or not is_word})
        is_single = reading.predicts == "label"
        facts = decide_labels(
            cells,
            reading.listed or reading.labels,
            are_stated=bool(reading.listed),
            are_pairs=is_single and reading.kind == "pair",
        )
        if is_word or not is_single:
            numbers = tuple(remark for remark in facts.remarks if remark.startswith("numbers"))
            return replace(facts, missing=MISSING, remarks=numbers)
        return facts

    def remarks(self, scheme: TagScheme, labels: LabelFacts) -> Iterator[str]:
        """Yield the decisions that users should know."""
        if self.reading.kind == "tagging":
            yield from self.describe_tags(scheme)
        yield from labels.remarks
        if self.overlapping:
            yield f"{self.overlapping:,} spans skipped, which overlap with a longer one"
        if self.lists_of_one:
            yield f"{self.lists_of_one:,} labels in lists of one"
        yield from self.describe_labels()

    def describe_tags(self, scheme: TagScheme) -> Iterator[str]:
        """Yield remarks on the scheme of tags and on tags that do not follow it."""
        yield from scheme.remarks()
        if odd := self.tags.count_odd(scheme) if scheme.marks_spans else 0:
            spans = f"span{'s' * (odd > 1)} begin{'s' * (odd == 1)} with {scheme.tag('I', '')}"
            tags = f"tag{'s' * (odd > 1)} that do{'es' * (odd == 1)} not follow {scheme.name}"
            yield f"{odd:,} {spans if scheme.name == BIO else tags}"
        likely = [] if scheme.marks_spans or self.reading.scheme else self.tags.list_likely_spans()
        if likely:
            yield f"labels of words, though {likely[0]!r} looks like one of spans"
        has_spans = set(self.tags.tags) != {OUTSIDE}
        if not has_spans and len(self.reading.labels) > 1 and are_bio(self.reading.labels):
            yield f"no span, as all {self.tags.tags.total():,} words are {OUTSIDE}"

    def describe_labels(self) -> Iterator[str]:
        """Yield remarks on the types and similar spellings of labels."""
        yield from describe_types(self.types)
        yield from describe_spellings(self.labels)
        are_indices = self.reading.kind == "choice" and not self.reading.labels
        if are_indices and self.rows >= SUSPICIOUS and not self.labels["0"]:
            yield "no row has the label 0, although options are counted from 0"


def _layout(file: File, reading: Reading) -> tuple[ConllLayout, list[str]]:
    """Decide the layout of a file with a line for each word, with remarks on it.

    Raises DataError if its column of words contains something else.
    """
    table = reading.table
    word = cast(int, table.columns["word"])
    if form := find_by_header(file):
        advice = f'Write format = "{form}", without columns'
        raise file.broken(1, FORMATS[form].header, "lines of words", advice)
    layout = decide_layout(
        file, cast(int, table.columns["label"]), reading.comments, listed_labels=reading.listed
    )
    lines = (
        row.parts["word"]
        for row in rows(file, replace(table, columns={"word": word}), layout)
        if isinstance(row, FileRow)
    )
    check_words(file, lines, word)
    comments = count_comments(file, layout)
    remarks = [f"{comments:,} comment line{'s' * (comments > 1)} skipped"] if comments else []
    if layout.header:
        remarks.insert(0, f"the header in line {layout.header} skipped")
    return layout, remarks + ["a separator at the end of every line skipped"] * layout.ends


def count_comments(file: File, layout: ConllLayout) -> int:
    """Return the number of comment lines."""
    is_before_words = True
    count = 0
    for line_number, line in file.lines() if layout.hashes else ():
        if line_number == layout.header:
            continue
        is_comment = layout.is_comment(line, is_before_words=is_before_words)
        count += is_comment
        is_before_words = not line.strip() or (is_before_words and is_comment)
    return count


def check_words(file: File, sentences: Iterable[Sequence[str]], column: int) -> None:
    """Raise DataError if the column of words contains numbers, identifiers, tags, or one text."""
    content = describe_other_column(sentences)
    if content:
        advice = "Write the columns of both, counted from 0 (columns = { word = 1, label = 2 })"
        if next(iter(file.read()), "").startswith(BEGIN_DOCUMENT):
            advice = "For CoNLL-2012 write columns = { word = 3, label = 10 } for names, label = 4 for tags"
        if content.endswith("before each word"):
            advice = 'Remove it, or use corpus = "wikiann"'
        raise file.broken(1, f"column {column} with {content}", "words and their labels", advice)
