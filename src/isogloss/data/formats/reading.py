"""Rules for reading labelled rows: the table, the labels and their spelling, and the facts of a file.

A ``CorpusRow`` is a row read by these rules, from which a kind of example (``kinds``) is built. Facts (its
layout, its scheme of tags, whether it has labels) are decided once, from the whole file, and reported. A row
that does not fit them is an error with its line number.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from isogloss.core.errors import DataError, did_you_mean
from isogloss.core.tag_schemes import NO_SCHEME, TagScheme
from isogloss.data.column_names import TEXT_KEYS
from isogloss.data.corpus import unique_id
from isogloss.data.files import File, is_unicode, some
from isogloss.data.formats.conll import ConllLayout
from isogloss.data.formats.formats import MARKS, TAGS_COLUMN, AnyOf, ExampleColumns
from isogloss.data.formats.label_cells import (
    MISSING,
    NUMBER,
    PLAIN_LABELS,
    UNKNOWN_CLASS,
    LabelFacts,
    describe_structure,
    find_label,
    read_cell_text,
)
from isogloss.data.formats.tables import OFFICIAL, FileRow, Rows, no_column, rows

Predicts = Literal["label", "labels", "number", "lemma"]
"""Kind of labels: one of an inventory, any number of these, a number, or the lemma of a word."""

LABEL_PARTS = ("label", "labels", "answers")
"""Parts of an example that contain its label."""


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

    kind: str
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
        return [part for part in LABEL_PARTS if part in self.table.columns]

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
            if names == [TAGS_COLUMN]:
                advice = "Give it an empty list where the text has no span, or remove the row"
                raise self.broken(
                    "a text without a key for its spans", "the key that other rows have", advice
                )
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
            if any(marks.are_spans(cell) for marks in MARKS.values()):
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
