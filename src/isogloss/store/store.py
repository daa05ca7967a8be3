"""The store: one folder a run, named by its id; a run is finished if and only if its record is there.

A store may lie elsewhere, below a URL. Then its folder here holds copies: what a run needs is brought down
before it is made, all that it made goes up when it is finished, its record last, and checkpoints every few
minutes, for whoever goes on with it. Which runs are finished is what is known there.
"""

import json
import shutil
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Protocol

from isogloss.core.atomic_files import atomic_folder
from isogloss.core.checksums import CHECKSUMS, Checksum, checksums_of
from isogloss.core.errors import StorageError
from isogloss.core.foreign_json import T, fitting, parse_json, read_regular
from isogloss.core.identity import ID, identity
from isogloss.core.leaving import Left, leave_if_lost
from isogloss.core.paths import within
from isogloss.core.presence import is_there, kept, make_folder, went_away
from isogloss.core.progress import OnProgress, no_progress, one_by_one
from isogloss.core.records import (
    FAILED,
    MADE,
    PLAN,
    RECORD,
    Record,
    read_record,
    reading,
    sweep_folder,
    write_bytes,
    write_record,
    write_text,
    writing,
)
from isogloss.core.run_files import Plan, base_of
from isogloss.core.secrets import masked
from isogloss.data.files import some
from isogloss.store.leases import FOLDER as CLAIMS
from isogloss.store.leases import Claim, Claims, claims_in
from isogloss.store.remote import Remote
from isogloss.store.remote_leases import claims_of

PRECISION = "precision.json"
WORK = "work"
"""Folder within a run's of what only an unfinished run needs: checkpoints, tokenized text."""

FILES, CHECKPOINTS, REPORT = "files.json", "work.json", ".report.json"
"""Manifests of what lies elsewhere: the files of a finished run, what goes up of its work, the report."""

SENT = ("checkpoint-*/*", "chunk-*.jsonl", "mask.safetensors", "tokenizer.json")
"""What goes up of the work on a run, at any depth; all else is quickly made again."""

SEND_EVERY = 180.0
"""Seconds between two looks whether there is a new checkpoint."""

NOT_MADE = (WORK, FAILED, FILES, CHECKPOINTS)
"""What is in a run's folder and is not the result of the run."""

NO_RESULTS = frozenset((RECORD, MADE, FAILED, CHECKSUMS, WORK))
"""What a finished run has no checksum of, or one that is written with it."""

DAMAGED = "damaged-"
"""Prefix of the names of what was set aside."""


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


@dataclass(frozen=True)
class Store:
    """Runs under one folder."""

    root: Path
    remote: Remote | None = None
    """Where they lie, if elsewhere: then the folder holds copies."""

    @property
    def claims(self) -> Claims:
        """The claims of runs that are being made in this store, and of what one process at a time does."""
        return claims_of(self.remote) if self.remote else claims_in(self.root)

    def kept(self) -> AbstractContextManager[None]:
        """Make nothing in the folder's place, for a while, should it go away."""
        return nullcontext() if self.remote else kept(self.root, CLAIMS)

    def is_there(self) -> bool:
        """Return whether the folder is there, once anything in it was claimed."""
        return self.remote is not None or is_there(self.root, CLAIMS)

    def went_away(self, error: BaseException) -> bool:
        """Return whether an error may come from a folder that has gone away and may come back."""
        # A remote one is waited for there.
        return self.remote is None and went_away(error, self.root, CLAIMS)

    def folder(self, run: Run) -> Path:
        """Return the run's folder, whether it exists or not."""
        return self.root / identity(run)

    def model(self, run: Run) -> Path:
        """Return the folder of the run's encoder or model: an ordinary Hugging Face folder."""
        return self.folder(run) / "model"

    def look(self) -> None:
        """Look which runs are finished or have failed elsewhere, all at once: there may be many."""
        if self.remote:
            self.remote.listed = self.remote.listing()

    def is_finished(self, run: Run, *, afresh: bool = False) -> bool:
        """Return whether the run has a record: at the last look, where others write, or now."""
        name = f"{identity(run)}/{RECORD}"
        if self.remote is None:
            return (self.root / name).exists()
        if afresh and self.remote.exists(name):
            self.remote.listed.setdefault(name, 0)
        return name in self.remote.listed

    def was_finished(self, run: Run) -> bool:
        """Return whether a run that was claimed is finished after all; what did not go up goes up now."""
        if self.is_finished(run, afresh=True):
            return True
        here = self.remote and self.remote.is_here(f"{identity(run)}/{FILES}")
        if not here or not (self.folder(run) / RECORD).exists():
            return False
        self._send(identity(run))
        return True

    def record(self, run: Run) -> Record:
        """Read a finished run's record."""
        folder = self.folder(run)
        if self.remote and not (folder / RECORD).exists():
            self._copy(f"{folder.name}/{RECORD}")
        return read_record(folder)

    def start(self, run: Run) -> Path:
        """Create the run's folder, remove traces of an earlier failure, and return it.

        StorageError where a link in its place leads out of the store: what is there would be replaced.
        """
        folder = self.folder(run)
        for part in (WORK, self.model(run).name):
            within(self.root, f"{folder.name}/{part}")
        with writing(folder):
            make_folder(folder)
            sweep_folder(folder)  # A process that was killed had no time to.
        self.forget_failure(run)
        return folder

    def finish(self, record: Record, made: Mapping[str, object]) -> None:
        """Write circumstances and checksums, then the record: from then on the run is finished."""
        folder = self.root / record.id
        write_text(folder / MADE, json.dumps(made, indent=1) + "\n")
        with reading(folder):
            left = {path.name for path in folder.glob(f"{DAMAGED}*")}
            files = checksums_of(folder, without=NO_RESULTS | left)
        write_record(folder, record, files)
        if self.remote:
            self._send(record.id)

    def fail(self, run: Run, message: str, *, needs: str = "") -> None:
        """Write why a run failed; ``needs`` is the id of a failed run where it could not even begin."""
        body = {"error": masked(message), **({"needs": needs} if needs else {})}
        self._write(f"{identity(run)}/{FAILED}", json.dumps(body, ensure_ascii=False) + "\n")

    def failure(self, run: Run, *, afresh: bool = False) -> str:
        """Return why a run failed when it was made; empty if it did not, or was never begun."""
        name = f"{identity(run)}/{FAILED}"
        if self.remote and name not in self.remote.listed and not afresh:
            return ""
        body = self._json(name, dict[str, str])
        return "" if body.get("needs") else body.get("error", "")

    def forget_failure(self, run: Run) -> None:
        """Remove the note that a run failed, so that it is tried again."""
        with writing(self.folder(run)):
            (self.folder(run) / FAILED).unlink(missing_ok=True)
        if self.remote:
            self.remote.remove([f"{identity(run)}/{FAILED}"])

    def write_plan(self, runs: Sequence[Run], about: Mapping[str, object]) -> None:
        """Write which runs the last recipe asked for, and what reports say about them.

        ConfigError or StorageError, before anything is made, where processes cannot share runs.
        """
        if self.remote:
            self.remote.check()
        about = {name: masked(value) if isinstance(value, str) else value for name, value in about.items()}
        body = {**about, "runs": [identity(run) for run in runs]}
        self._write(PLAN, json.dumps(body, ensure_ascii=False, indent=1) + "\n")

    def plan(self) -> Plan:
        """Return the plan of the last recipe; empty where there is none."""
        return self._json(PLAN, Plan)

    def precision(self, device: str, measure: Callable[[], str]) -> str:
        """Return the precision that pays on a device, measured once for each device and store.

        A second measurement, on a busier machine, must not change the precision within a plan.
        """
        with self.claims.alone(PRECISION):
            known = self._json(PRECISION, dict[str, str])
            if device not in known:
                measured = {device: measure()}
                known = measured | self._json(
                    PRECISION, dict[str, str]
                )  # Another process may have meanwhile.
                self._write(PRECISION, json.dumps(known, indent=1) + "\n")
        return known[device]

    def find(self, prefix: str, on_progress: OnProgress = no_progress) -> Path:
        """Find a run's folder by its id or the beginning of it."""
        check_there(self.root)
        paths = one_by_one(sorted(self.root.glob(f"[!.]*/{RECORD}")), "runs", on_progress)
        finished = [path.parent for path in paths]
        found = [folder for folder in finished if prefix and folder.name.startswith(prefix)]
        if len(found) == 1:
            return found[0]
        there = some(folder.name for folder in found or finished)
        what = f"{len(found)} runs begin with" if found else "no finished run"
        raise StorageError(f"{self.root}: {what} {prefix!r}. Finished runs: {there}.")

    def remove_leftovers(self, run: Run) -> None:
        """Remove what only an unfinished run needs."""
        leave_if_lost()
        if self.remote is None:
            sweep_folder(self.folder(run))
        shutil.rmtree(self.folder(run) / WORK, ignore_errors=True)

    def forget_claims(self, run: Run) -> None:
        """Remove the claims of a finished run that a process left which was killed before it could."""
        key = identity(run)
        if self.remote is None or f"{CLAIMS}/{key}.1" in self.remote.listed:
            self.claims.forget(key)

    def bring(self, runs: Iterable[Run]) -> None:
        """Bring down all that finished runs made, as far as it lies elsewhere and is not here."""
        for run in runs if self.remote else ():
            if not self._bring(identity(run)):
                raise StorageError(
                    f"{self.remote and self.remote.url}/{identity(run)}: this run is not there, or not "
                    f"whole. Remove its {RECORD}, if there is one, and run again: only this run is repeated."
                )

    def bring_model(self, key: str) -> Path:
        """Bring down a run by its id, with what its model needs; return its folder."""
        self._bring(key)
        return self.root / key

    def bring_records(self, on_progress: OnProgress = no_progress) -> None:
        """Bring down what reports are made from: the plan and, of each run, record and predictions."""
        from isogloss.core.result_files import PREDICTIONS

        if self.remote is None:
            return
        self.look()
        listed = self.remote.listed
        for path in self.root.glob(f"*/{FAILED}"):
            if f"{path.parent.name}/{FAILED}" not in listed:
                path.unlink(missing_ok=True)
        keys = {key for name in listed if ID.fullmatch(key := name.partition("/")[0])}
        for name in {PLAN, *(f"{key}/{FAILED}" for key in keys)} & {*listed}:  # They may change meanwhile.
            self._copy(name)
        finished = sorted(key for key in keys if f"{key}/{RECORD}" in listed)
        names = [f"{key}/{file}" for key in finished for file in (MADE, PREDICTIONS, RECORD)]
        self.remote.copy(
            {name: Checksum(listed[name]) for name in names if name in listed}, on_progress=on_progress
        )

    def send_report(self, files: Iterable[Path]) -> None:
        """Let a report go up that was written here."""
        if self.remote:
            self.remote.send([file.relative_to(self.root).as_posix() for file in files], REPORT)

    def bring_checkpoints(self, run: Run) -> str:
        """Bring down how far a run has come unless that, or more, is here; return what was wrong."""
        folder, key = self.folder(run), identity(run)
        content = self.remote.read(f"{key}/{CHECKPOINTS}") if self.remote else None
        here = folder / CHECKPOINTS
        if self.remote is None or content is None or (here.exists() and here.read_bytes() == content):
            return ""
        told = self.remote.files_of(f"{key}/{CHECKPOINTS}", content)
        try:
            with atomic_folder(folder / WORK) as fresh:
                self.remote.copy(told, to=fresh)
                for path in (fresh / key / WORK).iterdir():
                    path.rename(fresh / path.name)
        except (StorageError, FileNotFoundError):
            return f"{self.remote.url}/{key}/{WORK}: these checkpoints are not whole, and were left aside."
        write_bytes(here, content)
        return ""

    @contextmanager
    def checkpoints_sent(self, run: Run, claim: Claim) -> Iterator[None]:
        """Let checkpoints go up while a run is made: every few minutes, and when this process is to leave."""
        if self.remote is None:
            yield
            return
        ended, key = threading.Event(), identity(run)

        def send() -> None:
            while not ended.wait(SEND_EVERY):
                self._send_checkpoints(key, claim)

        threading.Thread(target=send, name="checkpoints", daemon=True).start()
        try:
            yield
        except Left:
            self._send_checkpoints(key, claim)
            raise
        finally:
            ended.set()

    def _send_checkpoints(self, key: str, claim: Claim) -> None:
        if self.remote is None:
            return
        # One that is removed meanwhile has a successor; a store that is away gets a later one.
        with self.remote.sending, suppress(StorageError, FileNotFoundError):
            found = {path for pattern in SENT for path in (self.root / key / WORK).rglob(pattern)}
            names = [path.relative_to(self.root).as_posix() for path in found]
            if names and not claim.lost and f"{key}/{RECORD}" not in self.remote.listed:
                self.remote.send(names, f"{key}/{CHECKPOINTS}")

    def _send(self, key: str) -> None:
        """Let a finished run go up, unless another process was quicker; then remove its checkpoints."""
        if self.remote is None:
            return
        record = f"{key}/{RECORD}"
        if not self.remote.exists(record):
            self.remote.send(_made(self.root, key), f"{key}/{FILES}", last=record)
        with self.remote.sending:
            self.remote.listed[record] = 0
            self.remote.remove([f"{key}/{CHECKPOINTS}", *self.remote.listing(f"{key}/{WORK}")])
        (self.root / key / CHECKPOINTS).unlink(missing_ok=True)

    def _bring(self, key: str) -> bool:
        """Bring down a run, then those whose models its own is a difference from, each once."""
        brought = set[str]()
        while self.remote and key and key not in brought and self.remote.bring(f"{key}/{FILES}"):
            self.remote.listed.setdefault(f"{key}/{RECORD}", 0)
            brought.add(key)
            key = base_of(self.root / key / "model")
        return bool(brought)

    def _copy(self, name: str) -> None:
        """Bring down a small file, whatever its size is now; one that has not changed is not touched."""
        content, path = self.remote.read(name) if self.remote else None, within(self.root, name)
        if content is not None and not (path.is_file() and path.read_bytes() == content):
            write_bytes(path, content)

    def _json(self, name: str, shape: type[T]) -> T:
        """Read a file where it lies; an empty shape where there is none, or a damaged one."""
        try:
            content = self.remote.read(name) if self.remote else read_regular(self.root / name)
            return fitting(shape, parse_json(content or b"{}"))
        except (OSError, ValueError):
            return shape()

    def _write(self, name: str, text: str) -> None:
        write_text(self.root / name, text)
        if self.remote:
            self.remote.write(name, text.encode())


def check_there(folder: Path) -> None:
    """Raise StorageError unless a folder of runs is there."""
    if not folder.is_dir():
        raise StorageError(f"{folder}: there is no such folder of runs. Name one with --in.")


def _made(root: Path, key: str) -> Iterator[str]:
    """Yield what a finished run leaves: all its files but those of this place alone."""
    for path in (root / key).rglob("*"):
        first = path.relative_to(root / key).parts[0]
        if path.is_file() and first not in NOT_MADE and not first.startswith((".", DAMAGED)):
            yield path.relative_to(root).as_posix()
