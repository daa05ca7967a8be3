"""The schedule: each run of a plan is made once what it needs is finished, here or by another process.

A failure stops only the runs that need the failed one. A run whose process dies (the system ended it, as the
memory ran out), or that shared a GPU whose memory ran out, is made once more, alone.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush
from math import inf
from time import monotonic

from isogloss.core.identity import identity
from isogloss.core.interruption import Interrupted, interruptible, interruption_requested
from isogloss.core.progress import Progress
from isogloss.engine.attempts import AttemptResult
from isogloss.engine.storage_outage import StorageOutage
from isogloss.engine.workers import Workers
from isogloss.runs.run import Run, needs
from isogloss.store.store import Outcome, Store

POLL_WORKERS, POLL_OTHERS = 0.2, 1.0
"""Seconds between two checks of the workers, and of runs that other processes make."""

MADE_AGAIN = {
    "died": "its process was ended from outside",
    "out_of_memory": "the memory of the GPU that it shared ran out",
}
"""Results after which a run is made once more, alone, in words."""

FAILED_BEFORE = "in an earlier call; --retry-failed makes it again"


@dataclass
class Schedule:
    """A plan's runs on their way to a record: what each still waits for, and what has become of it."""

    store: Store
    runs: Sequence[Run]
    workers: Workers
    on_start: Callable[[Run, int, int], None]
    """Called before a run starts, with its number, counted from 1, and how many there are."""
    patience: float = inf
    """Seconds after which it ends, if others make all that is left."""
    follows: bool = False
    """Whether the workers follow what other processes make, and look themselves whether that has ended."""
    outcome: Outcome = field(default_factory=Outcome)
    _ids: list[str] = field(default_factory=list)
    """The runs' ids, in the order of the plan."""
    _number: dict[str, int] = field(default_factory=dict)
    _waits_for: dict[str, int] = field(default_factory=dict)
    """How many of its needs each unfinished run waits for."""
    _dependents: dict[str, list[str]] = field(default_factory=dict)
    _ready: list[int] = field(default_factory=list)
    """A heap of the numbers of runs that can be made: first those that stand first in the plan."""
    _running: set[str] = field(default_factory=set)
    _elsewhere: set[str] = field(default_factory=set)
    """Runs that other processes are making."""
    _expired: dict[str, bytes] = field(default_factory=dict)
    """Leases of theirs that have ended without a record."""
    _died: list[str] = field(default_factory=list)
    """Runs whose process died once: made again, each alone, when nothing else is left to start."""
    _tried_again: set[str] = field(default_factory=set)
    _checked: float = 0.0
    _idle_since: float = inf
    _outage: StorageOutage = field(init=False)

    def __post_init__(self) -> None:
        """Take the folder of runs to be there."""
        self._outage = StorageOutage(self.store)

    def run(self) -> Outcome:
        """Make all runs, or wait until others have made them; Interrupted on request."""
        self._begin()
        with interruptible(), self.store.guarded():
            self._make_all()
        return self.outcome

    def _make_all(self) -> None:
        stopping = False
        while self._running or self._ready or self._elsewhere or self._died:
            if interruption_requested() and not stopping:
                stopping = True
                self.workers.interrupt()
            if stopping and not self._running:
                raise Interrupted
            if self._outage.reason:
                self._outage.check(self.workers.on_progress)
            elif not stopping:
                self._start()
            for run, result in self.workers.ended(POLL_WORKERS):
                self._end(run, result)
            with self._outage.noticed():
                self._check_elsewhere()
            if self._has_waited_enough():
                return

    def _has_waited_enough(self) -> bool:
        is_idle = not (self._running or self._ready or self._died)
        self._idle_since = min(self._idle_since, monotonic()) if is_idle else inf
        return monotonic() - self._idle_since > self.patience

    def _begin(self) -> None:
        """Sort the runs: finished, failed, waiting for others, ready."""
        self._ids = list(map(identity, self.runs))
        self._number = {key: number for number, key in enumerate(self._ids)}
        for run, key in zip(self.runs, self._ids, strict=True):  # What a run needs stands before it.
            if self.store.is_finished(run):
                self.store.remove_leftovers(run)
                self.store.forget_leases(run)
                self.outcome.done.append(key)
                continue
            needed = list(map(identity, needs(run)))
            waits_for = [need for need in needed if need in self._waits_for or need in self.outcome.failed]
            self._waits_for[key] = len(waits_for)
            for need in waits_for:
                self._dependents.setdefault(need, []).append(key)
            if broken := next((need for need in needed if need in self.outcome.failed), ""):
                self._fail_dependent(key, broken)
            elif why := self.store.failure(run):
                self._fail(key, f"{why} ({FAILED_BEFORE})")
            elif not waits_for:
                heappush(self._ready, self._number[key])

    def _start(self) -> None:
        while self.workers.is_free() and not self._tried_again & self._running:
            if self._ready:
                key = self._ids[heappop(self._ready)]
            elif self._died and not self._running:
                key = self._died.pop(0)
                self._tried_again.add(key)
            else:
                return
            self._start_one(key)
            if self._outage.reason:
                self._put_back(key)
                return

    def _start_one(self, key: str) -> None:
        expired = None
        with self._outage.noticed():
            expired = self._may_follow(key)
        if expired is None:
            return
        # An error of the callback is no outage of the folder.
        self.on_start(self._run(key), self.outcome.ended + len(self._running) + 1, len(self._ids))
        self._running.add(key)
        with self._outage.noticed():
            self.workers.start(self._run(key), expired)

    def _put_back(self, key: str) -> None:
        """Let a run wait until the folder of runs is back."""
        self._running.discard(key)
        heappush(self._ready, self._number[key])

    def _may_follow(self, key: str) -> bytes | None:
        """Return the lease of a run that has ended; None where another process makes it, or has."""
        if self.follows:
            return b""
        if self._is_settled(key):
            return None
        expired = self._expired.pop(key, None) or self.store.leases.expired(key)
        if expired is None:
            self._elsewhere.add(key)
        return expired

    def _end(self, run: Run, result: AttemptResult) -> None:
        key = identity(run)
        self._running.discard(key)
        # A process dies when a file goes away that is in its memory.
        if result.state == "outage" or (result.state == "died" and not self.store.is_reachable()):
            self._outage.begin(result.reason)
            self._put_back(key)
        else:
            self._outage.end()
            self._ended(key, run, result)

    def _ended(self, key: str, run: Run, result: AttemptResult) -> None:
        if result.damaged:
            self.outcome.damaged[key] = result.damaged
        if result.state == "made":
            self.outcome.made.append(key)
            self._release(key)
        elif result.state == "finished":
            self._is_settled(key)
        elif result.state == "failed":
            self._fail(key, result.reason)
        elif result.state == "elsewhere":
            self._elsewhere.add(key)
        elif result.state in MADE_AGAIN:
            self._record_death(run, result)
        else:
            self._expired[key] = result.expired
            heappush(self._ready, self._number[key])

    def _record_death(self, run: Run, result: AttemptResult) -> None:
        """Let a run be made again whose process died; if it did twice, the run has failed."""
        key = identity(run)
        if key in self._tried_again:
            why = (
                f"{MADE_AGAIN[result.state]} twice ({result.reason}), the second time with no other run "
                f"beside it. Did the memory run out? Lower batch_size, or use a larger machine."
            )
            self.store.fail(run, why)
            self._fail(key, why)
        else:
            self.outcome.died[key] = f"{MADE_AGAIN[result.state]} ({result.reason}); it was made again."
            self._expired[key] = result.expired
            self._died.append(key)

    def _check_elsewhere(self) -> None:
        """Look after the runs that other processes make: which are finished, failed, or free again."""
        if not self._elsewhere or monotonic() - self._checked < POLL_OTHERS:
            return
        self._checked = monotonic()
        for key in list(self._elsewhere):
            if self._is_settled(key):
                self._elsewhere.remove(key)
            elif (expired := self.store.leases.expired(key)) is not None:
                self._elsewhere.remove(key)
                self._expired[key] = expired
                heappush(self._ready, self._number[key])
        if not self._running and not self._ready and self._elsewhere:
            count = len(self._elsewhere)
            what = f"waiting for {count} run{'s' if count > 1 else ''} that other processes make"
            self.workers.on_progress(Progress(what, self.outcome.ended, len(self._ids)))

    def _is_settled(self, key: str) -> bool:
        """Return whether another process has finished a run, or seen it fail, and note that."""
        run = self._run(key)
        if self.store.is_finished(run, afresh=True):
            self.outcome.done.append(key)
            self._release(key)
        elif why := self.store.failure(run, afresh=True):
            self._fail(key, why)
        else:
            return False
        return True

    def _release(self, key: str) -> None:
        """Let the runs go on that wait for one that is finished."""
        for dependent in self._dependents.pop(key, ()):
            self._waits_for[dependent] -= 1
            if not self._waits_for[dependent] and dependent not in self.outcome.failed:
                heappush(self._ready, self._number[dependent])

    def _fail(self, key: str, why: str) -> None:
        """Note a failure, and with it that of all runs that need the failed one."""
        self.outcome.failed[key] = why
        for dependent in self._dependents.pop(key, ()):
            if dependent not in self.outcome.failed:
                self._fail_dependent(dependent, key)

    def _fail_dependent(self, key: str, needed: str) -> None:
        why = f"needs run {needed}, which failed"
        with self._outage.noticed():  # The next call writes it, too.
            self.store.fail(self._run(key), why, needs=needed)
        self._fail(key, why)

    def _run(self, key: str) -> Run:
        return self.runs[self._number[key]]
