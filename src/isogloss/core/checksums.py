"""Checksums and stamps of files.

Checksums are stored next to files in ``checksums.json`` and detect damage that keeps the size. Stamps are
digests of names, sizes and modification times, and show cheaply whether any file changed.

CRC-32 is the fastest checksum of the standard library, far faster than disks. It detects every change of up
to 32 bits in a row and misses one other in four billion: it guards against faulty disks and networks, not
against forgery.
"""

import json
import os
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from functools import cache, lru_cache
from hashlib import file_digest, sha256
from importlib.resources import files
from itertools import filterfalse
from pathlib import Path
from stat import S_ISDIR

from isogloss.core import VERSION
from isogloss.core.errors import one_line
from isogloss.core.untrusted import below, is_safe, parse_json, read_regular

CHECKSUMS = "checksums.json"

READ_BYTES = 1 << 20


@dataclass(frozen=True)
class Checksum:
    """The size and checksum of a file's content."""

    size: int
    crc32: str = ""
    """Eight hexadecimal digits; empty where the size alone is known."""

    @classmethod
    def of(cls, content: bytes) -> "Checksum":
        """Return the checksum of bytes."""
        return cls(len(content), f"{zlib.crc32(content):08x}")

    @classmethod
    def of_file(cls, path: Path) -> "Checksum":
        """Return the checksum of a file, read block by block."""
        size, crc = 0, 0
        with path.open("rb") as file:
            while block := file.read(READ_BYTES):
                size, crc = size + len(block), zlib.crc32(block, crc)
        return cls(size, f"{crc:08x}")


def sha256_of(path: Path) -> bytes:
    """Return the SHA-256 of a file, which is read again only where its size or modification time changed."""
    status = path.stat()
    return _sha256(path, status.st_size, status.st_mtime_ns)


@lru_cache(maxsize=4096)
def _sha256(path: Path, _size: int, _changed: int) -> bytes:
    with path.open("rb") as file:
        return file_digest(file, "sha256").digest()


def checksums_of(folder: Path, *, without: frozenset[str] = frozenset()) -> dict[str, Checksum]:
    """Return the checksums of all files below a folder by their names within it.

    Hidden files at the top level and those named in ``without`` are left out.
    """
    return {
        path.relative_to(folder).as_posix(): Checksum.of_file(path)
        for top in sorted(folder.iterdir())
        if top.name not in without and not top.name.startswith(".")
        for path in sorted(_files(top))
    }


def _files(top: Path) -> Iterator[Path]:
    return (path for path in (top.rglob("*") if top.is_dir() else [top]) if path.is_file())


def as_text(checksums: Mapping[str, Checksum]) -> str:
    """Return the content of a file of checksums."""
    return json.dumps({name: asdict(checksum) for name, checksum in checksums.items()}, indent=1) + "\n"


def from_text(content: str | bytes, source: str | Path = CHECKSUMS) -> dict[str, Checksum]:
    """Return the checksums in a file; ValueError where it is damaged, StorageError for an unsafe name."""
    try:
        sums = parse_json(content)
        checksums = {name: Checksum(int(entry["size"]), str(entry["crc32"])) for name, entry in sums.items()}
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise ValueError(one_line(error)) from error
    for name in filterfalse(is_safe, checksums):
        below(Path(), name, source)
    return checksums


def read_checksums(folder: Path) -> dict[str, Checksum]:
    """Read the checksums of a folder, empty without a file of them; ValueError if that file is damaged."""
    path = folder / CHECKSUMS
    try:
        return from_text(read_regular(path), path)
    except FileNotFoundError:
        return {}
    except ValueError as error:
        raise ValueError(f"{CHECKSUMS} cannot be read: {error}") from error


def difference(actual: Checksum, written: Checksum) -> str:
    """Describe how a file differs from what was written; empty if it does not."""
    if actual.size != written.size:
        return f"{actual.size:,} bytes, of {written.size:,} that were written"
    equal = not written.crc32 or actual.crc32 == written.crc32
    return "" if equal else f"checksum {actual.crc32}, not {written.crc32} as it was written"


def stamp(paths: Iterable[Path]) -> str:
    """Return the stamp of files and folders with their contents; a missing file changes the stamp as well."""
    digest = sha256()
    for path in sorted(paths, key=str):
        for facts in _file_facts(path):
            digest.update("\0".join(map(str, facts)).encode(errors="surrogateescape") + b"\n")
    return digest.hexdigest()[:16]


@cache
def package_stamp() -> str:
    """Return the stamp of the package, computed once: later changes are not what this process imported."""
    root = Path(str(files("isogloss")))
    inside = [path for path in root.rglob("*") if path.suffix != ".pyc" and path.is_file()]
    return f"{VERSION}-{stamp(inside)}"


def _file_facts(path: Path) -> Iterator[tuple[str, int, int, int]]:
    """Yield name, size and modification times of a file, or of each file in a folder; links are followed."""
    try:
        is_folder = S_ISDIR((status := path.stat()).st_mode)
    except OSError:
        yield str(path), -1, -1, -1
        return
    if not is_folder:
        yield str(path), status.st_size, status.st_mtime_ns, status.st_ctime_ns
        return
    visited: set[str] = set()
    for folder, folders, names in os.walk(path, followlinks=True):
        real = os.path.realpath(folder)
        if real in visited:  # a link that leads back
            folders.clear()
            continue
        visited.add(real)
        folders.sort()
        for name in sorted(names):
            yield from _file_facts(Path(folder, name))
