"""Tasks of a Ray cluster that work on a plan, with the processors, memory or share of a GPU that runs need.

A cluster with GPUs has two kinds of tasks. Tasks with a share of a GPU compute the runs with a model, and
tasks without one compute all others. So nodes without a GPU have work, and GPUs never wait for a processor.
The number of tasks follows the runs that are ready and the resources. Idle tasks end after a while, and tasks
that die are replaced. ``work`` decides the order of runs and their repetitions, so Ray's retries are off. All
nodes need access to the folder of runs.
"""

import os
import platform
import signal
import socket
import time
from collections.abc import Iterator, Mapping, Sequence, Set
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import cache
from math import inf
from secrets import token_hex
from typing import Any

import ray
from ray.exceptions import (
    NodeDiedError,
    OutOfMemoryError,
    RayError,
    TaskCancelledError,
    WorkerCrashedError,
)
from ray.util.queue import Queue
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from isogloss.core import VERSION
from isogloss.core.errors import ConfigError, IsoglossError, RunError
from isogloss.core.identity import identity
from isogloss.core.processes import (
    Interrupted,
    cores,
    interruptible,
    interruption_requested,
    request_interruption,
)
from isogloss.core.progress import Progress, no_progress
from isogloss.engine.devices import MemoryNeeds, Room, choose_share, find_shared_device, gpus, hide_gpus
from isogloss.engine.work import Report, RunEvent, Work, needs_within
from isogloss.features.cluster.pickled import Pickled, pack
from isogloss.runs.run import Run, RunContext, peak_memory, precision_here
from isogloss.store.store import Store
from isogloss.training.memory import Machine

OBJECTS = 80 * 2**20
"""Bytes of shared memory on a cluster started here. Each result of a task has a few hundred bytes."""

GRACE = 15.0
"""Seconds that runs have for a checkpoint when this process ends early."""

ANSWER = 10.0
"""Seconds in which a cluster has to answer."""

HEAD_PATIENCE = 20.0
"""Seconds in which the head of a cluster has to answer again. Ray itself ends this process after 60."""

PROGRESS_EVERY = 0.5
"""Seconds between two reports of the progress of a run."""

POLL_EVERY = 0.2
"""Seconds between two checks of tasks and their reports."""

NODES_EVERY = 2.0
"""Seconds between two listings of the cluster's nodes."""

IDLE_PATIENCE = 10.0
"""Seconds after which an idle task ends, so that other tasks get its place."""

MARK = "folder"
"""Name of the file by which a folder of runs is known on other machines."""

WAITING = "waiting for a place in the Ray cluster"
WAITING_FOR_GPU = "waiting for a GPU of the Ray cluster"

RESOLUTION = 10_000
"""Ray rounds shares of a resource to 1 / 10,000."""


def work_on_cluster(
    context: RunContext,
    runs: Sequence[Run],
    report: Report,
    *,
    address: str,
    jobs: int,
    gpu_share: float | None = None,
) -> None:
    """Let tasks on the nodes of a cluster work on a plan until no run is left.

    Raises Interrupted on request.
    """
    with _connect_to_cluster(address, places=max(jobs, 1) * context.threads), interruptible():
        mark = _mark_of(context.store)
        _check_nodes(context.store, mark)
        tasks = RayTasks(context, runs, report, jobs, mark, gpu_share)
        try:
            tasks.follow()
        finally:
            tasks.close()


@contextmanager
def _connect_to_cluster(address: str, places: int) -> Iterator[None]:
    """Connect to a cluster, or start one on this machine, unless the caller is already connected."""
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
    except Exception as error:  # Ray raises a bare Exception if a cluster does not start in time.
        raise _no_cluster(address, error) from error
    finally:
        with suppress(ValueError):  # Outside the main thread, Ray has not set a handler.
            signal.signal(signal.SIGTERM, handler)  # Ray has replaced it.
    # Ray would print deaths of tasks on standard output and has no option against that. The outcome has them.
    ray._private.worker._worker_logs_enabled = False
    try:
        yield
    finally:
        ray.shutdown()


def _check_address(address: str) -> None:
    """Raise ConfigError if nothing answers at the address.

    Ray itself would try for minutes and could not be interrupted.
    """
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
    if not address:
        return ConfigError(
            f"--engine ray: no cluster could be started on this machine ({str(error).splitlines()[0]}). Run "
            f"the command again when the machine is less busy, or use --engine processes."
        )
    return ConfigError(
        f"--address {address}: no connection to a Ray cluster ({str(error).splitlines()[0]}). Start one (ray "
        f"start --head), or remove --address for this machine alone."
    )


@dataclass
class _Task:
    number: int
    has_begun: bool = False
    last: Progress | None = None
    """Its last progress."""


@dataclass
class _Kind:
    """Tasks with equal resources, and the runs that they make."""

    memory: Mapping[str, int | None]
    """Memory of runs in bytes, on a GPU, or on the machine for tasks without a GPU. None if unknown."""
    others: ray.ObjectRef
    """Ids of the runs that tasks of the other kind make."""
    waiting: str
    """The reason for waiting, as progress shows it."""
    tasks: dict[ray.ObjectRef, _Task] = field(default_factory=dict)
    is_waiting: bool = False
    _by_memory: list[str] = field(init=False)
    """Ids of runs that may not be finished, sorted by memory."""

    def __post_init__(self) -> None:
        """Sort the runs by memory, runs of unknown memory last."""
        needs = {key: inf if need is None else need for key, need in self.memory.items()}
        self._by_memory = sorted(needs, key=needs.__getitem__)

    def find_largest(self, settled_keys: Set[str]) -> int | None:
        """Return the memory of the largest run that is not settled."""
        while self._by_memory and self._by_memory[-1] in settled_keys:
            self._by_memory.pop()
        return self.memory[self._by_memory[-1]] if self._by_memory else 0

    def count_begun(self) -> int:
        """Return the number of tasks that have started on a node."""
        return sum(task.has_begun for task in self.tasks.values())


@dataclass
class RayTasks:
    """Tasks that work on a plan, and end with this process."""

    context: RunContext
    runs: Sequence[Run]
    report: Report
    jobs: int
    """Maximum number of tasks. 0: as many as have room."""
    mark: bytes
    gpu_share: float | None = None
    """Share of a GPU for each task with one, if the user gave it."""
    _settled: set[str] = field(default_factory=set)
    _started: int = 0
    _head_answered: float = field(default_factory=time.monotonic)
    _nodes: list[Mapping[str, float]] = field(default_factory=list)
    """The resources of each node."""
    _listed: float = -inf
    _supervisor: tuple[str, int] = field(init=False)
    """Host and port of the process that supervises this node."""

    def __post_init__(self) -> None:
        """Divide the runs among kinds of tasks, and open the queue of reports on this node."""
        missing = [run for run in self.runs if not self.context.store.is_finished(run)]
        self._missing = {identity(run): run for run in missing}
        self._needs = needs_within(self._missing)
        self._supervisor = _find_supervisor()
        this_node = NodeAffinitySchedulingStrategy(ray.get_runtime_context().get_node_id(), soft=True)
        restarting = {"max_restarts": -1, "max_task_retries": -1}
        self._queue = Queue(actor_options={"num_cpus": 0, "scheduling_strategy": this_node, **restarting})
        self._sent = ray.put(pack((replace(self.context, on_progress=no_progress), missing)))
        self._on_gpus, self._on_processors = self._divide_runs()
        uses_gpus = bool(self._on_gpus.memory)
        self._card = _find_smallest_card() if uses_gpus and self.gpu_share is None else None
        # A process that has used or hidden a GPU must not be reused for another task.
        self._work = ray.remote(max_retries=0, max_calls=1 if uses_gpus else 0)(_work)

    def _divide_runs(self) -> tuple[_Kind, _Kind]:
        """Return tasks with a share of a GPU and those without, with their runs."""
        uses_gpus = self.gpu_share != 0 and (self.gpu_share or ray.cluster_resources().get("GPU", 0)) > 0
        gpu_runs = dict[str, int | None]()
        cpu_runs = dict[str, int | None]()
        gpu_needs = MemoryNeeds(self.context)
        for key, run in self._missing.items():
            uses_bfloat16 = self.context.resolve_precision(run.precision) == "bfloat16"
            need = peak_memory(run, self.context.sources.encoders, device_type=Machine(half=uses_bfloat16))
            if need == 0 or not uses_gpus:
                cpu_runs[key] = need
            else:
                gpu_runs[key] = gpu_needs.find_need(run)
        return (
            _Kind(gpu_runs, ray.put(set(cpu_runs)), WAITING_FOR_GPU),
            _Kind(cpu_runs, ray.put(set(gpu_runs)), WAITING),
        )

    @property
    def _kinds(self) -> tuple[_Kind, _Kind]:
        return self._on_gpus, self._on_processors

    @property
    def _tasks(self) -> dict[ray.ObjectRef, _Task]:
        return self._on_gpus.tasks | self._on_processors.tasks

    def follow(self) -> None:
        """Start tasks and pass on their reports until no run is left.

        Raises Interrupted on request.
        """
        while len(self._settled) < len(self._needs):
            if interruption_requested():
                raise Interrupted
            self._check_supervisor()
            if not self._head_answers():
                time.sleep(POLL_EVERY)
                continue
            self._start()
            tasks = list(self._tasks)
            ended_tasks, _ = ray.wait(tasks, num_returns=len(tasks), timeout=POLL_EVERY)
            self._pass_on()
            for task in ended_tasks:
                self._end(task)

    def _check_supervisor(self) -> None:
        """Raise RunError if the process has died that connects this process to the cluster.

        Ray itself ends this process soon after that, without a message.
        """
        if _is_reachable(*self._supervisor):
            return
        head = _find_head()
        host, port = self._supervisor
        lost_process = f"Ray's process on this node (the raylet, {host}:{port})"
        if not _is_reachable(*_split_address(head)):
            raise RunError(
                f"the head of the Ray cluster ({head}) and {lost_process} have ended. Finished runs are "
                f"kept. Start the cluster again (ray start --head), then run the same command."
            )
        raise RunError(
            f"{lost_process} has ended. Finished runs are kept. Start this node again "
            f"(ray start --address {head}), then run the same command."
        )

    def _head_answers(self) -> bool:
        """Return whether the head of the cluster answers.

        While it does not answer, calls of Ray block. Raises RunError if it has not answered for too long.
        """
        if _is_reachable(*_split_address(_find_head())):
            self._head_answered = time.monotonic()
            return True
        if time.monotonic() - self._head_answered > HEAD_PATIENCE:
            raise RunError(
                f"the head of the Ray cluster ({_find_head()}) has not answered for {HEAD_PATIENCE:.0f} s: "
                f"it has ended, or the network is down. Finished runs are kept. Start the cluster again "
                f"(ray start --head), then run the same command."
            )
        return False

    def _start(self) -> None:
        """Start a task for each run that is ready. Waiting tasks are limited to the places of the cluster.

        While runs for GPUs remain, tasks without a GPU do not use the processors that GPU tasks need, even
        when these are briefly free.
        """
        open_runs = {
            key
            for key, needs in self._needs.items()
            if key not in self._settled and self._settled.issuperset(needs)
        }
        if time.monotonic() - self._listed > NODES_EVERY:
            self._nodes = [node["Resources"] for node in _nodes()]
            self._listed = time.monotonic()
        places = int(sum(node.get("CPU", 0) for node in self._nodes)) // self.context.threads
        limit = self._on_processors.count_begun() + max(1, places)
        if left := len(self._on_gpus.memory.keys() - self._settled):
            resources, gpu_places = self._choose_gpu_resources(self._on_gpus.find_largest(self._settled))
            most_on_gpus = self._on_gpus.count_begun() + gpu_places
            self._start_tasks(self._on_gpus, open_runs, most_on_gpus, resources)
            limit = max(1, places - min(left, gpu_places))
        resources = self._choose_cpu_resources(self._on_processors.find_largest(self._settled))
        self._start_tasks(self._on_processors, open_runs, limit, resources)

    def _start_tasks(
        self, kind: _Kind, open_runs: Set[str], limit: int, resources: Mapping[str, float]
    ) -> None:
        """Start tasks of a kind: one for each of its open runs, at most ``limit`` at once."""
        limit = min(limit, len(open_runs & kind.memory.keys()))
        if self.jobs:
            limit = min(limit, self.jobs - len(self._tasks) + len(kind.tasks))
        for _ in range(len(kind.tasks), limit):
            self._started += 1
            assignment = _Assignment(
                number=self._started,
                mark=self.mark,
                gpu_share=resources.get("num_gpus", 0.0),
                counts_memory=self.gpu_share is None,
            )
            task = self._work.options(**resources).remote(self._sent, kind.others, self._queue, assignment)
            kind.tasks[task] = _Task(self._started)

    def _choose_gpu_resources(self, need: int | None) -> tuple[Mapping[str, float], int]:
        """Return the resources of a task that needs this much GPU memory, and how many such tasks fit."""
        threads = self.context.threads
        share = choose_share(need, self._card) if self.gpu_share is None else self.gpu_share
        share = max(1, int(share * RESOLUTION)) / RESOLUTION
        nodes = [node for node in self._nodes if node.get("GPU")]
        cpus = min(threads, max((int(node.get("CPU", 0)) for node in nodes), default=threads))
        places = [min(node["GPU"] // share, node.get("CPU", 0) // cpus if cpus else inf) for node in nodes]
        return {"num_cpus": cpus, "num_gpus": share}, max(1, int(sum(places)))

    def _choose_cpu_resources(self, need: int | None) -> Mapping[str, float]:
        """Return the resources of a task without a GPU: its memory, up to the largest node's memory."""
        node_memory = max((node.get("memory", 0) for node in self._nodes), default=0)
        return {"num_cpus": self.context.threads, "memory": int(min(need or 0, node_memory))}

    def _pass_on(self) -> None:
        """Pass on the reports of tasks: events of runs, and their progress."""
        tasks = {task.number: task for task in self._tasks.values()}
        for task_number, message in self._queue.get_nowait_batch(self._queue.size()):
            task = tasks.get(task_number)
            if isinstance(message, RunEvent):
                if message.is_settled:
                    self._settled.add(message.run)
                    self._finish_progress(task)
                self.report(message)
            elif task and isinstance(message, Progress):
                task.last = message
                self.context.on_progress(message)
            elif task:
                task.has_begun = True
        for kind in self._kinds:
            is_waiting = bool(kind.tasks) and not kind.count_begun()
            if is_waiting is not kind.is_waiting:
                kind.is_waiting = is_waiting
                self.context.on_progress(Progress(kind.waiting, int(not is_waiting), 1, _sizes()))

    def _finish_progress(self, task: _Task | None) -> None:
        """Report that the rest of a run's progress will not come."""
        if task and task.last and task.last.done < task.last.total:
            self.context.on_progress(replace(task.last, done=task.last.total, remark="ended", rows=()))
            task.last = None

    def _end(self, task: ray.ObjectRef) -> None:
        """Forget a task that has ended or died, and raise its error if that concerns all runs."""
        for kind in self._kinds:
            self._finish_progress(kind.tasks.pop(task, None))
        self.context.store.refresh()  # The task may not have reported its last runs.
        self._settled |= {key for key, run in self._missing.items() if self.context.store.is_finished(run)}
        try:
            error = ray.get(task)
        except (TaskCancelledError, WorkerCrashedError, OutOfMemoryError, NodeDiedError):
            return
        except RayError as failure:
            raise RunError(f"Ray could not make runs: {failure}") from failure
        if error is not None:
            raise error

    def close(self) -> None:
        """End running tasks, with a checkpoint if that does not take too long.

        Without a head or this node's raylet, no task can be ended from here. Ray ends the tasks of its nodes
        after a minute.
        """
        if not _is_reachable(*_split_address(_find_head())) or not _is_reachable(*self._supervisor):
            return
        running = list(self._tasks)
        try:
            if len(self._settled) < len(self._needs):  # Otherwise tasks see that no run is left.
                for task in running:
                    ray.cancel(task)
            if running:
                _, running = ray.wait(running, num_returns=len(running), timeout=GRACE)
        finally:
            for task in running:  # Cancelling an ended task may end this process.
                ray.cancel(task, force=True)
            self._queue.shutdown(force=True)


def _check_nodes(store: Store, mark: bytes) -> None:
    """Raise ConfigError for a node that lacks the folder of runs or has a different version of isogloss."""
    problems = {
        node["NodeManagerHostname"]: ray.remote(num_cpus=0, max_retries=0)(_problem_here)
        .options(scheduling_strategy=NodeAffinitySchedulingStrategy(node["NodeID"], soft=False))
        .remote(pack(store), mark, VERSION)
        for node in _nodes()
        if node["Resources"].get("CPU") or node["Resources"].get("GPU")
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


def _mark_of(store: Store) -> bytes:
    """Create the mark file among the leases if it is missing, and return its content."""
    store.leases.board.create(MARK, token_hex(8).encode())
    return store.leases.board.read(MARK) or b""


def _nodes() -> list[dict[str, Any]]:
    return [node for node in ray.nodes() if node["Alive"]]


def _find_smallest_card() -> int | None:
    """Return the memory of the smallest GPU of the cluster, or None if no node reports a GPU."""
    answers = [
        ray.remote(num_cpus=0, max_retries=0, max_calls=1)(_list_card_memory)
        .options(scheduling_strategy=NodeAffinitySchedulingStrategy(node["NodeID"], soft=False))
        .remote()
        for node in _nodes()
        if node["Resources"].get("GPU")
    ]
    memory = list[int]()
    for answer in answers:
        with suppress(NodeDiedError):
            memory += ray.get(answer)
    return min(memory, default=None)


def _find_head() -> str:
    """Return the address of the head of the cluster."""
    return str(ray.get_runtime_context().gcs_address)


def _find_supervisor() -> tuple[str, int]:
    """Return host and port of the raylet of this node."""
    node_id = ray.get_runtime_context().get_node_id()
    (node,) = [node for node in ray.nodes() if node["NodeID"] == node_id]
    return node["NodeManagerAddress"], node["NodeManagerPort"]


def _split_address(address: str) -> tuple[str, int]:
    host, _, port = address.rpartition(":")
    return host.strip("[]"), int(port)


def _is_reachable(host: str, port: int) -> bool:
    try:
        socket.create_connection((host, port), timeout=HEAD_PATIENCE / 10).close()
    except OSError:
        return False
    return True


def _sizes() -> str:
    resources = ray.cluster_resources()
    return f"it has {resources.get('CPU', 0):g} processors and {resources.get('GPU', 0):g} GPUs"


# In the processes of the cluster


def _problem_here(store: Pickled, mark: bytes, version: str) -> str:
    """Describe why runs cannot be computed on this node. Empty if they can."""
    if version != VERSION:
        return f"it has isogloss {VERSION}, and this machine {version}. Install the same on all."
    return _describe_missing_folder(store.load(), mark)


def _describe_missing_folder(store: Store, mark: bytes) -> str:
    if store.leases.board.read(MARK) == mark:
        return ""
    return (
        f"it does not see {store.root}: what this machine wrote is missing. The folder of runs (--out) must "
        f"be one that all nodes share, under the same path."
    )


def _list_card_memory() -> list[int]:
    """Return the memory of each GPU of this node."""
    return [gpu.memory for gpu in gpus() if gpu.memory]


@dataclass(frozen=True, kw_only=True)
class _Assignment:
    """A task's number and its share of a GPU."""

    number: int
    mark: bytes
    gpu_share: float
    counts_memory: bool
    """Whether the memory of a GPU limits how many runs share it."""

    def room(self, context: RunContext) -> Room:
        """Return the room for runs on this node."""
        folder = str(context.store.root)
        if not 0 < self.gpu_share < 1:
            return Room(folder)
        device = find_shared_device(self.gpu_share, counts_memory=self.counts_memory)
        return Room(folder, device, (device,), MemoryNeeds(context))


def _work(
    pickled_plan: Pickled, needy_runs: Set[str], queue: Queue, assignment: _Assignment
) -> Exception | None:
    """Work on a plan, and return an error if it concerns all runs."""
    if not assignment.gpu_share:  # Ray hides no GPU from a task without one.
        hide_gpus()
    try:
        context, runs = pickled_plan.load()
        if problem := _describe_missing_folder(context.store, assignment.mark):
            return ConfigError(f"Ray node {platform.node()}: {problem}")
        reports = _Reports(queue, assignment.number)
        reports.send(None)
        with _interruptible_by_signals():
            context = replace(context, on_progress=reports.progress)
            if assignment.gpu_share or not needy_runs:  # Runs without a model have no precision.
                context = replace(context, precision=_precision(context.store))
            room = assignment.room(context)
            Work(context, runs, reports.event, room, IDLE_PATIENCE, needy_runs).work()
    except Interrupted:
        return None
    except IsoglossError as error:
        return error
    return None


_precision = cache(precision_here)


@dataclass
class _Reports:
    """Reports of a task: all events, and progress at intervals."""

    queue: Queue
    task: int
    run: str = ""
    """Current run."""
    last: float = 0.0

    def send(self, message: object) -> None:
        self.queue.put((self.task, message))

    def event(self, event: RunEvent) -> None:
        self.run = event.run if event.state == "begun" else self.run
        if event.state != "waiting":
            self.send(event)

    def progress(self, progress: Progress) -> None:
        """Report progress at intervals. Progress with rows and the end of a run are always reported."""
        if time.monotonic() - self.last > PROGRESS_EVERY or progress.rows or progress.done >= progress.total:
            self.last = time.monotonic()
            self.send(replace(progress, what=f"{progress.what} ({self.run} on {platform.node()})"))


@contextmanager
def _interruptible_by_signals() -> Iterator[None]:
    """Stop if the task is cancelled (which arrives as Ctrl-C) or the node is stopped (SIGTERM)."""
    handlers = {
        signal_number: signal.getsignal(signal_number) for signal_number in (signal.SIGINT, signal.SIGTERM)
    }
    with interruptible():
        for signal_number in handlers:
            signal.signal(signal_number, lambda *_: request_interruption())
        try:
            yield
        finally:
            for signal_number, handler in handlers.items():
                signal.signal(signal_number, handler)
