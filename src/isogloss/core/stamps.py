"""Stamps of files: a digest of their names, sizes and times of change, to see cheaply whether any changed."""

import os
from collections.abc import Iterable, Iterator
from hashlib import sha256
from importlib.resources import files
from pathlib import Path

from isogloss.core.version import VERSION


def stamp(paths: Iterable[Path]) -> str:
    """Return the stamp of files and of all that is in folders; one that is not there is part of it too."""
    digest = sha256()
    for path in sorted(paths):
        for name, size, changed in _seen(path):
            digest.update(f"{name}\0{size}\0{changed}\n".encode(errors="surrogateescape"))
    return digest.hexdigest()[:16]


def package_stamp() -> str:
    """Return the stamp of the package: of its version, and of its files, which may be under development."""
    root = Path(str(files("isogloss")))
    inside = [path for path in root.rglob("*") if path.suffix != ".pyc" and path.is_file()]
    return f"{VERSION}-{stamp(inside)}"


def _seen(path: Path) -> Iterator[tuple[str, int, int]]:
    """Give name, size and time of change of a file or of each in a folder."""
    if path.is_dir():
        for folder, folders, names in os.walk(path):
            folders.sort()
            for name in sorted(names):
                yield from _seen(Path(folder) / name)
    else:
        try:
            found = path.stat()
        except OSError:
            yield str(path), -1, -1
        else:
            yield str(path), found.st_size, found.st_mtime_ns
