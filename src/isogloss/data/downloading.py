"""Download one file so that what stands under its name is always whole and right.

Bytes go to ``NAME.part``, which the next attempt, or the next call, goes on with where the server still has
the same version. Only a file of the expected size and checksum takes its name.
"""

import json
import os
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from hashlib import file_digest
from pathlib import Path

from isogloss.core.errors import DataError, StorageError
from isogloss.core.progress import Progress, Tell, silent
from isogloss.data.transport import Reply, TryAgainError, ask

ENOUGH_PROGRESS = 1 << 20
"""Bytes after which an attempt that failed does not count as one in vain."""

TELL_EVERY = 0.1
"""Seconds."""


@dataclass(frozen=True, kw_only=True)
class Link:
    """A file to download and what is known about it."""

    url: str
    size: int | None = None
    sha256: str = ""
    known_from: str = "the published checksum"
    """What the checksum is, for the message that it is another."""
    by_hand: str = ""
    """What a person can do where the file cannot be had."""


@dataclass(frozen=True, kw_only=True)
class Patience:
    """How long to wait and how often to ask."""

    attempts: int = 6
    """Attempts in a row that may fail."""
    first_wait: float = 1.0
    """Seconds before the second attempt; each further wait is twice as long."""
    longest_wait: float = 120.0
    """Seconds; a server that asks for more is left alone."""
    timeout: float = 30.0
    """Seconds without enough bytes after which a connection is given up."""
    sleep: Callable[[float], None] = field(default=time.sleep)


@dataclass(frozen=True, kw_only=True)
class Downloaded:
    """What arrived."""

    size: int
    sha256: str


def download(link: Link, path: Path, *, patience: Patience | None = None, tell: Tell = silent) -> Downloaded:
    """Bring a file to its place; DataError or StorageError, and nothing in its place, where that fails."""
    with storing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
    try:
        return _download(link, path, patience or Patience(), tell)
    except DataError as error:
        raise DataError(f"{error} {link.by_hand}".strip()) from error


def checksum(path: Path) -> str:
    """Return a file's SHA-256."""
    with storing(path), path.open("rb") as file:
        return file_digest(file, "sha256").hexdigest()


@contextmanager
def storing(path: Path) -> Iterator[None]:
    """Turn what the disk says about writing into a StorageError."""
    try:
        yield
    except OSError as error:
        raise StorageError(
            f"{path}: cannot be written or read ({error.strerror or error}). Free some space or choose "
            f"another --to, then run the same command again: it goes on where it stopped."
        ) from error


def megabytes(size: int) -> str:
    """Write a number of bytes for people."""
    return f"{size / 1e6:,.1f} MB" if size >= 1e5 else f"{size / 1e3:,.1f} kB"


def _download(link: Link, path: Path, patience: Patience, tell: Tell) -> Downloaded:
    part = _Part(path.with_name(path.name + ".part"))
    failed = 0
    while True:
        before = part.size()
        try:
            _attempt(link, part, patience, _Meter(path.name, tell))
            return _finished(link, part, path, resumed=before > 0)
        except TryAgainError as trouble:
            if trouble.restart:
                part.remove()
            failed = 1 if part.size() - before >= ENOUGH_PROGRESS else failed + 1
            wait = max(trouble.wait, min(patience.first_wait * 2 ** (failed - 1), patience.longest_wait))
            if failed >= patience.attempts or wait > patience.longest_wait:
                raise _given_up(link, part, trouble, failed) from trouble
            tell(Progress(path.name, part.size(), link.size or 0, f"{trouble}; again in {wait:.0f} s"))
            patience.sleep(wait)


def _attempt(link: Link, part: "_Part", patience: Patience, meter: "_Meter") -> None:
    start, validator = part.goes_on(link)
    if start and start == link.size:
        return
    with ask(link.url, start=start, validator=validator, timeout=patience.timeout) as reply:
        _check_total(link, reply)
        if reply.start and validator and reply.validator not in ("", validator):
            raise TryAgainError("the file there is another than the one begun with", restart=True)
        if not (reply.ends or link.size or link.sha256):
            raise TryAgainError("the server does not say how long the file is")
        most = link.size if link.size is not None else reply.total
        with part.opened(link, reply) as file:
            meter.begin(reply.start, most)
            for block in reply.blocks():
                with storing(part.path):
                    file.write(block)
                if meter.add(len(block)) > (most if most is not None else meter.done):
                    raise TryAgainError(f"more than its {most:,} bytes came", restart=True)
    if most is not None and part.size() < most:
        raise TryAgainError(f"the server ended after {part.size():,} of {most:,} bytes")


def _check_total(link: Link, reply: Reply) -> None:
    if link.size is not None and reply.total is not None and reply.total != link.size:
        raise DataError(
            f"{link.url}: the server has {reply.total:,} bytes ({reply.kind}); the published file has "
            f"{link.size:,}. It was changed, or something between answers in its place."
        )


def _finished(link: Link, part: "_Part", path: Path, *, resumed: bool) -> Downloaded:
    found = Downloaded(size=part.size(), sha256=checksum(part.path))
    if link.sha256 and found.sha256 != link.sha256:
        part.remove()
        if resumed:  # The two halves may be of two versions; the whole may still be right.
            raise TryAgainError("the parts of several attempts do not fit together")
        raise DataError(
            f"{link.url}: what came ({found.size:,} bytes) has SHA-256 {found.sha256}; {link.known_from} is "
            f"{link.sha256}. It was deleted. The file was changed or is not the right one."
        )
    with storing(path):
        part.path.replace(path)
        part.remove()
    return found


def _given_up(link: Link, part: "_Part", trouble: TryAgainError, failed: int) -> DataError:
    kept = f"{megabytes(part.size())} are kept, and the" if part.size() else "The"
    tried = f"after {failed} attempt{'s' if failed > 1 else ''}"
    tried += f", since it asks to wait {trouble.wait:.0f} s" if trouble.wait else ""
    return DataError(
        f"{link.url}: {trouble}; given up {tried}. {kept} same command goes on from there later."
    )


@dataclass(frozen=True)
class _Part:
    """What has arrived so far, and beside it the version it is of."""

    path: Path

    @property
    def note(self) -> Path:
        return self.path.with_name(self.path.name + ".json")

    def size(self) -> int:
        try:
            return self.path.stat().st_size
        except OSError:
            return 0

    def goes_on(self, link: Link) -> tuple[int, str]:
        """Give the byte to go on from and the version; from the beginning where the version is not known."""
        try:
            note = json.loads(self.note.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            note = {}
        validator = str(note.get("validator") or "")
        same = note.get("url") == link.url and (validator or link.sha256)
        fits = link.size is None or self.size() <= link.size
        return (self.size(), validator) if same and fits else (0, "")

    @contextmanager
    def opened(self, link: Link, reply: Reply) -> "Iterator[_Writing]":
        """Open it at the reply's first byte, with the reply's version noted."""
        if reply.total is not None:
            _check_room(self.path, reply.total - reply.start)
        with storing(self.path):
            file = self.path.open("r+b" if reply.start else "wb", buffering=0)
        with file:
            with storing(self.path):
                file.seek(reply.start)
                file.truncate()
                self.note.write_text(json.dumps({"url": link.url, "validator": reply.validator}))
            yield _Writing(file.write)
            with storing(self.path):
                os.fsync(file.fileno())

    def remove(self) -> None:
        for path in (self.path, self.note):
            with suppress(OSError):
                path.unlink()


@dataclass(frozen=True)
class _Writing:
    """A file that takes all it is given; one without a buffer may take less at once."""

    some: Callable[[memoryview], int | None]

    def write(self, block: bytes) -> None:
        rest = memoryview(block)
        while rest:
            rest = rest[self.some(rest) or 0 :]


def _check_room(path: Path, needed: int) -> None:
    with storing(path):
        free = shutil.disk_usage(path.parent).free
    if needed > free:
        raise StorageError(
            f"{path.parent}: {megabytes(needed)} are needed and {megabytes(free)} are free. Free some space "
            f"or choose another --to."
        )


class _Meter:
    """How far a download is and how fast, told a few times a second."""

    def __init__(self, what: str, tell: Tell) -> None:
        self.what = what
        self.tell = tell
        self.done = self.first = self.total = 0
        self.began = self.told = time.monotonic()

    def begin(self, start: int, total: int | None) -> None:
        self.done = self.first = start
        self.total = total or 0
        self.began = time.monotonic()

    def add(self, size: int) -> int:
        """Count bytes and give their sum."""
        self.done += size
        now = time.monotonic()
        if now - self.told >= TELL_EVERY or self.done == self.total:
            self.told = now
            speed = (self.done - self.first) / max(now - self.began, 1e-6)
            of = f" of {megabytes(self.total)}" if self.total else ""
            remark = f"{megabytes(self.done)}{of}, {megabytes(int(speed))}/s"
            self.tell(Progress(self.what, self.done, self.total or self.done + 1, remark))
        return self.done
