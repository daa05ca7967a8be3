"""Files and folders that are written atomically, on storage that may fail for a while.

They are written under a temporary name, then renamed. Where the mount of a network file system is lost, its
mount point stays as an empty folder. Folders created there would be hidden, with their files, once the mount
returns, so no folder is created in a guarded folder.
"""

import errno
import os
import re
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from filecmp import cmp
from pathlib import Path
from typing import IO, Any, Literal

from isogloss.core.errors import StorageError, escape_surrogates
from isogloss.core.processes import has_ended, host, stop_if_lost, this_process
from isogloss.core.shared_files import (
    IrregularFileError,
    entries,
    is_folder,
    is_taken,
    make_folders,
    make_new_folder,
    open_new_file,
    remove,
    rename,
)

DISK_FULL_ERRORS = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
"""Errors of the system that more disk space would solve."""

_OUTAGE_NAMES = (
    *("EIO", "ESTALE", "ENOTCONN", "ENODEV", "ENXIO", "ESHUTDOWN", "ECONNABORTED", "ECONNRESET"),
    *("ECONNREFUSED", "EHOSTDOWN", "EHOSTUNREACH", "ENETDOWN", "ENETUNREACH", "ETIMEDOUT", "EREMOTEIO"),
)
OUTAGE_ERRORS = frozenset(getattr(errno, name) for name in _OUTAGE_NAMES if hasattr(errno, name))
"""System errors that may pass: the disk, or the server of a network file system, did not answer."""

_guarded_folders: list[tuple[Path, str]] = []
"""Folders, each with its mark: a file or folder that it contains while it can be reached."""


@contextmanager
def guard_folder(folder: Path, mark: str) -> Iterator[None]:
    """In this context, create no folders within ``folder`` while ``mark`` is missing from it."""
    entry = folder.absolute(), mark
    _guarded_folders.append(entry)
    try:
        yield
    finally:
        _guarded_folders.remove(entry)


def check_unicode(folder: Path) -> None:
    """Raise StorageError for a folder in which libraries can neither read nor write weights."""
    if (readable := escape_surrogates(str(folder))) != str(folder):
        raise StorageError(
            f"{readable}: this path has bytes that are not UTF-8, and files with weights cannot be read or "
            f"written there. Rename the folder, or choose another one."
        )


def make_folder(folder: Path, name: str = "") -> None:
    """Make a missing folder and its parents.

    Raises OSError within a guarded folder that cannot be reached.
    """
    path = folder / name
    if is_folder(folder, name) if name else folder.is_dir():
        return
    for ancestor, mark in _guarded_folders:
        if path.absolute().is_relative_to(ancestor) and not is_reachable(ancestor, mark):
            raise OSError(errno.ENOTCONN, f"{ancestor} has gone away", str(path))
    make_folders(folder, name)


def is_reachable(folder: Path, mark: str) -> bool:
    """Return whether a folder can be reached, and contains its mark."""
    try:
        (folder / mark).stat()
    except OSError:
        return False
    return True


def is_outage(error: BaseException, folder: Path, mark: str) -> bool:
    """Return whether an outage of a folder's storage may have caused an error.

    Errors of other files with the same numbers do not count, unless the folder is unreachable.
    """
    return not is_reachable(folder, mark) or any(
        error_number in OUTAGE_ERRORS and _is_below(path, folder)
        for error_number, path in (_number_and_path(cause) for cause in _with_causes(error))
    )


def _number_and_path(error: BaseException) -> tuple[int | None, str]:
    """Return the system's error number and the file of an error. They are None and empty if unknown."""
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
    """Return the errno of a system error. Libraries in Rust write it into their messages."""
    if isinstance(error, OSError) and error.errno is not None:
        return error.errno
    match = re.search(r"\(os error (\d+)\)", str(error))
    return int(match[1]) if match else None


def as_os_error(error: BaseException) -> OSError:
    """Return the system's error behind a library's error. If the library hides it, return a generic one."""
    if isinstance(error, OSError):
        return error
    error_number = system_error(error)
    return OSError(str(error)) if error_number is None else OSError(error_number, os.strerror(error_number))


def disk_error(error: BaseException) -> OSError | None:
    """Return the system's error if the disk is the reason. None if the file or its content is."""
    error_number = system_error(error)
    if error_number is None or error_number in (errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.EINVAL):
        return None
    return as_os_error(error)


def _with_causes(error: BaseException) -> Iterator[BaseException]:
    cause: BaseException | None = error
    while cause is not None:
        yield cause
        cause = cause.__cause__ or cause.__context__


def write_text(folder: Path, name: str, text: str, *, is_swept: bool = False) -> None:
    """Write a text file under a temporary name, flush it to the disk, then rename it."""
    write_bytes(folder, name, text.encode(), is_swept=is_swept)


def write_bytes(folder: Path, name: str, content: bytes, *, is_swept: bool = False) -> None:
    """Write a file under a temporary name, flush it to the disk, then rename it.

    ``is_swept``: the temporary files of killed processes were removed before (``sweep_folder``).
    """
    with writing(folder / name), open_atomically(folder, name, "wb", is_swept=is_swept) as file:
        file.write(content)


@contextmanager
def open_atomically(
    folder: Path, name: str, mode: Literal["w", "wb"], *, is_swept: bool = False
) -> Iterator[IO[Any]]:
    """Open a file under a temporary name. On success it is flushed to disk and renamed, else removed."""
    path = folder / name
    temporary = temporary_name(name, "tmp")
    encoding, newline = ("utf-8", "\n") if mode == "w" else (None, None)
    with writing(path):
        if not is_swept:
            sweep(folder, name)
        try:
            descriptor = open_new_file(folder, temporary)
        except FileNotFoundError:
            make_folder(folder, name.rpartition("/")[0])
            descriptor = open_new_file(folder, temporary)
        file = os.fdopen(descriptor, mode, encoding=encoding, newline=newline)
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
            rename(folder, temporary, name)
    except BaseException:
        remove(folder, temporary)
        raise


def temporary_name(name: str, end: Literal["tmp", "old"]) -> str:
    """Return a hidden name next to another name that only this process uses."""
    parent, slash, base = name.rpartition("/")
    return f"{parent}{slash}.{base}.{this_process()}.{end}"


def sweep(folder: Path, name: str) -> None:
    """Remove temporary files and folders next to a name, left by killed processes of this machine."""
    parent, slash, base = name.rpartition("/")
    try:
        siblings = entries(folder, parent)
    except FileNotFoundError:
        return
    for entry in siblings:
        if entry.name.startswith(f".{base}."):
            process, _, end = entry.name.removeprefix(f".{base}.").partition(".")
            if end in ("tmp", "old") and has_ended(process):
                remove(folder, f"{parent}{slash}{entry.name}")


def sweep_folder(folder: Path, name: str = "") -> list[str]:
    """Remove temporary files and folders in a folder, except those owned by living processes of this machine.

    Returns the names of all entries the folder had.
    """
    stop_if_lost()
    try:
        names = [entry.name for entry in entries(folder, name)]
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        return []
    for left in names:
        if left.startswith(".") and left.endswith(".tmp"):
            process = left.removesuffix(".tmp").rpartition(".")[2]
            if has_ended(process) or not process.startswith(f"{host()}-"):
                remove(folder, f"{name}/{left}" if name else left)
    return names


@contextmanager
def atomic_file(folder: Path, name: str) -> Iterator[IO[str]]:
    """Open a text file for writing. It gets its final name on success and is removed on failure.

    Raises StorageError immediately if the name belongs to a folder, a device or any other irregular file.
    """
    path = folder / name
    if path.exists() and not path.is_file():
        raise StorageError(f"{path}: this is no ordinary file, so none can take its place. Choose another.")
    with open_atomically(folder, name, "w") as file:
        yield file


@contextmanager
def atomic_folder(folder: Path, name: str) -> Iterator[Path]:
    """Yield an empty folder to fill. It gets its name on success and is removed on failure.

    A folder with the same content is not replaced, so that its readers miss no file for a moment. A link that
    has the name is replaced, and what it leads to stays.
    """
    path = folder / name
    temporary = temporary_name(name, "tmp")
    with writing(path):
        make_folder(folder, name.rpartition("/")[0])
        sweep(folder, name)
        make_new_folder(folder, temporary)
    try:
        yield folder / temporary
        stop_if_lost()
        with writing(path):
            _copy_permissions(folder / temporary)
            if not _are_equal(path, folder / temporary):
                _replace(folder, name, temporary)
    finally:
        remove(folder, temporary)


def remove_folder(folder: Path, name: str) -> None:
    """Rename a folder, then remove it: whoever looks meanwhile sees all of it or nothing."""
    hidden = temporary_name(name, "tmp")
    with suppress(OSError):
        rename(folder, name, hidden)
    with suppress(OSError):
        remove(folder, hidden)


def _copy_permissions(folder: Path) -> None:
    """Give the contents of a new folder its own permissions. Libraries make weights readable by one user."""
    mode = stat.S_IMODE(folder.stat().st_mode)
    for path in folder.rglob("*"):
        if not path.is_symlink():
            path.chmod(mode if path.is_dir() else mode & 0o666)


def _replace(folder: Path, name: str, replacement: str) -> None:
    """Replace a folder by a new one. The old one is removed last, and restored on failure."""
    backup = temporary_name(name, "old")
    remove(folder, backup)
    if is_taken(folder, name):
        rename(folder, name, backup)
    try:
        rename(folder, replacement, name)
    except OSError:
        if not _are_equal(folder / name, folder / replacement):
            if is_taken(folder, backup):
                rename(folder, backup, name)
            raise
    remove(folder, backup)


def _are_equal(folder: Path, other_folder: Path) -> bool:
    if folder.is_symlink():
        return False
    names, other_names = (
        {path.relative_to(source) for path in source.rglob("*")} for source in (folder, other_folder)
    )
    pairs = [(folder / name, other_folder / name) for name in names]
    return (
        folder.is_dir()
        and names == other_names
        and all(
            (source.is_dir() and copy.is_dir())
            or (source.is_file() and copy.is_file() and cmp(source, copy, shallow=False))
            for source, copy in pairs
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
    """Build an error with the system's reason, which says that finished runs are kept."""
    location = error.filename or path
    file = os.fsdecode(location) if isinstance(location, str | bytes | os.PathLike) else str(path)
    advice = _describe_refusal(Path(file), error) or "Check the disk and the mount"
    return StorageError(
        f"{location}: cannot read ({error.strerror or error}). {advice}, then run the same command again: "
        f"finished runs are kept.",
        path=file,
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
    is_full = error.errno in DISK_FULL_ERRORS or error.errno is None
    if isinstance(error, IrregularFileError):
        return StorageError(
            f"{error.filename}: cannot be opened ({error.strerror}). Remove it, or choose another folder, "
            f"then run the same command again: finished runs are kept."
        )
    advice = _describe_refusal(path, error) or ("Free some space" if is_full else "Fix that")
    return StorageError(
        f"{path}: cannot write ({error.strerror or error}). {advice} or choose another place for it, then "
        f"run the same command again: finished runs are kept.",
        path=str(path),
        number=error.errno,
    )


def _describe_refusal(path: Path, error: OSError) -> str:
    """Describe owner and mode of the file or folder that refused access. Empty for other errors."""
    if error.errno not in (errno.EACCES, errno.EPERM):
        return ""
    for ancestor in (path, *path.parents):
        with suppress(OSError):
            status = ancestor.lstat()
            return (
                f"{ancestor} belongs to {_name_owner(ancestor)} and has the mode "
                f"{stat.filemode(status.st_mode)}. Ask for the right to use it (in a group's folder: chmod "
                f"-R g+rwX, and chmod g+s for folders)"
            )
    return ""


def _name_owner(path: Path) -> str:
    """Return the user and the group of a file, by name where the system knows one."""
    status = path.lstat()
    names = []
    for owner_id, find in ((status.st_uid, path.owner), (status.st_gid, path.group)):
        try:
            names.append(find())
        except (KeyError, NotImplementedError, OSError):
            names.append(str(owner_id))
    return ":".join(names)
