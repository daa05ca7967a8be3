"""Extract named members of an archive, and nothing else.

The table gives each member its path; links, devices and names that leave the folder are refused, the
unpacked size is bounded, and either all members appear under their names or none.
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
from isogloss.core.untrusted import below
from isogloss.data.fetching.downloading import checksum, megabytes, storing

EXPANSION = 100
"""Largest ratio of unpacked to packed size; text has 3 to 10."""

ROOM = 1 << 20
"""Bytes allowed in addition: small archives compress their headers well."""

BLOCK = 1 << 20
INSIDE = ">"
"""Separates the names of an inner archive and its member, as in ``sw.tar.gz>train``."""

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
"""Errors of the standard library on damaged headers; the last two for empty or undecodable names."""

_DISTRUST = "This is not the official archive: delete it and fetch again."

Targets = Callable[[str], list[tuple[int, str]]]
"""From a member's name to its target paths, each with the number of the pattern it matches."""


@dataclass(frozen=True)
class _Member:
    """A member of an archive: a plain file, or (``kind``) a folder, link or device."""

    name: str
    kind: str
    opened: Callable[[], "_Counted"]


def unpack(archive: Path, targets: Targets, folder: Path, *, patterns: dict[int, str]) -> dict[str, str]:
    """Write the requested members below the folder and return their checksums by path.

    Each of the numbered ``patterns`` must match a member. DataError where the archive is damaged, lacks one
    or is not to be trusted. An existing file is never overwritten.
    """
    written: dict[str, str] = {}
    try:
        matched = _extract(archive, targets, folder, written)
        lacking = [pattern for number, pattern in patterns.items() if number not in matched]
        if lacking:
            raise DataError(
                f"{archive}: it has no member {' and no '.join(lacking)}. Delete it and fetch again; if "
                f"that does not help, the archive was changed: report it."
            )
        for target, digest in written.items():
            if (folder / target).exists() and checksum(folder / target) != digest:
                raise unofficial_file(folder / target, digest)
        for target in written:
            with storing(folder / target):
                rename(folder, temporary_name(target, "tmp"), target)
    finally:
        for target in written:
            with suppress(OSError):
                remove(folder, temporary_name(target, "tmp"))
    return written


def unofficial_file(path: Path, expected: str) -> DataError:
    """Build the error for an existing file that is not the official one."""
    return DataError(
        f"{path}: a file is there that is not the official one (SHA-256 {checksum(path)}; expected "
        f"{expected}). Nothing is overwritten: move it away, or choose another --to."
    )


def _extract(archive: Path, targets: Targets, folder: Path, written: dict[str, str]) -> set[int]:
    """Write the requested members under temporary names; return the numbers of the patterns they match."""
    matched: set[int] = set()
    most = EXPANSION * archive.stat().st_size + ROOM
    budget = _Budget(archive, most)
    of_disk = _Budget(archive, most)
    try:
        with archive.open("rb") as file:
            for member in _members(file, archive.name, budget):
                for number, target in targets(member.name):
                    _check(archive, member, target, repeated=target in written)
                    matched.add(number)
                    written[target] = ""
                    written[target] = _write(member, folder, target, of_disk)
    except _BROKEN as error:
        raise DataError(f"{archive}: the archive is damaged ({error}). Delete it and fetch again.") from error
    return matched


def _members(file: Any, name: str, budget: "_Budget", prefix: str = "") -> Iterator[_Member]:
    """Yield the members of an archive, and of archives in it, in their order."""
    for member in (_zip_members if name.endswith(".zip") else _tar_members)(file, name, budget):
        plain = member.name.removeprefix("./")
        yield _Member(prefix + plain, member.kind, member.opened)
        if plain.endswith((".tar.gz", ".tgz")) and not member.kind and not prefix:
            yield from _members(member.opened(), plain, budget, f"{plain}{INSIDE}")


def _zip_members(file: IO[bytes], _name: str, budget: "_Budget") -> Iterator[_Member]:
    with zipfile.ZipFile(file) as archive:
        for info in archive.infolist():
            if info.header_offset < 0:
                raise zipfile.BadZipFile(f"member {info.filename!r} begins before the file does")
            is_link = (info.external_attr >> 16) & 0o170000 == 0o120000
            kind = "a folder" if info.is_dir() else "a link" if is_link else ""
            kind = "encrypted" if info.flag_bits & 1 else kind
            yield _Member(info.filename, kind, lambda info=info: _Counted(archive.open(info), budget))  # type: ignore[misc]


def _tar_members(file: Any, name: str, budget: "_Budget") -> Iterator[_Member]:
    packed = name.endswith((".gz", ".tgz"))
    stream: Any = _Counted(gzip.GzipFile(fileobj=file) if packed else file, budget)
    with tarfile.open(fileobj=stream, mode="r|") as archive:
        for info in archive:
            kind = "" if info.isreg() else "a folder" if info.isdir() else "a link or device"
            if info.issparse():  # A few bytes can have any number of zeros between them.
                kind = "a sparse file"
            yield _Member(info.name, kind, lambda info=info: _Counted(archive.extractfile(info), None))  # type: ignore[misc]


def _check(archive: Path, member: _Member, target: str, *, repeated: bool) -> None:
    name = f"{archive}: member {member.name!r}"
    if member.kind:
        raise DataError(f"{name} is {member.kind}; expected a plain file. {_DISTRUST}")
    below(Path(), target, name, DataError)
    if repeated:
        raise DataError(f"{name} occurs a second time; expected once. {_DISTRUST}")


def _write(member: _Member, folder: Path, target: str, budget: "_Budget") -> str:
    """Write a member under a temporary name next to its target; return its checksum."""
    digest = sha256()
    path = folder / target
    source = member.opened()
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
    """The bytes that an archive may still unpack to."""

    def __init__(self, archive: Path, most: int) -> None:
        self.archive = archive
        self.most = self.left = most

    def spend(self, size: int) -> None:
        """Count the bytes that are unpacked, skipped members included, or those that are written."""
        self.left -= size
        if self.left < 0:
            raise DataError(
                f"{self.archive}: it unpacks to more than {megabytes(self.most)}, {EXPANSION} times its "
                f"size; refused. {_DISTRUST}"
            )


@dataclass(frozen=True)
class _Counted:
    """A stream whose bytes are counted against a budget; None where the outer stream counts them."""

    stream: Any
    budget: _Budget | None

    def read(self, size: int = -1) -> bytes:
        block: bytes = self.stream.read(size)
        if self.budget is not None:
            self.budget.spend(len(block))
        return block
