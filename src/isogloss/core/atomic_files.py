"""Atomic files and folders: written under a temporary name, then renamed."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from filecmp import cmp
from pathlib import Path
from typing import IO

from isogloss.core.errors import StorageError
from isogloss.core.interruption import stop_if_lost
from isogloss.core.records import open_atomically, sweep, temporary_beside, writing
from isogloss.core.storage import make_folder


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

    One with the same content stays, so that whoever reads it misses nothing for a moment.
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


def as_umask_says(folder: Path) -> None:
    """Give files below a new folder the mode of others: libraries write weights for their owner alone."""
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
    """Return whether two folders have the same files, byte for byte."""
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
