"""Folders of the user's cache, replaced by temporary folders where the cache cannot be used."""

import atexit
from collections.abc import Callable
from functools import cache
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp
from typing import TypeVar

from isogloss.core.errors import StorageError
from isogloss.core.untrusted import user_cache

T = TypeVar("T")


def write_to_cache(write: Callable[[Path], T]) -> T:
    """Call a function that writes below a folder with the user's cache.

    Where the cache cannot be used, call it with a folder that is removed when this process ends.
    """
    try:
        return write(user_cache())
    except (OSError, StorageError):
        return write(_temporary_folder())


@cache
def _temporary_folder() -> Path:
    folder = mkdtemp(prefix="isogloss-")
    atexit.register(rmtree, folder, ignore_errors=True)
    return Path(folder)
