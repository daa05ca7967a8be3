"""Extract named members of an archive.

The table gives each member its path. Links, devices and names that leave the folder are refused, the unpacked
size is bounded, and either all members appear under their names or none.
"""

import gzip
import os
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import IO, Any

from isogloss.core.atomic_files import temporary_name
from isogloss.core.errors import DataError
from isogloss.core.shared_files import make_folders, open_new_file, remove, rename
from isogloss.core.sizes import format_size
from isogloss.core.untrusted import join_safely
from isogloss.features.fetching.downloading import checksum, storing

EXPANSION = 100
"""Maximum ratio of unpacked to packed size. Text has 3 to 10."""

ROOM = 1 << 20
"""Bytes allowed in addition, because headers of small archives compress well."""

BLOCK = 1 << 20
INSIDE = ">"
"""Separator between the names of an inner archive and its member, as in ``sw.tar.gz>train``."""

_BROKEN = (
    zipfile.BadZipFile,
    tarfile.TarError,
    EOFError,
    zlib.error,
    gzip.BadGzipFile,
    NotImplementedError,
    ValueError,
    IndexError,
)
"""Errors of the standard library on damaged headers. The last two are for empty or undecodable names."""

_DISTRUST = "This is not the official archive: delete it and fetch again."

Targets = Callable[[str], list[tuple[int, str]]]
"""Function from a member's name to its target paths, each with the index of the matching pattern."""


@dataclass(frozen=True)
class _Member:
    """A member of an archive: a plain file, or (``kind``) a folder, link or device."""

    name: str
    kind: str
    open: Callable[[], "_CountedStream"]


def unpack(archive: Path, targets: Targets, folder: Path, *, patterns: dict[int, str]) -> dict[str, str]:
    """Write the requested members below the folder and return their checksums by path.

    Each of the indexed ``patterns`` must match a member. Existing files are never overwritten. Raises
    DataError if the archive is damaged, untrustworthy or lacks a member, or a different file exists.
    """
    checksums: dict[str, str] = {}
    try:
        pattern_indices = _extract(archive, targets, folder, checksums)
        missing_patterns = [pattern for index, pattern in patterns.items() if index not in pattern_indices]
        if missing_patterns:
            raise DataError(
                f"{archive}: it lacks the members {' and '.join(missing_patterns)}. Delete it and fetch "
                f"again; if that does not help, the archive was changed: report it."
            )
        for target, digest in checksums.items():
            if (folder / target).exists() and checksum(folder / target) != digest:
                raise unofficial_file(folder / target, digest)
        for target in checksums:
            with storing(folder / target):
                rename(folder, temporary_name(target, "tmp"), target)
    finally:
        for target in checksums:
            with suppress(OSError):
                remove(folder, temporary_name(target, "tmp"))
    return checksums


def unofficial_file(path: Path, official_digest: str) -> DataError:
    """Build the error for an existing file that is not the official one."""
    return DataError(
        f"{path}: this file is not the official one (SHA-256 {checksum(path)}; expected "
        f"{official_digest}) and is not overwritten. Move it away, or choose a different --to."
    )


def _extract(archive: Path, targets: Targets, folder: Path, checksums: dict[str, str]) -> set[int]:
    """Write the requested members under temporary names, and return the indices of matching patterns."""
    pattern_indices: set[int] = set()
    limit = EXPANSION * archive.stat().st_size + ROOM
    budget = _Budget(archive, limit)
    disk_budget = _Budget(archive, limit)
    try:
        with archive.open("rb") as file:
            for member in _members(file, archive.name, budget):
                for index, target in targets(member.name):
                    _check(archive, member, target, is_repeated=target in checksums)
                    pattern_indices.add(index)
                    checksums[target] = ""
                    checksums[target] = _write(member, folder, target, disk_budget)
    except _BROKEN as error:
        raise DataError(f"{archive}: the archive is damaged ({error}). Delete it and fetch again.") from error
    return pattern_indices


def _members(file: Any, name: str, budget: "_Budget", prefix: str = "") -> Iterator[_Member]:
    """Yield the members of an archive, and of archives in it, in their order."""
    for member in (_zip_members if name.endswith(".zip") else _tar_members)(file, name, budget):
        path = member.name.removeprefix("./")
        yield _Member(prefix + path, member.kind, member.open)
        if path.endswith((".tar.gz", ".tgz")) and not member.kind and not prefix:
            yield from _members(member.open(), path, budget, f"{path}{INSIDE}")


def _zip_members(file: IO[bytes], _name: str, budget: "_Budget") -> Iterator[_Member]:
    with zipfile.ZipFile(file) as archive:
        for info in archive.infolist():
            if info.header_offset < 0:
                raise zipfile.BadZipFile(f"member {info.filename!r} begins before the file does")
            is_link = (info.external_attr >> 16) & 0o170000 == 0o120000
            kind = ""
            if info.flag_bits & 1:
                kind = "encrypted"
            elif info.is_dir():
                kind = "a folder"
            elif is_link:
                kind = "a link"
            yield _Member(info.filename, kind, lambda info=info: _CountedStream(archive.open(info), budget))  # type: ignore[misc]


def _tar_members(file: Any, name: str, budget: "_Budget") -> Iterator[_Member]:
    is_packed = name.endswith((".gz", ".tgz"))
    stream: Any = _CountedStream(gzip.GzipFile(fileobj=file) if is_packed else file, budget)
    with tarfile.open(fileobj=stream, mode="r|") as archive:
        for info in archive:
            kind = ""
            if info.issparse():  # A few bytes can have any number of zeros between them.
                kind = "a sparse file"
            elif info.isdir():
                kind = "a folder"
            elif not info.isreg():
                kind = "a link or device"
            yield _Member(info.name, kind, lambda info=info: _CountedStream(archive.extractfile(info), None))  # type: ignore[misc]


def _check(archive: Path, member: _Member, target: str, *, is_repeated: bool) -> None:
    name = f"{archive}: member {member.name!r}"
    if member.kind:
        raise DataError(f"{name} is {member.kind}; expected a plain file. {_DISTRUST}")
    join_safely(Path(), target, name, DataError)
    if is_repeated:
        raise DataError(f"{name} occurs a second time; expected once. {_DISTRUST}")


def _write(member: _Member, folder: Path, target: str, budget: "_Budget") -> str:
    """Write a member under a temporary name next to its target, and return its checksum."""
    digest = sha256()
    path = folder / target
    source = member.open()
    with storing(path):
        make_folders(folder, target.rpartition("/")[0])
        output = os.fdopen(open_new_file(folder, temporary_name(target, "tmp")), "wb")
    with output:
        while block := source.read(BLOCK):
            budget.spend(len(block))
            digest.update(block)
            with storing(path):
                output.write(block)
        with storing(path):
            output.flush()
            os.fsync(output.fileno())
    return digest.hexdigest()


class _Budget:
    """Number of bytes that an archive may still unpack to."""

    def __init__(self, archive: Path, limit: int) -> None:
        self.archive = archive
        self.most = self.left = limit

    def spend(self, size: int) -> None:
        """Subtract bytes from the budget.

        Raises DataError if it is exceeded. One budget counts unpacked bytes, skipped members included, and a
        second one counts bytes written to disk.
        """
        self.left -= size
        if self.left < 0:
            raise DataError(
                f"{self.archive}: it unpacks to more than {format_size(self.most)}, {EXPANSION} times its "
                f"size; refused. {_DISTRUST}"
            )


@dataclass(frozen=True)
class _CountedStream:
    """A stream whose bytes are counted against a budget, or counted by the outer stream (None)."""

    stream: Any
    budget: _Budget | None

    def read(self, size: int = -1) -> bytes:
        block: bytes = self.stream.read(size)
        if self.budget is not None:
            self.budget.spend(len(block))
        return block
