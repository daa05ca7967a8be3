"""Read untrusted input: JSON, texts that may be paths, and names that must stay below a folder.

JSON is read strictly and of bounded depth; anything else raises ValueError.
"""

import errno
import json
import math
import os
import re
import unicodedata
from collections.abc import Hashable, Iterable
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, TypeVar, cast

from pydantic import TypeAdapter, ValidationError

from isogloss.core.errors import InputError, StorageError, plain
from isogloss.core.shared_files import MOST_BYTES

T = TypeVar("T")

MAX_JSON_DEPTH = 100
"""Maximum levels of nesting. Functions that walk through a value recurse several times per level."""

_HALF = re.compile(r"\\u[dD][89a-fA-F]")
"""The escape of half a surrogate pair, with or without its other half."""


def parse_json(content: str | bytes, *, finite: bool = True, unicode: bool = True) -> Any:
    """Return the value of a JSON text.

    Infinities and NaN are read only where not all numbers must be ``finite``, halves of surrogate pairs only
    where not all text must be ``unicode``. ValueError, briefly worded, for these elsewhere, text that is not
    JSON or not UTF-8, and nesting beyond ``MAX_JSON_DEPTH``.
    """
    text = content if isinstance(content, str) else content.decode()
    try:
        value = (_DECODER if finite else _WITH_INFINITY).decode(text)
        # With fewer brackets the nesting cannot be too deep, as in most (small) files.
        level: list[Any] = [[value]] if text.count("{") + text.count("[") > MAX_JSON_DEPTH else []
        depth = 0
        while level := [child for part in level for child in _inside(part) if isinstance(child, dict | list)]:
            depth += 1
            if depth > MAX_JSON_DEPTH:
                raise RecursionError
    except RecursionError:
        raise ValueError(f"nested more than {MAX_JSON_DEPTH} levels deep") from None
    if unicode and _HALF.search(text):
        json.dumps(value, ensure_ascii=False).encode()
    return value


def read_regular(path: Path) -> bytes:
    """Return the content of a file that the user named, or of one in a model's folder. Links are followed.

    OSError for a pipe or device in its place, which might never end, and beyond ``MOST_BYTES``.
    """
    if not path.is_file() and path.exists():
        raise OSError(errno.EINVAL, "not a regular file", str(path))
    with path.open("rb", buffering=0) as file:
        size = path.stat().st_size
        if size > MOST_BYTES:
            raise OSError(errno.EINVAL, f"{size:,} bytes, of at most {MOST_BYTES:,}", str(path))
        return file.readall()


def convert_json(shape: type[T], value: object) -> T:
    """Convert a value of JSON to a type, such as a dataclass.

    Raises ValueError with the first wrong field.
    """
    try:
        return cast(T, _adapter(cast(Hashable, shape)).validate_python(value))
    except ValidationError as error:
        details = error.errors(include_url=False)[0]
        where = ".".join(str(part) for part in details["loc"]) or "all of it"
        raise ValueError(f"{where:.60}: {details['msg']:.200}") from error


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


MAX_DIGITS = 400
"""Maximum digits of a whole number, more than any float has. Python refuses thousands of digits with a
separate message."""


def _whole(digits: str) -> int:
    if len(digits) > MAX_DIGITS:
        raise ValueError(f"a number of {len(digits):,} digits")
    return int(digits)


_DECODER = json.JSONDecoder(parse_constant=_finite, parse_float=_finite, parse_int=_whole)
_WITH_INFINITY = json.JSONDecoder(parse_int=_whole)


FORBIDDEN_CHARACTERS = frozenset('\\:<>"|?*')
"""Characters forbidden in names, because they separate or begin paths on some system."""

MAX_NAME_BYTES, MAX_PATH_BYTES = 255, 4096
"""Bytes of a file's name, and of names with the folders between."""


def from_home(text: str | Path) -> Path:
    """Expand ~ to the home folder. A path of an unknown user, as in "~5 %", is returned unchanged."""
    try:
        return Path(text).expanduser()
    except RuntimeError:
        return Path(text)


def is_there(path: Path) -> bool:
    """Return whether a path exists and is accessible. False for text too long to be a file name."""
    try:
        return path.exists()
    except OSError:
        return False


RUN_MARKS = ("record.json", ".claims")
"""Names in the folder of a run, and in a folder of runs."""


def check_outside_runs(folder: Path) -> None:
    """Raise StorageError for a folder of runs, of a run, or within one: nothing else belongs there."""
    real_folder = Path(os.path.realpath(folder))
    patterns = [pattern for mark in RUN_MARKS for pattern in (mark, f"*/{mark}")]
    is_of_runs = real_folder.is_dir() and any(next(real_folder.glob(pattern), None) for pattern in patterns)
    if is_of_runs or any((parent / mark).exists() for parent in real_folder.parents for mark in RUN_MARKS):
        raise StorageError(f"{folder}: runs are here, and nothing else belongs there. Choose another folder.")


def join_safely(
    folder: Path, name: str, source: str | Path = "", error: type[InputError] = StorageError
) -> Path:
    """Return the path of a name from outside (an archive, a bucket, a manifest, the hub) below a folder.

    The name has / between its parts. An ``error`` that begins with the ``source`` refuses a name that is
    absolute, leads out of the folder (..), has an empty part, a backslash or a drive, or cannot be a file's.
    """
    if is_safe(name):
        return folder / name
    readable = plain(repr(name)[:120])
    raise error(
        f"{source or folder}: the name {readable} leads out of the folder or is invalid; nothing was "
        f"written. Its source cannot be trusted: use another copy of it."
    )


def is_safe(name: object) -> bool:
    """Return whether a name with / between its parts stays below any folder that it is put in."""
    return isinstance(name, str) and _is_safe(name)


@lru_cache(maxsize=4096)
def _is_safe(name: str) -> bool:
    parts = name.split("/")
    try:
        sizes = [len(part.encode()) for part in parts]
    except UnicodeEncodeError:
        return False
    return (
        not FORBIDDEN_CHARACTERS & set(name)
        and not any(part in ("", ".", "..") for part in parts)
        and not any(unicodedata.category(letter) == "Cc" for letter in name)
        and max(sizes) <= MAX_NAME_BYTES
        and sum(sizes) + len(parts) <= MAX_PATH_BYTES
    )


def user_cache() -> Path:
    """Return the folder of the user's cache: below XDG_CACHE_HOME, else ~/.cache.

    It contains only data that can be downloaded or computed again.
    """
    return Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "isogloss"
