"""Leases: decide which process computes a run in a shared folder, on one or several machines.

A lease is a small file that exactly one process can create. Its holder writes into it every few seconds. A
waiting process checks whether it changes, so clocks may differ between machines. A lease ends when its holder
exits (known at once on the same machine), releases it, or does not renew it for its duration. Then the next
lease is created, ``RUN.2`` after ``RUN.1``, also by exactly one process, so no lease is removed while a
process could still rely on it. The leases of a run are removed when the run has a record or has failed,
because nobody reads them after that. Until then unreleased leases count the processes that died with the run.

Leases need no locks, which some network file systems lack. They need two guarantees: only one process creates
a file (O_EXCL; on NFS since version 3), and a reopened file shows what others wrote (close-to-open). A holder
may be paused for longer than the duration (a sleeping laptop, a mount that does not answer). It then finds
the next lease, or misses its lease, releases it and leaves the run: it checks its lease before each rename.
If it is paused between the check and the rename, both processes write the same bytes, and an equal folder
stays unchanged.
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
from typing import Literal, Protocol, TypeAlias

from isogloss.core.atomic_files import make_folder, reading, storage_error, writing
from isogloss.core.errors import StorageError, plain
from isogloss.core.processes import has_ended, this_process
from isogloss.core.shared_files import (
    IrregularFileError,
    append_file,
    create_file,
    entries,
    look_afresh,
    overwrite_file,
    read_file,
    remove,
)
from isogloss.core.untrusted import parse_json

LEASES = ".claims"
"""Folder of leases. Names and fields are the same as in older versions of isogloss, because machines with
different versions may share a folder of runs."""

LOG = "log"
"""Folder of logs in the folder of leases."""

LEASE_DURATION = 60.0
"""Seconds without a sign of life after which the lease of a process on another machine has ended."""

RENEWALS = 6
"""Renewals in that time."""

RETRY_EVERY = 0.5
"""Seconds between two attempts of a process that waits for a lease."""

Ending: TypeAlias = Literal["finished", "there", "failed", "given up", "out of memory"]
"""Reason for the end of a lease: the run has a record, has a record of a different process, or has failed; or
the lease is released. The last value marks a release by a run that shared a GPU and ran out of its memory."""

SETTLED = ("finished", "there", "failed")
"""Endings after which the leases of a run have no readers."""

IsOwn: TypeAlias = Callable[[bytes], object]
"""Returns, from the content of a file, whether this process wrote it."""

_BOOTTIME = getattr(time, "CLOCK_BOOTTIME", None)


class Board(Protocol):
    """Small files that all processes with the same store see."""

    def create(self, name: str, content: bytes) -> bool:
        """Write a file unless it is there; False if it is. No two processes create the same one."""

    def write(self, name: str, content: bytes, is_own: IsOwn = lambda _: True) -> bool:
        """Write over a file that is there and, by its content, this process's own; return whether it was."""

    def read(self, name: str) -> bytes | None:
        """Return the content of a file; None if it is missing."""

    def names(self) -> list[str]:
        """Return the names of the files, but for those in folders."""

    def remove(self, name: str) -> None:
        """Remove a file, if it is there."""

    def append(self, name: str, line: str, *, begins: bool) -> None:
        """Add a line to a file that only this process writes. ``begins``: create its folder."""

    def flush(self) -> None:
        """Write the lines that ``append`` has not written yet."""

    @property
    def interruptions(self) -> int:
        """Number of times the board could not be reached."""


@dataclass(frozen=True)
class FolderBoard:
    """Files in a folder."""

    folder: Path
    interruptions: int = 0

    def create(self, name: str, content: bytes) -> bool:  # noqa: D102
        path = f"{self.folder.name}/{name}"
        with writing(self.folder / name):
            try:
                return create_file(self.folder.parent, path, content)
            except FileNotFoundError:
                make_folder(self.folder.parent, self.folder.name)
                return create_file(self.folder.parent, path, content)

    def write(self, name: str, content: bytes, is_own: IsOwn = lambda _: True) -> bool:
        """Write a file in its place: that takes no space, and a full disk leaves what was in it."""
        try:
            return overwrite_file(
                self.folder.parent,
                f"{self.folder.name}/{name}",
                lambda current: content if is_own(current) else None,
            )
        except (FileNotFoundError, NotADirectoryError):
            self.folder.stat()  # An error where the whole folder has gone away.
            return False
        except IrregularFileError:  # It is not what this process wrote.
            return False
        except OSError as error:
            raise storage_error(self.folder / name, error) from error

    def read(self, name: str) -> bytes | None:
        """Return the content of a file; if it seems to be missing, refresh the folder and retry."""
        with reading(self.folder / name):
            content = self._read(name)
            if content is None:
                look_afresh(self.folder.parent, f"{self.folder.name}/{name}")
                content = self._read(name)
        return content

    def _read(self, name: str) -> bytes | None:
        try:
            return read_file(self.folder.parent, f"{self.folder.name}/{name}")
        except (FileNotFoundError, NotADirectoryError):  # The latter where a file is in a folder's place.
            return None
        except IrregularFileError as error:
            raise StorageError(
                f"{error.filename}: expected a lease, which is a regular file. Remove it, and run again."
            ) from error

    def names(self) -> list[str]:  # noqa: D102
        with suppress(FileNotFoundError, NotADirectoryError):
            return [entry.name for entry in entries(self.folder.parent, self.folder.name)]
        return []

    def remove(self, name: str) -> None:  # noqa: D102
        remove(self.folder.parent, f"{self.folder.name}/{name}")

    def append(self, name: str, line: str, *, begins: bool) -> None:  # noqa: D102
        path = f"{self.folder.name}/{name}"
        try:
            append_file(self.folder.parent, path, line.encode())
        except FileNotFoundError:
            if not begins:  # The folder may be unreachable, and must not be replaced.
                raise
            make_folder(self.folder.parent, path.rpartition("/")[0])
            append_file(self.folder.parent, path, line.encode())

    def flush(self) -> None:
        """Do nothing: lines are written at once."""


@dataclass
class Lease:
    """A lease of this process."""

    key: str
    number: int
    token: str = field(default_factory=lambda: token_hex(4))
    """Random text that no other lease has."""
    beat: int = 0
    renewed: float = 0.0
    """Time of the last renewal, by a clock that includes sleep of the machine."""
    lost: bool = False
    """Whether another process has leased the run since, or finished it, while this one could not renew it."""
    silent: bool = False
    """Whether it could not be renewed for its duration: another process may lease the run."""
    ending: Ending = "given up"
    resume_point: str = ""
    """Progress of the run when it was leased."""

    @property
    def name(self) -> str:
        """Name of its file."""
        return _name(self.key, self.number)

    def is_own(self, content: bytes) -> bool:
        """Return whether this process wrote the content of the lease file; False if it cannot be read."""
        return _read(content).get("token") == self.token

    def content(self, *, held: bool = True) -> bytes:
        """Return the content of its file."""
        holder = {"process": this_process(), "machine": node(), "pid": os.getpid(), "token": self.token}
        ending = {} if held else {"ending": self.ending}
        facts = {**holder, "resume_point": self.resume_point, "beat": self.beat, "held": held, **ending}
        return json.dumps(facts).encode()


@dataclass(frozen=True)
class LeaseHistory:
    """The leases of a run that has neither a record nor failed."""

    is_held: bool = False
    """Whether a process has the last lease now."""
    holder: str = ""
    """Current or last holder, for messages."""
    starts: tuple[str, ...] = ()
    """Progress of the run at the start of each lease that ended without release."""
    out_of_memory: bool = False
    """Whether one was given back as the memory of a shared GPU ran out."""

    @property
    def deaths(self) -> int:
        """Number of leases that have ended and that nobody gave back."""
        return len(self.starts)

    def count_deaths_at(self, resume_point: str) -> int:
        """Return the number of deaths since a run got this far, without a further checkpoint."""
        return self.starts.count(resume_point)


@dataclass
class Leases:
    """The leases on a board, as one process sees them."""

    board: Board
    log: str = ""
    """Folder on the board for logs of leases. Each process writes a separate file."""
    duration: float = LEASE_DURATION
    clock: Callable[[], float] = time.monotonic
    """For the silence of others: it stands still while this machine sleeps, as they may with it."""
    _seen: dict[str, tuple[bytes, int, float]] = field(default_factory=dict)
    """By name of a lease: its content, and when that was seen first since the last interruption."""
    _held: dict[str, Lease] = field(default_factory=dict)
    _not_given_up: list[Lease] = field(default_factory=list)
    """Leases that have ended while their board could not be written: to be given up as soon as it can."""
    _renewing: threading.Thread | None = None
    _none_left: threading.Event = field(default_factory=threading.Event)
    """Ends the thread that renews: nothing is held, or left to give up."""
    _starting: threading.Lock = field(default_factory=threading.Lock)
    """Taken to start or end that thread."""
    _writing: threading.Lock = field(default_factory=threading.Lock)
    """Taken to write or remove a lease of this process, so that none is renewed after it was removed."""

    @contextmanager
    def leased(self, key: str, resume_point: str = "", *, is_first: bool = False) -> Iterator[Lease | None]:
        """Lease a run and note its progress. Yields None if a different process has the lease.

        ``is_first``: do not read the leases of the run, because there were none a moment ago. Yields None if
        there is one by now.
        """
        lease = self._lease(key, resume_point, is_first=is_first)
        if lease is None:
            yield None
            return
        self._note(lease, "claimed")
        self._held[key] = lease
        self._start_renewing()
        try:
            yield lease
        finally:
            self.renew(lease, if_over=True)
            with self._writing:
                del self._held[key]
                self._end(lease)
            self._stop_renewing()

    @contextmanager
    def alone(self, task: str) -> Iterator[None]:
        """Wait until no other process does a task, then do it in this context."""
        while True:
            with self.leased(task) as lease:
                if lease:
                    try:
                        yield
                    finally:
                        lease.ending = "finished"  # A task leaves no record: the lease is all it needs.
                    return
            time.sleep(RETRY_EVERY)

    def holder(self, key: str) -> str:
        """Return the holder of the lease of a run, for messages; empty without a holder."""
        history = self.history(key)
        return history.holder if history.is_held else ""

    def list_leased_runs(self) -> frozenset[str]:
        """Return the runs that have a lease, held or not, from one listing of the board."""
        return frozenset(name.rpartition(".")[0] for name in self.board.names())

    def history(self, key: str) -> LeaseHistory:
        """Read the leases of a run."""
        self._give_up()
        contents = self._contents(key)
        if not contents:
            return LeaseHistory()
        leases = [_read(content) for content in contents]
        is_held = not self._has_ended(key, contents[-1])
        past = leases[:-1] if is_held else leases
        pid = leases[-1].get("pid", "unknown")
        machine = leases[-1].get("machine", "an unknown machine")
        holder = f"{plain(str(pid))[:20]} on {plain(str(machine))[:80]}"
        return LeaseHistory(
            is_held,
            holder,
            starts=tuple(
                str(lease.get("resume_point", "")) for lease in past if lease.get("held") is not False
            ),
            out_of_memory=any(lease.get("ending") == "out of memory" for lease in past),
        )

    def flush_log(self) -> None:
        """Write the lines of the log that are not written yet."""
        with suppress(OSError, StorageError):
            self.board.flush()

    def abandon(self) -> None:
        """Give back every lease of this process, which ends at once and must not rename anything any more."""
        for lease in list(self._held.values()):
            lease.lost = True
            with suppress(OSError, StorageError):
                self.board.write(lease.name, lease.content(held=False), lease.is_own)

    def forget(self, key: str) -> None:
        """Remove the leases of a finished run that a killed process could not remove."""
        self._remove(key, len(self._contents(key)))

    def _remove(self, key: str, last_number: int) -> None:
        for lease_number in range(last_number, 0, -1):
            self.board.remove(_name(key, lease_number))

    def _lease(self, key: str, resume_point: str = "", *, is_first: bool = False) -> Lease | None:
        self._give_up()
        contents = [] if is_first else self._contents(key)
        # A lease is empty while its holder writes it: that is not one of which nothing is known.
        if contents and not self._has_ended(key, contents[-1]):
            return None
        lease = Lease(key, len(contents) + 1, renewed=_now(), resume_point=resume_point)
        return lease if self.board.create(lease.name, lease.content()) else None

    def _contents(self, key: str) -> list[bytes]:
        """Read the leases of a run, the first one first."""
        contents: list[bytes] = []
        while (content := self.board.read(_name(key, len(contents) + 1))) is not None:
            contents.append(content)
        return contents

    def _has_ended(self, key: str, content: bytes) -> bool:
        owner = _read(content)
        if owner.get("held") is False or has_ended(str(owner.get("process", ""))):
            return True
        now = content, self.board.interruptions  # While nothing could be seen, nobody was silent.
        observation = self._seen.get(key)
        if observation is None or observation[:2] != now:
            self._seen[key] = *now, self.clock()
            return False
        return self.clock() - observation[2] > self.duration

    def _end(self, lease: Lease) -> None:
        """Remove the leases of a run that has a record or has failed; release the lease of any other run."""
        self._note(lease, "lost" if lease.lost else lease.ending)
        self._seen.pop(lease.key, None)
        is_settled = lease.ending == "there" or (lease.ending in SETTLED and not lease.lost)
        try:
            if is_settled:
                self._remove(lease.key, lease.number)
            else:  # Also one that is lost: its holder did not die.
                self.board.write(lease.name, lease.content(held=False), lease.is_own)
        except (OSError, StorageError):  # Until then, whoever waits for it sees no more signs of life.
            self._not_given_up.append(lease)

    def _start_renewing(self) -> None:
        with self._starting:
            if self._renewing is None or not self._renewing.is_alive():
                self._none_left = threading.Event()
                self._renewing = threading.Thread(
                    target=self._renew_all, args=(self._none_left,), name="leases", daemon=True
                )
                self._renewing.start()

    def _stop_renewing(self) -> None:
        """Let the renewing thread end if no lease is left: a process may use many folders."""
        with self._starting:
            if not self._held and not self._not_given_up:
                self._none_left.set()
                self._renewing = None

    def _renew_all(self, none_left: threading.Event) -> None:
        """Renew all leases of this process, until none is left."""
        while not none_left.wait(self.duration / RENEWALS):
            for lease in list(self._held.values()):
                self.renew(lease)
            self._give_up()
            self._stop_renewing()

    def renew(self, lease: Lease, *, if_over: bool = False) -> None:
        """Renew a lease unless a different process has taken it over.

        ``if_over``: only after its duration.
        """
        if if_over and _now() - lease.renewed <= self.duration:
            return
        with self._writing:
            with suppress(OSError, StorageError):  # A board that is away may come back.
                self._write_renewal(lease)
            lease.silent = _now() - lease.renewed > self.duration

    def _write_renewal(self, lease: Lease) -> None:
        if self._held.get(lease.key) is not lease or lease.lost:
            return
        lease.beat += 1
        now = _now()  # Before it is written: this process may be paused any time.
        # Its own file is removed when the run has a record.
        if self.board.write(lease.name, lease.content(), lease.is_own):
            lease.renewed = now
        else:
            lease.lost = True
        lease.lost = lease.lost or self.board.read(_name(lease.key, lease.number + 1)) is not None

    def _give_up(self) -> None:
        """Give up what could not be given up when it ended."""
        with self._writing:
            pending = self._not_given_up
            self._not_given_up = []
            for lease in pending:
                self._end(lease)

    def _note(self, lease: Lease, event: str) -> None:
        if self.log:
            timestamp = datetime.now(UTC).isoformat(timespec="milliseconds")
            line = {"run": lease.key, "claim": lease.number, "event": event, "at": timestamp}
            with suppress(OSError, StorageError):  # It is for people to read: nothing depends on it.
                name = f"{self.log}/{this_process()}.jsonl"
                self.board.append(name, json.dumps(line) + "\n", begins=event == "claimed")


@cache
def leases_in(root: Path) -> Leases:
    """Return the leases of a folder of runs, the same ones for all of this process."""
    return Leases(FolderBoard(root / LEASES), log=LOG)


def _now() -> float:
    """Return seconds by a clock that includes sleep of the machine, if available."""
    return time.monotonic() if _BOOTTIME is None else time.clock_gettime(_BOOTTIME)


def _name(key: str, lease_number: int) -> str:
    return f"{key}.{lease_number}"


def _read(content: bytes) -> dict[str, object]:
    """Read a lease; empty while its holder is writing it, and for anything else that cannot be read."""
    try:
        fields = parse_json(content)
    except ValueError:
        return {}
    return fields if isinstance(fields, dict) else {}
