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

from isogloss.core.arguments import always
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
"""Number of renewals in this duration."""

RETRY_EVERY = 0.5
"""Seconds between two attempts of a process that waits for a lease."""

Ending: TypeAlias = Literal["finished", "there", "failed", "given up", "out of memory"]
"""Reason for the end of a lease.

finished: the run has a record. there: it has a record of a different process. failed: it has failed. given
up: the lease is released. out of memory: it is released because a shared GPU ran out of memory.
"""

SETTLED = ("finished", "there", "failed")
"""Endings after which the leases of a run have no readers."""

IsOwn: TypeAlias = Callable[[bytes], object]
"""Returns, from the content of a file, whether this process wrote it."""

_BOOTTIME = getattr(time, "CLOCK_BOOTTIME", None)


class Board(Protocol):
    """Small files that all processes with the same store see."""

    def create(self, name: str, content: bytes) -> bool:
        """Write a file and return True, or return False if it exists.

        Two processes never create the same file.
        """

    def write(self, name: str, content: bytes, is_own: IsOwn = always) -> bool:
        """Overwrite an existing file if this process wrote it, and return whether it did."""

    def read(self, name: str) -> bytes | None:
        """Return the content of a file, or None if it is missing."""

    def names(self) -> list[str]:
        """Return the names of the files, except files in folders."""

    def remove(self, name: str) -> None:
        """Remove a file if it exists."""

    def append(self, name: str, line: str, *, begins: bool) -> None:
        """Add a line to a file that only this process writes. With ``begins``, create its folder."""

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

    def write(self, name: str, content: bytes, is_own: IsOwn = always) -> bool:
        """Overwrite a file in place. That needs no space, so a full disk does not destroy its content."""
        try:
            return overwrite_file(
                self.folder.parent,
                f"{self.folder.name}/{name}",
                lambda current: content if is_own(current) else None,
            )
        except (FileNotFoundError, NotADirectoryError):
            self.folder.stat()  # Raises an error if the whole folder has disappeared.
            return False
        except IrregularFileError:  # This process has not written it.
            return False
        except OSError as error:
            raise storage_error(self.folder / name, error) from error

    def read(self, name: str) -> bytes | None:
        """Return the content of a file. If it seems to be missing, refresh the folder and retry."""
        with reading(self.folder / name):
            content = self._read(name)
            if content is None:
                look_afresh(self.folder.parent, f"{self.folder.name}/{name}")
                content = self._read(name)
        return content

    def _read(self, name: str) -> bytes | None:
        try:
            return read_file(self.folder.parent, f"{self.folder.name}/{name}")
        except (FileNotFoundError, NotADirectoryError):  # NotADirectoryError: a file has replaced a folder.
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
    """Random text that identifies the lease."""
    beat: int = 0
    renewed: float = 0.0
    """Time of the last renewal, by a clock that includes sleep of the machine."""
    lost: bool = False
    """Whether a different process leased or finished the run while this process could not renew the lease."""
    silent: bool = False
    """Whether the lease could not be renewed for its duration, so that a different process may lease the run.
    """
    ending: Ending = "given up"
    resume_point: str = ""
    """Progress of the run when it was leased."""

    @property
    def name(self) -> str:
        """Name of its file."""
        return _name(self.key, self.number)

    def is_own(self, content: bytes) -> bool:
        """Return whether this process wrote the content of the lease file. False if it cannot be read."""
        return _read(content).get("token") == self.token

    def content(self, *, is_held: bool = True) -> bytes:
        """Return the content of its file."""
        holder = {"process": this_process(), "machine": node(), "pid": os.getpid(), "token": self.token}
        ending = {} if is_held else {"ending": self.ending}
        facts = {**holder, "resume_point": self.resume_point, "beat": self.beat, "held": is_held, **ending}
        return json.dumps(facts).encode()


@dataclass(frozen=True)
class LeaseHistory:
    """The leases of a run that has neither a record nor failed."""

    is_held: bool = False
    """Whether a process has the last lease at the moment."""
    holder: str = ""
    """Current or last holder, for messages."""
    starts: tuple[str, ...] = ()
    """Progress of the run at the start of each lease that ended without release."""
    out_of_memory: bool = False
    """Whether a lease was released because the memory of a shared GPU ran out."""

    @property
    def deaths(self) -> int:
        """Number of leases that ended without being released."""
        return len(self.starts)

    def count_deaths_at(self, resume_point: str) -> int:
        """Return the number of deaths since a run reached this point, without a further checkpoint."""
        return self.starts.count(resume_point)


@dataclass
class Leases:
    """The leases on a board from the view of one process."""

    board: Board
    log: str = ""
    """Folder on the board for logs of leases. Each process writes a separate file."""
    duration: float = LEASE_DURATION
    clock: Callable[[], float] = time.monotonic
    """Clock for the silence of other processes. It stops while this machine sleeps, because they may sleep
    too."""
    _seen: dict[str, tuple[bytes, int, float]] = field(default_factory=dict)
    """For each run, the content of its last lease and when it was first seen since the last interruption."""
    _held: dict[str, Lease] = field(default_factory=dict)
    _not_given_up: list[Lease] = field(default_factory=list)
    """Leases that ended while their board could not be written. They are released as soon as it can."""
    _renewing: threading.Thread | None = None
    _none_left: threading.Event = field(default_factory=threading.Event)
    """Event that ends the renewing thread, because no lease is left to renew or release."""
    _starting: threading.Lock = field(default_factory=threading.Lock)
    """Lock for starting and ending the renewing thread."""
    _writing: threading.Lock = field(default_factory=threading.Lock)
    """Lock for writing and removing a lease of this process, so that a removed lease is not renewed."""

    @contextmanager
    def lease_run(
        self, key: str, resume_point: str = "", *, is_first: bool = False
    ) -> Iterator[Lease | None]:
        """Lease a run and note its progress. Yields None if a different process has the lease.

        With ``is_first``, the leases of the run are not read, because the run had none a moment ago. Yields
        None if a process has leased it since.
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
            with self.lease_run(task) as lease:
                if lease:
                    try:
                        yield
                    finally:
                        lease.ending = "finished"  # A task has no record, so its lease is removed.
                    return
            time.sleep(RETRY_EVERY)

    def holder(self, key: str) -> str:
        """Return the holder of a run's lease, for messages. Empty without a holder."""
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
        """Release every lease of this process, which ends at once and must not rename anything any more."""
        for lease in list(self._held.values()):
            lease.lost = True
            with suppress(OSError, StorageError):
                self.board.write(lease.name, lease.content(is_held=False), lease.is_own)

    def forget(self, key: str) -> None:
        """Remove the leases of a finished run that a killed process could not remove."""
        self._remove(key, len(self._contents(key)))

    def _remove(self, key: str, last_number: int) -> None:
        for lease_number in range(last_number, 0, -1):
            self.board.remove(_name(key, lease_number))

    def _lease(self, key: str, resume_point: str = "", *, is_first: bool = False) -> Lease | None:
        self._give_up()
        contents = [] if is_first else self._contents(key)
        # An empty lease has not ended: its holder may be writing it.
        if contents and not self._has_ended(key, contents[-1]):
            return None
        lease = Lease(key, len(contents) + 1, renewed=_now(), resume_point=resume_point)
        return lease if self.board.create(lease.name, lease.content()) else None

    def _contents(self, key: str) -> list[bytes]:
        """Read the leases of a run, from the first to the last."""
        contents: list[bytes] = []
        while (content := self.board.read(_name(key, len(contents) + 1))) is not None:
            contents.append(content)
        return contents

    def _has_ended(self, key: str, content: bytes) -> bool:
        owner = _read(content)
        if owner.get("held") is False or has_ended(str(owner.get("process", ""))):
            return True
        # Silence during an interruption of the board does not count.
        state = content, self.board.interruptions
        observation = self._seen.get(key)
        if observation is None or observation[:2] != state:
            self._seen[key] = *state, self.clock()
            return False
        return self.clock() - observation[2] > self.duration

    def _end(self, lease: Lease) -> None:
        """Remove the leases of a run that has a record or has failed. Otherwise, release this lease."""
        self._note(lease, "lost" if lease.lost else lease.ending)
        self._seen.pop(lease.key, None)
        is_settled = lease.ending == "there" or (lease.ending in SETTLED and not lease.lost)
        try:
            if is_settled:
                self._remove(lease.key, lease.number)
            else:  # A lost lease too, because its holder did not die.
                self.board.write(lease.name, lease.content(is_held=False), lease.is_own)
        except (OSError, StorageError):  # Waiting processes see no more signs of life.
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
        """Let the renewing thread end if no lease is left, because a process may use many folders."""
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

        With ``if_over``, it is renewed only after its duration.
        """
        if if_over and _now() - lease.renewed <= self.duration:
            return
        with self._writing:
            with suppress(OSError, StorageError):  # The board may be reachable again later.
                self._write_renewal(lease)
            lease.silent = _now() - lease.renewed > self.duration

    def _write_renewal(self, lease: Lease) -> None:
        if self._held.get(lease.key) is not lease or lease.lost:
            return
        lease.beat += 1
        now = _now()  # Before the write, because this process may be paused.
        # Its own file is removed when the run has a record.
        if self.board.write(lease.name, lease.content(), lease.is_own):
            lease.renewed = now
        else:
            lease.lost = True
        lease.lost = lease.lost or self.board.read(_name(lease.key, lease.number + 1)) is not None

    def _give_up(self) -> None:
        """Release the leases that could not be released when they ended."""
        with self._writing:
            pending = self._not_given_up
            self._not_given_up = []
            for lease in pending:
                self._end(lease)

    def _note(self, lease: Lease, event: str) -> None:
        if self.log:
            timestamp = datetime.now(UTC).isoformat(timespec="milliseconds")
            line = {"run": lease.key, "claim": lease.number, "event": event, "at": timestamp}
            with suppress(OSError, StorageError):  # The log is only for people.
                name = f"{self.log}/{this_process()}.jsonl"
                self.board.append(name, json.dumps(line) + "\n", begins=event == "claimed")


@cache
def leases_in(root: Path) -> Leases:
    """Return the leases of a folder of runs. All callers in this process get the same object."""
    return Leases(FolderBoard(root / LEASES), log=LOG)


def _now() -> float:
    """Return seconds by a clock that includes sleep of the machine, if available."""
    return time.monotonic() if _BOOTTIME is None else time.clock_gettime(_BOOTTIME)


def _name(key: str, lease_number: int) -> str:
    return f"{key}.{lease_number}"


def _read(content: bytes) -> dict[str, object]:
    """Read a lease. Empty while its holder is writing it, and for unreadable content."""
    try:
        fields = parse_json(content)
    except ValueError:
        return {}
    return fields if isinstance(fields, dict) else {}
