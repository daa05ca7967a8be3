"""JSON that others may have written: strict, of bounded depth, and ValueError for anything else."""

import errno
import json
import math
import re
from collections.abc import Hashable, Iterable
from functools import cache
from pathlib import Path
from typing import Any, TypeVar, cast

from pydantic import TypeAdapter, ValidationError

T = TypeVar("T")

MAX_JSON_DEPTH = 100
"""Levels of nesting that are read; what walks through a value calls itself several times a level."""

_HALF = re.compile(r"\\u[dD][89a-fA-F]")
"""The escape of half a surrogate pair, with or without its other half."""


def parse_json(content: str | bytes) -> Any:
    """Return the value of a JSON text.

    ValueError, briefly worded, for text that is not JSON or not UTF-8, numbers that are not finite, a lone
    surrogate, and nesting beyond ``MAX_JSON_DEPTH``.
    """
    text = content if isinstance(content, str) else content.decode()
    try:
        value = json.loads(text, parse_constant=_finite, parse_float=_finite)
        level: list[Any] = [[value]]
        depth = 0
        while level := [child for part in level for child in _inside(part) if isinstance(child, dict | list)]:
            depth += 1
            if depth > MAX_JSON_DEPTH:
                raise RecursionError
    except RecursionError:
        raise ValueError(f"nested more than {MAX_JSON_DEPTH} levels deep") from None
    if _HALF.search(text):
        json.dumps(value, ensure_ascii=False).encode()
    return value


def read_regular(path: Path) -> bytes:
    """Return a file's content; OSError for a pipe or device in its place too, which might never end."""
    if not path.is_file() and path.exists():
        raise OSError(errno.EINVAL, "not a regular file", str(path))
    return path.read_bytes()


def fitting(shape: type[T], value: object) -> T:
    """Return a value of JSON as a type, such as a dataclass; ValueError names the first wrong field."""
    try:
        return cast(T, _adapter(cast(Hashable, shape)).validate_python(value))
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(map(str, first["loc"])) or "all of it"
        raise ValueError(f"{where:.60}: {first['msg']:.200}") from error


@cache
def _adapter(shape: Hashable) -> TypeAdapter[Any]:
    return TypeAdapter(cast(Any, shape))


def _inside(part: dict[str, Any] | list[Any]) -> Iterable[Any]:
    return part.values() if isinstance(part, dict) else part


def _finite(digits: str) -> float:
    value = float(digits)
    if not math.isfinite(value):
        raise ValueError(f"{digits:.40} is no finite number")
    return value
