"""Rules for reading labelled rows: the table, the labels and their spelling, and the facts of a file.

A ``CorpusRow`` is a row read by these rules, from which a kind of example (``kinds``) is built. Facts (its
layout, its scheme of tags, whether it has labels) are decided once, from the whole file, and reported. A row
that does not fit them is an error with its line number.
"""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, cast

from isogloss.core.errors import DataError, did_you_mean
from isogloss.core.tag_schemes import BIO, NO_SCHEME, OUTSIDE, TagCounts, TagScheme, are_bio
from isogloss.data.corpus import unique_id
from isogloss.data.files import File, is_unicode, some
from isogloss.data.formats.annotation_files import WEBANNO_HEADER
from isogloss.data.formats.conll import ConllLayout, check_words, count_comments, decide_layout
from isogloss.data.formats.label_cells import (
    MISSING,
    NUMBER,
    PLAIN_LABELS,
    UNKNOWN_CLASS,
    LabelFacts,
    decide_labels,
    describe_spellings,
    describe_structure,
    describe_type,
    describe_types,
    find_label,
    read_cell_text,
)
from isogloss.data.formats.offsets import TEXT_KEYS, marks_spans
from isogloss.data.formats.tables import (
    OFFICIAL,
    AnyOf,
    ExampleColumns,
    FileRow,
    Rows,
    describe_annotations,
    no_column,
    rows,
)

KindName = Literal["tagging", "text", "pair", "choice", "span", "bitext", "raw"]
Predicts = Literal["label", "labels", "number", "lemma"]
"""Kind of labels: one of an inventory, any number of these, a number, or the lemma of a word."""

LABELS: Mapping[KindName, tuple[str, ...]] = {
    "tagging": ("label", "labels"), "text": ("label",), "pair": ("label",), "choice": ("label",),
    "span": ("answers",),
}  # fmt: skip
"""Parts of an example that may contain its label."""


@dataclass(frozen=True, kw_only=True)
class FileFacts:
    """Facts of a file, decided from all of its rows."""

    layout: ConllLayout | None = None
    """Layout of a file with a line for each word."""
    scheme: TagScheme = NO_SCHEME
    """Scheme of its tags."""
    unlabelled: bool = False
    """Whether no row has a label."""
    labels: LabelFacts = PLAIN_LABELS
    """Rules for reading the cells of labels."""
    remarks: tuple[str, ...] = ()
    """Facts that users should know, in words."""


NO_ANSWER = ""
"""Text in ``skip`` that stands for a row without a label, or a question without an answer."""

LINES = FileFacts()
"""Facts of a file for which nothing has to be decided."""


@dataclass(frozen=True, kw_only=True)
class Reading:
    """Rules for reading labelled rows. Fields of ``described.DescribedCorpus`` are documented there."""

    kind: KindName
    table: ExampleColumns
    labels: tuple[str, ...] = ()
    spelled: Mapping[str, str] = field(default_factory=dict)
    skip: tuple[str, ...] = ()
    predicts: Predicts = "label"
    between: str = ","
    comments: str | None = None
    scheme: str = ""
    may_lack_labels: bool = True
    """Whether a whole file may lack labels, as dev and test files may."""
    official: bool = False
    """Whether these are files of the catalogue, whose labels cannot be changed by a description."""
    blank: bool = False
    """Whether a text or word may be blank."""
    prefixes: tuple[str, ...] = ()
    """Prefixes of words. Each word has one of them, which is removed."""
    skip_unknown: bool = False
    """Whether rows with a label outside of the inventory are skipped, because translation lost theirs."""
    listed: tuple[str, ...] = ()
    """Labels that a description lists, in its order."""

    def spell(self, cell: object, facts: LabelFacts = PLAIN_LABELS) -> str:
        """Return the label in a cell, by its spelling or by its position in the inventory.

        Missing labels are "".
        """
        if self.official and not self.spelled and isinstance(cell, str) and cell in self.labels:
            return cell
        text = read_cell_text(cell)
        if self.predicts == "lemma":
            return text
        if self.is_missing(text, facts) and text not in (*self.labels, *self.spelled):
            return ""
        label = self.spelled.get(text, text)
        if self.spelled or not facts.are_positions or not NUMBER.match(text):
            return label
        return find_label(text, self.listed or self.labels)

    def is_missing(self, text: str, facts: LabelFacts) -> bool:
        """Return whether a text stands for a missing label."""
        return text in self.no_labels or (self.kind != "tagging" and text in facts.missing)

    @property
    def label_parts(self) -> list[str]:
        """The parts that contain labels."""
        return [part for part in LABELS.get(self.kind, ()) if part in self.table.columns]

    @property
    def without_labels(self) -> "Reading":
        """The same rules for a file without labels."""
        parts = self.label_parts
        columns = {part: column for part, column in self.table.columns.items() if part not in parts}
        return replace(self, table=replace(self.table, columns=columns))

    def rows(self, file: File, layout: ConllLayout | None) -> Rows:
        """Yield the rows of a file."""
        optional = (*self.table.optional, *self.label_parts) if self.may_lack_labels else self.table.optional
        return rows(file, replace(self.table, optional=optional), layout)

    def has_label(self, row: FileRow) -> bool:
        """Return whether a row has any label, right or wrong."""
        if self.kind == "text" and self.predicts == "labels":  # A row may have none of the labels.
            return any(cell is not None for cell in cells_of(row.parts.get("label")))
        nothing = set(self.no_labels)
        if self.kind == "tagging":
            nothing.add("_")
        elif self.predicts == "label" and UNKNOWN_CLASS not in self.labels:
            nothing.add(UNKNOWN_CLASS)
        return any(read_cell_text(cell) not in nothing for cell in self.label_cells(row))

    def split_labels(self, cell: object) -> list[object]:
        """Return the labels in a cell that may have several."""
        if isinstance(cell, str):
            return [text for text in cell.split(self.between) if text.strip()]
        return [cell]

    @property
    def no_labels(self) -> Collection[str]:
        """Texts of missing labels. As lemmas, null and nan are words of German and English."""
        if self.predicts == "lemma":
            return ("",)
        return {*MISSING, "_"} if self.table.columns.get("label") == "UPOS" else MISSING

    def label_cells(self, row: FileRow) -> list[object]:
        """Return the cells of the labels, with lists flattened."""
        cells = [cell for part in self.label_parts for cell in cells_of(row.parts.get(part))]
        return [label for cell in cells for label in (cell if isinstance(cell, list) else [cell])]


def cells_of(part: object) -> tuple[object, ...]:
    """Return the cells of a part of a row: one, or one for each of several columns."""
    return part if isinstance(part, tuple) else (part,)


@dataclass(frozen=True, slots=True)
class CorpusRow:
    """A row with its id and the rules for reading it. Every error names its file and line."""

    reading: Reading
    file: File
    row: FileRow
    id: str
    facts: FileFacts = LINES

    def broken(
        self, problem: str, expected: str, advice: str = "Correct the line", *, word: int | None = None
    ) -> DataError:
        """Build the error for this row, or for a word of it."""
        line = self.row.line if word is None or not self.row.lines else self.row.lines[word]
        return self.file.broken(line, problem, expected, advice)

    def with_row_id(self, id_counts: dict[str, int]) -> "CorpusRow":
        """Return the record with the id stated in the row, followed by ``#2`` … if it is repeated."""
        name = " ".join(str(cell) for cell in cells_of(self.part("id")))
        if not name and self.reading.official:
            raise self.broken("an empty id", "a unique id")
        return CorpusRow(self.reading, self.file, self.row, unique_id(name, id_counts), self.facts)

    def part(self, part: str) -> Any:
        """Return the cell of a part.

        Raises DataError if the row lacks it.
        """
        if part not in self.row.parts:
            table = self.reading.table
            names = [name for name in table.columns_of(part) if name not in self.row.columns]
            names = names if isinstance(table.columns[part], AnyOf) else names[:1]
            missing = " or ".join(repr(name) for name in names)
            has_text = not {*TEXT_KEYS, "data"}.isdisjoint(self.row.columns)
            if "words" in table.columns and part == "words" and has_text:
                advice = 'If spans are marked by offsets in a text, write annotated = "offsets"'
                raise no_column(self.file, self.row.line, "'words'", self.row.columns, advice)
            is_label = self.reading.official and part == "label"
            advice = OFFICIAL if is_label else f"Add it, or name a column: columns = {{ {part} = … }}"
            raise no_column(self.file, self.row.line, f"{missing} for {part}", self.row.columns, advice)
        return self.row.parts[part]

    def text(self, part: str) -> str:
        """Return the text of a part, with several columns joined by spaces."""
        return " ".join(self.checked_text(part, cell) for cell in cells_of(self.part(part)))

    def checked_text(self, part: str, cell: object) -> str:
        """Return the text of a cell.

        Raises DataError if it is blank or not a text.
        """
        if isinstance(cell, str) and (self.reading.blank or cell.strip()) and is_unicode(cell):
            return cell
        advice = "Add the text, or remove the row"
        raise self.broken(f"{part} is {str(cell)[:60]!r}", "a text that is not blank", advice)

    @property
    def is_unlabelled(self) -> bool:
        """Whether its file has no labels."""
        may_lack = self.reading.official and self.reading.may_lack_labels
        return self.facts.unlabelled or (may_lack and "label" not in self.row.parts)

    def is_skipped(self) -> bool:
        """Return whether the row is skipped for its label."""
        if self.is_unlabelled or not (self.reading.skip or self.reading.skip_unknown):
            return False
        cells = cells_of(self.part("label"))
        if self.reading.skip_unknown and self.spell(cells[0]) not in self.reading.labels:
            return True
        text = " ".join(read_cell_text(cell) for cell in cells).strip()
        is_missing = self.reading.is_missing(text, self.facts.labels) and text not in self.reading.labels
        return text in self.reading.skip or (is_missing and NO_ANSWER in self.reading.skip)

    def labels(self, cells: Sequence[object]) -> tuple[str, ...]:
        """Return checked labels by their spellings, or by their positions in the inventory."""
        return tuple(self.checked_label(self.spell(cell), index) for index, cell in enumerate(cells))

    def spell(self, cell: object) -> str:
        """Return the label in a cell.

        Raises DataError for a list or an object.
        """
        structure = "" if self.reading.official else describe_structure(cell)
        if structure:
            if marks_spans(cell):
                advice = 'Names in texts are kind = "tagging", annotated = "offsets"'
                raise self.broken(f"label is {str(cell)[:60]}, spans by offsets", "one label", advice)
            several = 'if a row may have several labels, write predicts = "labels"'
            advice = f"Name the column or key of the label or, {several}"
            raise self.broken(f"label is {structure}, {str(cell)[:60]}", "one label", advice)
        return self.reading.spell(cell, self.facts.labels)

    def checked_label(self, label: str, word: int | None = None) -> str:
        """Return a label of the inventory unchanged.

        Raises DataError for any other label. Every non-empty lemma is valid.
        """
        if label and (label in self.reading.labels or self.reading.predicts == "lemma"):
            return label
        if self.reading.predicts == "lemma":
            raise self.broken("no lemma", "the lemma of each word, or _ for none", word=word)
        spellings = self.reading.spelled or self.reading.labels
        problem = f"label {label!r}" if label else f"no label{self._describe_missing_cell(word)}"
        expectation = f"one of {some(spellings)}" if spellings else "a label"
        is_word = self.reading.kind == "tagging"
        raise self.broken(problem, expectation, self._label_advice(label), word=word if is_word else None)

    def _describe_missing_cell(self, word: int | None) -> str:
        """Return the text of a missing label in brackets, or "" for an empty cell."""
        cells = cells_of(self.row.parts.get(self.reading.label_parts[0])) if self.reading.label_parts else ()
        text = (
            read_cell_text(cells[0])
            if len(cells) == 1 and self.reading.kind != "tagging" and not word
            else ""
        )
        return f" ({text!r})" if text else ""

    def _label_advice(self, label: str) -> str:
        spellings = self.reading.spelled or self.reading.labels
        suggestion = did_you_mean(label, spellings).strip()
        if not self.reading.official:
            advice = "Correct it, or the labels of the description"
            if self.reading.kind != "tagging":
                skip = f", or skip such rows (skip = [{label!r}])".replace("'", '"')
                advice = f"Correct it or the labels of the description{skip}"
                if not label and self._describe_missing_cell(None):
                    advice += '; if it is a label, list all labels (labels = ["…"])'
        elif self.reading.kind != "tagging" and label in ("", "-"):
            return "Remove the rows without a label from the file"
        else:
            types = sorted({tag.partition("-")[2] for tag in spellings} - {""})
            own_type = label.partition("-")[2].upper()
            advice = "Correct the line"
            if types and own_type and not own_type.startswith(tuple(types)):
                return (
                    f"The task knows only the types {', '.join(types)}: give the words of any other type "
                    f"the tag O, or one of these types"
                )
        return f"{suggestion} {advice}".strip()


HEADINGS = frozenset(
    {"label", "labels", "gold_label", "class", "category", "target", "tag", "tags", "ner_tags"}
)
"""Labels of a first row that is probably a header."""

SUSPICIOUS = 20
"""Minimum number of rows for a remark that none has the first option."""


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
        remarks = [*remarks, *describe_annotations(file, reading.table)]
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
    if next(iter(file.read()), "").startswith(WEBANNO_HEADER):
        raise file.broken(1, WEBANNO_HEADER, "lines of words", 'Write format = "webanno", without columns')
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
