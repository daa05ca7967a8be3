"""The engines by name, and their options. Cheap to import: what an engine needs is imported when it is used.

An engine on this machine is a number of jobs (``engine``); one beyond it is a value that opens workers there.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import TYPE_CHECKING, ClassVar

from isogloss.core.errors import ConfigError, check_named

if TYPE_CHECKING:
    from isogloss.experiments.context import RunContext
    from isogloss.experiments.engine import Elsewhere, Making
    from isogloss.experiments.runs import Run
    from isogloss.experiments.workers import Workers


@dataclass(frozen=True, kw_only=True)
class EngineRequest:
    """Which engine is asked for, with the options of all."""

    engine: str = "processes"
    jobs: int = 0
    """Runs made side by side; 0: as many as there is room for."""
    devices: str = ""
    """What they are made on, on this machine: all GPUs if empty, or some, or the processor (cpu)."""
    address: str = ""
    """A Ray cluster's; "auto" for the one this machine is part of, empty for a new one on it alone."""
    slurm: Mapping[str, object] = field(default_factory=dict)
    """Parameters of Slurm jobs, as submitit names them."""

    def __post_init__(self) -> None:
        """Raise ConfigError for an unknown engine, or options of another one."""
        check_named("--engine", "engine", ENGINES, self.engine)
        for option in ("address", "slurm"):
            engine = next(name for name, one in ENGINES.items() if one.option == option)
            if getattr(self, option) and self.engine != engine:
                raise ConfigError(
                    f"--{option} is for --engine {engine}; found --engine {self.engine}. Change either."
                )
        if self.devices and ENGINES[self.engine].package:
            raise ConfigError(
                f"--devices is for this machine (--engine serial or processes); found --engine "
                f"{self.engine}. Leave it out: there each run is given its own."
            )
        if (package := ENGINES[self.engine].package) and find_spec(package) is None:
            raise ConfigError(
                f"--engine {self.engine}: the package {package} is not installed. Install it: "
                f'pip install "isogloss[{self.engine}]".'
            )

    def making(
        self, *, threads: int = 1, track: tuple[str, ...] = (), retry_failed: bool = False
    ) -> "Making":
        """Return how runs are made by this engine; ConfigError for wrong options."""
        from isogloss.experiments.engine import Making

        return Making(
            jobs=1 if self.engine == "serial" else self.jobs,
            devices=self.devices,
            threads=threads,
            track=track,
            retry_failed=retry_failed,
            elsewhere=ENGINES[self.engine].opened(self),
        )


@dataclass(frozen=True)
class RayCluster:
    """Tasks on the nodes of a Ray cluster."""

    address: str = ""
    jobs: int = 0
    follows: ClassVar[bool] = False

    def workers(
        self,
        context: "RunContext",
        runs: "Sequence[Run]",  # noqa: ARG002
        begun: "Callable[[Run], None]",
    ) -> "AbstractContextManager[Workers]":
        """Connect to the cluster, or start one on this machine; disconnect with the block."""
        from isogloss.experiments.ray_workers import ray_workers

        return ray_workers(context, begun, address=self.address, jobs=self.jobs)


@dataclass(frozen=True)
class SlurmCluster:
    """Jobs of Slurm, each making one run after the other."""

    jobs: int = 1
    parameters: Mapping[str, object] = field(default_factory=dict)
    cluster: str = "slurm"
    """Which of submitit's clusters it is; "local" are processes of this machine."""
    follows: ClassVar[bool] = True

    def __post_init__(self) -> None:
        """Raise ConfigError for parameters that submitit does not know."""
        from isogloss.experiments.slurm_jobs import check_parameters

        check_parameters(self.parameters)

    def workers(
        self, context: "RunContext", runs: "Sequence[Run]", begun: "Callable[[Run], None]"
    ) -> "AbstractContextManager[Workers]":
        """Submit jobs while there are runs for them; they outlive this process."""
        from isogloss.experiments.slurm_jobs import slurm_workers

        return slurm_workers(
            context, runs, begun, jobs=self.jobs, parameters=self.parameters, cluster=self.cluster
        )


@dataclass(frozen=True, kw_only=True)
class Engine:
    """An engine as users see it."""

    about: str
    package: str = ""
    """What has to be installed for it."""
    option: str = ""
    """The option that is its own."""
    opened: "Callable[[EngineRequest], Elsewhere | None]" = lambda _: None


ENGINES: Mapping[str, Engine] = {
    "serial": Engine(about="one run after the other"),
    "processes": Engine(about="side by side on this machine"),
    "ray": Engine(
        about="on a Ray cluster",
        package="ray",
        option="address",
        opened=lambda one: RayCluster(one.address, one.jobs),
    ),
    "slurm": Engine(
        about="in jobs of Slurm",
        package="submitit",
        option="slurm",
        opened=lambda one: SlurmCluster(one.jobs or 1, one.slurm),
    ),
}
