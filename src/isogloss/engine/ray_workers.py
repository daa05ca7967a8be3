"""Runs on the nodes of a Ray cluster: each a task with its processors and memory, and a GPU if there are any.

Ray finds a place for each run and knows at once what has died. Which run is made when, and what is made
again, is for ``engine`` to decide: Ray's own retries are off. All nodes see the folder of runs.
"""

import os
import platform
import signal
import socket
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import cache
from secrets import token_hex
from typing import Any

import ray
from ray.actor import ActorHandle
from ray.exceptions import (
    NodeDiedError,
    OutOfMemoryError,
    RayError,
    TaskCancelledError,
    WorkerCrashedError,
)
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from isogloss.core import VERSION
from isogloss.core.errors import ConfigError, RunError
from isogloss.core.identity import identity
from isogloss.core.interruption import interruptible, request_interruption
from isogloss.core.processes import cores, this_process
from isogloss.core.progress import OnProgress, Progress, no_progress
from isogloss.engine.attempts import AttemptResult, answer
from isogloss.engine.pickling import Pickled, pickled
from isogloss.engine.workers import Workers
from isogloss.runs.run import Run, RunContext, peak_memory, precision_here
from isogloss.store.store import Store

OBJECTS = 80 * 2**20
"""Bytes of shared memory for what tasks return, on a cluster started here; it is a few hundred each."""

GRACE = 15.0
"""Seconds that runs have for a checkpoint when this process ends early."""

ANSWER = 10.0
"""Seconds in which a cluster has to answer."""

PROGRESS_EVERY = 0.5
"""Seconds between two reports of the progress of a run."""

MARK = "folder"
"""Name of the file by which a folder of runs is known on other machines."""

PLACE = "waiting for a place in the Ray cluster"

MAX_LOST_NODES = 3
"""Nodes that may be lost under a run before it is taken for the reason."""


@contextmanager
def ray_workers(
    context: RunContext, on_start: Callable[[Run], None], *, address: str, jobs: int
) -> Iterator[Workers]:
    """Yield workers on the nodes of a cluster; with the block ends whatever they still make."""
    with _connected(address, places=max(jobs, 1) * context.threads):
        workers = RayWorkers(context, on_start, jobs)
        try:
            workers.check_nodes()
            yield workers
        finally:
            workers.close()


@contextmanager
def _connected(address: str, places: int) -> Iterator[None]:
    """Connect to a cluster, or start one here, unless the caller's program is connected already."""
    _check_address(address)
    if ray.is_initialized():
        yield
        return
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    local = {"num_cpus": max(cores(), places), "object_store_memory": OBJECTS, "include_dashboard": False}
    handler = signal.getsignal(signal.SIGTERM)
    try:
        ray.init(
            address=address or "local",
            log_to_driver=False,
            logging_level="ERROR",
            **({} if address else local),
        )
    except (ConnectionError, RuntimeError, ValueError) as error:
        raise _no_cluster(address, error) from error
    finally:
        with suppress(ValueError):  # This is not the main thread, and so Ray set none either.
            signal.signal(signal.SIGTERM, handler)  # Ray puts its own there.
    # What dies stands in the outcome; Ray would print it on standard output, and has no option against that.
    ray._private.worker._worker_logs_enabled = False
    try:
        yield
    finally:
        ray.shutdown()


def _check_address(address: str) -> None:
    """Raise ConfigError where nobody answers; Ray would try for minutes, and could not be interrupted."""
    if address.startswith("ray://"):
        raise ConfigError(
            f"--address {address}: this is for clients outside a cluster. Start isogloss on a machine of the "
            f"cluster with --address auto, or by ray job submit."
        )
    host, colon, port = address.rpartition(":")
    if colon and port.isdigit():
        try:
            socket.create_connection((host, int(port)), timeout=ANSWER).close()
        except OSError as error:
            raise _no_cluster(address, error) from error


def _no_cluster(address: str, error: Exception) -> ConfigError:
    return ConfigError(
        f"--address {address}: no connection to a Ray cluster ({str(error).splitlines()[0]}). Start one (ray "
        f"start --head), or leave --address out for this machine alone."
    )


@dataclass
class _Task:
    """A run that was handed to the cluster."""

    run: Run
    process: str = ""
    """The process that makes it, once one does."""
    node: str = ""
    last: Progress | None = None
    """Its last progress."""


class _ProgressRelay:
    """Events of runs since the last call of ``take``; an actor."""

    def __init__(self) -> None:
        self._events: list[tuple[str, object]] = []

    def add(self, key: str, event: object) -> None:
        self._events.append((key, event))

    def take(self) -> list[tuple[str, object]]:
        events, self._events = self._events, []
        return events


class RayWorkers:
    """Tasks of a Ray cluster, which end with this process."""

    def __init__(self, context: RunContext, on_start: Callable[[Run], None], jobs: int) -> None:
        self._on_progress = context.on_progress
        self._context = replace(context, on_progress=no_progress)
        self._on_start, self._jobs = on_start, jobs
        self._tasks: dict[ray.ObjectRef, _Task] = {}
        self._lost: Counter[str] = Counter()
        """By run: how many nodes were lost that made it."""
        self._interrupted = self._is_waiting = False
        self._mark = _mark_of(context.store)
        here = NodeAffinitySchedulingStrategy(ray.get_runtime_context().get_node_id(), soft=True)
        self._relay = ray.remote(num_cpus=0, scheduling_strategy=here)(_ProgressRelay).remote()

    @property
    def on_progress(self) -> OnProgress:  # noqa: D102
        return self._on_progress

    def check_nodes(self) -> None:
        """Raise ConfigError for a node that lacks the folder of runs, or has another version of isogloss."""
        problems = {
            node["NodeManagerHostname"]: ray.remote(num_cpus=0, max_retries=0)(_problem_here)
            .options(scheduling_strategy=NodeAffinitySchedulingStrategy(node["NodeID"], soft=False))
            .remote(pickled(self._context.store), self._mark, VERSION)
            for node in _nodes()
            if node["Resources"].get("CPU")
        }
        for node, task in problems.items():
            try:
                problem = ray.get(task)
            except NodeDiedError:
                continue
            except RayError as error:
                problem = f"isogloss cannot be imported there ({str(error).strip().splitlines()[-1]})"
            if problem:
                raise ConfigError(f"Ray node {node}: {problem}")

    def is_free(self) -> bool:
        """Return whether no more runs wait for a place than the cluster has processors for."""
        waiting = sum(not task.process for task in self._tasks.values())
        room = int(ray.cluster_resources().get("CPU", 0)) // self._context.threads
        return waiting < max(1, room) and (not self._jobs or len(self._tasks) < self._jobs)

    def start(self, run: Run, expired: bytes) -> None:  # noqa: D102
        task = ray.remote(max_retries=0)(_make).options(**self._needs(run))
        sent = task.remote(pickled((self._context, run)), self._relay, self._mark, expired)
        self._tasks[sent] = _Task(run)

    def _needs(self, run: Run) -> dict[str, float]:
        """Return the processors, GPUs and memory of a run, such that a node can have them."""
        memory = peak_memory(run, self._context.sources.encoders)
        if memory != 0 and ray.cluster_resources().get("GPU"):
            return {"num_cpus": self._context.threads, "num_gpus": 1}
        most = max((node["Resources"].get("memory", 0) for node in _nodes()), default=0)
        return {"num_cpus": self._context.threads, "memory": int(min(memory or 0, most))}

    def ended(self, timeout: float) -> list[tuple[Run, AttemptResult]]:  # noqa: D102
        if not self._tasks:
            time.sleep(timeout)
            return []
        ray.wait([*self._tasks], timeout=timeout)
        ended, _ = ray.wait([*self._tasks], num_returns=len(self._tasks), timeout=0)
        self._relay_events()
        return [self._ended(task) for task in ended]

    def interrupt(self) -> None:  # noqa: D102
        self._interrupted = True
        for task in self._tasks:
            ray.cancel(task)

    def close(self) -> None:
        """End what still runs: with a checkpoint, if that does not take too long."""
        try:
            self.interrupt()
            if self._tasks:
                ray.wait([*self._tasks], num_returns=len(self._tasks), timeout=GRACE)
        finally:
            for task in self._tasks:
                ray.cancel(task, force=True)
            ray.kill(self._relay)

    def _relay_events(self) -> None:
        """Pass on the events of runs: that they are being made, and their progress."""
        by_run = {identity(task.run): task for task in self._tasks.values()}
        for key, event in ray.get(self._relay.take.remote()):
            task = by_run.get(key)
            if task is None:
                continue
            if isinstance(event, Progress):
                task.last = replace(event, what=f"{event.what} ({key} on {task.node})")
                self.on_progress(task.last)
            else:
                task.process, task.node = event
                self._on_start(task.run)
        is_waiting = not any(task.process for task in by_run.values())
        if is_waiting is not self._is_waiting:
            self._is_waiting = is_waiting
            self.on_progress(Progress(PLACE, int(not is_waiting), 1, _sizes()))

    def _ended(self, sent: ray.ObjectRef) -> tuple[Run, AttemptResult]:
        task = self._tasks.pop(sent)
        if task.last and task.last.done < task.last.total:  # Nobody is to wait for the rest of it.
            self.on_progress(replace(task.last, done=task.last.total, remark="ended", rows=()))
        try:
            result = ray.get(sent)
        except TaskCancelledError:
            result = AttemptResult("interrupted")
        except (WorkerCrashedError, OutOfMemoryError, NodeDiedError) as error:
            result = self._died(task, error)
        except RayError as error:
            raise RunError(f"Ray could not make run {identity(task.run)}: {error}") from error
        if isinstance(result, Exception):
            raise result
        return task.run, result

    def _died(self, task: _Task, error: RayError) -> AttemptResult:
        """Return how a run ended whose process is gone, with its lease, so that nobody waits for it.

        A node that is lost is nothing against its runs, unless that happens to one again and again.
        """
        key = identity(task.run)
        self._lost[key] += isinstance(error, NodeDiedError)
        is_unlucky = isinstance(error, NodeDiedError) and self._lost[key] < MAX_LOST_NODES
        why = f"{type(error).__name__} on {task.node}" if task.node else type(error).__name__
        expired = self._context.store.leases.left_by(key, task.process) if task.process else b""
        return AttemptResult(
            "interrupted" if self._interrupted or is_unlucky else "died", why, expired=expired
        )


def _mark_of(store: Store) -> bytes:
    """Return the content of that file, which lies among the leases."""
    store.leases.board.create(MARK, token_hex(8).encode())
    return store.leases.board.read(MARK) or b""


def _nodes() -> list[dict[str, Any]]:
    return [node for node in ray.nodes() if node["Alive"]]


def _sizes() -> str:
    resources = ray.cluster_resources()
    return f"it has {resources.get('CPU', 0):g} processors and {resources.get('GPU', 0):g} GPUs"


# In the processes of the cluster


def _problem_here(store: Pickled, mark: bytes, version: str) -> str:
    """Return what keeps runs from being made on this node; empty if nothing does."""
    if version != VERSION:
        return f"it has isogloss {VERSION}, and this machine {version}. Install the same on all."
    return _unseen(store.loaded(), mark)


def _unseen(store: Store, mark: bytes) -> str:
    if store.leases.board.read(MARK) == mark:
        return ""
    return (
        f"it does not see {store.root}: what was written there is missing. The folder of runs (--out) must "
        f"be one that all nodes share, under the same path."
    )


def _make(sent: Pickled, relay: ActorHandle, mark: bytes, expired: bytes) -> AttemptResult | Exception:
    """Make a run; return how it ended, or an error that concerns all runs."""
    try:
        context, run = sent.loaded()
    except ConfigError as error:
        return error
    if problem := _unseen(context.store, mark):
        return ConfigError(f"Ray node {platform.node()}: {problem}")
    throttled = _ThrottledProgress(relay, identity(run))
    relay.add.remote(identity(run), (this_process(), platform.node()))
    with _interruptible_by_signals():
        context = replace(context, on_progress=throttled, precision=_precision(context.store))
        return answer(context, run, expired)


@cache
def _precision(store: Store) -> str:
    return precision_here(store)


@dataclass
class _ThrottledProgress:
    """Reports a run's progress, not too often."""

    relay: ActorHandle
    key: str
    last: float = 0.0

    def __call__(self, progress: Progress) -> None:
        """Report, unless the next report will say the same and more."""
        if time.monotonic() - self.last > PROGRESS_EVERY or progress.rows or progress.done >= progress.total:
            self.last = time.monotonic()
            self.relay.add.remote(self.key, progress)


@contextmanager
def _interruptible_by_signals() -> Iterator[None]:
    """Leave when the task is cancelled, which comes as Ctrl-C, or the node is stopped (SIGTERM)."""
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    with interruptible():
        for number in handlers:
            signal.signal(number, lambda *_: request_interruption())
        try:
            yield
        finally:
            for number, handler in handlers.items():
                signal.signal(number, handler)
