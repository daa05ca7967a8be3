"""Folders that can go away and come back, as those of a network file system do.

Where a mount is lost, the empty folder it was mounted on stays. Folders made in it then would be hidden when
the mount comes back, with all that is written into them; so none are made in a folder that is kept.
"""

import errno
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_NAMES = (
    *("EIO", "ESTALE", "ENOTCONN", "ENODEV", "ENXIO", "ESHUTDOWN", "ECONNABORTED", "ECONNRESET"),
    *("ECONNREFUSED", "EHOSTDOWN", "EHOSTUNREACH", "ENETDOWN", "ENETUNREACH", "ETIMEDOUT", "EREMOTEIO"),
)
AWAY = frozenset(getattr(errno, name) for name in _NAMES if hasattr(errno, name))
"""System errors that may pass: the disk, or the server of a network file system, did not answer."""

_kept: list[tuple[Path, str]] = []
"""Folders, each with the name of what is in it as long as it is there."""


@contextmanager
def kept(folder: Path, mark: str) -> Iterator[None]:
    """In this context, make no missing folders within a folder while ``mark`` is not in it."""
    entry = folder.absolute(), mark
    _kept.append(entry)
    try:
        yield
    finally:
        _kept.remove(entry)


def make_folder(folder: Path) -> None:
    """Make a missing folder and its parents; OSError where a kept one would be made anew."""
    if folder.is_dir():
        return
    for above, mark in _kept:
        if folder.absolute().is_relative_to(above) and not is_there(above, mark):
            raise OSError(errno.ENOTCONN, f"{above} has gone away", str(folder))
    folder.mkdir(parents=True, exist_ok=True)


def is_there(folder: Path, mark: str) -> bool:
    """Return whether a folder can be reached, and is the one it was."""
    try:
        (folder / mark).stat()
    except OSError:
        return False
    return True


def went_away(error: BaseException, folder: Path, mark: str) -> bool:
    """Return whether an error may come from a folder that has gone away, and come back with it."""
    return not is_there(folder, mark) or any(system_error(one) in AWAY for one in _with_causes(error))


def system_error(error: BaseException) -> int | None:
    """Return the errno of a system error; libraries in Rust have it in their messages."""
    if isinstance(error, OSError) and error.errno is not None:
        return error.errno
    told = re.search(r"\(os error (\d+)\)", str(error))
    return int(told[1]) if told else None


def _with_causes(error: BaseException) -> Iterator[BaseException]:
    one: BaseException | None = error
    while one is not None:
        yield one
        one = one.__cause__ or one.__context__
