"""Checksums and stamps of files.

Checksums are stored next to files in ``checksums.json`` and detect damage that keeps the size. Stamps are
digests of names, sizes and modification times, and show cheaply whether any file changed.

CRC-32 is the fastest checksum of the standard library, far faster than disks. It detects every change of up
to 32 bits in a row and misses one other in four billion: it guards against faulty disks and networks, not
against forgery.
"""

import json
import os
import re
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from functools import cache, lru_cache
from hashlib import file_digest, sha256
from importlib.resources import files
from itertools import filterfalse
from pathlib import Path
from stat import S_ISDIR
from typing import Any

from isogloss.core import VERSION
from isogloss.core.arguments import never
from isogloss.core.errors import one_line
from isogloss.core.shared_files import (
    MOST_BYTES,
    IrregularFileError,
    file_size,
    is_taken,
    list_files,
    open_file,
    read_file,
)
from isogloss.core.untrusted import is_safe, join_safely, parse_json

CHECKSUMS = "checksums.json"

READ_BYTES = 1 << 20

MAX_SIZE = 1 << 60
"""Largest valid file size in bytes."""

SEAL = "crc32"
"""Field of a JSON file with the checksum of its other fields."""

_CODE = (".py", ".toml", ".tsv")
"""Ends of the names of files that decide what isogloss plans."""

_DIGITS = re.compile(r"[0-9a-f]{0,8}")


@dataclass(frozen=True)
class Checksum:
    """The size and checksum of a file's content."""

    size: int
    crc32: str = ""
    """Checksum of eight hexadecimal digits. Empty if only the size is known."""

    @classmethod
    def of(cls, content: bytes) -> "Checksum":
        """Return the checksum of bytes."""
        return cls(len(content), f"{zlib.crc32(content):08x}")

    @classmethod
    def of_file(cls, folder: Path, name: str) -> "Checksum":
        """Return the checksum of a file in a folder, read block by block."""
        size, crc = 0, 0
        with open_file(folder, name) as file:
            while block := file.read(READ_BYTES):
                size, crc = size + len(block), zlib.crc32(block, crc)
        return cls(size, f"{crc:08x}")


def sha256_of(path: Path) -> bytes:
    """Return the SHA-256 of a file, which is read again only where its size or modification time changed."""
    status = path.stat()
    return _sha256(path, status.st_size, status.st_mtime_ns)


@lru_cache(maxsize=4096)
def _sha256(path: Path, _size: int, _modification_time: int) -> bytes:
    with path.open("rb") as file:
        return file_digest(file, "sha256").digest()


def cached_checksum(folder: Path, name: str) -> Checksum:
    """Return the checksum of a file, which is read again only where its status changed."""
    with open_file(folder, name) as file:
        status = os.fstat(file.fileno())
    facts = (status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino)
    return _cache_checksum(folder, name, facts)


@lru_cache(maxsize=4096)
def _cache_checksum(folder: Path, name: str, _facts: tuple[int, ...]) -> Checksum:
    return Checksum.of_file(folder, name)


def find_differing_files(folder: Path, checksums: Mapping[str, Checksum]) -> Iterator[tuple[str, str]]:
    """Yield the names of files that differ from their checksums, and how. Missing files are skipped."""
    for name, expected in checksums.items():
        size = file_size(folder, name)
        if size is None:
            if is_taken(folder, name):
                yield name, "it is not a regular file"
            continue
        actual = cached_checksum(folder, name) if size == expected.size else Checksum(size)
        if why := difference(actual, expected):
            yield name, why


def checksums_of(folder: Path, *, is_excluded: Callable[[str], bool] = never) -> dict[str, Checksum]:
    """Return the checksums of all files below a folder by their names within it.

    Hidden files at the top level, links, and what ``is_excluded`` is true for, given the name of a file or
    folder at the top level, are skipped.
    """
    return {
        name: Checksum.of_file(folder, name)
        for name in list_files(folder)
        if not name.startswith(".") and not is_excluded(name.partition("/")[0])
    }


def as_text(checksums: Mapping[str, Checksum]) -> str:
    """Return the content of a file of checksums."""
    return json.dumps({name: asdict(checksum) for name, checksum in checksums.items()}, indent=1) + "\n"


def from_text(content: str | bytes, source: str | Path = CHECKSUMS) -> dict[str, Checksum]:
    """Return the checksums in a file. Raises ValueError if it is damaged, StorageError for an unsafe name."""
    try:
        entries = {name: dict(entry) for name, entry in parse_json(content).items()}
        for name in filterfalse(is_safe, entries):
            join_safely(Path(), name, source)
        checksums = {name: _checksum(**entry) for name, entry in entries.items()}
    except (AttributeError, TypeError, ValueError) as error:
        raise ValueError(one_line(error)) from error
    folders = {name[:position] for name in checksums for position, letter in enumerate(name) if letter == "/"}
    for name in (name_of_file for name_of_file in checksums if folders.__contains__(name_of_file)):
        raise ValueError(f"{name[:120]!r} is a file and a folder")
    return checksums


def _checksum(size: object, crc32: object) -> Checksum:
    if type(size) is not int or not 0 <= size <= MAX_SIZE:
        raise ValueError(f"the size of a file is {str(size)[:40]}")
    if not isinstance(crc32, str) or not _DIGITS.fullmatch(crc32):
        raise ValueError(f"the checksum of a file is {crc32!r:.40}")
    return Checksum(size, crc32)


def read_checksums(folder: Path) -> dict[str, Checksum]:
    """Read the checksums of a folder. Empty without their file. Raises ValueError if that file is damaged."""
    try:
        return from_text(read_file(folder, CHECKSUMS), folder / CHECKSUMS)
    except FileNotFoundError:
        return {}
    except ValueError as error:
        raise ValueError(f"{CHECKSUMS} cannot be read: {_reason(error)}") from error


def read_checked(folder: Path, name: str, max_bytes: int = MOST_BYTES) -> bytes:
    """Return the content of a file of a run or checkpoint. Raises ValueError if it was changed.

    It is only read where a folder has no checksum of it.
    """
    expected = read_checksums(folder).get(name)
    content = read_file(folder, name, max_bytes)
    if expected and (why := difference(Checksum.of(content), expected)):
        raise ValueError(why)
    return content


def seal(body: Mapping[str, object]) -> str:
    """Return an object as JSON that contains its own checksum."""
    if SEAL in body:
        raise ValueError(f"{SEAL} is the name of the checksum")
    return json.dumps({**body, SEAL: _seal(body)}, ensure_ascii=False, indent=1) + "\n"


def unseal(content: bytes) -> Any:
    """Return the object that ``seal`` wrote, or any JSON without a checksum.

    Raises ValueError if it is damaged.
    """
    body = parse_json(content)
    if isinstance(body, dict) and SEAL in body:
        checksum = body.pop(SEAL)
        if checksum != _seal(body):
            raise ValueError(f"{SEAL} {checksum!r:.40} is not that of its content")
    return body


def _seal(body: Mapping[str, object]) -> str:
    return Checksum.of(json.dumps(body, sort_keys=True).encode()).crc32


def _reason(error: ValueError) -> str:
    return str(error.strerror) if isinstance(error, IrregularFileError) else str(error)


def difference(actual: Checksum, expected: Checksum) -> str:
    """Describe how a file differs from what was written. Empty if it does not."""
    if actual.size != expected.size:
        return f"{actual.size:,} bytes, of {expected.size:,} that were written"
    equal = not expected.crc32 or actual.crc32 == expected.crc32
    return "" if equal else f"checksum {actual.crc32}, not {expected.crc32} as it was written"


def stamp(paths: Iterable[Path]) -> str:
    """Return the stamp of files and folders with their contents. A missing file changes the stamp as well."""
    digest = sha256()
    for path in sorted(paths, key=str):
        for facts in _file_facts(path):
            digest.update("\0".join(str(fact) for fact in facts).encode(errors="surrogateescape") + b"\n")
    return digest.hexdigest()[:16]


@cache
def package_stamp() -> str:
    """Return the stamp of the package, computed once: later changes are not what this process imported."""
    root = Path(str(files("isogloss")))
    inside = [path for path in root.rglob("*") if path.suffix != ".pyc" and path.is_file()]
    return f"{VERSION}-{stamp(inside)}"


@cache
def package_digest() -> str:
    """Return a digest of the package's code, computed once. It is equal on machines with equal code."""
    root = Path(str(files("isogloss")))
    digest = sha256()
    for path in sorted(path for path in root.rglob("*") if path.suffix in _CODE):
        digest.update(path.relative_to(root).as_posix().encode() + b"\0" + sha256_of(path))
    return digest.hexdigest()[:16]


def _file_facts(path: Path) -> Iterator[tuple[str, int, int, int]]:
    """Yield name, size and modification times of a file, or of each file in a folder. Links are followed."""
    try:
        is_folder = S_ISDIR((status := path.stat()).st_mode)
    except OSError:
        yield str(path), -1, -1, -1
        return
    if not is_folder:
        yield str(path), status.st_size, status.st_mtime_ns, status.st_ctime_ns
        return
    visited_paths: set[str] = set()
    for folder, folders, names in os.walk(path, followlinks=True):
        real_path = os.path.realpath(folder)
        if real_path in visited_paths:  # a link that leads back
            folders.clear()
            continue
        visited_paths.add(real_path)
        folders.sort()
        for name in sorted(names):
            yield from _file_facts(Path(folder, name))
