"""Trackers that follow runs while they train, for which Accelerate has classes.

A run's tracker starts with its first numbers and is not part of the run: a failing tracker is a warning.
"""

import logging
import re
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

from isogloss.core.errors import ConfigError, check_named, one_line
from isogloss.core.processes import is_of_code
from isogloss.core.progress import OnProgress, Progress
from isogloss.core.records import Row
from isogloss.core.shared_files import lock_file
from isogloss.training.distributed import is_main_process

MAX_NAME = 100
"""Maximum length of the name of a folder from which a tracker reads a run."""

MAX_TAG = 64
"""Maximum length of a tag that all trackers accept."""


@dataclass(frozen=True, kw_only=True)
class TrackedRun:
    """A run as trackers show it."""

    id: str
    title: str
    folder: Path
    """The folder of the study, which names MLflow's experiment and W&B's project."""
    settings: Mapping[str, str | int | float | bool]
    facts: Mapping[str, str] = field(default_factory=dict)
    """Facts by which runs are filtered: kind, method, languages, seed, if any."""

    @property
    def group(self) -> str:
        """The name by which runs are grouped: their method, or else their kind."""
        return self.facts.get("method") or self.facts.get("kind", "")

    @property
    def tags(self) -> list[str]:
        """The facts as texts such as "seed:0"."""
        return [f"{name}:{value}"[:MAX_TAG] for name, value in self.facts.items()]

    @property
    def file_name(self) -> str:
        """Name of a folder of the run."""
        name = re.sub(r"[^\w.+-]+", "-", self.title)[:MAX_NAME]
        return f"{name}-{self.id}"

    @property
    def study(self) -> str:
        """Name of the folder, in characters that all trackers accept."""
        return re.sub(r"[^\w.-]+", "-", self.folder.resolve().name)


Arguments = Mapping[str, Any]


def _tensorboard(run: TrackedRun, _: ExitStack) -> Arguments:
    return {"run_name": run.file_name, "logging_dir": run.folder / "tensorboard"}


def _mlflow(run: TrackedRun, end: ExitStack) -> Arguments:
    """Return arguments for MLflow's configured address, by default a database in the folder."""
    import mlflow

    logging.getLogger("mlflow").setLevel(logging.WARNING)  # It would report the creation of a database.
    if not mlflow.is_tracking_uri_set():
        mlflow.set_tracking_uri(f"sqlite:///{run.folder.resolve() / 'mlflow.db'}")
        end.callback(mlflow.set_tracking_uri, None)
    if mlflow.get_experiment_by_name(run.study) is None:  # Accelerate would give it the first run's tags.
        mlflow.create_experiment(run.study)
    tags = {"group": run.group, **run.facts}
    return {"experiment_name": run.study, "run_name": run.title, "nested_run": True, "tags": tags}


def _wandb(run: TrackedRun, _: ExitStack) -> Arguments:
    folder = str(run.folder)
    return {"run_name": run.study, "name": run.title, "dir": folder, "group": run.group, "tags": run.tags}


def _trackio(run: TrackedRun, _: ExitStack) -> Arguments:
    return {"run_name": run.study, "name": f"{run.title} {run.id}", "group": run.group, "embed": False}


def _swanlab(run: TrackedRun, _: ExitStack) -> Arguments:
    folder = str(run.folder / "swanlab")
    return {"run_name": run.study, "name": run.title, "log_dir": folder, "group": run.group, "tags": run.tags}


def _comet(run: TrackedRun, _: ExitStack) -> Arguments:
    config = import_module("comet_ml").ExperimentConfig
    experiment = config(name=run.title, tags=[run.group, *run.tags])
    return {"run_name": run.study, "experiment_config": experiment}


def _clearml(run: TrackedRun, _: ExitStack) -> Arguments:
    names = {"project_name": run.study, "task_name": run.title, "tags": [run.group, *run.tags]}
    return {"run_name": run.study, **names, "reuse_last_task_id": False}


def _aim(run: TrackedRun, _: ExitStack) -> Arguments:
    return {"run_name": run.title, "logging_dir": str(run.folder), "experiment": f"{run.study}/{run.group}"}


def _dvclive(run: TrackedRun, _: ExitStack) -> Arguments:
    folder = run.folder / "dvclive" / run.file_name
    return {"run_name": run.title, "dir": str(folder), "save_dvc_exp": False, "dvcyaml": None}


class _Library(NamedTuple):
    """The arguments of Accelerate's class for a run's tracker, and the modules it needs."""

    arguments: Callable[[TrackedRun, ExitStack], Arguments]
    modules: tuple[str, ...]


TRACKERS: Mapping[str, _Library] = {
    "tensorboard": _Library(_tensorboard, ("tensorboard",)),
    "mlflow": _Library(_mlflow, ("mlflow", "sqlalchemy", "alembic")),
    "wandb": _Library(_wandb, ("wandb",)),
    "trackio": _Library(_trackio, ("trackio",)),
    "swanlab": _Library(_swanlab, ("swanlab",)),
    "comet_ml": _Library(_comet, ("comet_ml",)),
    "clearml": _Library(_clearml, ("clearml",)),
    "aim": _Library(_aim, ("aim",)),
    "dvclive": _Library(_dvclive, ("dvclive",)),
}
"""Trackers by Accelerate's names (``LOGGER_TYPE_TO_CLASS``)."""

EXTRAS = ("tensorboard", "mlflow", "wandb")
"""Trackers that an extra of their name installs. The others have packages of the same name."""


def check_trackers(names: Iterable[str]) -> None:
    """Raise ConfigError for a tracker that is unknown or not installed."""
    check_named("--track", "tracker", TRACKERS, *names)
    for name in names:
        if lacking := [module for module in TRACKERS[name].modules if find_spec(module) is None]:
            package = f'"isogloss[{name}]"' if name in EXTRAS else name
            raise ConfigError(
                f"--track {name}: {' and '.join(lacking)} not installed. Install: "
                f"pip install {package}, or remove --track."
            )


def track_run(names: Sequence[str], run: TrackedRun, on_progress: OnProgress) -> "closing[Tracking]":
    """Let trackers follow a run until the end of the block."""
    return closing(Tracking(names, run, on_progress))


class Tracking:
    """The trackers of one run, whose training reports to ``on_progress``."""

    def __init__(self, names: Sequence[str], run: TrackedRun, on_progress: OnProgress) -> None:
        self.run = run
        self.pass_on = on_progress
        self.waiting = list(names) if is_main_process() else []
        self.open: dict[str, tuple[Any, ExitStack]] = {}
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
        """Close all trackers."""
        for name in list(self.open):
            self._carefully(name, self.open[name][1].close)
        self.open.clear()

    def _log(self, values: Mapping[str, float], step: int) -> None:
        if values:
            for name in self.waiting:
                self._carefully(name, partial(self._start, name))
            self.waiting = []
            for name in list(self.open):
                self._carefully(name, partial(self.open[name][0].log, dict(values), step=step))

    def _start(self, name: str) -> None:
        # One process at a time, because the first one may have to create a database.
        from accelerate.tracking import LOGGER_TYPE_TO_CLASS

        with ExitStack() as end, lock_file(self.run.folder, ".tracking.lock", wait=True):
            tracker = LOGGER_TYPE_TO_CLASS[name](**TRACKERS[name].arguments(self.run, end))
            tracker.start()
            end.callback(tracker.finish)
            self.open[name] = tracker, end.pop_all()
        settings = {"run": self.run.id, "title": self.run.title, **self.run.settings}
        tracker.store_init_configuration(settings)

    def _carefully(self, name: str, act: Callable[[], None]) -> None:
        try:
            act()
        except BaseException as error:  # A training is worth more than its curves.
            if not is_of_code(error):
                raise
            self.open.pop(name, None)
            warnings.warn(f"{name} failed ({one_line(error)}). The run continues without it.", stacklevel=2)


def _values(row: Row) -> Iterator[tuple[str, float]]:
    """Yield the numbers of a row of a training, or of a score, under names shared by all runs."""
    language = f"/{row['language']}" if row.get("language") else ""
    numbers = {"learning_rate": row.get("rate"), f"loss{language}": row.get("loss")}
    if "metric" in row and "split" in row:
        numbers[f"{row['split']}/{row['metric']}{language}"] = row.get("score")
    yield from ((name, value) for name, value in numbers.items() if isinstance(value, int | float))
