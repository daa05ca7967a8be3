"""Stamps of files: a digest of names, sizes and modification times that shows cheaply whether any changed."""

import os
from collections.abc import Iterable, Iterator
from functools import cache
from hashlib import sha256
from importlib.resources import files
from pathlib import Path

from isogloss.core.version import VERSION


def stamp(paths: Iterable[Path]) -> str:
    """Return the stamp of files and folders with their contents; a missing file changes the stamp as well."""
    digest = sha256()
    for path in sorted(paths):
        for seen in _seen(path):
            digest.update("\0".join(map(str, seen)).encode(errors="surrogateescape") + b"\n")
    return digest.hexdigest()[:16]


@cache
def package_stamp() -> str:
    """Return the stamp of the package: its version, and its files, which may be under development.

    Computed once: later changes are not what this process imported.
    """
    root = Path(str(files("isogloss")))
    inside = [path for path in root.rglob("*") if path.suffix != ".pyc" and path.is_file()]
    return f"{VERSION}-{stamp(inside)}"


def _seen(path: Path) -> Iterator[tuple[str, int, int, int]]:
    """Yield name, size and modification times of a file, or of each file in a folder; links are followed."""
    if not path.is_dir():
        yield _file(path)
        return
    been: set[str] = set()
    for folder, folders, names in os.walk(path, followlinks=True):
        real = os.path.realpath(folder)
        if real in been:  # a link that leads back
            folders.clear()
            continue
        been.add(real)
        folders.sort()
        yield from (_file(Path(folder, name)) for name in sorted(names))


def _file(path: Path) -> tuple[str, int, int, int]:
    try:
        status = path.stat()
    except OSError:
        return str(path), -1, -1, -1
    return str(path), status.st_size, status.st_mtime_ns, status.st_ctime_ns
