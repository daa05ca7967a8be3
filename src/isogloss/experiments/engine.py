"""The engine: makes what has no record yet, each run once what it needs is finished.

One job is made in this process; several in processes of few threads: for small models that is faster than
many threads in one, and it does not suffer when the machine is busy. Others are beyond this machine
(``engines``). Records are the same.

Several engines may work in one folder, on one machine or on many: runs are claimed one by one (``claims``),
what others make is waited for, and all end with all records. A failure stops only the runs that need the
failed one. A run whose process dies (the system ended it, as the memory ran out), or that shared a GPU whose
memory ran out, is made once more, alone.
"""

import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from heapq import heappop, heappush
from math import inf
from time import monotonic
from typing import Protocol

import torch

from isogloss.core.identity import identity
from isogloss.core.languages import is_built_in
from isogloss.core.leaving import Left, asked_to_leave, heeding
from isogloss.core.progress import OnProgress, Progress, no_progress
from isogloss.core.run_parts import Updates
from isogloss.data.sources import Sources
from isogloss.encoders.folders import unreachable
from isogloss.experiments.absence import Absence
from isogloss.experiments.context import RunContext, precision_here
from isogloss.experiments.damage import set_damage_aside
from isogloss.experiments.devices import CPU, Device, devices_of, precision_on
from isogloss.experiments.encoder_runs import Pretrained
from isogloss.experiments.encoders import fetch
from isogloss.experiments.packing import check_importable, of_script
from isogloss.experiments.plan import Planned
from isogloss.experiments.runs import FineTune, Run, Translate, needs, not_looked_up, parts_of
from isogloss.experiments.store import Outcome, Store
from isogloss.experiments.translations import fetch_translators
from isogloss.experiments.workers import Ending, Processes, ThisProcess, Workers
from isogloss.training.fit import check_optimizer_states

LOOK_AGAIN, LOOK_ELSEWHERE = 0.2, 1.0
"""Seconds between two looks at the workers, and at runs that other processes make."""


MADE_AGAIN = {
    "died": "its process was ended from outside",
    "crowded": "the memory of the GPU that it shared ran out",
}
"""Endings after which a run is made once more, alone, in words."""

FAILED_BEFORE = "in an earlier call; --retry-failed makes it again"

Announce = Callable[[Run, int, int], None]
"""Called before a run starts, with its number, counted from 1, and how many there are."""


class Elsewhere(Protocol):
    """An engine beyond this machine."""

    @property
    def follows(self) -> bool:
        """Whether its workers follow what other processes make."""
        ...

    def workers(
        self, context: RunContext, runs: Sequence[Run], begun: Callable[[Run], None]
    ) -> AbstractContextManager[Workers]:
        """Open workers for the runs of a plan; they call ``begun`` once one is being made."""
        ...


@dataclass(frozen=True, kw_only=True)
class Making:
    """How runs are made; their records do not depend on it, but for ``threads`` in the last digits."""

    jobs: int = 0
    """Runs made side by side; 0: as many as this machine has cores for, or GPUs."""
    devices: str = ""
    """What they are made on: all GPUs if empty, or some by number or UUID, or the processor (cpu)."""
    threads: int = 1
    """Threads of each run."""
    track: tuple[str, ...] = ()
    """Trackers that follow the runs."""
    retry_failed: bool = False
    """Whether runs are made again that failed in an earlier call."""
    elsewhere: Elsewhere | None = None
    """Where, if not on this machine; then it knows how many at once."""


def make_planned(
    planned: Planned,
    how: Making,
    *,
    announce: Announce = lambda *_: None,
    on_progress: OnProgress = no_progress,
) -> Outcome:
    """Make what has no record yet; damaged runs count as missing."""
    chosen = how.elsewhere is None and (how.devices or how.jobs != 1)
    devices = devices_of(how.devices) if chosen else ()
    context, damaged = prepared(planned, how, on_progress, devices)
    runs = planned.runs
    missing = [run for run in runs if not planned.store.is_finished(run)]
    if how.elsewhere and missing:
        check_importable(missing, "engine='serial'")
        begun, announce = _numbered(announce, len(runs) - len(missing), len(runs)), lambda *_: None
        opened = how.elsewhere.workers(context, runs, begun)
    else:
        jobs = how.jobs or (1 if of_script(missing) else default_jobs(missing, how.threads, devices))
        jobs = min(jobs, max(1, len(missing)))
        asked = devices if how.devices or jobs > 1 else ()  # One job alone computes where the caller does.
        opened = _workers(context, missing, jobs, asked)
    follows = how.elsewhere is not None and how.elsewhere.follows
    with opened as workers:
        outcome = Schedule(planned.store, runs, workers, announce, follows=follows).run()
    return replace(outcome, damaged={**damaged, **outcome.damaged})


def _numbered(announce: Announce, done: int, total: int) -> Callable[[Run], None]:
    """Return what announces a run with its number, counted as they begin; one begun again keeps its own."""
    numbers: dict[str, int] = {}
    return lambda run: announce(run, numbers.setdefault(identity(run), done + len(numbers) + 1), total)


def prepared(
    planned: Planned, how: Making, on_progress: OnProgress, devices: Sequence[Device] = ()
) -> tuple[RunContext, dict[str, str]]:
    """Find what is damaged, missing or broken before anything trains; return what runs have in common."""
    planned.check_looked_at()
    store = planned.store
    damaged = _looked_through(planned)
    missing = [run for run in planned.runs if not store.is_finished(run)]
    for run in missing if how.retry_failed else ():
        store.forget_failure(run)
    _check_packages(missing)
    _fetch(missing)
    fetch_translators(missing)
    _read_once(missing, planned.sources, on_progress)
    context = RunContext(
        store=store,
        sources=planned.sources,
        on_progress=on_progress,
        threads=how.threads,
        track=how.track,
    )
    if missing and how.elsewhere is None:  # Else it is found where they are made.
        precision = precision_on(devices, store) if devices else precision_here(store)
        context = replace(context, precision=precision)
    return context, damaged


def _looked_through(planned: Planned) -> dict[str, str]:
    """Look what is finished and set damaged files aside; copies of what lies elsewhere are brought anew."""
    store = planned.store
    if store.remote:
        store.look()
        return {}
    with store.claims.alone("damage"):
        return set_damage_aside(store, planned.runs)


@contextmanager
def _workers(
    context: RunContext, missing: Sequence[Run], jobs: int, devices: Sequence[Device]
) -> Iterator[Workers]:
    """Yield this process or, for several jobs or a device it cannot use, others, which end with the block."""
    here = not devices or devices[0].here
    if jobs == 1 and here:
        with torch.cuda.device(devices[0].number) if devices else nullcontext():
            yield ThisProcess(context)
        return
    check_importable(missing, "jobs=1" if here else "jobs=1, without devices")
    processes = Processes(context, jobs, devices[:jobs])
    try:
        yield processes
    finally:
        processes.close()


def _fetch(runs: Sequence[Run]) -> None:
    """Download the encoders that are on the hub, before anything trains and once for all processes."""
    for model in not_looked_up(runs):
        raise unreachable(model.source)
    parts = [
        one for run in runs for one in parts_of(run) if not (isinstance(run, Translate) and one is run.model)
    ]
    # One with a fingerprint lies in a folder of this machine.
    on_hub = {one for one in parts if isinstance(one, Pretrained) and not one.data}
    for encoder in sorted(on_hub, key=lambda one: one.pinned):
        fetch(encoder)


def _check_packages(runs: Iterable[Run]) -> None:
    """Raise ConfigError, before anything trains, for optimizers whose package is not installed."""
    for run in runs:
        owner = run.optimization if isinstance(run, FineTune) else getattr(run, "method", None)
        check_optimizer_states(getattr(owner, "updates", Updates()))


def _read_once(runs: Sequence[Run], sources: Sources, on_progress: OnProgress) -> None:
    """Read every split on disk once, so that a broken line is found before anything trains."""
    splits = dict.fromkeys(split for run in runs for split in run.splits_read)
    on_disk = [split for split in splits if not is_built_in(split.language[:3])]
    for done, split in enumerate(on_disk):
        on_progress(Progress("reading", done, len(on_disk), f"{split.corpus} {split.language} {split.split}"))
        for _ in sources.stream(
            split.corpus, split.language, split.split, treebanks=split.treebanks, examples=split.examples
        ):
            pass
    if on_disk:
        on_progress(Progress("reading", len(on_disk), len(on_disk)))


def default_jobs(runs: Sequence[Run], threads: int = 1, devices: Sequence[Device] = ()) -> int:
    """Return how many runs to make side by side: as many as the plan allows, and there are GPUs or cores."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    most = cores // threads if CPU in devices or not devices else len(devices)
    return max(1, min(most, _width(runs)))


def _width(runs: Sequence[Run]) -> int:
    """Return the largest number of runs at the same depth of the graph."""
    depths: dict[str, int] = {}
    for run in runs:  # What a run needs stands before it.
        below = [depths[key] for key in map(identity, needs(run)) if key in depths]
        depths[identity(run)] = max(below, default=0) + 1
    return max(Counter(depths.values()).values(), default=1)


@dataclass
class Schedule:
    """A plan's runs on their way to a record: what each still waits for, and what has become of it."""

    store: Store
    runs: Sequence[Run]
    workers: Workers
    announce: Announce
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
    _heirs: dict[str, list[str]] = field(default_factory=dict)
    _ready: list[int] = field(default_factory=list)
    """A heap of the numbers of runs that can be made: first those that stand first in the plan."""
    _running: set[str] = field(default_factory=set)
    _elsewhere: set[str] = field(default_factory=set)
    """Runs that other processes are making."""
    _expired: dict[str, bytes] = field(default_factory=dict)
    """Claims of theirs that have ended without a record."""
    _died: list[str] = field(default_factory=list)
    """Runs whose process died once: made again, each alone, when nothing else is left to start."""
    _tried_again: set[str] = field(default_factory=set)
    _looked: float = 0.0
    _idle_since: float = inf
    _absence: Absence = field(init=False)

    def __post_init__(self) -> None:
        """Take the folder of runs to be there."""
        self._absence = Absence(self.store)

    def run(self) -> Outcome:
        """Make all runs, or wait until others have made them; Left if this process was asked to leave."""
        self._begin()
        with heeding(), self.store.kept():
            self._make_all()
        return self.outcome

    def _make_all(self) -> None:
        leaves = False
        while self._running or self._ready or self._elsewhere or self._died:
            if asked_to_leave() and not leaves:
                leaves = True
                self.workers.ask_to_leave()
            if leaves and not self._running:
                raise Left
            if self._absence.why:
                self._absence.look(self.workers.on_progress)
            elif not leaves:
                self._start()
            for run, ending in self.workers.ended(LOOK_AGAIN):
                self._end(run, ending)
            with self._absence.noticed():
                self._look_elsewhere()
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
                self.store.forget_claims(run)
                self.outcome.done.append(key)
                continue
            needed = list(map(identity, needs(run)))
            waits_for = [one for one in needed if one in self._waits_for or one in self.outcome.failed]
            self._waits_for[key] = len(waits_for)
            for one in waits_for:
                self._heirs.setdefault(one, []).append(key)
            if broken := next((one for one in needed if one in self.outcome.failed), ""):
                self._fail_heir(key, broken)
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
            with self._absence.noticed():
                self._start_one(key)
            if self._absence.why:
                self._put_back(key)
                return

    def _start_one(self, key: str) -> None:
        expired = self._may_follow(key)
        if expired is not None:
            self.announce(self._run(key), self.outcome.ended + len(self._running) + 1, len(self._ids))
            self._running.add(key)
            self.workers.start(self._run(key), expired)

    def _put_back(self, key: str) -> None:
        """Let a run wait until the folder of runs is back."""
        self._running.discard(key)
        heappush(self._ready, self._number[key])

    def _may_follow(self, key: str) -> bytes | None:
        """Return the claim of a run that has ended; None where another process makes it, or has."""
        if self.follows:
            return b""
        if self._is_settled(key):
            return None
        expired = self._expired.pop(key, None) or self.store.claims.expired(key)
        if expired is None:
            self._elsewhere.add(key)
        return expired

    def _end(self, run: Run, ending: Ending) -> None:
        key = identity(run)
        self._running.discard(key)
        # A process dies when a file goes away that is in its memory.
        if ending.how == "away" or (ending.how == "died" and not self.store.is_there()):
            self._absence.begin(ending.why)
            self._put_back(key)
        else:
            self._absence.end()
            self._ended(key, run, ending)

    def _ended(self, key: str, run: Run, ending: Ending) -> None:
        if ending.damaged:
            self.outcome.damaged[key] = ending.damaged
        if ending.how == "made":
            self.outcome.made.append(key)
            self._release(key)
        elif ending.how == "there":
            self._is_settled(key)
        elif ending.how == "failed":
            self._fail(key, ending.why)
        elif ending.how == "elsewhere":
            self._elsewhere.add(key)
        elif ending.how in MADE_AGAIN:
            self._note_death(run, ending)
        else:
            self._expired[key] = ending.expired
            heappush(self._ready, self._number[key])

    def _note_death(self, run: Run, ending: Ending) -> None:
        """Let a run be made again whose process died; if it did twice, the run has failed."""
        key = identity(run)
        if key in self._tried_again:
            why = (
                f"{MADE_AGAIN[ending.how]} twice ({ending.why}), the second time with no other run "
                f"beside it. Did the memory run out? Lower batch_size, or use a larger machine."
            )
            self.store.fail(run, why)
            self._fail(key, why)
        else:
            self.outcome.died[key] = f"{MADE_AGAIN[ending.how]} ({ending.why}); it was made again."
            self._expired[key] = ending.expired
            self._died.append(key)

    def _look_elsewhere(self) -> None:
        """Look after the runs that other processes make: which are finished, failed, or free again."""
        if not self._elsewhere or monotonic() - self._looked < LOOK_ELSEWHERE:
            return
        self._looked = monotonic()
        for key in list(self._elsewhere):
            if self._is_settled(key):
                self._elsewhere.remove(key)
            elif (expired := self.store.claims.expired(key)) is not None:
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
        for heir in self._heirs.pop(key, ()):
            self._waits_for[heir] -= 1
            if not self._waits_for[heir] and heir not in self.outcome.failed:
                heappush(self._ready, self._number[heir])

    def _fail(self, key: str, why: str) -> None:
        """Note a failure, and with it that of all runs that need the failed one."""
        self.outcome.failed[key] = why
        for heir in self._heirs.pop(key, ()):
            if heir not in self.outcome.failed:
                self._fail_heir(heir, key)

    def _fail_heir(self, key: str, needed: str) -> None:
        why = f"needs run {needed}, which failed"
        with self._absence.noticed():  # The next call writes it, too.
            self.store.fail(self._run(key), why, needs=needed)
        self._fail(key, why)

    def _run(self, key: str) -> Run:
        return self.runs[self._number[key]]
