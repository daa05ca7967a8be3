"""Workers: where runs are made. In this process, or in others of this machine, each with few threads."""

import gc
import os
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from multiprocessing import get_all_start_methods, get_context, parent_process
from multiprocessing.connection import Connection
from multiprocessing.connection import wait as wait_for
from multiprocessing.context import BaseContext
from multiprocessing.process import BaseProcess
from typing import Protocol

import torch

from isogloss.core.errors import RunError
from isogloss.core.identity import identity
from isogloss.core.interruption import interruption_requested, stop_at_sigterm
from isogloss.core.progress import OnProgress, Progress
from isogloss.engine.attempts import AttemptResult, answer, attempt
from isogloss.engine.devices import Device, MemoryNeeds, assign_devices, choose_device, starting
from isogloss.runs.run import Run, RunContext

STARTS, PAUSE = 3, 0.5
"""Processes that may end before they can make runs, until that is an error; seconds until the next begins,
as one that was killed does not end at once."""

IMPORTED_ONCE = (
    *(f"isogloss.runs.{module}" for module in ("execute", "pretrain", "adjust", "measure")),
    "transformers.models.bert.modeling_bert",
)
"""What takes a new process its first seconds."""


class Workers(Protocol):
    """Where several runs can be made at once."""

    @property
    def on_progress(self) -> OnProgress:
        """Callback for progress."""

    def is_free(self) -> bool:
        """Return whether a run can be started."""

    def start(self, run: Run, expired: bytes) -> None:
        """Start a run; ``expired`` is the content of a lease of it that has ended."""

    def ended(self, timeout: float) -> list[tuple[Run, AttemptResult]]:
        """Return runs that have ended, and report progress; wait up to ``timeout`` seconds for them."""

    def interrupt(self) -> None:
        """Ask all to leave what they do."""


@dataclass
class ThisProcess:
    """Makes one run at a time, here."""

    context: RunContext
    _ended: list[tuple[Run, AttemptResult]] = field(default_factory=list)

    @property
    def on_progress(self) -> OnProgress:  # noqa: D102
        return self.context.on_progress

    def is_free(self) -> bool:  # noqa: D102
        return not self._ended

    def start(self, run: Run, expired: bytes) -> None:  # noqa: D102
        self._ended.append((run, attempt(self.context, run, expired)))

    def ended(self, timeout: float) -> list[tuple[Run, AttemptResult]]:  # noqa: D102
        if not self._ended:
            threading.Event().wait(timeout)
        ended, self._ended = self._ended, []
        return ended

    def interrupt(self) -> None:
        """Do nothing: what is made here looks for itself."""


@dataclass
class _Worker:
    """A process, the channel to it, and the run it makes."""

    process: BaseProcess
    channel: Connection
    device: Device
    run: Run | None = None
    need: int | None = None
    """Bytes of the device that the run takes."""
    has_begun: bool = False


class Processes:
    """Other processes of this machine, which end with this one; each computes on one device, in turn.

    A run waits, and with it all that come later, until a device has room for it.
    """

    def __init__(self, context: RunContext, jobs: int, devices: Sequence[Device] = ()) -> None:
        self._on_progress = context.on_progress
        self._context = replace(context, on_progress=_report)
        self._starting = _start_method(devices)
        self._interrupted = False
        self._waiting: tuple[Run, bytes] | None = None
        self._tried: set[str] = set()
        """Runs that ended with their process, or for want of memory: what comes again is made alone."""
        shared = jobs > len(devices) and any(device.memory for device in devices)
        self._needs = MemoryNeeds(self._context) if shared else None
        self._lost_starts = 0
        self._workers = [self._begin(device) for device in assign_devices(devices or [Device()], jobs)]

    @property
    def on_progress(self) -> OnProgress:  # noqa: D102
        return self._on_progress

    def is_free(self) -> bool:  # noqa: D102
        return self._waiting is None and any(worker.run is None for worker in self._workers)

    def start(self, run: Run, expired: bytes) -> None:  # noqa: D102
        self._waiting = run, expired
        self._place()

    def ended(self, timeout: float) -> list[tuple[Run, AttemptResult]]:  # noqa: D102
        ended: list[tuple[Run, AttemptResult]] = []
        by_channel = {worker.channel: worker for worker in self._workers}
        for channel in wait_for(list(by_channel), timeout):
            if isinstance(channel, Connection):
                ended += self._received(by_channel[channel])
        if self._needs:
            made = [run for run, result in ended if result.state == "made"]
            self._needs.learn(made, [worker.device.name for worker in self._workers])
        self._tried |= {identity(run) for run, result in ended if result.state in ("died", "out_of_memory")}
        if self._waiting and self._interrupted:
            ended.append((self._waiting[0], AttemptResult("interrupted")))
            self._waiting = None
        self._place()
        return ended

    def interrupt(self) -> None:  # noqa: D102
        self._interrupted = True
        for worker in self._workers:
            worker.process.terminate()

    def close(self) -> None:
        """Let idle processes end, and end all others at once."""
        for worker in self._workers:
            worker.channel.close()
            if worker.run is not None:
                worker.process.kill()
        for worker in self._workers:
            worker.process.join()

    def _begin(self, device: Device) -> _Worker:
        while True:
            ours, theirs = self._starting.Pipe()
            process = self._starting.Process(target=_serve, args=(theirs,))  # type: ignore[attr-defined]
            try:
                with starting(device.visible), _hangups_blocked():
                    process.start()
                return _Worker(process, ours, device)
            except (EOFError, ConnectionError) as error:  # The process that forks has died.
                self._count_lost_start(type(error).__name__)
            finally:
                theirs.close()

    def _count_lost_start(self, cause: str) -> None:
        """Count a process that ended before it could make runs; RunError where that goes on."""
        self._lost_starts += 1
        if self._lost_starts >= STARTS:
            raise RunError(
                f"{STARTS} processes that were to make runs ended ({cause}) before they could. Finished runs "
                f"are kept; make one run at a time (--jobs 1) to see why."
            )
        threading.Event().wait(PAUSE)

    def _place(self) -> None:
        """Send the run that waits to a process whose device has room for it."""
        if self._waiting is None:
            return
        run, expired = self._waiting
        free = {worker.device: worker for worker in reversed(self._workers) if worker.run is None}
        running = {
            device: [
                other.need for other in self._workers if other.run is not None and other.device == device
            ]
            for device in reversed(free)  # So that the first is the first process's.
        }
        need = self._needs.of(run) if self._needs else None
        device = choose_device(need, running)
        if device is None:
            return
        worker, self._waiting = free[device], None
        worker.run, worker.need = run, need
        alone = need is None or need > (device.memory or 0) or identity(run) in self._tried
        with suppress(OSError):  # It has died; ``ended`` finds that.
            worker.channel.send((self._context, run, expired, not alone))

    def _received(self, worker: _Worker) -> list[tuple[Run, AttemptResult]]:
        """Return the result of a worker's run, if it has ended; pass its progress on."""
        while True:
            try:
                if not worker.channel.poll():
                    return []
                message = worker.channel.recv()
            except (EOFError, OSError):
                return self._died(worker)
            if isinstance(message, Progress):
                self.on_progress(self._with_device(message, worker))
            elif isinstance(message, AttemptResult):
                run, worker.run = worker.run, None
                return [(run, message)] if run is not None else []
            elif isinstance(message, BaseException):
                raise message
            worker.has_begun = True

    def _with_device(self, progress: Progress, worker: _Worker) -> Progress:
        """Say on which device a run is made, where there are several."""
        several = any(other.device != worker.device for other in self._workers)
        return replace(progress, what=f"{progress.what} on {worker.device}") if several else progress

    def _died(self, worker: _Worker) -> list[tuple[Run, AttemptResult]]:
        """Put another process in the place of one that died."""
        worker.process.join()
        code = worker.process.exitcode or 0
        cause = f"signal {-code}" if code < 0 else f"exit code {code}"
        if self._interrupted:
            self._workers.remove(worker)
            return [] if worker.run is None else [(worker.run, AttemptResult("interrupted"))]
        if not worker.has_begun:
            self._count_lost_start(cause)
        worker.channel.close()
        self._workers[self._workers.index(worker)] = self._begin(worker.device)
        result = AttemptResult("died", cause) if worker.has_begun else AttemptResult("interrupted")
        return [] if worker.run is None else [(worker.run, result)]


def _start_method(devices: Sequence[Device]) -> BaseContext:
    """Return how processes begin: forked from one that has imported everything, where that can be.

    Not with a GPU, as each process gets its own before it begins, and not on a Mac, where libraries must not
    be forked.
    """
    if devices or sys.platform == "darwin" or "forkserver" not in get_all_start_methods():
        return get_context("spawn")
    context = get_context("forkserver")
    context.set_forkserver_preload(list(IMPORTED_ONCE))
    return context


@contextmanager
def _hangups_blocked() -> Iterator[None]:
    """Let new processes not hear that the terminal was closed: this one does, and asks them to leave."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGHUP})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)


_channel: list[Connection] = []
"""The way from this process to the one that asked for it; only workers have one."""


def _serve(channel: Connection) -> None:
    """Make runs as they are sent, until nobody sends any more."""
    for number in (signal.SIGINT, signal.SIGUSR1, signal.SIGUSR2):  # They reach all; the parent ends others.
        signal.signal(number, signal.SIG_IGN)
    stop_at_sigterm()
    threading.Thread(target=_end_with_parent, daemon=True).start()
    _channel[:] = [channel]
    with suppress(EOFError, OSError):
        channel.send("begun")
        while not interruption_requested():
            result = answer(*channel.recv())
            if torch.cuda.is_available():  # Others may need what torch keeps for later.
                gc.collect()
                torch.cuda.empty_cache()
            channel.send(result)


def _report(progress: Progress) -> None:
    _channel[0].send(progress)


def _end_with_parent() -> None:
    parent = parent_process()
    if parent is not None:
        wait_for([parent.sentinel])
        os._exit(1)
