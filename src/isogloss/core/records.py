"""Records: the result of a finished run. A run is finished if and only if its record exists.

A record holds only what follows from the run, so that interrupted and uninterrupted runs have equal bytes;
when, where and how long is written to ``made.json`` in the same folder.
"""

import errno
import json
import math
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from glob import escape
from pathlib import Path
from typing import IO, Any, Literal, TypeVar

from isogloss.core import rows
from isogloss.core.checksums import CHECKSUMS, Checksum, as_text, difference, read_checksums
from isogloss.core.errors import StorageError, one_line
from isogloss.core.foreign_json import fitting, parse_json, read_regular
from isogloss.core.identity import identity
from isogloss.core.interruption import stop_if_lost
from isogloss.core.processes import has_ended, host, this_process
from isogloss.core.run_files import Made
from isogloss.core.secrets import masked
from isogloss.core.storage import make_folder

RECORD, MADE, FAILED = "record.json", "made.json", "failed.json"
PLAN = "plan.json"

UNREAD = "could not be read"
"""In warnings, of runs whose records are damaged or none of ours."""

DISK_FULL_ERRORS = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
"""Errors of the system that more disk space would solve."""

T = TypeVar("T")
Value = rows.Value
Row = rows.Row


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


def write_record(folder: Path, record: Record, files: Mapping[str, Checksum] | None = None) -> None:
    """Write the record atomically, after its checksum and those of other ``files`` of the run."""
    body = {name: getattr(record, name) for name in Record.__dataclass_fields__}
    body["warnings"] = [*map(masked, record.warnings)]
    body["rows"] = [{name: or_none(value) for name, value in row.items()} for row in record.rows]
    content = (json.dumps(body, ensure_ascii=False, indent=1, allow_nan=False) + "\n").encode()
    write_text(folder / CHECKSUMS, as_text({**(files or {}), RECORD: Checksum.of(content)}))
    write_bytes(folder / RECORD, content)


def or_none(value: T) -> T | None:
    """Return None for nan and infinities, which JSON does not have."""
    return None if isinstance(value, float) and not math.isfinite(value) else value


def read_record(folder: Path) -> Record:
    """Read a run's record; StorageError, with what to do, when it is damaged or missing."""
    path = folder / RECORD
    try:
        content, written = read_regular(path), read_checksums(folder).get(RECORD)
        if written and (wrong := difference(Checksum.of(content), written)):
            raise _damaged(path, wrong)
        body = parse_json(content)
        if not isinstance(body, dict) or body.keys() != Record.__dataclass_fields__.keys():
            raise _damaged(path, f"its fields are not {', '.join(Record.__dataclass_fields__)}")
        record = fitting(Record, body)
        wrong = _wrong(record, folder.name)
    except ValueError as error:
        raise _damaged(path, one_line(error)) from error
    except OSError as error:
        raise StorageError(
            f"{path}: cannot read this record ({error.strerror or error}). Check the folder, or run again."
        ) from error
    if wrong:
        raise _damaged(path, wrong)
    return record


def read_made(folder: Path) -> Made:
    """Return when, where and how a run was made; nothing where that is not known."""
    with suppress(OSError, ValueError):
        return fitting(Made, parse_json(read_regular(folder / MADE)))
    return Made()


@contextmanager
def understanding(path: Path) -> Iterator[None]:
    """Turn errors from the content of a record that isogloss did not write into a StorageError."""
    try:
        yield
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        raise _damaged(path, f"its run is none of isogloss's: {one_line(error):.200}") from error


def _damaged(path: Path, what: str) -> StorageError:
    return StorageError(
        f"{path}: this record is damaged ({what}). Delete the file and run again; only this run is repeated."
    )


def _wrong(record: Record, name: str) -> str:
    """Return how a record differs from its folder, its run and its kinds of rows; empty for nothing."""
    if record.id != name:
        return f"id {record.id!r:.40} in folder {name!r:.40}"
    key, kind = identity(record.run), record.run.get("kind")
    if (key, kind) != (name, record.kind):
        return f"its run has the id {key} and the kind {kind!r:.40}"
    return rows.wrong_value(kind_of_run(record.kind, record.run), record.rows)


def kind_of_run(kind: str, run: Mapping[str, Any]) -> str:
    """Return the diagnostic of a measurement, else the kind of run."""
    diagnostic = run.get("diagnostic")
    return str(diagnostic.get("kind")) if isinstance(diagnostic, Mapping) else kind


def write_text(path: Path, text: str) -> None:
    """Write a text file under a temporary name, flush it to the disk, then rename it."""
    write_bytes(path, text.encode())


def write_bytes(path: Path, content: bytes) -> None:
    """Write a file under a temporary name, flush it to the disk, then rename it."""
    with writing(path), open_atomically(path, "wb") as file:
        file.write(content)


@contextmanager
def open_atomically(path: Path, mode: Literal["w", "wb"]) -> Iterator[IO[Any]]:
    """Open a file under a temporary name; rename it on success, when it is on the disk, else remove it."""
    temporary = temporary_beside(path, "tmp")
    encoding, newline = ("utf-8", "\n") if mode == "w" else (None, None)
    with writing(path):
        make_folder(path.parent)
        sweep(path)
        file = temporary.open(mode, encoding=encoding, newline=newline)
    try:
        try:
            yield file
            with writing(path):
                file.flush()
                os.fsync(file.fileno())
        finally:
            with writing(path):
                file.close()
        stop_if_lost()
        with writing(path):
            temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def temporary_beside(path: Path, end: Literal["tmp", "old"]) -> Path:
    """Return a hidden name next to a path, of this process alone."""
    return path.with_name(f".{path.name}.{this_process()}.{end}")


def sweep(path: Path) -> None:
    """Remove temporary files and folders next to a path, left by killed processes of this machine."""
    for left in path.parent.glob(f".{escape(path.name)}.*.*"):
        process, _, end = left.name.removeprefix(f".{path.name}.").partition(".")
        if end in ("tmp", "old") and has_ended(process):
            shutil.rmtree(left, ignore_errors=True)
            with suppress(OSError):
                left.unlink(missing_ok=True)


def sweep_folder(folder: Path) -> None:
    """Remove temporary files and folders in a folder, but for those of living processes of this machine."""
    stop_if_lost()
    for left in folder.glob(".*.tmp"):
        process = left.name.removesuffix(".tmp").rpartition(".")[2]
        if has_ended(process) or not process.startswith(f"{host()}-"):
            shutil.rmtree(left, ignore_errors=True)
            with suppress(OSError):
                left.unlink(missing_ok=True)


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Turn errors of the system while a file is read into a StorageError."""
    try:
        yield
    except OSError as error:
        raise StorageError(
            f"{error.filename or path}: cannot read ({error.strerror or error}). Check the disk and the "
            f"mount, then run the same command again: finished runs are kept."
        ) from error


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Turn errors of writing a file into a StorageError."""
    try:
        yield
    except OSError as error:
        raise storage_error(path, error) from error


def storage_error(path: Path, error: OSError) -> StorageError:
    """Build the error with the system's reason, and that finished runs are kept."""
    full = error.errno in DISK_FULL_ERRORS or error.errno is None
    return StorageError(
        f"{path}: cannot write ({error.strerror or error}). {'Free some space' if full else 'Fix that'} or "
        f"choose another place for it, then run the same command again: finished runs are kept."
    )
