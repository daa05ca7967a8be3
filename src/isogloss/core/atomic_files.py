"""Atomic files and folders: written under a temporary name, then renamed."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from isogloss.core.errors import StorageError
from isogloss.core.presence import make_folder
from isogloss.core.records import open_atomically, sweep, temporary_beside, writing


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
def atomic_folder(path: Path, *, file_by_file: bool = False) -> Iterator[Path]:
    """Yield an empty folder to fill; it replaces ``path`` on success and is removed on failure.

    With ``file_by_file`` a folder with the same names gets the new files one by one: whoever reads it, as
    their contents are equal, misses none.
    """
    path = path.resolve()
    temporary = temporary_beside(path, "tmp")
    sweep(path)
    with writing(path):
        make_folder(temporary)
    try:
        yield temporary
        with writing(path):
            as_umask_says(temporary)
            if file_by_file and path.is_dir() and _names(path) == _names(temporary):
                for file in temporary.iterdir():
                    file.replace(path / file.name)
            else:
                _replace(path, temporary)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def as_umask_says(folder: Path) -> None:
    """Give files below a new folder the mode of others: libraries write weights for their owner alone."""
    mode = folder.stat().st_mode & 0o666
    for path in folder.rglob("*"):
        if path.is_file() and not path.is_symlink():
            path.chmod(mode)


def _names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def _replace(path: Path, new: Path) -> None:
    """Replace a folder by a new one; the old one is removed last, and restored on failure."""
    old = temporary_beside(path, "old")
    if path.exists():
        path.replace(old)
    try:
        new.replace(path)
    except OSError:
        if old.exists():
            old.replace(path)
        raise
    shutil.rmtree(old, ignore_errors=True)
