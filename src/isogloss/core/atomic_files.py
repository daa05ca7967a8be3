"""Files and folders that are written atomically, on storage that may fail for a while.

They are written under a temporary name, then renamed. Where the mount of a network file system is lost, its
mount point stays as an empty folder. Folders made in it would be hidden, with their files, when the mount
comes back; so none are made in a guarded folder.
"""

import errno
import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from filecmp import cmp
from glob import escape
from pathlib import Path
from typing import IO, Any, Literal

from isogloss.core.errors import StorageError, in_unicode
from isogloss.core.processes import has_ended, host, stop_if_lost, this_process

DISK_FULL_ERRORS = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
"""Errors of the system that more disk space would solve."""

_OUTAGE_NAMES = (
    *("EIO", "ESTALE", "ENOTCONN", "ENODEV", "ENXIO", "ESHUTDOWN", "ECONNABORTED", "ECONNRESET"),
    *("ECONNREFUSED", "EHOSTDOWN", "EHOSTUNREACH", "ENETDOWN", "ENETUNREACH", "ETIMEDOUT", "EREMOTEIO"),
)
OUTAGE_ERRORS = frozenset(getattr(errno, name) for name in _OUTAGE_NAMES if hasattr(errno, name))
"""System errors that may pass: the disk, or the server of a network file system, did not answer."""

_guarded: list[tuple[Path, str]] = []
"""Folders, each with its mark: a file or folder that it contains while it can be reached."""


@contextmanager
def guarded(folder: Path, mark: str) -> Iterator[None]:
    """In this context, create no folders within ``folder`` while ``mark`` is missing from it."""
    entry = folder.absolute(), mark
    _guarded.append(entry)
    try:
        yield
    finally:
        _guarded.remove(entry)


def check_unicode(folder: Path) -> None:
    """Raise StorageError for a folder in which libraries can neither read nor write weights."""
    if (shown := in_unicode(str(folder))) != str(folder):
        raise StorageError(
            f"{shown}: this path has bytes that are not UTF-8, and files with weights cannot be read or "
            f"written there. Rename the folder, or choose another one."
        )


def make_folder(folder: Path) -> None:
    """Make a missing folder and its parents; OSError within a guarded folder that cannot be reached."""
    if folder.is_dir():
        return
    for above, mark in _guarded:
        if folder.absolute().is_relative_to(above) and not is_reachable(above, mark):
            raise OSError(errno.ENOTCONN, f"{above} has gone away", str(folder))
    folder.mkdir(parents=True, exist_ok=True)


def is_reachable(folder: Path, mark: str) -> bool:
    """Return whether a folder can be reached, and contains its mark."""
    try:
        (folder / mark).stat()
    except OSError:
        return False
    return True


def is_outage(error: BaseException, folder: Path, mark: str) -> bool:
    """Return whether an error may come from an outage of a folder's storage, and pass with it.

    That is an error of a file below the folder, whatever else raised errors with the same numbers, or any
    error while the folder is away.
    """
    return not is_reachable(folder, mark) or any(
        number in OUTAGE_ERRORS and _is_below(path, folder)
        for number, path in map(_number_and_path, _with_causes(error))
    )


def _number_and_path(error: BaseException) -> tuple[int | None, str]:
    """Return the error number of the system and the file that an error is about, as far as it has them."""
    if isinstance(error, StorageError):
        return error.number, error.path
    if isinstance(error, OSError) and isinstance(error.filename, str | os.PathLike):
        return error.errno, os.fspath(error.filename)
    return None, ""


def _is_below(path: str, folder: Path) -> bool:
    return bool(path) and any(
        Path(absolute(path)).is_relative_to(absolute(folder))
        for absolute in (os.path.abspath, os.path.realpath)
    )


def system_error(error: BaseException) -> int | None:
    """Return the errno of a system error; libraries in Rust write it into their messages."""
    if isinstance(error, OSError) and error.errno is not None:
        return error.errno
    match = re.search(r"\(os error (\d+)\)", str(error))
    return int(match[1]) if match else None


def as_os_error(error: BaseException) -> OSError:
    """Return the system's error that a library reports as one of its own, as far as it says which."""
    if isinstance(error, OSError):
        return error
    number = system_error(error)
    return OSError(str(error)) if number is None else OSError(number, os.strerror(number))


def disk_error(error: BaseException) -> OSError | None:
    """Return the system's error if it is why a file could not be read; None if the file or its content is."""
    number = system_error(error)
    if number is None or number in (errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.EINVAL):
        return None
    return as_os_error(error)


def _with_causes(error: BaseException) -> Iterator[BaseException]:
    cause: BaseException | None = error
    while cause is not None:
        yield cause
        cause = cause.__cause__ or cause.__context__


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


def sweep_folder(folder: Path) -> list[str]:
    """Remove temporary files and folders in a folder, but for those of living processes of this machine.

    Returns the names of all that was in the folder.
    """
    stop_if_lost()
    try:
        with os.scandir(folder) as entries:
            names = [entry.name for entry in entries]
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        return []
    for left in [folder / name for name in names if name.startswith(".") and name.endswith(".tmp")]:
        process = left.name.removesuffix(".tmp").rpartition(".")[2]
        if has_ended(process) or not process.startswith(f"{host()}-"):
            shutil.rmtree(left, ignore_errors=True)
            with suppress(OSError):
                left.unlink(missing_ok=True)
    return names


@contextmanager
def atomic_file(path: Path) -> Iterator[IO[str]]:
    """Open a text file for writing; rename it to ``path`` on success, remove it on failure.

    StorageError at once where ``path`` is no ordinary file: a folder, a device.
    """
    if path.exists() and not path.is_file():
        raise StorageError(f"{path}: this is no ordinary file, so none can take its place. Choose another.")
    with open_atomically(path, "w") as file:
        yield file


@contextmanager
def atomic_folder(path: Path) -> Iterator[Path]:
    """Yield an empty folder to fill; it replaces ``path`` on success and is removed on failure.

    A folder with the same content is not replaced, so that its readers miss no file for a moment.
    """
    path = path.resolve()
    temporary = temporary_beside(path, "tmp")
    sweep(path)
    with writing(path):
        make_folder(temporary)
    try:
        yield temporary
        stop_if_lost()
        with writing(path):
            as_umask_says(temporary)
            if not _are_equal(path, temporary):
                _replace(path, temporary)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def remove_folder(path: Path) -> None:
    """Rename a folder, then remove it: whoever looks meanwhile sees all of it or nothing."""
    hidden = temporary_beside(path, "tmp")
    with suppress(OSError):
        path.replace(hidden)
    shutil.rmtree(hidden, ignore_errors=True)


def as_umask_says(folder: Path) -> None:
    """Give the files of a new folder the mode of the umask: libraries write weights for their owner alone."""
    mode = folder.stat().st_mode & 0o666
    for path in folder.rglob("*"):
        if path.is_file() and not path.is_symlink():
            path.chmod(mode)


def _replace(path: Path, new: Path) -> None:
    """Replace a folder by a new one; the old one is removed last, and restored on failure."""
    old = temporary_beside(path, "old")
    if path.exists():
        path.replace(old)
    try:
        new.replace(path)
    except OSError:
        if not _are_equal(path, new):
            if old.exists():
                old.replace(path)
            raise
    shutil.rmtree(old, ignore_errors=True)


def _are_equal(folder: Path, other: Path) -> bool:
    names, others = ({path.relative_to(first) for path in first.rglob("*")} for first in (folder, other))
    pairs = [(folder / name, other / name) for name in names]
    return (
        folder.is_dir()
        and names == others
        and all(
            (first.is_dir() and second.is_dir())
            or (first.is_file() and second.is_file() and cmp(first, second, shallow=False))
            for first, second in pairs
        )
    )


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Turn errors of the system while a file is read into a StorageError."""
    try:
        yield
    except OSError as error:
        raise reading_error(path, error) from error


def reading_error(path: Path, error: OSError) -> StorageError:
    """Build the error with the system's reason, and that finished runs are kept."""
    named = error.filename or path
    return StorageError(
        f"{named}: cannot read ({error.strerror or error}). Check the disk and the mount, then run the same "
        f"command again: finished runs are kept.",
        path=os.fsdecode(named) if isinstance(named, str | bytes | os.PathLike) else str(path),
        number=error.errno,
    )


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
        f"choose another place for it, then run the same command again: finished runs are kept.",
        path=str(path),
        number=error.errno,
    )
