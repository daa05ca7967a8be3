"""Texts that may be paths: what people write is looked up, and what others wrote stays below its folder."""

import errno
import os
import re
from pathlib import Path
from stat import S_ISREG

from isogloss.core.errors import StorageError

BARRED = re.compile(r'[\\:<>"|?*\x00-\x1f\x7f-\x9f\ud800-\udfff]')
"""Signs that mean more than a name somewhere (a drive, another separator), or that no file may have."""

LONGEST_NAME = 255
"""Bytes of a file's name."""


def from_home(text: str | Path) -> Path:
    """Return a path with ~ as the home folder; one of a user there is not, as in "~5 %", stays as it is."""
    try:
        return Path(text).expanduser()
    except RuntimeError:
        return Path(text)


def is_there(path: Path) -> bool:
    """Return whether a path exists and may be looked at; a sentence that is too long for a name does not."""
    try:
        return path.exists()
    except OSError:
        return False


def ordinary_bytes(path: Path) -> bytes:
    """Read a file of others; OSError at once for a pipe, which would be waited for, a device or a folder."""
    with open(path, "rb", opener=_at_once) as file:
        if not S_ISREG(os.fstat(file.fileno()).st_mode):
            raise OSError(errno.EINVAL, "this is no ordinary file", str(path))
        return file.read()


def _at_once(path: str, flags: int) -> int:
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))


def name_fault(name: object) -> str:
    """Return why a name from elsewhere may not be used below a folder; empty where it may."""
    if not isinstance(name, str):
        return "is no text"
    if sign := BARRED.search(name):
        return f"holds {sign.group()!r}"
    parts = name.split("/")
    if ".." in parts or name.startswith("/"):
        return "leads out of its folder"
    if "" in parts or "." in parts:
        return "has an empty part"
    return "is too long" if max(len(part.encode()) for part in parts) > LONGEST_NAME else ""


def below(folder: Path, name: object, *, where: str = "", may_link: bool = False) -> Path:
    """Return the path below a folder for a name from elsewhere, made of plain parts between slashes.

    StorageError, with the name, for any other, and where a link inside the folder leads out of it, unless
    it ``may_link``. ``where`` says whose name it is.
    """
    fault = name_fault(name)
    path = folder if fault else folder / str(name)
    if not fault and not may_link and not _is_inside(folder, path):
        fault = "leads out of its folder by a link"
    if fault:
        raise unsafe_name(where or str(folder), name, fault)
    return path


def unsafe_name(where: str, name: object, fault: str) -> StorageError:
    """Build the error for a name from elsewhere that may not be used."""
    return StorageError(
        f"{where}: the name {name!r:.120} {fault}. Nothing is read or written there; expected a plain name, "
        f"as in model/config.json. Remove it, and ask who else may write there."
    )


def _is_inside(folder: Path, path: Path) -> bool:
    try:
        return path.resolve().is_relative_to(folder.resolve())
    except (OSError, RuntimeError):  # The latter for links in a circle.
        return False
