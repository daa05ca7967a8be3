"""The engines by name, and options of execution.

This module is cheap to import, because the packages of engines are imported late.

An engine on this machine is a number of jobs (``engine``). An engine beyond this machine starts the same work
there.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, TypeAlias, TypedDict, Unpack

from isogloss.core.errors import ConfigError, check_named
from isogloss.core.processes import cores
from isogloss.core.registry import Registry

if TYPE_CHECKING:
    from isogloss.engine.work import Report
    from isogloss.runs.run import Run, RunContext

Starter: TypeAlias = "Callable[[Execution, RunContext, Sequence[Run], Report], None]"
"""Starts processes that work on the runs of a plan, and returns when they have ended."""


OPTIONS_OF_ENGINES = ("address", "gpu_share", "slurm")
"""Fields of ``Execution`` that single engines use."""


@dataclass(frozen=True, kw_only=True)
class Execution:
    """Options of execution. Records do not depend on them, except on ``threads`` in the last digits."""

    engine: str = "processes"
    jobs: int = 0
    """Number of runs at the same time. 0 (default): as many as this machine has cores or GPUs for."""
    devices: str = ""
    """Devices on this machine: all GPUs if empty, GPUs by number or UUID, or the processor (cpu)."""
    threads: int = 1
    """Threads of each run."""
    address: str = ""
    """Address of a Ray cluster. "auto": the cluster that includes this machine. Empty: a new cluster on this
    machine."""
    gpu_share: float | None = None
    """Share of a GPU for each task of a Ray cluster that computes runs with a model, at most 1. 0 computes
    them on processors. Default: the share of memory that the largest run needs, or 1 if that is unknown, if
    the cluster has GPUs."""
    slurm: Mapping[str, object] = field(default_factory=dict)
    """Parameters of Slurm jobs, as submitit names them."""
    track: tuple[str, ...] = ()
    """Trackers that follow the runs."""
    retry_failed: bool = False
    """Whether to repeat runs that failed in an earlier call."""

    def __post_init__(self) -> None:
        """Raise ConfigError for numbers that are too small, unknown names and missing packages."""
        for name, minimum in (("jobs", 0), ("threads", 1)):
            value = getattr(self, name)
            if not isinstance(value, int) or value < minimum:
                raise ConfigError(f"{name}: found {value!r}; expected a whole number, {minimum} or more.")
        share = self.gpu_share
        if share is not None and not (isinstance(share, int | float) and 0 <= share <= 1):
            raise ConfigError(f"gpu_share: found {share!r}; expected a number from 0 to 1.")
        check_named("--engine", "engine", ENGINES, self.engine)
        self._check_options()
        package = ENGINES[self.engine].package
        if package and find_spec(package) is None:
            raise ConfigError(
                f"--engine {self.engine}: the package {package} is not installed. Install it: "
                f'pip install "isogloss[{self.engine}]".'
            )
        if check := ENGINES[self.engine].check:
            check(self)
        if self.track:
            from isogloss.runs.trackers import check_trackers

            check_trackers(self.track)

    def _check_options(self) -> None:
        for option in OPTIONS_OF_ENGINES:
            if getattr(self, option) in (None, "", {}) or option in ENGINES[self.engine].options:
                continue
            owners = [name for name in ENGINES.places if option in ENGINES[name].options]
            raise ConfigError(
                f"--{option.replace('_', '-')} is for --engine {' or '.join(owners) or '(none installed)'}; "
                f"found --engine {self.engine}. Change either."
            )
        if self.engine == "serial" and self.jobs > 1:
            raise ConfigError(
                f"--jobs {self.jobs}: --engine serial makes one run after the other. Remove either."
            )
        if self.devices and self.beyond:
            raise ConfigError(
                f"--devices is for this machine (--engine serial or processes); found --engine "
                f"{self.engine}. Remove it: there each run is given its own."
            )

    @property
    def processes(self) -> int:
        """Maximum number of processes that compute runs on this machine's processor, as far as is known."""
        if self.engine != "processes" or self.devices:
            return 1
        return self.jobs or cores() // self.threads

    @property
    def beyond(self) -> "Starter | None":
        """Function that starts processes beyond this machine. None for an engine on this machine."""
        return ENGINES[self.engine].start


class ExecutionOptions(TypedDict, total=False):
    """Fields of ``Execution`` in the form of ``isogloss.run``: one tracker as text, devices as numbers."""

    engine: str
    jobs: int
    devices: str | Sequence[str | int]
    threads: int
    address: str
    gpu_share: float | None
    slurm: Mapping[str, object] | None
    track: str | Sequence[str]
    retry_failed: bool


def parse_execution(**options: Unpack[ExecutionOptions]) -> Execution:
    """Parse options of execution.

    Raises ConfigError for options that contradict each other.
    """
    devices = options.get("devices", "")
    track = options.get("track", ())
    fields: dict[str, Any] = {
        **options,
        "devices": devices if isinstance(devices, str) else ",".join(str(part) for part in devices),
        "slurm": options.get("slurm") or {},
        "track": tuple(name for name in ((track,) if isinstance(track, str) else track) if name),
    }
    return Execution(**fields)


@dataclass(frozen=True, kw_only=True)
class Engine:
    """An engine with its description, and the function that starts processes beyond this machine."""

    about: str
    package: str = ""
    """Package that has to be installed for the engine."""
    options: tuple[str, ...] = ()
    """Fields of ``Execution`` that only this engine uses."""
    start: "Starter | None" = None
    check: Callable[[Execution], None] | None = None
    """Raises ConfigError for options that the engine cannot use."""


SERIAL = Engine(about="one run after the other")
PROCESSES = Engine(about="side by side on this machine")

ENGINES: Registry[Engine] = Registry(
    {
        "serial": f"{__name__}:SERIAL",
        "processes": f"{__name__}:PROCESSES",
    },
    group="engines",
    interface=f"{__name__}:Engine",
)
"""The engines by name."""
