"""Take named members out of an archive, and nothing else.

A member goes only where the table says; links, devices and names that leave the folder are refused, what is
written is bounded, and either all members appear under their names or none does.
"""

import gzip
import os
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path, PurePosixPath
from typing import IO, Any

from isogloss.core.errors import DataError
from isogloss.data.downloading import checksum, megabytes, storing

EXPANSION = 100
"""An archive that unpacks to more than this many times its size is a trap; text packs 3 to 10 times."""

ROOM = 1 << 20
"""Bytes that are allowed whatever the archive's size: small archives pack their headers well."""

BLOCK = 1 << 20
INSIDE = ">"
"""Parts the names of an archive and of a member of it, as in ``sw.tar.gz>train``."""

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
"""What the standard library raises on damaged headers; the last two where a name is empty or no UTF-8."""

Places = Callable[[str], list[tuple[int, str]]]
"""Gives the places of a member, each with the number of what it was asked for as."""


@dataclass(frozen=True)
class _Member:
    """A member of an archive: a file that can be opened, or (``kind``) something that is none."""

    name: str
    kind: str
    size: int
    opened: Callable[[], IO[bytes]]


def unpack(archive: Path, places: Places, folder: Path, *, asked: dict[int, str]) -> dict[str, str]:
    """Write the wanted members below the folder and give their checksums by place.

    ``asked`` are the patterns by number, each of which must find a member. DataError where the archive is
    damaged, lacks one, or is no archive to trust; a file that is there already is never overwritten.
    """
    budget = _Budget(archive, EXPANSION * archive.stat().st_size + ROOM)
    written: dict[str, tuple[Path, str]] = {}
    try:
        found = _take_all(archive, places, folder, budget, written)
        _check_found(archive, asked, found)
        _put(folder, written)
    finally:
        for temporary, _ in written.values():
            with suppress(OSError):
                temporary.unlink()
    return {place: digest for place, (_, digest) in written.items()}


def _take_all(
    archive: Path, places: Places, folder: Path, budget: "_Budget", written: dict[str, tuple[Path, str]]
) -> set[int]:
    found: set[int] = set()
    with _damage(archive), archive.open("rb") as file:
        for member in _members(file, archive.name, budget):
            for number, place in places(member.name):
                _check(archive, member, place, taken=place in written)
                found.add(number)
                temporary = _temporary(folder, place)
                written[place] = (temporary, "")
                written[place] = (temporary, _write(member, temporary, budget))
    return found


def _members(file: IO[bytes], name: str, budget: "_Budget", before: str = "") -> Iterator[_Member]:
    """Give the members of an archive, and of archives in it, in their order."""
    read = _zip_members if name.endswith(".zip") else _tar_members
    for member in read(file, name, budget):
        plain = member.name.removeprefix("./")
        yield _Member(before + plain, member.kind, member.size, member.opened)
        if plain.endswith((".tar.gz", ".tgz")) and not member.kind and not before:
            yield from _members(member.opened(), plain, budget, f"{plain}{INSIDE}")


def _zip_members(file: IO[bytes], _name: str, _budget: "_Budget") -> Iterator[_Member]:
    with zipfile.ZipFile(file) as archive:
        for info in archive.infolist():
            if info.header_offset < 0:
                raise zipfile.BadZipFile(f"member {info.filename!r} begins before the file does")
            unix = info.external_attr >> 16
            kind = "a folder" if info.is_dir() else "a link" if unix & 0o170000 == 0o120000 else ""
            kind = "encrypted" if info.flag_bits & 1 else kind
            yield _Member(info.filename, kind, info.file_size, lambda info=info: archive.open(info))  # type: ignore[misc]


def _tar_members(file: IO[bytes], name: str, budget: "_Budget") -> Iterator[_Member]:
    packed = name.endswith((".gz", ".tgz"))
    stream: Any = _Counted(gzip.GzipFile(fileobj=file) if packed else file, budget)
    with tarfile.open(fileobj=stream, mode="r|") as archive:
        for info in archive:
            kind = "" if info.isreg() else "a folder" if info.isdir() else "a link or device"
            yield _Member(info.name, kind, info.size, lambda info=info: _file(archive, info))  # type: ignore[misc]


def _file(archive: tarfile.TarFile, info: tarfile.TarInfo) -> IO[bytes]:
    file = archive.extractfile(info)
    if file is None:
        raise tarfile.ReadError(f"{info.name} is no file")
    return file


def _check(archive: Path, member: _Member, place: str, *, taken: bool) -> None:
    where = f"{archive}: member {member.name!r}"
    if member.kind:
        raise DataError(f"{where} is {member.kind}; expected a plain file. {_DISTRUST}")
    path = PurePosixPath(place)
    if path.is_absolute() or ".." in path.parts or any(sign in place for sign in '\\:\0\n<>"|?*'):
        raise DataError(f"{where} would go to {place!r}, out of the folder; refused. {_DISTRUST}")
    if taken:
        raise DataError(f"{where} stands there a second time; expected once. {_DISTRUST}")


_DISTRUST = "This is not the official archive: delete it and fetch again."


def _write(member: _Member, path: Path, budget: "_Budget") -> str:
    budget.expect(member.size)
    digest = sha256()
    with storing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        target = path.open("wb")
    with target, member.opened() as source:
        while block := source.read(BLOCK):
            budget.spend(len(block))
            digest.update(block)
            with storing(path):
                target.write(block)
        with storing(path):
            target.flush()
            os.fsync(target.fileno())
    return digest.hexdigest()


def _check_found(archive: Path, asked: dict[int, str], found: set[int]) -> None:
    lacking = [pattern for number, pattern in asked.items() if number not in found]
    if lacking:
        raise DataError(
            f"{archive}: it has no member {' and none '.join(lacking)}. Delete it and fetch again; if that "
            f"does not help, the archive was changed: report it."
        )


def _put(folder: Path, written: dict[str, tuple[Path, str]]) -> None:
    """Give all files their names, but never the name of another file."""
    for place, (_, digest) in written.items():
        there = folder / place
        if there.exists() and checksum(there) != digest:
            raise not_ours(there, digest)
    for place, (temporary, _) in written.items():
        with storing(folder / place):
            temporary.replace(folder / place)


def not_ours(path: Path, expected: str) -> DataError:
    """Build the error for a file that stands where an official one should go and is another."""
    return DataError(
        f"{path}: a file is there that is not the official one (SHA-256 {checksum(path)}; expected "
        f"{expected}). Nothing is overwritten: move it away, or choose another --to."
    )


def _temporary(folder: Path, place: str) -> Path:
    path = folder / place
    return path.with_name(f".{path.name}.{os.getpid()}.tmp")


@contextmanager
def _damage(archive: Path) -> Iterator[None]:
    """Say what a damaged archive is and what to do."""
    try:
        yield
    except _BROKEN as error:
        raise DataError(f"{archive}: the archive is damaged ({error}). Delete it and fetch again.") from error


class _Budget:
    """How many bytes may still come out of an archive."""

    def __init__(self, archive: Path, most: int) -> None:
        self.archive = archive
        self.most = self.left = self.streamed = most

    def expect(self, size: int) -> None:
        """Refuse a member that says itself that it is too large."""
        if size > self.left:
            raise self._trap()

    def spend(self, size: int) -> None:
        """Count bytes that were written."""
        self.left -= size
        if self.left < 0:
            raise self._trap()

    def pass_by(self, size: int) -> None:
        """Count bytes that were unpacked, if only to pass over them."""
        self.streamed -= size
        if self.streamed < 0:
            raise self._trap()

    def _trap(self) -> DataError:
        return DataError(
            f"{self.archive}: it unpacks to more than {megabytes(self.most)}, {EXPANSION} times its size; "
            f"refused. {_DISTRUST}"
        )


@dataclass(frozen=True)
class _Counted:
    """A stream whose bytes are counted, so that an endless one ends."""

    stream: Any
    budget: _Budget

    def read(self, size: int) -> bytes:
        block: bytes = self.stream.read(size)
        self.budget.pass_by(len(block))
        return block
