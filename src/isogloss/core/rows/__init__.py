"""Rows of measurements.

Each kind is declared once, returned by diagnostics, stored in records and read by reports.

A row has the ids of its runs and measured numbers, never a display name: the description of a run (method,
encoder, seed …) is in its record. The class of a row names its ``frame``. ``ROWS`` lists the classes of rows
by diagnostic or kind of run. Records store plain objects, as in every version, so that equal runs keep equal
bytes. ``row_class`` finds the class of an object: the classes of one kind of record have different fields.
"""

from collections.abc import Mapping, Sequence
from dataclasses import MISSING, Field, asdict, fields
from functools import cache, lru_cache
from itertools import groupby
from types import NoneType
from typing import Any, ClassVar, Protocol, get_args

from isogloss.core.registry import Registry

Value = str | int | float | bool | None
Row = Mapping[str, Value]
"""A flat mapping from column to value: also a line of a CSV file."""

LARGEST_INTEGER = 2**63 - 1
"""The largest whole number of a row: frames have no larger ones."""


class RowClass(Protocol):
    """The class of a kind of row.

    Rows about several models name the columns of their ids in ``subjects``, that of the model whose facts
    are joined first. Default: ``model``.
    """

    __dataclass_fields__: ClassVar[dict[str, Field[object]]]
    frame: ClassVar[str]
    """The frame of the measurements of a folder that contains the rows."""


ROWS: Registry[tuple[type[RowClass], ...]] = Registry(
    {
        "scores": "isogloss.core.rows.kinds:SCORES",
        "run-variance": "isogloss.core.rows.kinds:RUN_VARIANCE",
        "transfer-gap": "isogloss.core.rows.kinds:TRANSFER_GAP",
        "fine-tune": "isogloss.core.rows.kinds:FINE_TUNE",
    },
    features="rows",
)
"""The classes of rows, by the diagnostic of a measurement or else by the kind of run."""


@cache
def row_frames() -> Mapping[str, type[RowClass]]:
    """Return the classes of rows by the name of their frame."""
    return {row.frame: row for classes in ROWS.values() for row in classes}


def as_row(row: object) -> Row:
    """Return a typed row as a record stores it."""
    return asdict(row)  # type: ignore[call-overload, no-any-return]


@lru_cache(maxsize=4096)
def row_class(kind: str, columns: tuple[str, ...]) -> type[RowClass] | None:
    """Return the class of a stored row whose required fields are all columns. None if none fits."""
    for row in ROWS.get(kind, ()):
        if {field.name for field in fields(row) if field.default is MISSING} <= set(columns):
            return row
    return None


def wrong_value(kind: str, rows: Sequence[Row]) -> str:
    """Return the first value that rows of a kind of record do not allow, with its name. Empty for none."""
    for columns, group in groupby(rows, key=tuple):
        values = zip(*(row.values() for row in group), strict=True)
        for name, types, column in zip(columns, _allowed_types(kind, columns), values, strict=True):
            if not types.issuperset(map(type, column)) or not all(map(_fits_frame, column)):
                wrong = next(value for value in column if type(value) not in types or not _fits_frame(value))
                return f"{name:.40} is {wrong!r:.40}"
    return ""


def _fits_frame(value: Value) -> bool:
    return not isinstance(value, int) or -LARGEST_INTEGER <= value <= LARGEST_INTEGER


@lru_cache(maxsize=256)
def _allowed_types(kind: str, columns: tuple[str, ...]) -> list[set[type[Any]]]:
    """Return the types of the values in some columns. A fraction may be null, as nan is in a record."""
    row = row_class(kind, columns)
    types = {field.name: {field.type, *get_args(field.type)} for field in fields(row)} if row else {}
    types = {name: kinds | {int, NoneType} if float in kinds else kinds for name, kinds in types.items()}
    return [types.get(name, {str, int, float, bool, NoneType}) for name in columns]
