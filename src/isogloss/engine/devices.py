"""Find the GPUs of this machine and choose one for each run.

Each worker process sees only one GPU. The environment variable for that is set before the process starts,
because the driver reads it once. GPUs are listed in a temporary process, because listing them here would
allocate memory on a GPU.
"""

import gc
import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass, field, replace
from functools import cache, partial
from io import FileIO
from itertools import cycle, islice
from multiprocessing import get_context
from time import monotonic
from types import ModuleType
from typing import Literal, TypeVar

import torch

from isogloss.core.errors import ConfigError
from isogloss.core.identity import identity
from isogloss.core.processes import has_ended, host, this_process
from isogloss.core.records import read_made
from isogloss.core.untrusted import parse_json, user_cache
from isogloss.runs.run import Run, RunContext, peak_memory
from isogloss.store.leases import Leases
from isogloss.store.store import Store
from isogloss.training.memory import Machine
from isogloss.training.precision import measured_precision

ALL = "all"
CPU_NAME = "cpu"
MIG = "MIG-"
"""Pattern of the name of a part of a GPU. A process sees at most one part."""

HIDDEN = "-1"
"""Value that hides every GPU. With ROCm an empty value does not."""

CONTEXT = 700_000_000
"""Bytes of a GPU that a process uses in addition to tensors: its context and the kernels of libraries."""

RESERVED = 1.2
"""GPU memory that torch reserves, as a multiple of the peak memory of tensors."""

SETTLING = 10.0
"""Seconds in which a run that has reserved memory must also get a lease."""

T = TypeVar("T")


@dataclass(frozen=True)
class Device:
    """Device that a process computes on."""

    visible: str = ""
    """Value of the variable of visible GPUs in a process that sees only this GPU. Empty: the variable stays
    unchanged."""
    name: str = ""
    memory: int | None = None
    """Bytes for tensors. None on the processor."""
    number: int | None = None
    """Index among the GPUs that this process was given."""
    here: bool = False
    """Whether this process can compute on it."""

    def __str__(self) -> str:
        """Name the device for messages."""
        return "CPU" if self.memory is None else f"GPU {self.visible if self.number is None else self.number}"


CPU = Device(HIDDEN)
"""The processor of a machine that has GPUs."""


def devices_of(request: str) -> tuple[Device, ...]:
    """Return the requested devices. Default: all GPUs.

    Empty on a machine without a GPU. Raises ConfigError for devices that do not exist.
    """
    return choose_devices(request, gpus(), _find_by_uuid)


def choose_devices(
    request: str, gpus_here: Sequence[Device], find_gpu: Callable[[str], Device | None]
) -> tuple[Device, ...]:
    """Choose among the GPUs of this machine.

    ``find_gpu`` also finds GPUs that this process does not see.
    """
    if not gpus_here and request not in ("", CPU_NAME):
        raise ConfigError(
            f"devices {request}: torch {torch.__version__} finds no GPU here. Name {CPU_NAME}, or remove it."
        )
    if request in ("", ALL) or not gpus_here:
        return tuple(gpus_here)
    if request == CPU_NAME:
        return (CPU,)
    gpu_names = {str(gpu.number): gpu for gpu in gpus_here}
    gpu_names |= {gpu.visible: gpu for gpu in gpus_here if not gpu.visible.isdigit()}
    names = [name.strip() for name in request.split(",")]
    gpus = [gpu_names.get(name) or find_gpu(name) for name in names]
    if None in gpus:
        available = ", ".join(f"{gpu.number} ({describe_device(gpu)})" for gpu in gpus_here)
        raise ConfigError(
            f"devices {request}: found no GPU {names[gpus.index(None)]!r} here, but {available}. "
            f"Name some of these, by number or UUID, {ALL}, or {CPU_NAME} alone."
        )
    return tuple(dict.fromkeys(gpu for gpu in gpus if gpu))


def describe_device(device: Device) -> str:
    """Return the name and the memory of a GPU."""
    return f"{device.name}, {(device.memory or 0) / 2**30:.0f} GiB"


def gpus() -> tuple[Device, ...]:
    """Return the GPUs that this process may use."""
    return _gpus(_visible()) if torch.cuda.device_count() else ()


@cache
def _gpus(visible: str) -> tuple[Device, ...]:
    return number_gpus(visible, _list_visible_to)


def number_gpus(visible: str, list_gpus: Callable[..., Sequence[Device]]) -> tuple[Device, ...]:
    """Return the GPUs that this process was given. ``list_gpus`` lists the GPUs that a new process sees."""
    names = visible.split(",") if visible else []
    if any(name.startswith(MIG) for name in names):
        return tuple(replace(gpu, number=n, here=not n) for n, gpu in enumerate(list_gpus(*names)))
    return tuple(
        replace(gpu, visible=names[n] if names else str(n), number=n, here=True)
        for n, gpu in enumerate(list_gpus(visible))
    )


def _find_by_uuid(uuid: str) -> Device | None:
    """Return a GPU by its UUID, unless this process was given particular GPUs."""
    return next(iter(_list_visible_to(uuid)), None) if "-" in uuid and not _visible() else None


def _list_visible_to(*values: str) -> list[Device]:
    """List the GPUs that processes see if the variable has these values."""
    answers = [(value, compute_in_new_process(value, _names_and_memory)) for value in values]
    return [Device(value, *properties) for value, answer in answers for properties in answer.result()]


def _names_and_memory() -> list[tuple[str, int]]:
    if not torch.cuda.is_available():
        return []
    torch.cuda.init()  # type: ignore[no-untyped-call]  # Without it, torch counts GPUs that it cannot use.
    gpus = [torch.cuda.get_device_properties(index) for index in range(torch.cuda.device_count())]
    return [(gpu.name, gpu.total_memory) for gpu in gpus]


def _variables() -> tuple[str, ...]:
    """Return the variables that select the GPUs a process sees. The first one set is used."""
    return ("HIP_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES") if torch.version.hip else ("CUDA_VISIBLE_DEVICES",)


def _visible() -> str:
    values = [os.environ.get(name, "") for name in _variables()]
    return next((value for value in values if value), "").replace(" ", "")


def hide_gpus() -> None:
    """Hide all GPUs from this process. Call it before the process uses a GPU."""
    os.environ |= dict.fromkeys(_variables(), HIDDEN)


def find_shared_device(share: float, *, counts_memory: bool) -> Device:
    """Return the GPU that this process shares, with the memory for all processes on it together.

    The memory is None if it is not counted or no GPU is found.
    """
    if not counts_memory or not torch.cuda.is_available():
        return Device(_visible())
    properties = torch.cuda.get_device_properties(0)
    memory = properties.total_memory - CONTEXT * round(1 / share)
    return Device(_visible(), properties.name, memory, number=0, here=True)


def choose_share(need: int | None, memory: int | None) -> float:
    """Return the share of a GPU for each process: 1 divided by the number of processes that its memory holds.

    ``need`` contains no CUDA context. The share is 1 if the need or the memory is unknown.
    """
    if need is None or memory is None:
        return 1.0
    return 1 / max(1, memory // (need + CONTEXT))


def compute_in_new_process(visible: str, compute: Callable[[], T]) -> "Future[T]":
    """Call a function in a temporary process that sees only some GPUs."""
    pool = ProcessPoolExecutor(1, mp_context=get_context("spawn"))
    with starting(visible):
        answer = pool.submit(compute)
    pool.shutdown(wait=False)
    return answer


@contextmanager
def starting(visible: str) -> Iterator[None]:
    """Make processes that start now see only some GPUs, without running the user's script again."""
    name = _variables()[0]
    main = sys.modules["__main__"]
    previous = os.environ.get(name)
    sys.modules["__main__"] = ModuleType("__main__")
    if visible:
        os.environ[name] = visible
    try:
        yield
    finally:
        sys.modules["__main__"] = main
        os.environ.pop(name, None)
        if previous is not None:
            os.environ[name] = previous


def precision_on(devices: Sequence[Device], store: Store) -> str:
    """Return the precision of "auto" on all devices: bfloat16 if it is faster on each of them."""

    def measure(kind: str, visible: str) -> str:
        return compute_in_new_process(visible, partial(measured_precision, kind)).result()

    kinds = {
        ("cpu", "") if device == CPU else ("cuda", device.visible)
        for device in {device.name: device for device in devices}.values()
    }

    def measure_on_all() -> str:
        precisions = {measure(kind, visible) for kind, visible in sorted(kinds)}
        return precisions.pop() if len(precisions) == 1 else "float32"

    return store.precision(measure_on_all)


def assign_devices(devices: Sequence[Device], jobs: int) -> list[Device]:
    """Assign devices to processes round-robin, reserving the CUDA context of each process."""
    assignment = list(islice(cycle(devices), jobs))
    return [
        device
        if device.memory is None
        else replace(device, memory=device.memory - CONTEXT * assignment.count(device))
        for device in assignment
    ]


def choose_device(need: int | None, running: Mapping[Device, Sequence[int | None]]) -> Device | None:
    """Return the device for a run that needs ``need`` bytes, or None if the run has to wait.

    This is the device with the fewest runs among those with room. An idle device always has room. ``running``
    lists the bytes of the runs on each device. Unknown memory is None.
    """
    with_room = [device for device, needs in running.items() if _has_room(device, needs, need)]
    return min(with_room, key=lambda device: len(running[device]), default=None)


def _has_room(device: Device, running: Sequence[int | None], need: int | None) -> bool:
    if not running or device.memory is None:
        return True
    if need is None or None in running:
        return False
    return need + sum(known_need for known_need in running if known_need) <= device.memory


@dataclass
class MemoryNeeds:
    """Memory that runs need on a GPU, measured on runs of the same kind and size. Default: an estimate.

    Runs with equal estimates have the same sizes, because they differ only in the lengths of rows.
    """

    context: RunContext
    measured: dict[tuple[str, int], int] = field(default_factory=dict)

    def find_need(self, run: Run) -> int | None:
        """Return the bytes that a run needs, or None if there is no estimate."""
        estimate = self._estimate(run)
        if estimate is None:
            return None
        return round(RESERVED * self.measured.get((run.name, estimate), estimate))

    def learn(self, run: Run, device: str) -> None:
        """Read the peak memory of a finished run on devices of this name."""
        estimate = self._estimate(run)
        circumstances = read_made(self.context.store.folder(run))
        if estimate is not None and circumstances.peak_memory is not None and circumstances.device == device:
            key = run.name, estimate
            self.measured[key] = max(circumstances.peak_memory, self.measured.get(key, 0))

    def _estimate(self, run: Run) -> int | None:
        uses_bfloat16 = self.context.resolve_precision(run.precision) == "bfloat16"
        return peak_memory(
            run, self.context.sources.encoders, device_type=Machine(half=uses_bfloat16, gpu=True)
        )


Seat = Literal["", "alone", "shared"]
"""Share of a device that a run has: none, the whole device, or only the memory that it needs."""


@dataclass(frozen=True)
class _Running:
    """A run in progress on this machine, as its process writes it for other processes."""

    folder: str
    run: str
    device: str
    need: int | None
    alone: bool
    since: float


@dataclass
class Room:
    """Memory for runs on this machine, shared by processes that use the same folder of runs.

    Each process writes the memory of its current run into a file of the user's cache, and subtracts the
    memory of processes that are alive and have their leases. If this file cannot be written, memory is not
    shared.
    """

    folder: str = ""
    """The folder of runs. Empty: processes share no memory."""
    device: Device = Device()
    devices: Sequence[Device] = ()
    """All devices of the processes that were started together."""
    needs: MemoryNeeds | None = None
    """None if each process has a separate device."""

    @contextmanager
    def reserve(self, run: Run, leases: Leases, *, is_exclusive: bool) -> Iterator[Seat]:
        """Reserve the memory that a run needs on this machine, or the whole machine.

        Yields an empty seat if other runs use too much memory.
        """
        need = self.needs.find_need(run) if self.needs else None
        entry = _Running(self.folder, identity(run), self.device.visible, need, is_exclusive, monotonic())
        with self._others() as running:
            has_room = self._has_room(entry, running.values(), leases)
            if has_room:
                running[this_process()] = entry
        memory = self.device.memory
        fits_beside_others = memory is None or (need is not None and need <= memory)
        is_alone = is_exclusive or self.needs is None or not fits_beside_others
        try:
            if has_room:
                yield "alone" if is_alone else "shared"
            else:
                yield ""
        finally:
            if has_room:
                with self._others():  # Without this process.
                    pass
                if self.needs and torch.cuda.is_available():  # Others may need memory that torch has cached.
                    gc.collect()
                    torch.cuda.empty_cache()

    def learn(self, run: Run) -> None:
        """Read the peak memory of a finished run."""
        if self.needs:
            self.needs.learn(run, self.device.name)

    def _has_room(self, entry: _Running, entries: Iterable[_Running], leases: Leases) -> bool:
        running = [run for run in entries if run.folder == self.folder]
        if not (entry.alone or self.needs or any(run.alone for run in running)):
            return True
        now = monotonic()
        # A paused process may have lost its lease.
        running = [run for run in running if now - run.since < SETTLING or leases.history(run.run).is_held]
        if entry.alone or any(run.alone for run in running):
            return not running
        if self.needs is None:
            return True
        device_loads = {
            device: [run.need for run in running if run.device == device.visible] for device in self.devices
        }
        return choose_device(entry.need, device_loads) == self.device

    @contextmanager
    def _others(self) -> Iterator[dict[str, _Running]]:
        """Yield the runs of other processes, and write them with the entries that the caller adds."""
        file = _running_file() if self.folder and os.name != "nt" else None
        if file is None:  # Windows does not show which processes have ended.
            yield {}
            return
        running = dict[str, _Running]()
        try:
            with suppress(OSError):
                running = {
                    process: run
                    for process, run in _parse_running(file.read()).items()
                    if process != this_process() and not has_ended(process)
                }
            yield running
            with suppress(OSError):
                file.seek(0)
                file.write(json.dumps({process: asdict(run) for process, run in running.items()}).encode())
                file.truncate()  # Emptying it first would write it to the disk at once.
        finally:
            with suppress(OSError):
                file.close()


def _running_file() -> FileIO | None:
    """Open and lock the file of current runs on this machine. None if the file cannot be created."""
    from fcntl import LOCK_EX, flock

    with suppress(OSError), ExitStack() as cleanup:
        path = user_cache() / "running" / f"{host()}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        # Unbuffered, because ``close`` would write the rest of a buffer.
        file = open(os.open(path, os.O_RDWR | os.O_CREAT, 0o600), "r+b", buffering=0)  # noqa: PTH123, SIM115
        cleanup.callback(file.close)
        flock(file, LOCK_EX)
        cleanup.pop_all()
        return file
    return None


def _parse_running(text: bytes) -> dict[str, _Running]:
    try:
        return {process: _Running(**fields) for process, fields in parse_json(text or "{}").items()}
    except (ValueError, TypeError, AttributeError):  # The file is truncated.
        return {}
