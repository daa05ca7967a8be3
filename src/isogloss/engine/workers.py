"""Processes of this machine that work on a plan, each with few threads and one device.

They end with the process that started them. That process passes on their reports and replaces processes that
die. Processes of other machines receive their inputs as ``Pickled``.
"""

import os
import signal
import threading
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from math import inf
from multiprocessing import parent_process
from multiprocessing.connection import Connection
from multiprocessing.connection import wait as wait_for
from multiprocessing.process import BaseProcess
from traceback import format_exc

from isogloss.core.errors import ConfigError, IsoglossError, RunError
from isogloss.core.processes import (
    Interrupted,
    interruptible,
    interruption_requested,
    is_of_code,
    request_interruption,
    stop_at_sigterm,
)
from isogloss.core.progress import Progress
from isogloss.core.run_parts import parts_within
from isogloss.engine.devices import Device, MemoryNeeds, Room, assign_devices, starting
from isogloss.engine.fork_server import hangups_blocked, start_method
from isogloss.engine.work import Report, RunEvent, Work
from isogloss.runs.run import Run, RunContext

STARTS = 3
"""Number of processes that may end before they make a run, until that is an error."""

PAUSE = 0.5
"""Seconds until the next process begins, because a killed process does not end immediately."""

GRACE = 5.0
"""Seconds in which a process that ends at once can give its runs back."""

POLL_EVERY = 0.2
"""Seconds between two checks for an interruption."""


@dataclass
class _Worker:
    """A process and the channel to it."""

    process: BaseProcess
    channel: Connection
    device: Device
    number: int
    has_begun: bool = False


@dataclass
class Processes:
    """Processes that work on a plan."""

    context: RunContext
    runs: Sequence[Run]
    report: Report
    devices: Sequence[Device] = ()
    patience: float = inf
    """Seconds without any work after which each of them ends."""
    _lost_starts: int = 0
    _work: dict[Device, Work] = field(default_factory=dict)
    """The work of the processes on each device."""
    _workers: list[_Worker] = field(default_factory=list)

    def work(self, jobs: int) -> None:
        """Let several processes work until all have ended. Raises Interrupted on request."""
        context = replace(self.context, on_progress=_send)
        shared = jobs > len(self.devices) and any(device.memory for device in self.devices)
        needs = MemoryNeeds(context) if shared else None
        assignment = assign_devices(self.devices or [Device()], jobs)
        devices = tuple(dict.fromkeys(assignment))
        for device in devices:
            room = Room(str(context.store.root), device, devices, needs)
            self._work[device] = Work(context, self.runs, _send, room, self.patience)
        with interruptible():
            try:
                for index, device in enumerate(assignment, 1):
                    self._workers.append(self._begin(device, index))
                self._follow()
            finally:
                self._close()

    def _follow(self) -> None:
        """Pass on the reports of processes, and replace processes that die, until all have ended."""
        stopping = False
        while self._workers:
            if interruption_requested() and not stopping:
                stopping = True
                for worker in self._workers:
                    worker.process.terminate()
            wait_for([worker.channel for worker in self._workers], POLL_EVERY)
            for worker in list(self._workers):
                if not self._is_open(worker):
                    self._replace(worker, stopping=stopping)
        if stopping:
            raise Interrupted

    def _close(self) -> None:
        """End processes that still work."""
        for worker in self._workers:
            worker.channel.close()
        try:
            for worker in self._workers:
                worker.process.join(2 * GRACE)
        finally:
            for worker in self._workers:
                worker.process.kill()
                worker.process.join()

    def _begin(self, device: Device, index: int) -> _Worker:
        method = start_method(uses_devices=bool(self.devices))
        while True:
            ours, theirs = method.Pipe()
            process = method.Process(target=_serve, args=(theirs, self._work[device]))  # type: ignore[attr-defined]
            try:
                with starting(device.visible), hangups_blocked():
                    process.start()
                return _Worker(process, ours, device, index)
            except (EOFError, ConnectionError) as error:  # The fork server has died.
                self._count_lost_start(type(error).__name__)
            finally:
                theirs.close()

    def _count_lost_start(self, cause: str) -> None:
        """Count a process that ended before its first run.

        Raises RunError if that happens too often.
        """
        self._lost_starts += 1
        if self._lost_starts >= STARTS:
            raise RunError(
                f"{STARTS} processes that were to make runs ended ({cause}) before they could. Finished runs "
                f"are kept; make one run at a time (--jobs 1) to see why."
            )
        threading.Event().wait(PAUSE)

    def _is_open(self, worker: _Worker) -> bool:
        """Pass on the reports of a process, and return whether it may report more."""
        messages = list[object]()
        is_open = False
        with suppress(EOFError, OSError):
            while worker.channel.poll():
                messages.append(worker.channel.recv())
            is_open = True
        worker.has_begun = worker.has_begun or bool(messages)
        for message in messages:
            self._pass_on(message, worker)
        return is_open

    def _pass_on(self, message: object, worker: _Worker) -> None:
        if isinstance(message, Exception):
            raise message
        if isinstance(message, RunEvent):
            self.report(message)
        elif isinstance(message, Progress):
            description = f"{message.what} on {worker.device}" if len(self._work) > 1 else message.what
            self.context.on_progress(replace(message, what=description, job=worker.number))

    def _replace(self, worker: _Worker, *, stopping: bool) -> None:
        """Replace a process that has died. A process that ended without work left is not replaced."""
        worker.process.join()
        worker.channel.close()
        self._workers.remove(worker)
        exit_code = worker.process.exitcode or 0
        if stopping or exit_code == 0:
            return
        if not worker.has_begun:
            self._count_lost_start(f"signal {-exit_code}" if exit_code < 0 else f"exit code {exit_code}")
        self._workers.append(self._begin(worker.device, worker.number))


_channel: list[Connection] = []
"""The connection from a worker to the process that started it. Empty in other processes."""


def _send(message: object) -> None:
    _channel[0].send(message)


def _serve(channel: Connection, work: Work) -> None:
    """Work on a plan, and send an error that concerns all runs to the process that started this one."""
    # These signals reach all processes. The parent ends this one.
    for signal_number in (signal.SIGINT, signal.SIGUSR1, signal.SIGUSR2):
        signal.signal(signal_number, signal.SIG_IGN)
    stop_at_sigterm()
    threading.Thread(target=_end_with_parent, args=(channel, work), daemon=True).start()
    _channel[:] = [channel]
    with suppress(BrokenPipeError, Interrupted):
        _send("begun")
        try:
            work.work()
        except IsoglossError as error:
            _send(error)
        except BaseException as error:  # The error itself may not be picklable.
            if not is_of_code(error):
                raise
            _send(RuntimeError(f"in a process that made runs:\n{format_exc()}"))


def _end_with_parent(channel: Connection, work: Work) -> None:
    """End this process, and give its runs back, once its parent has ended or closed the channel."""
    parent = parent_process()
    if parent is not None:
        wait_for(
            [parent.sentinel, channel]
        )  # The parent sends nothing, so it is ready only once it is closed.
        request_interruption()
        giving_back = threading.Thread(target=work.context.store.leases.abandon, daemon=True)
        giving_back.start()
        giving_back.join(GRACE)
        os._exit(1)


def check_importable(runs: Sequence[Run], instead: str) -> None:
    """Raise ConfigError if other processes cannot import a class of the runs."""
    if name := classes_in_main(runs):
        raise ConfigError(
            f"{name}: it is defined in the script that was started, which other processes do not read. Put "
            f"it into a separate module next to the script and import it there, or make one run at a time "
            f"({instead})."
        )


def classes_in_main(runs: Sequence[Run]) -> str:
    """Return the name of a class among the runs' parts that the started script defines. Empty without one."""
    kinds = (type(part) for part in parts_within(tuple(runs)))
    return next((kind.__qualname__ for kind in kinds if kind.__module__ == "__main__"), "")
