"""From a row of a record, in which anything can be, to a value whose fields are known."""

import math
from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields
from functools import cache
from typing import Any, TypeVar

from isogloss.core.errors import DataError
from isogloss.core.records import Row, Value

T = TypeVar("T")


def typed(kind: type[T], row: Row) -> T:
    """Return the row as a value of this kind; raise DataError naming the field that is missing or wrong."""
    values: dict[str, Any] = {}
    for name, required, allowed, fits in _checks(kind):  # type: ignore[arg-type]  # a class is hashable
        if name not in row:
            if required:
                raise DataError(f"no {name!r}")
            continue
        if not fits(row[name]):
            raise DataError(f"{name!r} is {row[name]!r}, not {allowed}")
        values[name] = row[name]
    return kind(**values)


Fits = Callable[[Value], bool]


@cache
def _checks(kind: type) -> tuple[tuple[str, bool, str, Fits], ...]:
    """Return name, whether it must be there, what is allowed in words, and the test, for every field."""
    return tuple((field.name, field.default is MISSING, *_ALLOWED[str(field.type)]) for field in fields(kind))


def _number(value: Value) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _whole(value: Value) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


_ALLOWED: Mapping[str, tuple[str, Fits]] = {
    str(str): ("a text", lambda value: isinstance(value, str)),
    str(bool): ("true or false", lambda value: isinstance(value, bool)),
    str(int): ("a whole number", _whole),
    str(float): ("a number", _number),
    str(int | None): ("a whole number", lambda value: value is None or _whole(value)),
    str(float | None): ("a number", lambda value: value is None or _number(value)),
}
