"""Claims: which process makes a run, where many share a folder, on one machine or on several.

A claim is a small file that exactly one process can create. Its holder writes into it every few seconds, and
whoever waits for it looks whether it changes: no clocks are compared, so it does not matter what they show.
A claim has ended when its holder has (known at once on the same machine), gave it up, or let it be for the
length of a lease. Then the next one is claimed: ``RUN.2`` after ``RUN.1``, which again exactly one process
can create, so that no claim is ever removed while somebody could still rely on it. The claims of a run are
removed when it has a record: from then on nobody asks for them.

It takes no locks, which network file systems have or have not: only that a file is created by one process
alone (O_EXCL; on NFS since version 3), and that a file opened again shows what others wrote (close-to-open).
A holder that was paused for longer than a lease (a laptop that slept, a mount that did not answer) finds the
next claim, or its own gone, and leaves the run: it looks before it gives anything a name. Should it be paused
between the look and that, the file has the same bytes as the other's, and an equal folder stays as it is.
"""

import json
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from platform import node
from secrets import token_hex
from stat import S_ISREG
from typing import Protocol, TypeAlias

from isogloss.core.errors import StorageError
from isogloss.core.presence import make_folder
from isogloss.core.processes import has_ended, this_process
from isogloss.core.records import writing

FOLDER, LOG = ".claims", "log"
LEASE = 60.0
"""Seconds without a sign of life after which the claim of a process on another machine has ended."""

BEATS = 6
"""Signs of life in that time."""

AGAIN = 0.5
"""Seconds between two attempts of a process that waits for a claim."""


IsOwn: TypeAlias = Callable[[bytes], object]
"""Tells from the content of a file whether this process wrote it."""

_BOOTTIME = getattr(time, "CLOCK_BOOTTIME", None)


class Board(Protocol):
    """Small files that all who share a store see."""

    def create(self, name: str, content: bytes) -> bool:
        """Write a file unless it is there; False if it is. No two processes create the same one."""
        ...

    def write(self, name: str, content: bytes, is_own: IsOwn = lambda _: True) -> bool:
        """Write over a file that is there and, by its content, this process's own; return whether it was."""
        ...

    def read(self, name: str) -> bytes | None:
        """Return the content of a file; None where there is none."""
        ...

    def remove(self, name: str) -> None:
        """Remove a file, if it is there."""
        ...

    def append(self, name: str, line: str, *, begins: bool) -> None:
        """Add a line to a file that this process alone writes; its folder is made where that ``begins``."""
        ...

    @property
    def interruptions(self) -> int:
        """How often the board could not be seen from here."""
        ...


@dataclass(frozen=True)
class FolderBoard:
    """Files in a folder."""

    folder: Path
    interruptions: int = 0

    def create(self, name: str, content: bytes) -> bool:  # noqa: D102
        path = self.folder / name
        with writing(path):
            make_folder(self.folder)
            try:
                file = path.open("xb", buffering=0)
            except FileExistsError:
                return False
            try:
                with file:
                    file.write(content)
            except OSError:  # On a full disk an empty file can be made, and would be waited for.
                with suppress(OSError):
                    path.unlink()
                raise
        return True

    def write(self, name: str, content: bytes, is_own: IsOwn = lambda _: True) -> bool:
        """Write a file in its place: that takes no space, and a full disk leaves what was in it."""
        before = self.read(name)
        if before is None:
            self.folder.stat()  # An error where the whole folder has gone away.
        if before is None or not is_own(before):
            return False
        with (self.folder / name).open("r+b", buffering=0) as file:
            file.write(content)
            file.truncate()
        return True

    def read(self, name: str) -> bytes | None:  # noqa: D102
        path = self.folder / name
        try:
            if not S_ISREG(path.stat().st_mode):  # One look: it may be removed at any time.
                raise StorageError(
                    f"{path}: this is no ordinary file, as a claim is. Remove it, and run again."
                )
            return path.read_bytes()
        except (FileNotFoundError, NotADirectoryError):  # The latter where a file stands in a folder's place.
            return None

    def remove(self, name: str) -> None:  # noqa: D102
        (self.folder / name).unlink(missing_ok=True)

    def append(self, name: str, line: str, *, begins: bool) -> None:  # noqa: D102
        path = self.folder / name
        if begins:  # Later the folder may have gone away: none is made in its place.
            make_folder(path.parent)
        with path.open("a", encoding="utf-8") as file:
            file.write(line)


@dataclass
class Claim:
    """A claim that this process holds."""

    key: str
    number: int
    token: str = field(default_factory=lambda: token_hex(4))
    """What tells it from every other claim."""
    beat: int = 0
    renewed: float = 0.0
    """When its last sign of life was written, by a clock that goes on while the machine sleeps."""
    lost: bool = False
    """Whether another process has claimed it since, or finished it, while this one gave no sign of life."""
    silent: bool = False
    """Whether no sign of life could be written for the length of a lease: others may claim it by now."""
    finished: bool = False
    """Whether the run has a record: then its claims are removed, else this one is given up."""
    was_finished: bool = False
    """Whether another process had made that before the run was claimed."""

    @property
    def name(self) -> str:
        """Name of its file."""
        return _name(self.key, self.number)

    def is_own(self, content: bytes) -> bool:
        """Return whether the content of its file is not another process's."""
        return _read(content).get("token", self.token) == self.token

    def content(self, *, held: bool = True) -> bytes:
        """Return what its file holds."""
        about = {"process": this_process(), "machine": node(), "pid": os.getpid(), "token": self.token}
        return json.dumps({**about, "beat": self.beat, "held": held}).encode()


@dataclass
class Claims:
    """The claims on a board, as one process sees them."""

    board: Board
    log: str = ""
    """Folder on the board for lines about what this process claimed, in a file of its own."""
    lease: float = LEASE
    clock: Callable[[], float] = time.monotonic
    """For the silence of others: it stands still while this machine sleeps, as they may with it."""
    _seen: dict[str, tuple[bytes, int, float]] = field(default_factory=dict)
    """By name of a claim: its content, and when that was seen first since the last interruption."""
    _held: dict[str, Claim] = field(default_factory=dict)
    _not_given_up: list[Claim] = field(default_factory=list)
    """Claims that have ended while their board could not be written: to be given up as soon as it can."""
    _beating: threading.Thread | None = None
    _writing: threading.Lock = field(default_factory=threading.Lock)
    """Held by whoever writes or removes a claim of this process, so that no sign of life outlives one."""

    @contextmanager
    def claimed(self, key: str, *, expired: bytes = b"") -> Iterator[Claim | None]:
        """Hold the claim of a run; None if another process holds it.

        ``expired`` is the content of a claim that another part of this program has waited for in vain.
        """
        claim = self._claim(key, expired)
        if claim is None:
            yield None
            return
        self._note(claim, "claimed")
        self._held[key] = claim
        self._beat_along()
        try:
            yield claim
        finally:
            self.look(claim, if_over=True)
            with self._writing:
                del self._held[key]
                self._end(claim)

    @contextmanager
    def alone(self, what: str) -> Iterator[None]:
        """Wait until no other process does ``what``, then do it."""
        while True:
            with self.claimed(what) as claim:
                if claim:
                    try:
                        yield
                    finally:
                        claim.finished = True  # There is no more to it than that nobody else is at it.
                    return
            time.sleep(AGAIN)

    def holder(self, key: str) -> str:
        """Return who holds the claim of a run, for people; empty where nobody does."""
        _, content = self._last(key)
        if content is None or self._has_ended(key, content):
            return ""
        found = _read(content)
        return f"{found.get('pid', 'unknown')} on {found.get('machine', 'an unknown machine')}"

    def expired(self, key: str) -> bytes | None:
        """Return the last claim's content if that has ended, b"" without a claim, None while one is held."""
        _, content = self._last(key)
        if content is None:
            return b""
        return content if self._has_ended(key, content) else None

    def forget(self, key: str) -> None:
        """Remove the claims of a finished run that a process left which was killed before it could."""
        number, _ = self._last(key)
        self._remove(key, number)

    def _remove(self, key: str, last: int) -> None:
        for number in range(last, 0, -1):
            self.board.remove(_name(key, number))

    def left_by(self, key: str, process: str) -> bytes:
        """Return the last claim's content if it is that of a process known to have died, else b""."""
        _, content = self._last(key)
        return content if content is not None and _read(content).get("process") == process else b""

    def _claim(self, key: str, expired: bytes) -> Claim | None:
        self._give_up()
        number, content = self._last(key)
        # A claim is empty while its holder writes it: that is not one of which nothing is known.
        waited_for = bool(expired) and content == expired
        if content is not None and not waited_for and not self._has_ended(key, content):
            return None
        claim = Claim(key, number + 1, renewed=_now())
        return claim if self.board.create(claim.name, claim.content()) else None

    def _last(self, key: str) -> tuple[int, bytes | None]:
        """Return the number of the last claim of a run and its content; 0 and None where there is none."""
        number, content = 0, None
        while (found := self.board.read(_name(key, number + 1))) is not None:
            number, content = number + 1, found
        return number, content

    def _has_ended(self, key: str, content: bytes) -> bool:
        found = _read(content)
        if found.get("held") is False or has_ended(str(found.get("process", ""))):
            return True
        now = content, self.board.interruptions  # While nothing could be seen, nobody was silent.
        seen = self._seen.get(key)
        if seen is None or seen[:2] != now:
            self._seen[key] = *now, self.clock()
            return False
        return self.clock() - seen[2] > self.lease

    def _end(self, claim: Claim) -> None:
        """Remove the claims of a finished run; give up that of another."""
        ending = "there" if claim.was_finished else "finished" if claim.finished else "given up"
        self._note(claim, "lost" if claim.lost else ending)
        self._seen.pop(claim.key, None)
        try:
            if claim.was_finished or (claim.finished and not claim.lost):
                self._remove(claim.key, claim.number)
            elif not claim.lost:
                self.board.write(claim.name, claim.content(held=False), claim.is_own)
        except (OSError, StorageError):  # Until then, whoever waits for it sees no more signs of life.
            self._not_given_up.append(claim)

    def _beat_along(self) -> None:
        if self._beating is None or not self._beating.is_alive():
            self._beating = threading.Thread(target=self._beat, name="claims", daemon=True)
            self._beating.start()

    def _beat(self) -> None:
        """Give signs of life, as long as this process lives."""
        while True:
            time.sleep(self.lease / BEATS)
            for claim in list(self._held.values()):
                self.look(claim)
            self._give_up()

    def look(self, claim: Claim, *, if_over: bool = False) -> None:
        """Give a sign of life unless another process has claimed the same by now; or only after a lease."""
        if if_over and _now() - claim.renewed <= self.lease:
            return
        with self._writing:
            with suppress(OSError, StorageError):  # A board that is away may come back.
                self._renew(claim)
            claim.silent = _now() - claim.renewed > self.lease

    def _renew(self, claim: Claim) -> None:
        if self._held.get(claim.key) is not claim or claim.lost:
            return
        claim.beat += 1
        now = _now()  # Before it is written: this process may be paused any time.
        # Its own file is removed when the run has a record.
        is_there = self.board.write(claim.name, claim.content(), claim.is_own)
        claim.lost = not is_there or self.board.read(_name(claim.key, claim.number + 1)) is not None
        if not claim.lost:
            claim.renewed = now

    def _give_up(self) -> None:
        """Give up what could not be given up when it ended."""
        with self._writing:
            waiting, self._not_given_up = self._not_given_up, []
            for claim in waiting:
                self._end(claim)

    def _note(self, claim: Claim, event: str) -> None:
        if self.log:
            at = datetime.now(UTC).isoformat(timespec="milliseconds")
            line = {"run": claim.key, "claim": claim.number, "event": event, "at": at}
            with suppress(OSError, StorageError):  # It is for people to read: nothing depends on it.
                name = f"{self.log}/{this_process()}.jsonl"
                self.board.append(name, json.dumps(line) + "\n", begins=event == "claimed")


@cache
def claims_in(root: Path) -> Claims:
    """Return the claims of a folder of runs, the same ones for all of this process."""
    return Claims(FolderBoard(root / FOLDER), log=LOG)


def _now() -> float:
    """Return seconds by a clock that goes on while the machine sleeps, where it has one."""
    return time.monotonic() if _BOOTTIME is None else time.clock_gettime(_BOOTTIME)


def _name(key: str, number: int) -> str:
    return f"{key}.{number}"


def _read(content: bytes) -> dict[str, object]:
    """Read a claim; empty while its holder is writing it."""
    try:
        found = json.loads(content)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}
