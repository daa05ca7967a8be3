"""Runs in a bucket, below a URL, with copies in a folder of this machine.

The needs of a run are downloaded before it starts. Its files are uploaded when it is finished, the record
last. Checkpoints are uploaded every few minutes, so that any machine can resume the run. The bucket decides
which runs are finished.
"""

import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from functools import cache
from math import inf
from pathlib import Path, PurePosixPath

from isogloss.core.arguments import always
from isogloss.core.atomic_files import atomic_folder, write_bytes
from isogloss.core.checksums import CHECKSUMS, Checksum, find_differing_files, read_checksums, unseal
from isogloss.core.errors import StorageError
from isogloss.core.identity import ID, identity
from isogloss.core.processes import Interrupted
from isogloss.core.progress import OnProgress, no_progress
from isogloss.core.records import FAILED, MADE, PLAN, PREDICTIONS, RECORD, Record, base_of, run_files
from isogloss.core.shared_files import entries, is_taken, list_files, read_file, remove, rename
from isogloss.features.buckets.remote import Remote, remote_at
from isogloss.store.leases import LEASES, LOG, IsOwn, Lease, Leases
from isogloss.store.resume_points import find_resume_point
from isogloss.store.store import DAMAGED, WORK, Store, StoredRun, failure_in

FILES = "files.json"
"""Manifest, in the bucket, of the files of a finished run."""

CHECKPOINTS = "work.json"
"""Manifest, in the bucket, of a run's uploaded checkpoints."""

REPORT = ".report.json"
"""Manifest, in the bucket, of the report."""

CHECKPOINT_FILES = ("checkpoint-*/*", "chunk-*.jsonl", "mask.safetensors", "tokenizer.json")
"""Files of an unfinished run that are uploaded, at any depth. All others are quick to compute again."""

UPLOAD_EVERY = 180.0
"""Seconds between two uploads of new checkpoints."""

NOT_MADE = (WORK, FAILED, FILES, CHECKPOINTS)
"""Files in a run's folder that are not results of the run."""

SLOW_READ = 5.0
"""Seconds after which a successful read of a small file counts as an interruption."""

LOG_EVERY = 10.0
"""Seconds between two uploads of the logs of leases, which are only for people."""

LINES = 100
"""Maximum number of lines of a log file. Object stores write only whole files, so long files are expensive.
"""


@dataclass(frozen=True)
class MirroredStore(Store):
    """Runs below a URL, and their copies in a folder."""

    remote: Remote

    @property
    def url(self) -> str:  # noqa: D102
        return self.remote.url

    @property
    def leases(self) -> Leases:  # noqa: D102
        return leases_of(self.remote)

    def guard_folder(self) -> AbstractContextManager[None]:  # noqa: D102
        return nullcontext()

    def is_reachable(self) -> bool:
        """Return True, because each request waits for a bucket that does not answer."""
        return True

    def is_outage(self, error: BaseException) -> bool:  # noqa: ARG002, D102
        return False

    def refresh(self) -> None:  # noqa: D102
        self.remote.listed = self.remote.listing()

    def is_finished(self, run: StoredRun, *, afresh: bool = False) -> bool:  # noqa: D102
        name = f"{identity(run)}/{RECORD}"
        if afresh and self.remote.exists(name):
            self.remote.listed.setdefault(name, 0)
        return name in self.remote.listed

    def finished_meanwhile(self, run: StoredRun) -> bool:  # noqa: D102
        if self.is_finished(run, afresh=True):
            return True
        key = identity(run)
        if not self.remote.is_here(f"{key}/{FILES}") or not super().is_finished(run):
            return False
        self._upload_run(key)
        return True

    def failed_meanwhile(self, run: StoredRun) -> str:  # noqa: D102
        return self.failure(run, afresh=True)

    def record(self, run: StoredRun) -> Record:  # noqa: D102
        key = identity(run)
        if not super().is_finished(run) or not _is_sound(self.folder(run)):
            for name in (CHECKSUMS, RECORD):
                self._download_file(f"{key}/{name}")
        return super().record(run)

    def start(self, run: StoredRun) -> Path:  # noqa: D102
        folder = super().start(run)
        self.forget_failure(run)
        return folder

    def finish(self, record: Record, circumstances: Mapping[str, object]) -> None:  # noqa: D102
        super().finish(record, circumstances)
        self._upload_run(record.id)

    def failure(self, run: StoredRun, *, afresh: bool = False) -> str:  # noqa: D102
        name = f"{identity(run)}/{FAILED}"
        if not afresh and name not in self.remote.listed:
            return ""
        content = self.remote.read(name)
        self.remote.note(name, content)
        return failure_in(content)

    def forget_failure(self, run: StoredRun) -> None:  # noqa: D102
        super().forget_failure(run)
        name = f"{identity(run)}/{FAILED}"
        if name in self.remote.listed:
            self.remote.remove([name])

    def write_plan(self, runs: Sequence[StoredRun], facts: Mapping[str, object]) -> None:  # noqa: D102
        self.remote.check()
        super().write_plan(runs, facts)

    def forget_leases(self, run: StoredRun) -> None:  # noqa: D102
        key = identity(run)
        if f"{LEASES}/{key}.1" in self.remote.listed:
            self.leases.forget(key)

    def download(self, runs: Iterable[StoredRun]) -> None:  # noqa: D102
        for run in runs:
            if not self._download_run(identity(run)):
                raise StorageError(
                    f"{self.url}/{identity(run)}: this run is not there, or not whole. Remove its {RECORD}, "
                    f"if any, and run again: only this run is repeated."
                )

    def download_model(self, key: str) -> Path:  # noqa: D102
        self._download_run(key)
        return self.root / key

    def download_records(self, on_progress: OnProgress = no_progress) -> None:  # noqa: D102
        self.refresh()
        files = self.remote.listed
        for path in list(run_files(self.root, FAILED)):
            if f"{path.parent.name}/{FAILED}" not in files:
                remove(self.root, f"{path.parent.name}/{FAILED}")
        keys = {key for name in files if ID.fullmatch(key := name.partition("/")[0])}
        for name in {PLAN, *(f"{key}/{FAILED}" for key in keys)} & set(files):  # These files may change.
            self._download_file(name)
        finished_keys = sorted(key for key in keys if f"{key}/{RECORD}" in files)
        record_files = (CHECKSUMS, MADE, PREDICTIONS, RECORD)
        for key in finished_keys:
            if is_taken(self.root, f"{key}/{CHECKSUMS}") and not _is_sound(self.root / key):
                for file in record_files:
                    remove(self.root, f"{key}/{file}")
        names = [f"{key}/{file}" for key in finished_keys for file in record_files]
        self.remote.download_files(
            {name: Checksum(files[name]) for name in names if name in files}, on_progress=on_progress
        )

    def find_resume_point(self, run: StoredRun, *, afresh: bool = True) -> str:
        """Return the progress of an unfinished run, from the checkpoints that other machines see."""
        key = identity(run)
        content = self._checkpoints(key, afresh=afresh)
        names = self.remote.files_of(f"{key}/{CHECKPOINTS}", content or b"")
        return find_resume_point(name.removeprefix(f"{key}/{WORK}/") for name in names)

    def _checkpoints(self, key: str, *, afresh: bool) -> bytes | None:
        """Read the manifest of a run's checkpoints: as of the last listing, or current."""
        name = f"{key}/{CHECKPOINTS}"
        if not afresh and name not in self.remote.listed:
            return None
        content = self.remote.read(name)
        self.remote.note(name, content)
        return content

    def download_checkpoints(self, run: StoredRun, *, afresh: bool = True) -> str:  # noqa: D102
        folder = self.folder(run)
        key = identity(run)
        content = self._checkpoints(key, afresh=afresh)
        local = super().read(f"{key}/{CHECKPOINTS}")
        if content is None or local == content:
            return ""
        manifest = self.remote.files_of(f"{key}/{CHECKPOINTS}", content)
        try:
            with atomic_folder(folder, WORK) as new_folder:
                self.remote.download_files(manifest, target=new_folder)
                for entry in entries(new_folder, f"{key}/{WORK}"):
                    rename(new_folder, f"{key}/{WORK}/{entry.name}", entry.name)
        except (StorageError, FileNotFoundError):
            return f"{self.url}/{key}/{WORK}: these checkpoints are not whole, and were left aside."
        write_bytes(self.root, f"{key}/{CHECKPOINTS}", content)
        return ""

    @contextmanager
    def uploading_checkpoints(self, run: StoredRun, lease: Lease) -> Iterator[None]:  # noqa: D102
        has_ended = threading.Event()
        key = identity(run)

        def upload() -> None:
            while not has_ended.wait(UPLOAD_EVERY):
                self._upload_checkpoints(key, lease)

        threading.Thread(target=upload, name="checkpoints", daemon=True).start()
        try:
            yield
        except Interrupted:
            self._upload_checkpoints(key, lease)
            raise
        finally:
            has_ended.set()

    def upload_report(self, files: Iterable[Path]) -> None:  # noqa: D102
        self.remote.upload([file.relative_to(self.root).as_posix() for file in files], REPORT)

    def _upload_checkpoints(self, key: str, lease: Lease) -> None:
        # A checkpoint removed in the meantime has a successor. An unreachable store gets a later one.
        with self.remote.uploading, suppress(StorageError, FileNotFoundError):
            names = [
                name
                for name in list_files(self.root, f"{key}/{WORK}")
                if any(PurePosixPath(name).match(pattern) for pattern in CHECKPOINT_FILES)
            ]
            if names and not lease.lost and f"{key}/{RECORD}" not in self.remote.listed:
                self.remote.listed.setdefault(f"{key}/{CHECKPOINTS}", 0)  # Some files may arrive.
                self.remote.upload(names, f"{key}/{CHECKPOINTS}")

    def _upload_run(self, key: str) -> None:
        """Upload a finished run, unless a different process has done so, then remove its checkpoints."""
        record = f"{key}/{RECORD}"
        if not self.remote.exists(record):
            self.remote.upload(_list_results(self.root, key), f"{key}/{FILES}", last_name=record)
        with self.remote.uploading:
            self.remote.listed[record] = 0
            if f"{key}/{CHECKPOINTS}" in self.remote.listed:
                self.remote.remove([*self.remote.listing(f"{key}/{WORK}"), f"{key}/{CHECKPOINTS}"])
        remove(self.root, f"{key}/{CHECKPOINTS}")

    def _download_run(self, key: str) -> bool:
        """Download a run, then the runs whose models its model is a difference from, each once."""
        downloaded_keys = set[str]()
        while key and key not in downloaded_keys and self.remote.download(f"{key}/{FILES}"):
            self.remote.listed.setdefault(f"{key}/{RECORD}", 0)
            downloaded_keys.add(key)
            key = base_of(self.root / key / "model")
        return bool(downloaded_keys)

    def read(self, name: str) -> bytes | None:  # noqa: D102
        return self.remote.read(name)

    def write_content(self, name: str, content: bytes) -> None:  # noqa: D102
        super().write_content(name, content)
        self.remote.write(name, content)

    def _download_file(self, name: str) -> None:
        """Download a small file whatever its size. A file that has not changed is not written."""
        content = self.remote.read(name)
        if content is not None and super().read(name) != content:
            write_bytes(self.root, name, content)


def _is_sound(folder: Path) -> bool:
    """Return whether the copies of a run's record, predictions and circumstances match their checksums."""
    try:
        sums = read_checksums(folder)
        if is_taken(folder, MADE):
            unseal(read_file(folder, MADE))
        checksums = {name: checksum for name, checksum in sums.items() if name in (RECORD, PREDICTIONS)}
        return (RECORD in checksums or not sums) and not any(find_differing_files(folder, checksums))
    except (OSError, ValueError):
        return False


def _list_results(root: Path, key: str) -> Iterator[str]:
    """Yield the files of a finished run, except files for only this machine."""
    for name in list_files(root, key):
        part = name.split("/")[1]
        if part not in NOT_MADE and not part.startswith((".", DAMAGED)):
            yield name


@dataclass
class RemoteBoard:
    """The files of leases in a store."""

    remote: Remote
    _lines: dict[str, list[str]] = field(default_factory=dict)
    """Lines of each log."""
    _written: dict[str, int] = field(default_factory=dict)
    """Number of lines of each log that are in the store."""
    _flushed: float = -inf
    """Time of the last upload of logs."""

    @property
    def interruptions(self) -> int:  # noqa: D102
        return self.remote.interruptions

    def create(self, name: str, content: bytes) -> bool:  # noqa: D102
        return self.remote.create(f"{LEASES}/{name}", content)

    def read(self, name: str) -> bytes | None:  # noqa: D102
        began = time.monotonic()
        content = self.remote.read(f"{LEASES}/{name}")
        if time.monotonic() - began > SLOW_READ:  # The package itself has waited for the store.
            self.remote.interruptions += 1
        return content

    def write(self, name: str, content: bytes, is_own: IsOwn = always) -> bool:
        """Write an existing file without waiting for the store, because a late sign of life is useless."""
        current = self.remote.read(f"{LEASES}/{name}", waits=False)
        if current is None or not is_own(current):
            return False
        self.remote.write(f"{LEASES}/{name}", content, waits=False)
        return True

    def names(self) -> list[str]:  # noqa: D102
        names = [name.removeprefix(f"{LEASES}/") for name in self.remote.listing(LEASES)]
        return [name for name in names if "/" not in name]

    def remove(self, name: str) -> None:  # noqa: D102
        self.remote.remove([f"{LEASES}/{name}"], waits=False)

    def append(self, name: str, line: str, *, begins: bool) -> None:  # noqa: ARG002
        """Add a line. Lines are uploaded every few seconds, because a store only writes whole files."""
        self._lines.setdefault(name, []).append(line)
        if time.monotonic() - self._flushed > LOG_EVERY:
            self.flush()

    def flush(self) -> None:  # noqa: D102
        self._flushed = time.monotonic()
        for name, lines in self._lines.items():
            stem, dot, ending = name.partition(".")
            first_part = self._written.get(name, 0) // LINES
            for part in range(first_part, -(-len(lines) // LINES)):
                text = "".join(lines[part * LINES : (part + 1) * LINES])
                self.remote.write(
                    f"{LEASES}/{stem}{f'-{part + 1}' if part else ''}{dot}{ending}",
                    text.encode(),
                    waits=False,
                )
            self._written[name] = len(lines)


@cache
def leases_of(remote: Remote) -> Leases:
    """Return the leases of a store. All callers in this process get the same object."""
    return Leases(RemoteBoard(remote), log=LOG)


def open_bucket(url: str, root: Path) -> MirroredStore:
    """Return the store below a URL, with copies in a folder."""
    return MirroredStore(root, remote_at(url, root))
