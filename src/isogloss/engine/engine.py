"""The engine: check what a plan needs, then start processes that work on it (``work``).

One job runs in this process. Several jobs run in processes with few threads each: for small models that is
faster than many threads in one process, and it does not suffer on a busy machine. Other engines use further
machines (``engines``). Records are the same.

``make_together`` computes one run at a time in several processes that ``accelerate launch -m isogloss run``
(or torchrun) started. In trainings, each process computes a part of every update's batch. Gradients are
summed, so an update equals a single-process update within rounding. Everything except training is computed by
the main process, which leases runs, decides, writes and reports. A checkpoint may be resumed with a different
number of processes, or with one. All processes need access to the folder. Failures (a loss that diverges,
data that cannot be read) occur in all processes at the same place and are recorded. If a process dies, or its
device runs out of memory, the launcher ends all of them.
"""

import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import cast

import torch

from isogloss.core.arguments import always, do_nothing, never
from isogloss.core.errors import ConfigError, DataError, ModelError, RunError, StorageError
from isogloss.core.identity import identity
from isogloss.core.languages import is_built_in
from isogloss.core.processes import cores, interruptible
from isogloss.core.progress import OnProgress, Progress, no_progress, one_by_one
from isogloss.core.run_parts import values_of
from isogloss.data.sources import Sources
from isogloss.encoders.hub import unreachable
from isogloss.engine.damage import quarantine_damage
from isogloss.engine.devices import CPU, Device, Room, devices_of, precision_on
from isogloss.engine.engines import Execution
from isogloss.engine.work import CHECK_EVERY, GONE, RunEvent, State, Work
from isogloss.engine.workers import Processes, check_importable, classes_in_main
from isogloss.planning.plan import Announce, Begun, Planned
from isogloss.runs.execute import compute_without_recording
from isogloss.runs.run import Run, RunContext, download, needs, precision_here, unresolved_models
from isogloss.store.store import PRECISION, Outcome, Store
from isogloss.training.distributed import alone, barrier, from_main_process, is_main_process
from isogloss.training.optimizer import check_optimizer_states
from isogloss.training.precision import computes, device

FAILED_BEFORE = "in an earlier call; --retry-failed makes it again"


def make_planned(
    plan: Planned,
    execution: Execution,
    *,
    announce: Announce = do_nothing,
    on_progress: OnProgress = no_progress,
) -> Outcome:
    """Make the runs without a record. Damaged runs count as runs without a record."""
    is_beyond = execution.beyond
    jobs = 1 if execution.engine == "serial" else execution.jobs
    devices = devices_of(execution.devices) if not is_beyond and (execution.devices or jobs != 1) else ()
    context, missing, damage = prepare_runs(plan, execution, on_progress, devices)
    tally = Tally(plan, announce, on_progress, Outcome(damaged=damage), missing)
    tally.count_finished()
    if is_beyond and missing:
        check_importable(missing, "engine='serial'")
        is_beyond(execution, context, plan.runs, tally)
    elif missing:
        jobs = jobs or (1 if classes_in_main(missing) else default_jobs(missing, execution.threads, devices))
        jobs = min(jobs, len(missing))
        # A single job computes in the caller's process.
        request_devices = devices[:jobs] if execution.devices or jobs > 1 else ()
        _work_here(context, missing, tally, jobs, request_devices)
    return tally.complete()


def _work_here(
    context: RunContext, runs: Sequence[Run], tally: "Tally", jobs: int, devices: Sequence[Device]
) -> None:
    """Work in this process, or in other processes for several jobs or a device that it cannot use."""
    is_own_device = not devices or devices[0].here
    if jobs == 1 and is_own_device:
        with torch.cuda.device(devices[0].number) if devices else nullcontext():
            Work(context, runs, tally, Room(str(context.store.root))).work()
    else:
        check_importable(runs, "jobs=1" if is_own_device else "jobs=1, without devices")
        Processes(context, runs, tally, devices).work(jobs)


@dataclass
class Tally:
    """Outcome of a plan, counted from the events of all processes that work on it."""

    planned: Planned
    announce: Announce
    on_progress: OnProgress
    outcome: Outcome
    missing: Sequence[Run]
    """Runs without a record."""
    _failed_before: set[str] = field(init=False)
    _numbers: dict[str, int] = field(default_factory=dict)
    """Numbers of runs, in the order in which they begin."""
    _running: set[str] = field(default_factory=set)
    _ended: dict[str, str] = field(default_factory=dict)
    """For each settled run, whether it counts as made or as done."""

    def __post_init__(self) -> None:
        """Remember which runs failed in an earlier call."""
        store = self.planned.store
        self._failed_before = {identity(run) for run in self.missing if store.failure(run)}

    def count_finished(self) -> None:
        """Count the runs that have a record, and remove files that killed processes left of them."""
        store = self.planned.store
        missing = {identity(run) for run in self.missing}
        for run in self.planned.runs:
            if (key := identity(run)) not in missing:
                store.remove_leftovers(run)
                store.forget_leases(run)
                self._number(key)
                self._count_done(key)

    def complete(self) -> Outcome:
        """Complete the outcome with runs whose end no process reported, and return it."""
        finished_ids = {*self.outcome.made, *self.outcome.done, *self.outcome.failed}
        for run in self.planned.runs:
            if identity(run) not in finished_ids and self.planned.store.is_finished(run, afresh=True):
                self.outcome.done.append(identity(run))
        return self.outcome

    def __call__(self, event: RunEvent) -> None:
        """Count an event. Several processes may report the end of the same run."""
        if event.state == "begun":
            self._begin(event.run)
        elif event.state == "waiting" and not self._running:
            self.on_progress(Progress(event.message, self.outcome.ended, len(self.planned.runs)))
        elif event.state == "damaged":
            self.outcome.damaged[event.run] = event.message
        elif event.state == "died":
            self.outcome.died[event.run] = event.message
            self._running.discard(event.run)
        elif event.is_settled:
            self._settle(event)

    def _settle(self, event: RunEvent) -> None:
        outcome = self.outcome
        key = event.run
        self._running.discard(key)
        self._number(key)
        if event.state == "failed":
            remark = f" ({FAILED_BEFORE})" if key in self._failed_before else ""
            outcome.failed.setdefault(key, f"{event.message}{remark}")
        elif event.state == "made":
            if self._ended.get(key) == "done":  # Another process reported the record first.
                outcome.done.remove(key)
            self._ended[key] = "made"
            outcome.made.append(key)
        elif key not in self._ended:
            self._count_done(key)

    def _count_done(self, key: str) -> None:
        self._ended[key] = "done"
        self.outcome.done.append(key)

    def _begin(self, key: str) -> None:
        """Announce a run. A run that begins again keeps its number."""
        self._running.add(key)
        total = len(self.planned.runs)
        self.announce(Begun(key, self.planned.titles[key], self._number(key), total))

    def _number(self, key: str) -> int:
        return self._numbers.setdefault(key, len(self._numbers) + 1)


def prepare_runs(
    plan: Planned, execution: Execution, on_progress: OnProgress, devices: Sequence[Device] = ()
) -> tuple[RunContext, list[Run], dict[str, str]]:
    """Find damaged, missing and broken files before anything trains.

    Returns the context of all runs, the runs without a record, and the damage by run.
    """
    plan.check_looked_at()
    store = plan.store
    damage = _inspect(plan)
    missing = [run for run in plan.runs if not store.is_finished(run)]
    for run in missing if execution.retry_failed else ():
        store.forget_failure(run)
    check_packages(missing)
    _fetch(missing)
    _read_once(missing, plan.sources, on_progress)
    context = RunContext(
        store=store,
        sources=plan.sources,
        on_progress=on_progress,
        threads=execution.threads,
        track=execution.track,
    )
    if missing and not execution.beyond:  # Otherwise the machines that compute the runs find it.
        precision = precision_on(devices, store) if devices else precision_here(store)
        context = replace(context, precision=precision)
        _check_precision(context, missing)
    return context, missing, damage


def _check_precision(context: RunContext, runs: Iterable[Run]) -> None:
    """Raise ConfigError for runs in a precision that this machine cannot compute."""
    for run in runs:
        precision = context.resolve_precision(run.precision)
        if not computes(device(), precision):
            reason = (
                f"{context.store.root / PRECISION}: run {identity(run)} is computed in {precision}, as the "
                f"others of this folder"
                if run.precision == "auto"
                else f'precision = "{precision}": run {identity(run)} asks for it'
            )
            raise ConfigError(
                f"{reason}, and this machine ({device().type}) has no units for it. Use another machine, or "
                f'set precision = "float32" in the recipe.'
            )


def _inspect(plan: Planned) -> dict[str, str]:
    """Quarantine damaged files of a local store and return the damage by run. A remote store is refreshed."""
    store = plan.store
    if store.url:
        store.refresh()
        return {}
    with store.leases.alone("damage"):
        return quarantine_damage(store, plan.runs)


def _fetch(runs: Sequence[Run]) -> None:
    """Download models from the hub before anything trains, once for all processes."""
    for name in unresolved_models(runs):
        raise unreachable(name)
    download(runs)


def check_packages(runs: Iterable[Run]) -> None:
    """Raise ConfigError for optimizers whose package is not installed, before anything trains."""
    for run in runs:
        if run.hyperparameters is not None:
            check_optimizer_states(values_of(run.hyperparameters).get("optimizer_states"))


def _read_once(runs: Sequence[Run], sources: Sources, on_progress: OnProgress) -> None:
    """Read every split on disk once, so that a broken line is found before anything trains."""
    splits = dict.fromkeys(split for run in runs for split in run.splits_read)
    files = [split for split in splits if not is_built_in(split.language[:3])]
    label = "{0.corpus} {0.language} {0.split}".format
    for split in one_by_one(files, "reading", on_progress, label):
        for _ in sources.stream(
            split.corpus, split.language, split.split, treebanks=split.treebanks, examples=split.examples
        ):
            pass


def default_jobs(runs: Sequence[Run], threads: int = 1, devices: Sequence[Device] = ()) -> int:
    """Return the number of parallel jobs: as many as the plan allows and there are GPUs or cores."""
    limit = cores() // threads if CPU in devices or not devices else len(devices)
    return max(1, min(limit, _width(runs)))


def _width(runs: Sequence[Run]) -> int:
    """Return the largest number of runs at the same depth of the graph."""
    depths: dict[str, int] = {}
    for run in runs:  # The needs of a run precede it.
        need_depths = [depths[identity(need)] for need in needs(run) if identity(need) in depths]
        depths[identity(run)] = max(need_depths, default=0) + 1
    return max(Counter(depths.values()).values(), default=1)


def make_together(
    plan: Planned,
    execution: Execution,
    *,
    announce: Announce = do_nothing,
    on_progress: OnProgress = no_progress,
) -> Outcome:
    """Make the runs without a record one after the other, each in all processes.

    Each process returns the outcome. Out-of-memory errors are raised.
    """
    if is_main_process():
        with alone():
            context, missing, damage = prepare_runs(plan, execution, on_progress)
    barrier()  # After it, damaged files are set aside and the precision is known.
    if not is_main_process():
        without_retrying = replace(execution, retry_failed=False)
        context, missing, damage = prepare_runs(plan, without_retrying, no_progress)
    tally = Tally(plan, announce, on_progress, Outcome(damaged=damage), missing)
    with interruptible(), plan.store.guard_folder():
        for run in plan.runs:
            event = _make_together(context, run, tally) if is_main_process() else _help(context, run)
            state, message = from_main_process(partial(_state_and_message, event))
            tally(RunEvent(identity(run), cast(State, state), message))
    return tally.outcome


def _make_together(context: RunContext, run: Run, tally: Tally) -> RunEvent:
    """Make a run as the main process, with all processes if it trains. Otherwise they wait."""
    store = context.store
    key = identity(run)
    has_helped = False

    def report(event: RunEvent) -> None:
        nonlocal has_helped
        tally(event)
        if event.state == "begun" and run.trains:
            has_helped = from_main_process(always)

    need_ids = [identity(need) for need in needs(run)]
    failed_need = next((need_id for need_id in need_ids if need_id in tally.outcome.failed), "")
    if failed_need:
        event = RunEvent(key, "failed", f"needs run {failed_need}, which failed")
        store.fail(run, event.message, needs=failed_need)
    else:
        work = Work(context, [run], report)
        with nullcontext() if run.trains else alone(), _outage_as_error(store):
            event = work.attempt(run)
            while event.state == "elsewhere" and not has_helped:
                time.sleep(CHECK_EVERY)
                event = work.attempt(run)
    if not has_helped:
        from_main_process(never)
    return event


@contextmanager
def _outage_as_error(store: Store) -> Iterator[None]:
    """Raise StorageError in an outage, because trainings of other processes cannot begin again."""
    try:
        yield
    except Exception as error:
        if store.is_outage(error):
            raise StorageError(f"{error} {GONE}") from error
        raise


def _help(context: RunContext, run: Run) -> RunEvent:
    """Help the main process with trainings, on its request."""
    if from_main_process(never):
        with suppress(ConfigError, DataError, ModelError, RunError):  # The main process also fails.
            compute_without_recording(context, run)
    return RunEvent(identity(run), "done")


def _state_and_message(event: RunEvent) -> list[str]:
    return [event.state, event.message]
