"""Checksums of files, stored next to them in ``checksums.json``: they detect damage that keeps the size.

CRC-32 is the fastest checksum of the standard library, far faster than disks. It detects every change of up
to 32 bits in a row and misses one other in four billion: it guards against faulty disks and networks, not
against forgery.
"""

import json
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from isogloss.core.errors import one_line
from isogloss.core.foreign_json import parse_json, read_regular
from isogloss.core.paths import below

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
    for name in checksums:
        below(Path(), name, source)
    return checksums


def read_checksums(folder: Path) -> dict[str, Checksum]:
    """Read the checksums of a folder, empty without a file of them; ValueError if that file is damaged."""
    try:
        return from_text(read_regular(folder / CHECKSUMS), folder / CHECKSUMS)
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
