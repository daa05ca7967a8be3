"""Trackers for which Accelerate has classes.

A run's tracker starts with its first numbers and is not part of the run: a failing tracker is a warning.
"""

import logging
import re
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from isogloss.core.errors import ConfigError, one_line
from isogloss.core.processes import is_of_code
from isogloss.core.progress import OnProgress, Progress
from isogloss.core.records import Row
from isogloss.core.shared_files import lock_file
from isogloss.runs.trackers import TrackedRun
from isogloss.training.distributed import is_main_process

MAX_NAME = 100
"""Maximum length of the name of a folder from which a tracker reads a run."""

MAX_TAG = 64
"""Maximum length of a tag that all trackers accept."""

EXTRAS = ("tensorboard", "mlflow", "wandb")
"""Trackers that an extra of their name installs. The others have packages of the same name."""

Arguments = Mapping[str, Any]


class FollowedRun:
    """A run that a tracker follows, from its first numbers on. Its training reports to ``on_progress``."""

    def __init__(self, library: "Library", run: TrackedRun, on_progress: OnProgress) -> None:
        self.library = library
        self.run = run
        self.pass_on = on_progress
        self.is_waiting = is_main_process()
        self.tracker: Any = None
        self.end = ExitStack()
        self.finished = self.done = 0
        """Steps of the run's earlier trainings, and of the present one."""

    def on_progress(self, progress: Progress) -> None:
        """Log the numbers of a training, and pass its progress on."""
        if progress.rows:
            if progress.done <= self.done:  # A further training of this run: its steps follow.
                self.finished += self.done
            self.done = progress.done
            step_values: dict[int, dict[str, float]] = {}
            for row in progress.rows:
                step_values.setdefault(int(row.get("step") or 0), {}).update(_values(row))
            for step, values in step_values.items():
                self._log(values, self.finished + step)
        self.pass_on(progress)

    def finish(self, rows: Iterable[Row]) -> None:
        """Log the scores of a run, for the chosen epoch or from a measurement."""
        rows = list(rows)
        epoch_scores = {
            f"chosen/{name}": value for row in rows if row.get("chosen") for name, value in _values(row)
        }
        scores = {name: value for row in rows if "main" in row for name, value in _values(row)}
        self._log(epoch_scores | scores, self.finished + self.done)

    def close(self) -> None:
        """Close the tracker."""
        self._carefully(self.end.close)
        self.tracker = None

    def _log(self, values: Mapping[str, float], step: int) -> None:
        if values and self.is_waiting:
            self.is_waiting = False
            self._carefully(self._start)
        if values and self.tracker is not None:
            self._carefully(partial(self.tracker.log, dict(values), step=step))

    def _start(self) -> None:
        # One process at a time, because the first one may have to create a database.
        from accelerate.tracking import LOGGER_TYPE_TO_CLASS

        with ExitStack() as end, lock_file(self.run.folder, ".tracking.lock", wait=True):
            arguments = self.library.arguments(self.run, end)
            tracker = LOGGER_TYPE_TO_CLASS[self.library.name](**arguments)
            tracker.start()
            end.callback(tracker.finish)
            self.tracker = tracker
            self.end = end.pop_all()
        settings = {"run": self.run.id, "title": self.run.title, **self.run.settings}
        tracker.store_init_configuration(settings)

    def _carefully(self, act: Callable[[], None]) -> None:
        try:
            act()
        except BaseException as error:  # A training is worth more than its curves.
            if not is_of_code(error):
                raise
            self.tracker = None
            self.end = ExitStack()
            warnings.warn(
                f"{self.library.name} failed ({one_line(error)}). The run continues without it.", stacklevel=2
            )


@dataclass(frozen=True)
class Library:
    """A tracker by Accelerate's name (``LOGGER_TYPE_TO_CLASS``), with the arguments of Accelerate's class."""

    name: str
    arguments: Callable[[TrackedRun, ExitStack], Arguments]
    modules: tuple[str, ...]
    """Modules that it needs."""

    def check(self) -> None:
        """Raise ConfigError if it is not installed."""
        if lacking := [module for module in self.modules if find_spec(module) is None]:
            package = f'"isogloss[{self.name}]"' if self.name in EXTRAS else self.name
            raise ConfigError(
                f"--track {self.name}: {' and '.join(lacking)} not installed. Install: "
                f"pip install {package}, or remove --track."
            )

    def follow(self, run: TrackedRun, on_progress: OnProgress) -> FollowedRun:
        """Return the tracker of a run."""
        return FollowedRun(self, run, on_progress)


def _values(row: Row) -> Iterator[tuple[str, float]]:
    """Yield the numbers of a row of a training, or of a score, under names shared by all runs."""
    language = f"/{row['language']}" if row.get("language") else ""
    numbers = {"learning_rate": row.get("rate"), f"loss{language}": row.get("loss")}
    if "metric" in row and "split" in row:
        numbers[f"{row['split']}/{row['metric']}{language}"] = row.get("score")
    yield from ((name, value) for name, value in numbers.items() if isinstance(value, int | float))


def _group(run: TrackedRun) -> str:
    """Return the name by which runs are grouped: their method, or else their kind."""
    return run.facts.get("method") or run.facts.get("kind", "")


def _tags(run: TrackedRun) -> list[str]:
    """Return the facts as texts such as "seed:0"."""
    return [f"{name}:{value}"[:MAX_TAG] for name, value in run.facts.items()]


def _group_and_tags(run: TrackedRun) -> Arguments:
    return {"group": _group(run), "tags": _tags(run)}


def _file_name(run: TrackedRun) -> str:
    """Return the name of a folder of the run."""
    name = re.sub(r"[^\w.+-]+", "-", run.title)[:MAX_NAME]
    return f"{name}-{run.id}"


def _study(run: TrackedRun) -> str:
    """Return the name of the study's folder in characters that all trackers accept."""
    return re.sub(r"[^\w.-]+", "-", run.folder.resolve().name)


def _tensorboard(run: TrackedRun, _: ExitStack) -> Arguments:
    return {"run_name": _file_name(run), "logging_dir": run.folder / "tensorboard"}


def _mlflow(run: TrackedRun, end: ExitStack) -> Arguments:
    """Return arguments for MLflow's configured address, by default a database in the folder."""
    import mlflow

    logging.getLogger("mlflow").setLevel(logging.WARNING)  # It would report the creation of a database.
    if not mlflow.is_tracking_uri_set():
        mlflow.set_tracking_uri(f"sqlite:///{run.folder.resolve() / 'mlflow.db'}")
        end.callback(mlflow.set_tracking_uri, None)
    if mlflow.get_experiment_by_name(_study(run)) is None:  # Accelerate would give it the first run's tags.
        mlflow.create_experiment(_study(run))
    tags = {"group": _group(run), **run.facts}
    return {"experiment_name": _study(run), "run_name": run.title, "nested_run": True, "tags": tags}


def _wandb(run: TrackedRun, _: ExitStack) -> Arguments:
    folder = str(run.folder)
    return {
        "run_name": _study(run),
        "name": run.title,
        "dir": folder,
        "group": _group(run),
        "tags": _tags(run),
    }


def _trackio(run: TrackedRun, _: ExitStack) -> Arguments:
    return {"run_name": _study(run), "name": f"{run.title} {run.id}", "group": _group(run), "embed": False}


def _swanlab(run: TrackedRun, _: ExitStack) -> Arguments:
    folder = str(run.folder / "swanlab")
    return {
        "run_name": _study(run),
        "name": run.title,
        "log_dir": folder,
        "group": _group(run),
        "tags": _tags(run),
    }


def _comet(run: TrackedRun, _: ExitStack) -> Arguments:
    config = import_module("comet_ml").ExperimentConfig
    experiment = config(name=run.title, tags=[_group(run), *_tags(run)])
    return {"run_name": _study(run), "experiment_config": experiment}


def _clearml(run: TrackedRun, _: ExitStack) -> Arguments:
    names = {"project_name": _study(run), "task_name": run.title, "tags": [_group(run), *_tags(run)]}
    return {"run_name": _study(run), **names, "reuse_last_task_id": False}


def _aim(run: TrackedRun, _: ExitStack) -> Arguments:
    return {
        "run_name": run.title,
        "logging_dir": str(run.folder),
        "experiment": f"{_study(run)}/{_group(run)}",
    }


def _dvclive(run: TrackedRun, _: ExitStack) -> Arguments:
    folder = run.folder / "dvclive" / _file_name(run)
    return {"run_name": run.title, "dir": str(folder), "save_dvc_exp": False, "dvcyaml": None}


TENSORBOARD = Library("tensorboard", _tensorboard, ("tensorboard",))
MLFLOW = Library("mlflow", _mlflow, ("mlflow", "sqlalchemy", "alembic"))
WANDB = Library("wandb", _wandb, ("wandb",))
TRACKIO = Library("trackio", _trackio, ("trackio",))
SWANLAB = Library("swanlab", _swanlab, ("swanlab",))
COMET_ML = Library("comet_ml", _comet, ("comet_ml",))
CLEARML = Library("clearml", _clearml, ("clearml",))
AIM = Library("aim", _aim, ("aim",))
DVCLIVE = Library("dvclive", _dvclive, ("dvclive",))
