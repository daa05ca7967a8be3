"""The store: one folder a run, named by its id; a run is finished if and only if its record is there."""

import json
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from isogloss.core.errors import StorageError
from isogloss.core.records import MADE, RECORD, Record, read_record, storage_error, write_record, write_text
from isogloss.core.runs import Run, run_id

FAILED = "failed.json"
PLAN = "plan.json"


@dataclass(frozen=True)
class Store:
    """Runs under one folder."""

    root: Path

    def folder(self, run: Run) -> Path:
        """Return the run's folder, whether it exists or not."""
        return self.root / run_id(run)

    def model(self, run: Run) -> Path:
        """Return the folder of the run's encoder or model: an ordinary Hugging Face folder."""
        return self.folder(run) / "model"

    def is_finished(self, run: Run) -> bool:
        """Tell whether the run has a record."""
        return (self.folder(run) / RECORD).exists()

    def record(self, run: Run) -> Record:
        """Read a finished run's record."""
        return read_record(self.folder(run))

    def start(self, run: Run) -> Path:
        """Make the run's folder, forget an earlier failure, and return it."""
        folder = self.folder(run)
        try:
            folder.mkdir(parents=True, exist_ok=True)
            (folder / FAILED).unlink(missing_ok=True)
        except OSError as error:
            raise storage_error(folder, error) from error
        return folder

    def finish(self, record: Record, made: Mapping[str, object]) -> None:
        """Write what is known about the making, then the record: from now on the run is finished."""
        folder = self.root / record.id
        write_text(folder / MADE, json.dumps(made, indent=1) + "\n")
        write_record(folder, record)

    def fail(self, run: Run, message: str) -> None:
        """Note why a run could not finish; the next call tries it again."""
        write_text(self.folder(run) / FAILED, json.dumps({"error": message}, ensure_ascii=False) + "\n")

    def write_plan(self, title: str, recipe: str, command: str, runs: list[Run]) -> None:
        """Note what the last recipe asked for: reports are about these runs."""
        body = {"title": title, "recipe": recipe, "command": command, "runs": [run_id(run) for run in runs]}
        write_text(self.root / PLAN, json.dumps(body, ensure_ascii=False, indent=1) + "\n")

    def find(self, prefix: str) -> Path:
        """Find a run's folder by its id or the beginning of it."""
        found = sorted(path.parent for path in self.root.glob(f"{prefix}*/{RECORD}"))
        if len(found) == 1:
            return found[0]
        there = ", ".join(sorted(path.parent.name for path in self.root.glob(f"*/{RECORD}"))[:12]) or "none"
        what = f"{len(found)} runs begin with" if found else "no finished run"
        raise StorageError(f"{self.root}: {what} {prefix!r}. Finished runs: {there}.")

    def remove_leftovers(self, run: Run, *names: str) -> None:
        """Remove what only an unfinished run needs."""
        for name in names:
            shutil.rmtree(self.folder(run) / name, ignore_errors=True)
