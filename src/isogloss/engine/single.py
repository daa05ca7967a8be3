"""Single runs without a recipe, for commands of features."""

from dataclasses import dataclass
from pathlib import Path

from isogloss.core.errors import StorageError, check_named
from isogloss.core.progress import OnProgress
from isogloss.core.records import Row
from isogloss.data.corpus import SPLITS, Split
from isogloss.engine.engine import make_planned
from isogloss.engine.engines import Execution
from isogloss.planning.plan import Planned

COMMAND_LINE = "command line"


@dataclass(frozen=True)
class MadeFile:
    """A file that a run made, with the run's numbers and warnings."""

    row: Row
    file: Path
    warnings: tuple[str, ...] = ()


def parse_split(name: str) -> Split:
    """Return the split with a name. Raises ConfigError for an unknown name."""
    check_named("--split", "split", SPLITS, name)
    return next(split for split in SPLITS if split == name)


def make_runs(plan: Planned, command: str, run_kind: str, on_progress: OnProgress) -> None:
    """Make the runs of a plan in this process. Raises StorageError for a run that failed."""
    plan.write(command)
    outcome = make_planned(plan, Execution(jobs=1, retry_failed=True), on_progress=on_progress)
    for key, message in outcome.failed.items():
        raise StorageError(f"{run_kind} {key}: {message}")
