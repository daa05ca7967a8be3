"""Work on a plan: lease a run whose needs are finished, compute it, and repeat until no run is left.

Every process that works on a plan runs this loop: the caller's process, other processes of this machine,
tasks of a Ray cluster, jobs of Slurm, the same command on a different machine. They share only the folder of
runs. The lease of a run prevents others from computing it at the same time.

A failure stops only the runs that need the failed run. A failure of one run is recorded. A failure that
affects all runs (the disk, a mistake in the code) is raised. If a process died without a new checkpoint, or
the memory of a shared GPU ran out, the run is repeated with no other run on its machine. A run has failed
once ``DEATHS`` processes died with it since its last checkpoint. During an outage of the folder of runs (a
server restart, a lost mount) the process waits. Runs resume from their last checkpoints, and the folder is
never created again.
"""

from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from functools import partial
from graphlib import TopologicalSorter
from heapq import heappop, heappush
from itertools import chain, repeat
from math import inf
from threading import Event as Flag
from time import monotonic
from typing import Literal, TypeAlias, TypeVar

import torch

from isogloss.core.errors import ConfigError, DataError, ModelError, RunError, StorageError
from isogloss.core.identity import derive, identity
from isogloss.core.processes import (
    Interrupted,
    interruptible,
    interruption_requested,
    should_stop,
    stop_if_lost,
    stopping_if_lost,
    this_process,
)
from isogloss.core.progress import OnProgress, Progress
from isogloss.engine.damage import missing_file, quarantine_checkpoints
from isogloss.engine.devices import Room, Seat
from isogloss.runs.execute import make
from isogloss.runs.run import Run, RunContext, needs, read_by
from isogloss.store.leases import Ending, Lease, LeaseHistory
from isogloss.training.distributed import world_size
from isogloss.training.memory import ran_out
from isogloss.training.precision import computes, device

DEATHS = 3
"""Number of processes that may die during a run, without a new checkpoint, until the run has failed."""

FIRST_WAIT = 0.05
"""Seconds before the first check of runs that other processes make."""

CHECK_EVERY = 1.0
"""Maximum seconds between two such checks, and seconds between two checks of a missing folder."""

PATIENCE = 600.0
"""Seconds to wait for a missing folder."""

OUTAGES = 10
"""Maximum number of outages longer than ``PATIENCE`` during one run."""

GONE = (
    "The folder of runs cannot be used. See whether its disk or mount is there, then run the same command "
    "again: finished runs are kept."
)
_BY_OTHERS = "that other processes make"
_ALONE = "whose process died, to be made alone once no other run is made on this machine"
_FULL = "for which other runs leave no memory"
_DIED = "ended without giving the run back"
_WAITING = "waiting until the folder of runs can be used again"

ENDINGS: Mapping[str, Ending] = {"made": "finished", "done": "there", "failed": "failed"}
"""Endings of leases by the state of their settled run."""

T = TypeVar("T")

State: TypeAlias = Literal[
    "begun", "made", "done", "failed", "elsewhere", "full", "damaged", "died", "waiting"
]


@dataclass(frozen=True)
class RunEvent:
    """A change in the state of a run, and its message.

    done: finished by a different process. elsewhere: leased by a different process, or waiting until this
    machine is free or a machine can compute in its precision. full: no device has room. damaged: its
    checkpoints were damaged and are quarantined. died: it is repeated. waiting: this process has no run to
    compute.
    """

    run: str
    state: State
    message: str = ""

    @property
    def is_settled(self) -> bool:
        """Whether the run needs no more work."""
        return self.state in ("made", "done", "failed")


Report = Callable[[RunEvent], None]


def needs_within(runs: Mapping[str, Run]) -> dict[str, list[str]]:
    """Return, by id, the ids of the runs that each run needs, among the given ones."""
    need_ids = {key: [identity(need) for need in needs(run)] for key, run in runs.items()}
    return {key: [need_id for need_id in ids if need_id in runs] for key, ids in need_ids.items()}


class Agenda:
    """The runs of a plan that are ready, in its order, but trainings last, so that first results come early.

    It takes several reads to see that a run is leased by a different process, and network folders answer
    slowly. So runs with a lease are checked for a second, then set aside until no other run is left. Once a
    second, one listing of the leases shows which of these runs no longer have one.
    """

    def __init__(
        self, runs: Sequence[Run], list_leases: Callable[[], Set[str]], position: float = 0.0
    ) -> None:
        """Begin the agenda of some runs.

        ``list_leases`` returns the ids of runs with a lease. ``position`` is the share of the plan after
        which the agenda begins.
        """
        self._runs = {identity(run): run for run in runs}
        start = int(position * len(self._runs))
        self._numbers = {key: (index - start) % len(self._runs) for index, key in enumerate(self._runs)}
        self.needs = needs_within(self._runs)
        self._graph = TopologicalSorter(self.needs)
        self._graph.prepare()
        self._ready: list[tuple[bool, int, str]] = []
        """A heap of runs: whether they train, their numbers and ids."""
        self._current: tuple[bool, int, str] | None = None
        """The run that ``next`` returned."""
        self._set_aside: deque[tuple[bool, int, str]] = deque()
        """Runs that had a lease."""
        self._list_leases = list_leases
        self._leased: Set[str] = frozenset()
        self._listed = -inf
        self._pass_began = monotonic()
        self._unchecked = 0
        """Number of runs that were set aside and are not checked yet in this pass."""
        self.left = len(self._runs)
        """Number of runs that are not settled."""
        self._add_ready()

    @property
    def open(self) -> int:
        """Number of runs that are ready, including runs that a different process computes."""
        return len(self._ready) + len(self._set_aside)

    @property
    def leased_ids(self) -> list[str]:
        """Ids of the runs that had a lease when they were last checked."""
        return [key for _, _, key in self._set_aside]

    def next(self) -> Run | None:
        """Return the next run to try, runs without a lease first, or None if all were tried in this pass."""
        if monotonic() - self._listed > CHECK_EVERY:
            self._look()
        checking = monotonic() - self._pass_began <= CHECK_EVERY
        while self._ready:
            entry = heappop(self._ready)
            if checking or entry[-1] not in self._leased:
                return self._take(entry)
            self._set_aside.append(entry)
        if self._unchecked > 0 and self._set_aside:
            self._unchecked -= 1
            return self._take(self._set_aside.popleft())
        return None

    def postpone(self) -> None:
        """Set aside the run that ``next`` returned, which a different process makes."""
        entry = self._pop_current()
        if entry[-1] not in self._leased:  # The listing is out of date, so the next run may also be leased.
            self._look()
        self._set_aside.append(entry)

    def put_back(self) -> None:
        """Return a run of ``next`` to its place, because it cannot run at the moment."""
        heappush(self._ready, self._pop_current())

    def had_lease(self, key: str) -> bool:
        """Return whether a run had a lease at the last listing."""
        return key in self._leased

    def begin_pass(self) -> None:
        """Try all runs again."""
        self._pass_began = monotonic()
        self._look()
        self._unchecked = len(self._set_aside)

    def settle(self) -> None:
        """Free the runs that need the run that ``next`` returned, which is finished or has failed."""
        self._graph.done(self._pop_current()[-1])
        self.left -= 1
        self._add_ready()

    def _take(self, entry: tuple[bool, int, str]) -> Run:
        self._current = entry
        return self._runs[entry[-1]]

    def _pop_current(self) -> tuple[bool, int, str]:
        entry = self._current
        self._current = None
        if entry is None:
            raise RuntimeError("no run was taken from the agenda")
        return entry

    def _look(self) -> None:
        """List the leases, and make runs without a lease ready again."""
        self._leased = self._list_leases()
        self._listed = monotonic()
        for _ in range(len(self._set_aside)):
            entry = self._set_aside.popleft()
            if entry[-1] in self._leased:
                self._set_aside.append(entry)
            else:
                heappush(self._ready, entry)

    def _add_ready(self) -> None:
        for key in self._graph.get_ready():
            heappush(self._ready, (self._runs[key].trains, self._numbers[key], key))


@dataclass
class Work:
    """The work of one process on a plan."""

    context: RunContext
    runs: Sequence[Run]
    """Runs in an order in which each follows the runs it needs."""
    report: Report
    """Function called with each change. An error in it ends the work."""
    room: Room = field(default_factory=Room)
    patience: float = inf
    """Seconds without any work after which it ends, if other processes make all runs that are left."""
    left_to_others: Set[str] = frozenset()
    """Ids of runs that this process never makes. It waits for them if its own runs need them."""
    agenda: Agenda = field(init=False)
    _failed: set[str] = field(default_factory=set)
    _reasons: dict[str, str] = field(default_factory=dict)
    """Reason why a run waits, by id. Empty for a run that another process makes."""
    _report_error: Exception | None = None

    def work(self) -> None:
        """Work until every run is finished or has failed. Raises Interrupted on request."""
        store = self.context.store
        with interruptible(), store.guard_folder():
            self._patiently(store.refresh)
            # Other leases, such as the lease for finding damage, usually belong to this process itself.
            leased_keys = self._patiently(store.leases.list_leased_runs) & {
                identity(run) for run in self.runs
            }
            position = random_position() if leased_keys else 0.0
            missing = [run for run in self.runs if not store.is_finished(run)]
            own_device = device()
            other_keys = {identity(run) for run in missing if not self._may_make(run, own_device)}
            # The agenda treats runs of other processes as leased, so it checks them last.
            self.agenda = Agenda(
                missing, lambda: self._patiently(store.leases.list_leased_runs) | other_keys, position
            )
            idle = 0.0
            try:
                while self.agenda.left and idle <= self.patience:
                    idle = self._step(idle)
            finally:
                store.leases.flush_log()

    def _step(self, idle: float) -> float:
        """Make the next run, or wait, and return the seconds waited since a run was settled."""
        if should_stop():
            raise Interrupted
        run = self.agenda.next()
        event = self._settle(run) if run else None
        if event:
            self._reasons[event.run] = event.message
        if event and event.is_settled:
            del self._reasons[event.run]
            self.agenda.settle()
            return 0.0
        if event and event.state == "elsewhere":
            self.agenda.postpone()
            return idle
        if event:
            self.agenda.put_back()
        pause = min(max(FIRST_WAIT, idle), CHECK_EVERY)
        self._wait(pause)
        self.agenda.begin_pass()
        return idle + pause

    def _settle(self, run: Run) -> RunEvent:
        """Make a run, unless a run that it needs has failed, and report its new state."""
        key = identity(run)
        store = self.context.store
        if failed_need := next((need for need in self.agenda.needs[key] if need in self._failed), ""):
            event = RunEvent(key, "failed", f"needs run {failed_need}, which failed")
            self._patiently(lambda: store.fail(run, event.message, needs=failed_need))
        else:
            # An attempt that was ended by an outage has left a lease.
            may_have_lease = chain((self.agenda.had_lease(key),), repeat(True))
            event = self._patiently(lambda: self.attempt(run, has_lease=next(may_have_lease)))
        if event.is_settled:
            if event.state == "failed":
                self._failed.add(key)
            self.room.learn(run)
            self._say(event)
        return event

    def _wait(self, seconds: float) -> None:
        """Wait for some seconds, and report how many runs wait for which reason."""
        reasons = dict.fromkeys(self.agenda.leased_ids, "") | self._reasons
        counts = Counter(reason or _BY_OTHERS for reason in reasons.values())
        parts = [f"{count} run{'s' if count > 1 else ''} {reason}" for reason, count in counts.items()]
        self._say(RunEvent("", "waiting", f"waiting for {' and '.join(parts)}"))
        Flag().wait(seconds)

    def _say(self, event: RunEvent) -> None:
        try:
            self.report(event)
        except Exception as error:
            self._report_error = error  # The error is not an outage of the folder.
            raise

    def _patiently(self, act: Callable[[], T]) -> T:
        """Call a function. During an outage of the folder of runs, wait until the folder is back, and retry.

        Only an attempt shows whether the folder is also usable. An attempt that fails at once belongs to the
        same outage.
        """
        since = inf
        outages = 0
        while True:
            began = monotonic()
            try:
                return act()
            except Exception as error:
                if error is self._report_error or not self.context.store.is_outage(error):
                    raise
                reason = str(error)
                now = monotonic()
            if now - began > PATIENCE:
                since, outages = now, outages + 1
            if outages > OUTAGES:
                raise StorageError(f"{reason} ({outages} times) {GONE}")
            since = min(since, now)
            self._wait_for_folder(since, reason)

    def _wait_for_folder(self, since: float, reason: str) -> None:
        while True:
            seconds = monotonic() - since
            if should_stop():
                raise Interrupted
            if seconds > PATIENCE:
                raise StorageError(f"{reason} (tried for {seconds:.0f} s) {GONE}")
            self.context.on_progress(Progress(_WAITING, round(seconds), round(PATIENCE), reason))
            Flag().wait(CHECK_EVERY)
            if self.context.store.is_reachable():
                return

    def _may_make(self, run: Run, own_device: torch.device) -> bool:
        """Return whether this process may make a run and can compute in its precision."""
        is_own = identity(run) not in self.left_to_others
        return is_own and computes(own_device, self.context.resolve_precision(run.precision))

    def attempt(self, run: Run, *, has_lease: bool = True) -> RunEvent:
        """Compute a run unless a different process computes it or has done so.

        A failure of only this run is recorded.

        ``has_lease`` is false if the run had no lease at the last listing. Then nobody has begun it, or it is
        settled, which is checked once this process has leased it. That saves reading.
        """
        key = identity(run)
        store = self.context.store
        if store.is_finished(run):
            store.remove_leftovers(run)
            store.forget_leases(run)
            return RunEvent(key, "done")
        if why := store.failure(run, afresh=has_lease):
            return RunEvent(key, "failed", why)
        if not self._may_make(run, device()):
            return RunEvent(key, "elsewhere")
        history = store.leases.history(key) if has_lease else LeaseHistory()
        if history.is_held:
            return RunEvent(key, "elsewhere")
        resume_point = store.find_resume_point(run, afresh=has_lease)
        is_exclusive = bool(history.count_deaths_at(resume_point) or history.out_of_memory)
        with self.room.reserve(run, store.leases, is_exclusive=is_exclusive) as seat:
            if not seat:
                return RunEvent(key, "elsewhere", _ALONE) if is_exclusive else RunEvent(key, "full", _FULL)
            with store.leases.lease_run(key, resume_point, is_first=not has_lease) as lease:
                return self._make_leased(run, lease, history, seat) if lease else RunEvent(key, "elsewhere")

    def _make_leased(self, run: Run, lease: Lease, history: LeaseHistory, seat: Seat) -> RunEvent:
        """Compute a run leased by this process, unless it was settled in the meantime."""
        key = lease.key
        store = self.context.store
        if store.finished_meanwhile(run):
            store.remove_leftovers(run)
            event = RunEvent(key, "done")
        elif why := store.failed_meanwhile(run):
            event = RunEvent(key, "failed", why)
        elif why := _deadly(history, lease.resume_point):
            store.fail(run, why)
            event = RunEvent(key, "failed", why)
        else:
            if history.deaths:
                again = (
                    f"it resumed after {lease.resume_point}." if lease.resume_point else "it was made again."
                )
                reason = f"its process {_DIED} ({history.holder}; killed, or unable to write here); {again}"
                self._say(RunEvent(key, "died", reason))
            self._say(RunEvent(key, "begun"))
            event = self._make(run, lease, seat)
        if event.is_settled:
            lease.ending = ENDINGS[event.state]
        return event

    def _make(self, run: Run, lease: Lease, seat: Seat) -> RunEvent:
        key = lease.key
        store = self.context.store
        damage = ""
        try:
            damage = store.download_checkpoints(run, afresh=lease.number > 1) or quarantine_checkpoints(
                store, run
            )
            store.download(read_by(run))
            with store.uploading_checkpoints(run, lease), stopping_if_lost(partial(self._check, lease)):
                make(replace(self.context, on_progress=_stoppable(self.context.on_progress)), run)
            event = RunEvent(key, "made")
        except Interrupted:
            if not lease.lost:
                raise
            event = self._taken_over(run)
        except Exception as error:
            store.leases.renew(lease)
            if not lease.lost and (lease.silent or not store.is_finished(run, afresh=True)):
                event = self._result_of_error(run, error, lease, seat)
            else:
                event = self._taken_over(run)
        if damage:
            self._say(RunEvent(key, "damaged", damage))
        return event

    def _taken_over(self, run: Run) -> RunEvent:
        """Return the state of a run that a different process took over."""
        if not self.context.store.is_finished(run, afresh=True):
            return RunEvent(identity(run), "elsewhere")
        self.context.store.remove_leftovers(run)
        return RunEvent(identity(run), "done")

    def _check(self, lease: Lease) -> None:
        """Stop if a different process took the run over while this process was paused or disconnected."""
        self.context.store.leases.renew(lease, if_over=True)
        wait_while_silent(lease, self.context.on_progress)
        if lease.lost:
            raise Interrupted

    def _result_of_error(self, run: Run, error: Exception, lease: Lease, seat: Seat) -> RunEvent:
        store = self.context.store
        key = lease.key
        if seat == "shared" and ran_out(error):
            lease.ending = "out of memory"
            reason = f"the memory of the GPU that it shared ran out ({error}); it was made again."
            self._say(RunEvent(key, "died", reason))
            return RunEvent(key, "elsewhere")
        if file := missing_file(store, read_by(run)):
            raise StorageError(
                f"{file}: it went away while another run needed it. Run the same command again: it is made "
                f"anew."
            ) from error
        reason = failure_reason(error)
        if not reason or store.is_outage(error):
            raise error
        store.fail(run, reason)
        return RunEvent(key, "failed", reason)


def random_position() -> float:
    """Return the share of a plan after which this process begins. It differs between processes.

    Processes that begin at the same run all try to lease it, and then the next.
    """
    return derive(0, this_process()) % 1_000 / 1_000


def _deadly(history: LeaseHistory, resume_point: str) -> str:
    """Return why a run has failed if too many processes died at one point of it. Empty for fewer deaths."""
    deaths = history.count_deaths_at(resume_point)
    if deaths < DEATHS:
        return ""
    where = (
        f"after {resume_point} and before the next checkpoint"
        if resume_point
        else "before its first checkpoint"
    )
    return (
        f"its process {_DIED} {deaths} times {where} (the last one: {history.holder}), the last time "
        f"while no other run was made here. What ended it is not known: look into the system's log (memory, "
        f"time limits, the disk). Then set a smaller checkpoint_every or batch_size, or use another machine, "
        f"and run again with --retry-failed."
    )


def _stoppable(on_progress: OnProgress) -> OnProgress:
    """Return a function that reports progress, and stops this process if it should stop."""

    def report(progress: Progress) -> None:
        on_progress(progress)
        stop_if_lost()
        if should_stop() and world_size() == 1:  # Several processes stop together (``fit``).
            raise Interrupted

    return report


def wait_while_silent(lease: Lease, on_progress: OnProgress) -> None:
    """Wait while a lease cannot be renewed.

    A different process may have taken the run over, which shows once the folder is back. Raises StorageError
    after ``PATIENCE`` seconds.
    """
    since = monotonic()
    while lease.silent and not lease.lost and not interruption_requested():
        seconds = monotonic() - since
        if seconds > PATIENCE:
            raise StorageError(f"run {lease.key}: nobody could see that it is being made. {GONE}")
        on_progress(Progress(_WAITING, round(seconds), round(PATIENCE)))
        Flag().wait(CHECK_EVERY)


def failure_reason(error: Exception) -> str:
    """Return why a run failed, if other runs can continue. Empty for errors of the disk."""
    if isinstance(error, ConfigError | DataError | ModelError | RunError):
        return str(error)
    # torch has no separate error for the machine's memory.
    is_cpu_memory = isinstance(error, RuntimeError) and "DefaultCPUAllocator" in str(error)
    if is_cpu_memory or isinstance(error, MemoryError) or ran_out(error):
        message = " ".join(str(error).split()) or type(error).__name__
        return (
            f"the memory ran out ({message:.300}). Lower batch_size or raise accumulation, set "
            f"gradient_checkpointing, make fewer runs at a time (--jobs), or use a larger machine."
        )
    return ""
