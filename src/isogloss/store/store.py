"""The store: one folder a run, named by its id; a run is finished if and only if its record is there.

A ``FolderStore`` is a folder that all processes see; a ``MirroredStore`` lies in a bucket, with copies in a
folder of each machine.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Protocol

from isogloss.core.progress import OnProgress, no_progress
from isogloss.core.records import Plan, Record
from isogloss.store.leases import Lease, Leases

PRECISION = "precision.json"
WORK = "work"
"""Folder within a run's of what only an unfinished run needs: checkpoints, tokenized text."""

DAMAGED = "damaged-"
"""Prefix of the names of quarantined files."""


class Run(Protocol):
    """A run, of which the store knows its id alone: a frozen dataclass that says what is to be made."""

    __dataclass_fields__: ClassVar[dict[str, Any]]


@dataclass(frozen=True)
class Outcome:
    """The outcome of a plan: ids of runs made now, found done, and failed (with the message).

    ``damaged`` says what was wrong with runs that were made again, or started over; ``died`` why, of
    runs that were made again since their process ended from outside, or the memory of a shared GPU ran out.
    """

    made: list[str] = field(default_factory=list)
    done: list[str] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)
    damaged: dict[str, str] = field(default_factory=dict)
    died: dict[str, str] = field(default_factory=dict)

    @property
    def ended(self) -> int:
        """Number of runs that need no more work."""
        return len(self.made) + len(self.done) + len(self.failed)


class Store(Protocol):
    """Runs, each in a folder of its own, which many processes may share."""

    @property
    def root(self) -> Path:
        """The folder with the runs, or with the copies of those in a bucket."""

    @property
    def url(self) -> str:
        """The bucket's URL; empty for a folder."""

    @property
    def leases(self) -> Leases:
        """The leases of runs that are being made, and of tasks that one process at a time does."""

    def guarded(self) -> AbstractContextManager[None]:
        """In this context, create nothing in place of the folder if it goes away."""

    def is_reachable(self) -> bool:
        """Return whether the folder can be reached, once anything in it was leased."""

    def is_outage(self, error: BaseException) -> bool:
        """Return whether an error may come from a folder that cannot be reached for now."""

    def folder(self, run: Run) -> Path:
        """Return the run's folder, whether it exists or not."""

    def model(self, run: Run) -> Path:
        """Return the folder of the run's encoder or model: an ordinary Hugging Face folder."""

    def refresh(self) -> None:
        """Look up which runs are finished or have failed elsewhere, all at once: there may be many."""

    def is_finished(self, run: Run, *, afresh: bool = False) -> bool:
        """Return whether the run has a record: at the last refresh, where others write, or now."""

    def finished_meanwhile(self, run: Run) -> bool:
        """Return whether a run that was just leased is finished; upload it if only the upload was missing."""

    def record(self, run: Run) -> Record:
        """Read a finished run's record."""

    def start(self, run: Run) -> Path:
        """Create the run's folder, remove traces of an earlier failure, and return it.

        StorageError where a link in its place leads out of the store: what is there would be replaced.
        """

    def finish(self, record: Record, made: Mapping[str, object]) -> None:
        """Write circumstances and checksums, then the record: from then on the run is finished."""

    def fail(self, run: Run, message: str, *, needs: str = "") -> None:
        """Write why a run failed; ``needs`` is the id of a failed run where it could not even begin."""

    def failure(self, run: Run, *, afresh: bool = False) -> str:
        """Return why a run failed when it was made; empty if it did not, or was never begun."""

    def forget_failure(self, run: Run) -> None:
        """Remove the note that a run failed, so that it is tried again."""

    def write_plan(self, runs: Sequence[Run], facts: Mapping[str, object]) -> None:
        """Write which runs the last recipe asked for, and what reports say about them.

        ConfigError or StorageError, before anything is made, where processes cannot share runs.
        """

    def plan(self) -> Plan:
        """Return the plan of the last recipe; empty without one."""

    def precision(self, device: str, measure: Callable[[], str]) -> str:
        """Return the precision that pays on a device, measured once for each device and store.

        A second measurement, on a busier machine, must not change the precision within a plan.
        """

    def remove_leftovers(self, run: Run) -> None:
        """Remove what only an unfinished run needs."""

    def forget_leases(self, run: Run) -> None:
        """Remove the leases of a finished run that a killed process could not remove."""

    def download(self, runs: Iterable[Run]) -> None:
        """Make all files of finished runs available in the folder."""

    def download_model(self, key: str) -> Path:
        """Make a run available by its id, with what its model needs; return its folder."""

    def download_records(self, on_progress: OnProgress = no_progress) -> None:
        """Make available what reports are made from: the plan and, of each run, record and predictions."""

    def download_checkpoints(self, run: Run) -> str:
        """Make the last checkpoints of a run available; return what was wrong with them, if anything."""

    def uploading_checkpoints(self, run: Run, lease: Lease) -> AbstractContextManager[None]:
        """Share checkpoints while a run is made: every few minutes, and when this process is interrupted."""

    def upload_report(self, files: Iterable[Path]) -> None:
        """Share a report that was written in the folder."""
        ...
