"""Examples as JSON lines: one object an example, its ``kind`` first; what is read is what was written.

Nothing is in such a file but texts and numbers, so that anyone can read it and nobody has to trust it.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import MISSING, Field, fields
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, get_args, get_origin

from isogloss.core.errors import StorageError
from isogloss.core.whole_files import whole_file
from isogloss.data.corpora import is_unicode
from isogloss.data.examples import Example

KINDS: Mapping[str, type[Any]] = {kind.__name__: kind for kind in get_args(Example)}
"""Every kind of example, by its name."""


def write_examples(path: Path, examples: Iterable[Example]) -> None:
    """Write a file of examples, whole or not at all."""
    with whole_file(path) as file:
        file.writelines(f"{line}\n" for line in map(example_line, examples))


def read_examples(path: Path) -> Iterator[Example]:
    """Read a file of examples, one at a time; StorageError, with the line, where it is damaged."""
    try:
        with path.open(encoding="utf-8", newline="\n") as file:
            for number, line in enumerate(file, start=1):
                yield _example(line, path, number)
    except (OSError, UnicodeDecodeError) as error:
        raise _damaged(path, f"cannot be read ({' '.join(str(error).split())})") from error


def example_line(example: Example) -> str:
    """Return an example as one line of JSON; fields that say nothing are left out."""
    said = {one.name: getattr(example, one.name) for one in fields(example)}
    body = {one.name: said[one.name] for one in fields(example) if said[one.name] != _default(one)}
    line = json.dumps({"kind": type(example).__name__, **body}, ensure_ascii=False)
    # Half a surrogate pair is no character that a file can hold; its escape is.
    return line if is_unicode(line) else json.dumps({"kind": type(example).__name__, **body})


def _example(line: str, path: Path, number: int) -> Example:
    try:
        body = json.loads(line)
        kind = KINDS[body.pop("kind")]
        found: Example = kind(**{name: _frozen(value) for name, value in body.items()})
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        what = " ".join(f"{type(error).__name__}: {error}".split())
        raise _damaged(path, f"line {number} is no example ({what[:120]})") from error
    for one in fields(kind):
        if not _fits(getattr(found, one.name), one.type):
            what = repr(getattr(found, one.name))
            raise _damaged(path, f"line {number} is no example ({one.name} is {what[:60]})")
    return found


def _frozen(value: Any) -> Any:
    return tuple(map(_frozen, value)) if isinstance(value, list) else value


def _fits(value: object, kind: Any) -> bool:
    """Tell whether a value is of a field's type: a text, a number, or tuples of such."""
    parts = get_args(kind)
    if get_origin(kind) is UnionType:
        return any(_fits(value, part) for part in parts)
    if not parts:
        return type(value) is (NoneType if kind is None else kind)
    if not isinstance(value, tuple):
        return False
    if parts[-1] is ...:
        return all(_fits(one, parts[0]) for one in value)
    return len(value) == len(parts) and all(map(_fits, value, parts))


def _default(one: Field[Any]) -> object:
    return one.default if one.default is not MISSING else MISSING


def _damaged(path: Path, what: str) -> StorageError:
    return StorageError(
        f"{path}: {what}. Delete the record.json beside it and run again; only this run is repeated."
    )
