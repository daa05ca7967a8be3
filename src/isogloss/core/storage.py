"""Folders whose storage may fail for a while, such as those of a network file system.

Where a mount is lost, the empty folder it was mounted on stays. Folders made in it then would be hidden when
the mount comes back, with all that is written into them; so none are made in a guarded folder.
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
OUTAGE_ERRORS = frozenset(getattr(errno, name) for name in _NAMES if hasattr(errno, name))
"""System errors that may pass: the disk, or the server of a network file system, did not answer."""

_guarded: list[tuple[Path, str]] = []
"""Folders, each with the name of a file or folder that is in it while it can be reached."""


@contextmanager
def guarded(folder: Path, mark: str) -> Iterator[None]:
    """In this context, create no folders within ``folder`` while ``mark`` is missing from it."""
    entry = folder.absolute(), mark
    _guarded.append(entry)
    try:
        yield
    finally:
        _guarded.remove(entry)


def make_folder(folder: Path) -> None:
    """Make a missing folder and its parents; OSError within a guarded folder that cannot be reached."""
    if folder.is_dir():
        return
    for above, mark in _guarded:
        if folder.absolute().is_relative_to(above) and not is_reachable(above, mark):
            raise OSError(errno.ENOTCONN, f"{above} has gone away", str(folder))
    folder.mkdir(parents=True, exist_ok=True)


def is_reachable(folder: Path, mark: str) -> bool:
    """Return whether a folder can be reached, and is the one it was."""
    try:
        (folder / mark).stat()
    except OSError:
        return False
    return True


def is_outage(error: BaseException, folder: Path, mark: str) -> bool:
    """Return whether an error may come from an outage of a folder's storage, and pass with it."""
    return not is_reachable(folder, mark) or any(
        system_error(cause) in OUTAGE_ERRORS for cause in _with_causes(error)
    )


def system_error(error: BaseException) -> int | None:
    """Return the errno of a system error; libraries in Rust write it into their messages."""
    if isinstance(error, OSError) and error.errno is not None:
        return error.errno
    match = re.search(r"\(os error (\d+)\)", str(error))
    return int(match[1]) if match else None


def _with_causes(error: BaseException) -> Iterator[BaseException]:
    cause: BaseException | None = error
    while cause is not None:
        yield cause
        cause = cause.__cause__ or cause.__context__
