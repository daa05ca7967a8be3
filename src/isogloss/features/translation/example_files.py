"""Files of translated examples, one JSON object a line."""

import json
from collections.abc import Iterable, Iterator
from dataclasses import fields
from io import BufferedReader, TextIOWrapper
from pathlib import Path
from types import NoneType, UnionType
from typing import get_args, get_origin

from isogloss.core.atomic_files import atomic_file
from isogloss.core.errors import StorageError, one_line
from isogloss.core.shared_files import open_file
from isogloss.core.untrusted import parse_json
from isogloss.data.examples import KINDS, Example
from isogloss.data.files import is_unicode


def write_examples(path: Path, examples: Iterable[Example]) -> None:
    """Write a file of examples atomically."""
    with atomic_file(path.parent, path.name) as file:
        file.writelines(f"{example_line(example)}\n" for example in examples)


def read_examples(path: Path) -> Iterator[Example]:
    """Yield the examples of a file.

    Raises StorageError, with the line, if the file is damaged.
    """
    try:
        with TextIOWrapper(
            BufferedReader(open_file(path.parent, path.name)), encoding="utf-8", newline="\n"
        ) as file:
            for line_number, line in enumerate(file, start=1):
                yield _example(line, path, line_number)
    except (OSError, UnicodeDecodeError) as error:
        raise _damage_error(path, f"cannot be read ({' '.join(str(error).split())})") from error


def example_line(example: Example) -> str:
    """Return an example as one line of JSON, without fields that have their default."""
    stored_fields = (member for member in fields(example) if member.metadata.get("stored", True))
    values = ((member, getattr(example, member.name)) for member in stored_fields)
    body = {member.name: value for member, value in values if value != member.default}
    line = json.dumps({"kind": type(example).__name__, **body}, ensure_ascii=False)
    # UTF-8 cannot encode half a surrogate pair; an escaped one is ASCII.
    return line if is_unicode(line) else json.dumps({"kind": type(example).__name__, **body})


def _example(line: str, path: Path, line_number: int) -> Example:
    try:
        body = parse_json(line, finite=False, unicode=False)
        kind = KINDS[body.pop("kind")]
        example: Example = kind(**{name: _freeze(value) for name, value in body.items()})
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        raise _damage_error(path, f"line {line_number} is not an example ({one_line(error):.120})") from error
    for member in fields(kind):
        if not _fits(value := getattr(example, member.name), member.type):
            raise _damage_error(
                path, f"line {line_number} is not an example ({member.name} is {value!r:.60})"
            )
    return example


def _freeze(value: object) -> object:
    return tuple(_freeze(item) for item in value) if isinstance(value, list) else value


def _fits(value: object, kind: object) -> bool:
    """Return whether a value has a field's type: a text, a number, or tuples of texts or numbers."""
    parts = get_args(kind)
    if get_origin(kind) is UnionType:
        return any(_fits(value, part) for part in parts)
    if not parts:
        return type(value) is (NoneType if kind is None else kind)
    if not isinstance(value, tuple):
        return False
    if parts[-1] is ...:
        return all(_fits(item, parts[0]) for item in value)
    return len(value) == len(parts) and all(
        _fits(item, part) for item, part in zip(value, parts, strict=True)
    )


def _damage_error(path: Path, damage: str) -> StorageError:
    return StorageError(
        f"{path}: {damage}. Delete the record.json of its folder and run again; only this run is repeated."
    )
