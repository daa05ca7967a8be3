"""Paths: texts that may be paths, names from outside that must stay below a folder, the user's cache."""

import os
import unicodedata
from pathlib import Path

from isogloss.core.errors import InputError, StorageError
from isogloss.core.untrusted import plain

FORBIDDEN_CHARACTERS = frozenset('\\:<>"|?*')
"""Characters of no name: they part or begin paths on some system, or cannot stand in one."""

MAX_NAME_BYTES, MAX_PATH_BYTES = 255, 4096
"""Bytes of a file's name, and of names with the folders between."""


def from_home(text: str | Path) -> Path:
    """Expand ~ to the home folder; a path of an unknown user, as in "~5 %", is returned unchanged."""
    try:
        return Path(text).expanduser()
    except RuntimeError:
        return Path(text)


def is_there(path: Path) -> bool:
    """Return whether a path exists and is accessible; False for text too long to be a file name."""
    try:
        return path.exists()
    except OSError:
        return False


def within(folder: Path, name: str, source: str | Path = "") -> Path:
    """Return the path that ``below`` does; StorageError for one that a link leads out of the folder, too."""
    path = below(folder, name, source)
    if not Path(os.path.realpath(path)).is_relative_to(os.path.realpath(folder)):
        raise StorageError(f"{path}: a link leads out of {folder}, and nothing is written there. Remove it.")
    return path


def below(folder: Path, name: str, source: str | Path = "", error: type[InputError] = StorageError) -> Path:
    """Return the path of a name from outside (an archive, a bucket, a manifest, the hub) below a folder.

    The name has / between its parts. An ``error`` that begins with the ``source`` refuses a name that is
    absolute, leads out of the folder (..), has an empty part, a backslash or a drive, or cannot be a file's.
    """
    if is_safe(name):
        return folder / name
    shown = plain(repr(name)[:120])
    raise error(
        f"{source or folder}: the name {shown} leads out of the folder or is invalid; nothing was written. "
        f"Its source cannot be trusted: use another copy of it."
    )


def is_safe(name: object) -> bool:
    """Return whether a name with / between its parts stays below any folder that it is put in."""
    if not isinstance(name, str):
        return False
    parts = name.split("/")
    try:
        sizes = [len(part.encode()) for part in parts]
    except UnicodeEncodeError:
        return False
    return (
        not FORBIDDEN_CHARACTERS & {*name}
        and not any(part in ("", ".", "..") for part in parts)
        and not any(unicodedata.category(letter) == "Cc" for letter in name)
        and max(sizes) <= MAX_NAME_BYTES
        and sum(sizes) + len(parts) <= MAX_PATH_BYTES
    )


def user_cache() -> Path:
    """Return the folder of what can be downloaded or made again: below XDG_CACHE_HOME, else ~/.cache."""
    return Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "isogloss"
