"""The store: one folder per run, named by its id. A run is finished if and only if its record exists.

A ``Store`` is a folder that all processes see. A ``MirroredStore`` is a bucket with copies in a folder on
each machine.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Protocol

from isogloss.core.atomic_files import (
    check_unicode,
    guard_folder,
    is_outage,
    is_reachable,
    make_folder,
    reading,
    sweep_folder,
    write_bytes,
    write_text,
    writing,
)
from isogloss.core.checksums import CHECKSUMS, checksums_of, seal, unseal
from isogloss.core.errors import StorageError, escape_surrogates, mask_secrets
from isogloss.core.identity import identity
from isogloss.core.progress import OnProgress, no_progress, one_by_one
from isogloss.core.records import (
    FAILED,
    MADE,
    PLAN,
    RECORD,
    Plan,
    Record,
    read_record,
    run_files,
    write_record,
)
from isogloss.core.shared_files import (
    check_folder,
    is_folder,
    is_taken,
    list_files,
    look_afresh,
    read_file,
    remove,
)
from isogloss.core.untrusted import T, convert_json
from isogloss.data.files import some
from isogloss.store.leases import LEASES, Lease, Leases, leases_in
from isogloss.store.resume_points import find_resume_point

PRECISION = "precision.json"
AUTO = "auto"
WORK = "work"
"""Folder within a run's folder for files that only an unfinished run needs: checkpoints, tokenized text."""

DAMAGED = "damaged-"
"""Prefix of the names of quarantined files."""


class StoredRun(Protocol):
    """A run: a frozen dataclass that specifies a computation. The store uses only its id."""

    __dataclass_fields__: ClassVar[dict[str, Any]]


@dataclass(frozen=True)
class Outcome:
    """The outcome of a plan: ids of new runs, of runs found finished, and of failed runs (with the message).

    The field ``damaged`` describes the damage of runs that were repeated or restarted. ``died`` has the
    reasons for runs that were repeated because their process died or the memory of a shared GPU ran out.
    """

    made: list[str] = field(default_factory=list)
    done: list[str] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)
    damaged: dict[str, str] = field(default_factory=dict)
    died: dict[str, str] = field(default_factory=dict)

    def __repr__(self) -> str:
        """Return the numbers of runs by outcome."""
        counts = {name: len(getattr(self, name)) for name in self.__dataclass_fields__}
        return f"Outcome({', '.join(f'{count} {name}' for name, count in counts.items() if count)})"

    @property
    def ended(self) -> int:
        """Number of runs that need no more work."""
        return len(self.made) + len(self.done) + len(self.failed)


NO_RESULTS = frozenset((RECORD, MADE, FAILED, CHECKSUMS, WORK))
"""Files of a finished run without a checksum, or written together with the checksums."""


@dataclass(frozen=True)
class Store:
    """Runs in separate folders below one folder, which many processes may share."""

    root: Path
    """The folder with the runs, or with copies of runs in a bucket."""

    @property
    def url(self) -> str:
        """The bucket's URL. Empty for a folder."""
        return ""

    @property
    def leases(self) -> Leases:
        """The leases of current runs, and of tasks for one process at a time."""
        return leases_in(self.root)

    def guard_folder(self) -> AbstractContextManager[None]:
        """In this context, never create the folder again if it disappears."""
        return guard_folder(self.root, LEASES)

    def is_reachable(self) -> bool:
        """Return whether the folder can be reached. Something in it must have been leased before."""
        return is_reachable(self.root, LEASES)

    def is_outage(self, error: BaseException) -> bool:
        """Return whether an error may come from a folder that cannot be reached at the moment."""
        return is_outage(error, self.root, LEASES)

    def folder(self, run: StoredRun) -> Path:
        """Return the folder of a run, whether it exists or not."""
        return self.root / identity(run)

    def model(self, run: StoredRun) -> Path:
        """Return the folder of the run's encoder or model: an ordinary Hugging Face folder."""
        return self.folder(run) / "model"

    def refresh(self) -> None:
        """Find the runs that other processes finished or failed, in one pass because there may be many."""

    def is_finished(self, run: StoredRun, *, afresh: bool = False) -> bool:
        """Return whether the run has a record.

        The answer is as of the last refresh if other processes write, unless ``afresh`` is true.
        """
        name = f"{identity(run)}/{RECORD}"
        if afresh:
            look_afresh(self.root, name)
        return is_taken(self.root, name)

    def finished_meanwhile(self, run: StoredRun) -> bool:
        """Return whether a run that was just leased is finished. Upload it if only the upload is missing."""
        return self.is_finished(run, afresh=True)

    def failed_meanwhile(self, run: StoredRun) -> str:
        """Return why a run that was just leased has failed. Call it after ``finished_meanwhile``."""
        return self.failure(run)

    def record(self, run: StoredRun) -> Record:
        """Read a finished run's record."""
        return read_record(self.folder(run))

    def start(self, run: StoredRun) -> Path:
        """Create the run's folder, remove traces of an earlier failure, and return it.

        Raises StorageError if a link is in its place, because files would be replaced where it leads.
        """
        folder = self.folder(run)
        with writing(folder):
            if is_folder(self.root, folder.name):
                for part in (WORK, self.model(run).name):
                    check_folder(self.root, f"{folder.name}/{part}")
                sweep_folder(folder)  # A killed process may have left files.
                self.forget_failure(run)
            else:
                make_folder(self.root, folder.name)
        return folder

    def finish(self, record: Record, circumstances: Mapping[str, object]) -> None:
        """Write circumstances and checksums, then the record, which marks the run as finished."""
        folder = self.root / record.id
        write_text(folder, MADE, seal(circumstances), is_swept=True)
        with reading(folder):
            files = checksums_of(
                folder, is_excluded=lambda name: name in NO_RESULTS or name.startswith(DAMAGED)
            )
        write_record(folder, record, files)

    def fail(self, run: StoredRun, message: str, *, needs: str = "") -> None:
        """Write why a run failed. ``needs`` is the id of a failed run without which it could not begin."""
        body = {"error": mask_secrets(message)}
        if needs:
            body["needs"] = needs
        self.write(f"{identity(run)}/{FAILED}", seal(body))

    def failure(self, run: StoredRun, *, afresh: bool = False) -> str:
        """Return the reason why a run failed. Empty if it did not fail or never started."""
        name = f"{identity(run)}/{FAILED}"
        if afresh:
            look_afresh(self.root, name)
        return failure_in(self.read(name))

    def forget_failure(self, run: StoredRun) -> None:
        """Remove the note that a run failed, so that it is tried again."""
        with writing(self.folder(run)):
            remove(self.root, f"{identity(run)}/{FAILED}")

    def write_plan(self, runs: Sequence[StoredRun], facts: Mapping[str, object]) -> None:
        """Write the runs of the last recipe, and their descriptions for reports.

        Raises ConfigError or StorageError, before any run starts, if processes cannot share runs here.
        """
        check_unicode(self.root)
        facts = {
            name: mask_secrets(escape_surrogates(value)) if isinstance(value, str) else value
            for name, value in facts.items()
        }
        body = {**facts, "runs": [identity(run) for run in runs]}
        self.write(PLAN, seal(body))

    def plan(self) -> Plan:
        """Return the plan of the last recipe. Empty without one."""
        return json_or_empty(self.read(PLAN), Plan)

    def precision(self, measure: Callable[[], str]) -> str:
        """Return the precision that "auto" stands for in this store, on any machine.

        It is measured before the first run. A second measurement, on a different or a busier machine, must
        not change the precision within a plan.
        """
        with self.leases.alone(PRECISION):
            decision = _precision_in(self.read(PRECISION))
            if not decision:
                measurement = measure()
                # If this process was paused, a different process may have measured.
                decision = _precision_in(self.read(PRECISION)) or measurement
                self.write(PRECISION, seal({AUTO: decision}))
        return decision

    def find(self, prefix: str, on_progress: OnProgress = no_progress) -> Path:
        """Find a run's folder by its id or the beginning of the id."""
        check_there(self.root)
        paths = one_by_one(sorted(run_files(self.root, RECORD)), "runs", on_progress)
        folders = [path.parent for path in paths if not path.parent.name.startswith(".")]
        matching = [folder for folder in folders if prefix and folder.name.startswith(prefix)]
        if len(matching) == 1:
            return matching[0]
        names = some(folder.name for folder in matching or folders)
        problem = f"{len(matching)} runs begin with" if matching else "no finished run"
        raise StorageError(
            f"{self.root}: {problem} {prefix!r}. Finished runs: {names}. List them: "
            f"isogloss list runs --in {self.root}"
        )

    def remove_leftovers(self, run: StoredRun) -> None:
        """Remove files that only an unfinished run needs."""
        folder = self.folder(run)
        if WORK in sweep_folder(folder):
            remove(folder, WORK)

    def forget_leases(self, run: StoredRun) -> None:
        """Remove the leases of a finished run that a killed process could not remove."""
        self.leases.forget(identity(run))

    def find_resume_point(self, run: StoredRun, *, afresh: bool = True) -> str:  # noqa: ARG002
        """Return the progress of an unfinished run: as of the last refresh, if others write, or current.

        Empty before its first checkpoint.
        """
        folder = self.folder(run)
        with reading(folder / WORK):
            names = list_files(folder, WORK) if is_folder(folder, WORK) else ()
            return find_resume_point(name.removeprefix(f"{WORK}/") for name in names)

    def download(self, runs: Iterable[StoredRun]) -> None:
        """Make all files of finished runs available in the folder."""

    def download_model(self, key: str) -> Path:
        """Make a run available by its id, with the files that its model needs, and return its folder."""
        return self.root / key

    def download_records(self, on_progress: OnProgress = no_progress) -> None:
        """Download the files that reports read: the plan and, for each run, record and predictions."""

    def download_checkpoints(self, run: StoredRun, *, afresh: bool = True) -> str:  # noqa: ARG002
        """Make the last checkpoints of a run available: as of the last refresh, if others write, or current.

        Returns their damage, if any.
        """
        return ""

    def uploading_checkpoints(self, run: StoredRun, lease: Lease) -> AbstractContextManager[None]:  # noqa: ARG002
        """Upload checkpoints during a run: every few minutes, and when this process is interrupted."""
        return nullcontext()

    def upload_report(self, files: Iterable[Path]) -> None:
        """Share a report that was written in the folder."""

    def read(self, name: str) -> bytes | None:
        """Return the content of a small file. None if it is missing or cannot be read."""
        try:
            return read_file(self.root, name)
        except OSError:
            return None

    def write(self, name: str, text: str) -> None:
        """Write a small file that all processes with the same store see."""
        self.write_content(name, text.encode())

    def write_content(self, name: str, content: bytes) -> None:
        """Write a small file of bytes that all processes with the same store see."""
        write_bytes(self.root, name, content)


def _precision_in(content: bytes | None) -> str:
    """Return the precision that a store has decided for. Empty without one.

    Older versions wrote one for each kind of device. If these differ, the precision is float32, which all
    devices can compute.
    """
    answers = json_or_empty(content, dict[str, str])
    choices = {answer for answer in answers.values() if answer in ("float32", "bfloat16")}
    if AUTO in answers and answers[AUTO] in choices:
        return answers[AUTO]
    if len(choices) > 1:
        return "float32"
    return choices.pop() if choices else ""


def check_there(folder: Path) -> None:
    """Raise StorageError unless a folder of runs exists."""
    if not folder.is_dir():
        raise StorageError(f"{folder}: no such folder of runs. Name one with --in.")


def json_or_empty(content: bytes | None, shape: type[T]) -> T:
    """Parse a small file. Returns an empty value if it is missing or damaged."""
    try:
        return convert_json(shape, unseal(content or b"{}"))
    except ValueError:
        return shape()


def failure_in(content: bytes | None) -> str:
    """Return why a run failed, from its note. Empty without one, or for a run that could not begin."""
    body = json_or_empty(content, dict[str, str])
    return "" if body.get("needs") else body.get("error", "")
