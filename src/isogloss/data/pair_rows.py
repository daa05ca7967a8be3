"""Rows of sentence pairs as they stand in a file: split by tabs, or a JSON object a line (.jsonl).

Columns are found by their header, whichever of the names in use it has; quotes are ordinary characters.
Without a header the columns are first, second, label; in XTREME's files of translations, the first two are
repeated in the language they were written in: first, second, first translated, second translated, label.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from isogloss.core.errors import DataError
from isogloss.data.corpora import is_unicode, own_id
from isogloss.data.files import File, members_once


@dataclass(frozen=True, kw_only=True)
class Header:
    """The names that the columns of a corpus may have in the first row of its files."""

    first: tuple[str, ...] = ("sentence1", "premise")
    second: tuple[str, ...] = ("sentence2", "hypo", "hypothesis")
    label: tuple[str, ...] = ("gold_label", "label")
    id: tuple[str, ...] = ("id",)
    part: str = "language"
    """A column of which one value is read; files without it are read whole."""
    left_out: tuple[str, ...] = ()
    """What stands for a label that the annotators did not agree on: such rows are left out, and counted."""


@dataclass(frozen=True, slots=True)
class Row:
    """A row as it stands: its line number, its id, its texts and what stands for its label."""

    number: int
    id: str
    first: str
    second: str
    label: str | None
    """None where the file has no labels at all."""


@dataclass(frozen=True, slots=True)
class Columns:
    """Where a row of tab-separated cells has what."""

    width: int
    first: int = 0
    second: int = 1
    label: int | None = None
    part: int | None = None
    id: int | None = None


NAMELESS = {3: Columns(width=3, label=2), 2: Columns(width=2)}
"""Without a header the width of the first row says what there is; XTREME takes the labels out of tests."""

TRANSLATED = NAMELESS | {5: Columns(5, first=2, second=3, label=4), 4: Columns(4, first=2, second=3)}


def read_rows(file: File, part: str, header: Header, *, translated: bool = False) -> Iterator[Row]:
    """Read the rows of one part, numbered from 1 where they have no ids of their own.

    An id that comes again gets ``#2``, ``#3`` …. ``translated`` files may repeat the texts in the language
    they were written in.
    """
    if file.plain_name.endswith(".jsonl"):
        yield from _objects(file, header)
        return
    columns, count, seen = NAMELESS[3], 0, dict[str, int]()
    for number, line in file.lines():
        row = line.split("\t")
        if number == 1 and is_header(row, header):
            columns = named(file, row, header)
            continue
        if number == 1:
            columns = (TRANSLATED if translated else NAMELESS).get(len(row), columns)
        if len(row) != columns.width and translated and number > 1:
            row = [""] * columns.width  # XTREME's translations have such rows: they have no label then
        if len(row) != columns.width:
            raise file.broken(
                number, f"{len(row)} columns in {line[:60]!r}", f"{columns.width}, split by tabs"
            )
        if columns.part is None or row[columns.part] == part:
            count += 1
            yield Row(
                number=number,
                id=str(count) if columns.id is None else _unique(file, number, row[columns.id], seen),
                first=row[columns.first],
                second=row[columns.second],
                label=None if columns.label is None else row[columns.label],
            )


def is_header(row: list[str], header: Header) -> bool:
    """Tell whether a first row names columns."""
    return any(name in row for name in header.first)


def named(file: File, row: list[str], header: Header) -> Columns:
    """Find the columns that a header names; DataError without both texts."""
    first, second = _place(row, header.first), _place(row, header.second)
    if first is None or second is None:
        found = f"a header without {' or '.join(header.second)}: {', '.join(row)}"
        raise file.broken(1, found, "that column")
    names = [name for name in row if name]
    if len(set(names)) < len(names):
        raise file.broken(1, f"a column twice in the header {', '.join(row)}", "each column once")
    return Columns(
        width=len(row),
        first=first,
        second=second,
        label=_place(row, header.label),
        part=_place(row, (header.part,)),
        id=_place(row, header.id),
    )


def _place(row: list[str], names: tuple[str, ...]) -> int | None:
    return next((row.index(name) for name in names if name in row), None)


def _objects(file: File, header: Header) -> Iterator[Row]:
    seen: dict[str, int] = {}
    for number, line in file.lines():
        thing = _parsed(file, number, line)
        name = _value(thing, header.id) or str(number)
        yield Row(
            number=number,
            id=own_id(name, seen),
            first=_text(file, number, thing, header.first),
            second=_text(file, number, thing, header.second),
            label=_value(thing, header.label),
        )


def _parsed(file: File, number: int, line: str) -> dict[str, Any]:
    try:
        thing = json.loads(line, object_pairs_hook=members_once)
    except (ValueError, RecursionError) as error:
        raise _no_object(file, number, f"no JSON ({error})") from error
    if not isinstance(thing, dict):
        raise _no_object(file, number, f"{line[:60]!r}")
    return thing


def _no_object(file: File, number: int, found: str) -> DataError:
    return file.broken(number, found, "a JSON object on each line", "Fetch the file again")


def _value(thing: dict[str, Any], names: tuple[str, ...]) -> str | None:
    value = next((thing[name] for name in names if name in thing), None)
    return value if isinstance(value, str) else None


def _text(file: File, number: int, thing: dict[str, Any], names: tuple[str, ...]) -> str:
    text = _value(thing, names)
    if text is None:
        there = ", ".join(map(repr, thing))
        raise file.broken(number, f"no text {' or '.join(names)} among {there}", "that text")
    if not is_unicode(text):
        raise file.broken(number, f"{text[:40]!r} with half a surrogate pair", "whole Unicode characters")
    return text


def _unique(file: File, number: int, name: str, seen: dict[str, int]) -> str:
    if not name:
        raise file.broken(number, "an empty id", "one of the pair's own")
    return own_id(name, seen)
