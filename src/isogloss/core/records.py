"""Records: what a finished run leaves behind. A run is finished if and only if its record exists.

A record holds only what follows from the run (so an interrupted and an uninterrupted run leave the same
bytes); when, where and how long is written beside it in ``made.json``.
"""

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from isogloss.core.errors import StorageError

RECORD = "record.json"
MADE = "made.json"

Value = str | int | float | bool | None
Row = Mapping[str, Value]
"""One line of numbers: flat, so that it is also a line of a CSV file."""


@dataclass(frozen=True, kw_only=True)
class Record:
    """What a run was (``run``: its content), what it needed, and the rows it made."""

    id: str
    kind: str
    title: str
    run: Mapping[str, Any]
    needs: tuple[str, ...] = ()
    rows: Sequence[Row] = ()
    warnings: tuple[str, ...] = field(default=())


def write_record(folder: Path, record: Record) -> None:
    """Write the record under a temporary name, then rename it: it is there whole or not at all."""
    body = {name: getattr(record, name) for name in Record.__dataclass_fields__}
    write_text(folder / RECORD, json.dumps(body, ensure_ascii=False, indent=1) + "\n")


def read_record(folder: Path) -> Record:
    """Read a run's record; a damaged one is an error that says how to make it again."""
    path = folder / RECORD
    try:
        body = json.loads(path.read_text(encoding="utf-8"))
        record = Record(**{**body, "needs": tuple(body["needs"]), "warnings": tuple(body["warnings"])})
    except (ValueError, KeyError, TypeError) as error:
        raise StorageError(
            f"{path}: this record is damaged ({type(error).__name__}: {error}). "
            f"Delete the file and run again; only this run is repeated."
        ) from error
    if record.id != folder.name or not isinstance(record.rows, list):
        raise StorageError(
            f"{path}: this record is damaged (id {record.id!r} in folder {folder.name!r}). "
            f"Delete the file and run again; only this run is repeated."
        )
    return record


def write_text(path: Path, text: str) -> None:
    """Write a file under a temporary name, flush it to the disk, then rename it."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            with temporary.open("w", encoding="utf-8") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(path)
        finally:
            temporary.unlink(missing_ok=True)


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Turn what the disk says about writing a file into a StorageError."""
    try:
        yield
    except OSError as error:
        raise storage_error(path, error) from error


def storage_error(path: Path, error: OSError) -> StorageError:
    """Say what the disk said, and that nothing finished was lost."""
    return StorageError(
        f"{path}: cannot write ({error.strerror or error}). Free some space or choose another --out, "
        f"then run the same command again: finished runs are kept."
    )
