"""Open, list, lock, rename and remove files in folders that others may write to.

A file is a folder and a name in it, with / between the parts of the name. Links are followed on the way to
the folder, which the user chose, but never below it. A folder within a run's is opened in the same way: links
are followed up to the folder of runs, but not from the run's folder on. Only regular files are opened, so
that a pipe cannot block the process. Files larger than ``most`` are not read whole. Anything else in the
place of a file is an ``IrregularFileError``.

A folder with the setgid bit is a group's: whatever the umask, files and folders created in it grant that
group the permissions that the folder itself grants.

Each function raises the audit event ``isogloss.shared_file`` with the path.
"""

import errno
import os
import re
import shutil
import stat
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from io import FileIO
from operator import attrgetter
from pathlib import Path

MOST_BYTES = 64 << 20
"""Largest file that is read whole. Records and configurations have kilobytes, rarely a few megabytes."""

RUN = re.compile(r"[0-9a-f]{12}")
"""Name of a run's folder: its id."""

NO_LINK = "a symbolic link is in its entry, and is not followed"

_HAS_DESCRIPTORS = os.open in os.supports_dir_fd
"""False on Windows, where each part of a path is checked before the whole path is opened."""

_CLOSED_AT_EXEC = getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
_NO_WAIT = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | _CLOSED_AT_EXEC
_FOLDER = getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_NOFOLLOW", 0) | _CLOSED_AT_EXEC
_PASSED = getattr(os, "O_PATH", os.O_RDONLY)


class IrregularFileError(OSError, ValueError):
    """A link, pipe, device, folder or far too large file was found in place of a file or folder.

    It is an error of the system for those who write, and damage for those who read.
    """


@dataclass(frozen=True)
class FolderEntry:
    """Entry of a folder. A link is neither a file nor a folder."""

    name: str
    is_file: bool
    is_folder: bool


@dataclass(frozen=True)
class _Place:
    """A name in an open folder."""

    folder: int | None
    """Its descriptor. None on systems without descriptors, where ``name`` is the whole path."""
    name: str
    path: Path


def read_file(folder: Path, name: str, max_bytes: int = MOST_BYTES) -> bytes:
    """Return the content of a file.

    Raises IrregularFileError for a link, pipe or folder, and beyond ``max_bytes`` bytes.
    """
    with open_file(folder, name) as file:
        return _content(file, folder / name, max_bytes)


def open_file(folder: Path, name: str) -> FileIO:
    """Open a file for reading."""
    with _open_parent(folder, name) as entry:
        return FileIO(_open_descriptor(entry, os.O_RDONLY), "rb")


def create_file(folder: Path, name: str, content: bytes = b"") -> bool:
    """Create a file and return whether it was created. No two processes create the same file."""
    with _open_parent(folder, name) as entry:
        try:
            descriptor = _create_descriptor(entry, os.O_WRONLY)
        except FileExistsError:
            return False
        try:
            with FileIO(descriptor, "wb") as file:
                _write(file, content)
        except OSError:  # A full disk allows an empty file, which other processes would wait for.
            with suppress(OSError):
                os.unlink(entry.name, dir_fd=entry.folder)
            raise
    return True


def overwrite_file(folder: Path, name: str, change: Callable[[bytes], bytes | None]) -> bool:
    """Replace the content of a file in place by ``change(content)``. Returns False if that is None.

    That takes no space, and a full disk leaves what was in it.
    """
    with _open_parent(folder, name) as entry, FileIO(_open_descriptor(entry, os.O_RDWR), "r+b") as file:
        _check_single(file, entry.path)
        content = change(_content(file, entry.path, MOST_BYTES))
        if content is not None:
            file.seek(0)
            _write(file, content)
            file.truncate()
    return content is not None


def append_file(folder: Path, name: str, content: bytes) -> None:
    """Append to a file, and create it if it is missing."""
    with (
        _open_parent(folder, name) as entry,
        FileIO(_open_descriptor(entry, os.O_RDWR | os.O_APPEND | os.O_CREAT), "ab") as file,
    ):
        _check_single(file, entry.path)
        _share(entry.folder, file.fileno())
        _write(file, content)


def open_new_file(folder: Path, name: str) -> int:
    """Return the descriptor of a new file for writing. An entry with its name is removed."""
    with _open_parent(folder, name) as entry:
        try:
            return _create_descriptor(entry, os.O_WRONLY)
        except FileExistsError:
            _remove(entry)
            return _create_descriptor(entry, os.O_WRONLY)


def is_file(folder: Path, name: str) -> bool:
    """Return whether a regular file has the name."""
    return stat.S_ISREG(_mode(folder, name))


def is_folder(folder: Path, name: str) -> bool:
    """Return whether a folder has the name."""
    return stat.S_ISDIR(_mode(folder, name))


def is_taken(folder: Path, name: str) -> bool:
    """Return whether a name is taken, also by a link that leads nowhere."""
    return _mode(folder, name) != 0


def look_afresh(folder: Path, name: str) -> None:
    """Let a network file system ask its server for a name and the folders above it.

    Its clients remember for up to a minute that a name was missing, except in a folder that is opened to be
    listed.
    """
    top, parts = _split(folder, name)
    with suppress(FileNotFoundError, NotADirectoryError, IrregularFileError):
        for count in range(len(parts)):
            with _folder(top, "/".join(parts[:count])):
                pass


def check_folder(folder: Path, name: str) -> None:
    """Raise IrregularFileError where anything but a folder has the name."""
    mode = _mode(folder, name)
    if stat.S_ISLNK(mode):
        raise IrregularFileError(errno.ELOOP, NO_LINK, str(folder / name))
    if mode and not stat.S_ISDIR(mode):
        raise IrregularFileError(errno.ENOTDIR, "not a folder", str(folder / name))


def file_size(folder: Path, name: str) -> int | None:
    """Return the size of a regular file. None for anything else."""
    try:
        with _open_parent(folder, name) as entry:
            status = _status(entry)
    except (FileNotFoundError, NotADirectoryError, IrregularFileError):
        return None
    return status.st_size if stat.S_ISREG(status.st_mode) else None


def entries(folder: Path, name: str = "") -> list[FolderEntry]:
    """List what is in a folder below a folder, sorted by name."""
    with _folder(folder, name) as opened_folder, os.scandir(opened_folder) as items:
        return sorted(
            (
                FolderEntry(
                    entry.name, entry.is_file(follow_symlinks=False), entry.is_dir(follow_symlinks=False)
                )
                for entry in items
            ),
            key=attrgetter("name"),
        )


def list_files(folder: Path, name: str = "") -> Iterator[str]:
    """Yield the names of all regular files below a folder. Folders behind links are not entered."""
    start = f"{name}/" if name else ""
    for entry in entries(folder, name):
        if entry.is_file:
            yield start + entry.name
        elif entry.is_folder:
            yield from list_files(folder, start + entry.name)


def list_links(folder: Path, name: str = "") -> Iterator[str]:
    """Yield the names of links, pipes and devices below a folder."""
    start = f"{name}/" if name else ""
    for entry in entries(folder, name):
        if entry.is_folder:
            yield from list_links(folder, start + entry.name)
        elif not entry.is_file:
            yield start + entry.name


def make_folders(folder: Path, name: str = "") -> None:
    """Make a missing folder and its parents. Raises IrregularFileError if a link is in a folder's place."""
    top, parts = _split(folder, name)
    for path in reversed((top, *top.parents)):
        if not path.is_dir():
            try:
                path.mkdir(exist_ok=True)
            except FileExistsError:
                raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(path)) from None
            with _open_parent(path.parent, path.name) as entry:
                _share_folder(entry)
    for count in range(1, len(parts) + 1):
        with _open_parent(top, "/".join(parts[:count])) as entry:
            try:
                os.mkdir(entry.name, dir_fd=entry.folder)
            except FileExistsError:
                look_afresh(top, "/".join(parts[:count]))  # Another machine may have made it just now.
                if not stat.S_ISDIR(_status(entry).st_mode):
                    raise _irregular(entry) from None
            else:
                _share_folder(entry)


def make_new_folder(folder: Path, name: str) -> None:
    """Make an empty folder. An entry with its name is removed."""
    with _open_parent(folder, name) as entry:
        try:
            os.mkdir(entry.name, dir_fd=entry.folder)
        except FileExistsError:
            _remove(entry)
            os.mkdir(entry.name, dir_fd=entry.folder)
        _share_folder(entry)


def rename(folder: Path, name: str, new_name: str) -> None:
    """Rename a file or folder. A file, link or pipe with the new name is replaced."""
    with _open_parent(folder, name) as source, _open_parent(folder, new_name) as target:
        os.replace(source.name, target.name, src_dir_fd=source.folder, dst_dir_fd=target.folder)


def remove(folder: Path, name: str) -> None:
    """Remove a file, a link itself, or a folder with all that is in it, if it is there."""
    with suppress(FileNotFoundError, NotADirectoryError), _open_parent(folder, name) as entry:
        _remove(entry)


@contextmanager
def lock_file(folder: Path, name: str, *, wait: bool = False) -> Iterator[bool]:
    """Lock a file. Yields False if a different process has the lock, unless ``wait``.

    Raises OSError if the file cannot be written.
    """
    if not _HAS_DESCRIPTORS:
        from filelock import FileLock, Timeout

        lock = FileLock(folder / name, blocking=wait)
        try:
            lock.acquire()
        except Timeout:
            yield False
            return
        try:
            yield True
        finally:
            lock.release()
        return
    from fcntl import LOCK_EX, LOCK_NB, flock

    with _open_parent(folder, name) as entry:
        file = FileIO(_open_descriptor(entry, os.O_RDWR | os.O_CREAT), "r+b")
        _share(entry.folder, file.fileno())
    with file:
        try:
            flock(file, LOCK_EX if wait else LOCK_EX | LOCK_NB)
        except BlockingIOError:
            yield False
            return
        yield True


def _split(folder: Path, name: str) -> tuple[Path, tuple[str, ...]]:
    """Split a path into the folder up to which links are followed and the names below it."""
    parts = tuple(name.split("/")) if name else ()
    if any(part in ("", ".", "..") or "\0" in part for part in parts):
        raise IrregularFileError(errno.EINVAL, "this name leads out of the folder", str(folder / name))
    components = folder.parts
    for index in range(len(components) - 1, -1, -1):
        if RUN.fullmatch(components[index]):
            return Path(*components[:index]), (*components[index:], *parts)
    return folder, parts


@contextmanager
def _open_parent(folder: Path, name: str) -> Iterator[_Place]:
    """Open the folder that contains a name."""
    top, parts = _split(folder, name)
    sys.audit("isogloss.shared_file", str(folder / name))
    *middle, base = parts
    if not _HAS_DESCRIPTORS:
        for count in range(1, len(parts)):
            if os.path.islink(top.joinpath(*parts[:count])):  # noqa: PTH114
                raise IrregularFileError(errno.ELOOP, NO_LINK, str(top.joinpath(*parts[:count])))
        yield _Place(None, str(top.joinpath(*parts)), folder / name)
        return
    with _descriptor(top, middle) as descriptor:
        yield _Place(descriptor, base, folder / name)


@contextmanager
def _folder(folder: Path, name: str) -> Iterator[int | str]:
    """Open a folder to list it."""
    top, parts = _split(folder, name)
    sys.audit("isogloss.shared_file", str(folder / name))
    if not _HAS_DESCRIPTORS:
        with _open_parent(folder, f"{name}/x" if name else "x") as entry:
            yield str(Path(entry.name).parent)
        return
    with _descriptor(top, parts, os.O_RDONLY) as descriptor:
        yield descriptor


@contextmanager
def _descriptor(top: Path, parts: tuple[str, ...] | list[str], last_mode: int = _PASSED) -> Iterator[int]:
    """Open a folder below another one part by part."""
    mode = _PASSED if parts else last_mode
    descriptor = os.open(top, mode | getattr(os, "O_DIRECTORY", 0) | _CLOSED_AT_EXEC)
    try:
        for count, part in enumerate(parts, start=1):
            mode = last_mode if count == len(parts) else _PASSED
            try:
                inner = os.open(part, mode | _FOLDER, dir_fd=descriptor)
            except OSError as error:
                path = top.joinpath(*parts[:count])
                raise _explain_error(_Place(descriptor, part, path), error) from None
            os.close(descriptor)
            descriptor = inner
        yield descriptor
    finally:
        os.close(descriptor)


def _explain_error(entry: _Place, error: OSError) -> OSError:
    """Return the error with its path. It is an IrregularFileError if a link is in a folder's place."""
    if error.errno in (errno.ELOOP, errno.ENOTDIR) and stat.S_ISLNK(_mode_of(entry)):
        return IrregularFileError(errno.ELOOP, NO_LINK, str(entry.path))
    return OSError(error.errno, error.strerror, str(entry.path))


def _open_descriptor(entry: _Place, flags: int) -> int:
    """Open a regular file."""
    try:
        descriptor = os.open(entry.name, flags | _NO_WAIT, 0o666, dir_fd=entry.folder)
    except OSError as error:
        mode = _mode_of(entry)
        if mode and not stat.S_ISREG(mode):
            raise _irregular(entry) from None
        raise OSError(error.errno, error.strerror, str(entry.path)) from None
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise _irregular(entry)
    return descriptor


def _create_descriptor(entry: _Place, flags: int) -> int:
    try:
        descriptor = os.open(
            entry.name, flags | os.O_CREAT | os.O_EXCL | _NO_WAIT, 0o666, dir_fd=entry.folder
        )
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(entry.path)) from None
    _share(entry.folder, descriptor)
    return descriptor


def _share_folder(entry: _Place) -> None:
    """Share a folder that was just made, as ``_share`` does."""
    if entry.folder is None:
        return
    descriptor = os.open(entry.name, os.O_RDONLY | _FOLDER, dir_fd=entry.folder)
    try:
        _share(entry.folder, descriptor)
    finally:
        os.close(descriptor)


def _share(folder: int | None, descriptor: int) -> None:
    """Give an open file or folder the permissions that a group's folder (setgid) gives to its group."""
    if folder is None:
        return
    parent_status = os.fstat(folder)
    status = os.fstat(descriptor)
    missing = parent_status.st_mode & (0o070 if stat.S_ISDIR(status.st_mode) else 0o060) & ~status.st_mode
    if missing and parent_status.st_mode & stat.S_ISGID and parent_status.st_gid == status.st_gid:
        with suppress(OSError):  # It belongs to a different user, or the file system knows no modes.
            os.fchmod(descriptor, stat.S_IMODE(status.st_mode) | missing)


def _write(file: FileIO, content: bytes) -> None:
    """Write all of the content: on a disk that is nearly full, one call writes a part without an error."""
    left = memoryview(content)
    while left:
        left = left[file.write(left) or 0 :]


def _content(file: FileIO, path: Path, max_bytes: int) -> bytes:
    size = os.fstat(file.fileno()).st_size
    if size > max_bytes:
        raise IrregularFileError(
            errno.EINVAL, f"{size:,} bytes, of at most {max_bytes:,} that are read", str(path)
        )
    return file.readall()


def _check_single(file: FileIO, path: Path) -> None:
    """Raise IrregularFileError for a hard link, which may be another user's file."""
    if os.fstat(file.fileno()).st_nlink > 1:
        raise IrregularFileError(
            errno.EMLINK, "this file has a second name elsewhere (a hard link)", str(path)
        )


def _remove(entry: _Place) -> None:
    try:
        os.unlink(entry.name, dir_fd=entry.folder)
    except (IsADirectoryError, PermissionError):  # The latter on macOS.
        if not stat.S_ISDIR(_mode_of(entry)):
            raise
        shutil.rmtree(entry.name, ignore_errors=True, dir_fd=entry.folder)


def _irregular(entry: _Place) -> IrregularFileError:
    if stat.S_ISLNK(_mode_of(entry)):
        return IrregularFileError(errno.ELOOP, NO_LINK, str(entry.path))
    return IrregularFileError(errno.EINVAL, "not a regular file", str(entry.path))


def _status(entry: _Place) -> os.stat_result:
    return os.stat(entry.name, dir_fd=entry.folder, follow_symlinks=False)


def _mode_of(entry: _Place) -> int:
    try:
        return _status(entry).st_mode
    except OSError:
        return 0


def _mode(folder: Path, name: str) -> int:
    """Return the mode of an entry. 0 if it is missing or behind a link."""
    try:
        with _open_parent(folder, name) as entry:
            return _status(entry).st_mode
    except (FileNotFoundError, NotADirectoryError, IrregularFileError):
        return 0
