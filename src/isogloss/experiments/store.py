"""The store: one folder a run, named by its id; a run is finished if and only if its record is there."""

import json
import shutil
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from isogloss.core.checksums import CHECKSUMS, checksums_of
from isogloss.core.errors import StorageError
from isogloss.core.identity import identity
from isogloss.core.presence import is_there, kept, make_folder, went_away
from isogloss.core.records import (
    MADE,
    RECORD,
    Record,
    read_record,
    reading,
    storage_error,
    write_record,
    write_text,
    writing,
)
from isogloss.experiments.claims import FOLDER as CLAIMS
from isogloss.experiments.claims import Claims, claims_in

if TYPE_CHECKING:
    from isogloss.experiments.runs import Run

FAILED = "failed.json"
PLAN = "plan.json"
PRECISION = "precision.json"
WORK = "work"
"""Folder within a run's of what only an unfinished run needs: checkpoints, tokenized text."""

NO_RESULTS = frozenset((RECORD, MADE, FAILED, CHECKSUMS, WORK))
"""What a finished run has no checksum of, or one that is written with it."""

DAMAGED = "damaged-"
"""Prefix of the names of what was set aside."""


@dataclass(frozen=True)
class Outcome:
    """The outcome of a plan: ids of runs made now, found done, and failed (with the message).

    ``damaged`` says what was wrong with runs that were made again, or started over; ``died`` of whose process
    ended from outside.
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

    @property
    def claims(self) -> Claims:
        """The claims of runs that are being made in this folder, and of what one process at a time does."""
        return claims_in(self.root)

    def kept(self) -> AbstractContextManager[None]:
        """Make nothing in the folder's place, for a while, should it go away."""
        return kept(self.root, CLAIMS)

    def is_there(self) -> bool:
        """Return whether the folder is there, once anything in it was claimed."""
        return is_there(self.root, CLAIMS)

    def went_away(self, error: BaseException) -> bool:
        """Return whether an error may come from a folder that has gone away and may come back."""
        return went_away(error, self.root, CLAIMS)

    def folder(self, run: "Run") -> Path:
        """Return the run's folder, whether it exists or not."""
        return self.root / identity(run)

    def model(self, run: "Run") -> Path:
        """Return the folder of the run's encoder or model: an ordinary Hugging Face folder."""
        return self.folder(run) / "model"

    def is_finished(self, run: "Run") -> bool:
        """Return whether the run has a record."""
        return (self.folder(run) / RECORD).exists()

    def record(self, run: "Run") -> Record:
        """Read a finished run's record."""
        return read_record(self.folder(run))

    def start(self, run: "Run") -> Path:
        """Create the run's folder, remove traces of an earlier failure, and return it."""
        folder = self.folder(run)
        try:
            make_folder(folder)
            (folder / FAILED).unlink(missing_ok=True)
            for leftover in folder.glob(".*.tmp"):  # A process that was killed had no time to.
                shutil.rmtree(leftover, ignore_errors=True)
                leftover.unlink(missing_ok=True)
        except OSError as error:
            raise storage_error(folder, error) from error
        return folder

    def finish(self, record: Record, made: Mapping[str, object]) -> None:
        """Write circumstances and checksums, then the record: from then on the run is finished."""
        folder = self.root / record.id
        write_text(folder / MADE, json.dumps(made, indent=1) + "\n")
        with reading(folder):
            left = {path.name for path in folder.glob(f"{DAMAGED}*")}
            files = checksums_of(folder, without=NO_RESULTS | left)
        write_record(folder, record, files)

    def fail(self, run: "Run", message: str, *, needs: str = "") -> None:
        """Write why a run failed; ``needs`` is the id of a failed run where it could not even begin."""
        body = {"error": message, **({"needs": needs} if needs else {})}
        write_text(self.folder(run) / FAILED, json.dumps(body, ensure_ascii=False) + "\n")

    def failure(self, run: "Run") -> str:
        """Return why a run failed when it was made; empty if it did not, or was never begun."""
        try:
            body = json.loads((self.folder(run) / FAILED).read_text(encoding="utf-8"))
        except FileNotFoundError:
            return ""
        except (OSError, ValueError):
            body = None
        if not isinstance(body, dict):
            return ""
        return "" if body.get("needs") else str(body.get("error", ""))

    def forget_failure(self, run: "Run") -> None:
        """Remove the note that a run failed, so that it is tried again."""
        with writing(self.folder(run)):
            (self.folder(run) / FAILED).unlink(missing_ok=True)

    def write_plan(self, runs: "list[Run]", about: Mapping[str, object]) -> None:
        """Write which runs the last recipe asked for, and what reports say about them."""
        body = {**about, "runs": [identity(run) for run in runs]}
        write_text(self.root / PLAN, json.dumps(body, ensure_ascii=False, indent=1) + "\n")

    def plan(self) -> dict[str, Any]:
        """Return the plan of the last recipe; empty where there is none."""
        try:
            body = json.loads((self.root / PLAN).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return {}
        return body if isinstance(body, dict) else {}

    def precision(self, device: str, measure: Callable[[], str]) -> str:
        """Return the precision that pays on a device, measured once for each device and store.

        A second measurement, on a busier machine, must not change the precision within a plan.
        """
        path = self.root / PRECISION
        with self.claims.alone(PRECISION):
            try:
                known = json.loads(path.read_text(encoding="utf-8"))
            except (OSError, ValueError):
                known = {}
            if device not in known:
                known = {**known, device: measure()}
                write_text(path, json.dumps(known, indent=1) + "\n")
        return str(known[device])

    def find(self, prefix: str) -> Path:
        """Find a run's folder by its id or the beginning of it."""
        finished = sorted(path.parent for path in self.root.glob(f"*/{RECORD}"))
        found = [folder for folder in finished if folder.name.startswith(prefix)]
        if len(found) == 1:
            return found[0]
        there = ", ".join(folder.name for folder in (found or finished)[:12]) or "none"
        what = f"{len(found)} runs begin with" if found else "no finished run"
        raise StorageError(f"{self.root}: {what} {prefix!r}. Finished runs: {there}.")

    def remove_leftovers(self, run: "Run", *names: str) -> None:
        """Remove what only an unfinished run needs."""
        for name in names:
            shutil.rmtree(self.folder(run) / name, ignore_errors=True)
