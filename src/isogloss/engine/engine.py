"""The engine: makes what has no record yet, each run once what it needs is finished.

One job is made in this process; several in processes of few threads: for small models that is faster than
many threads in one, and it does not suffer when the machine is busy. Others are beyond this machine
(``engines``). Records are the same.

Several engines may work in one folder, on one machine or on many: runs are leased one by one (``leases``),
what others make is waited for, and all end with all records.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace

import torch

from isogloss.core.identity import identity
from isogloss.core.languages import is_built_in
from isogloss.core.processes import cores
from isogloss.core.progress import OnProgress, no_progress, one_by_one
from isogloss.core.run_parts import Updates
from isogloss.data.sources import Sources
from isogloss.encoders.hub import unreachable
from isogloss.engine.damage import quarantine_damage
from isogloss.engine.devices import CPU, Device, devices_of, precision_on
from isogloss.engine.engines import Execution
from isogloss.engine.pickling import check_importable, classes_in_main
from isogloss.engine.schedule import Schedule
from isogloss.engine.workers import Processes, ThisProcess, Workers
from isogloss.planning.plan import Announce, Planned
from isogloss.runs.fine_tune import FineTune
from isogloss.runs.run import Run, RunContext, download, needs, precision_here, unresolved_models
from isogloss.store.store import Outcome
from isogloss.training.optimizer import check_optimizer_states


def make_planned(
    planned: Planned,
    execution: Execution,
    *,
    announce: Announce = lambda *_: None,
    on_progress: OnProgress = no_progress,
) -> Outcome:
    """Make what has no record yet; damaged runs count as missing."""

    def begins(run: Run, number: int, total: int) -> None:
        announce(planned.begun(run, number, total))

    beyond, jobs = execution.beyond, 1 if execution.engine == "serial" else execution.jobs
    devices = devices_of(execution.devices) if not beyond and (execution.devices or jobs != 1) else ()
    context, damaged = prepared(planned, execution, on_progress, devices)
    runs = planned.runs
    missing = [run for run in runs if not planned.store.is_finished(run)]
    if beyond and beyond.workers and missing:
        check_importable(missing, "engine='serial'")
        on_start, begins = _numbered(begins, len(runs) - len(missing), len(runs)), lambda *_: None
        opened = beyond.workers(execution, context, runs, on_start)
    else:
        jobs = jobs or (1 if classes_in_main(missing) else default_jobs(missing, execution.threads, devices))
        jobs = min(jobs, max(1, len(missing)))
        requested = (
            devices if execution.devices or jobs > 1 else ()
        )  # One job alone computes where the caller does.
        opened = _workers(context, missing, jobs, requested)
    with opened as workers:
        schedule = Schedule(planned.store, runs, workers, begins, follows=bool(beyond and beyond.follows))
        outcome = schedule.run()
    return replace(outcome, damaged={**damaged, **outcome.damaged})


def _numbered(begins: Callable[[Run, int, int], None], done: int, total: int) -> Callable[[Run], None]:
    """Return what announces a run with its number, counted as they begin; one begun again keeps its own."""
    numbers: dict[str, int] = {}
    return lambda run: begins(run, numbers.setdefault(identity(run), done + len(numbers) + 1), total)


def prepared(
    planned: Planned, execution: Execution, on_progress: OnProgress, devices: Sequence[Device] = ()
) -> tuple[RunContext, dict[str, str]]:
    """Find what is damaged, missing or broken before anything trains; return what runs have in common."""
    planned.check_looked_at()
    store = planned.store
    damaged = _inspect(planned)
    missing = [run for run in planned.runs if not store.is_finished(run)]
    for run in missing if execution.retry_failed else ():
        store.forget_failure(run)
    _check_packages(missing)
    _fetch(missing)
    _read_once(missing, planned.sources, on_progress)
    context = RunContext(
        store=store,
        sources=planned.sources,
        on_progress=on_progress,
        threads=execution.threads,
        track=execution.track,
    )
    if missing and not execution.beyond:  # Else it is found where they are made.
        precision = precision_on(devices, store) if devices else precision_here(store)
        context = replace(context, precision=precision)
    return context, damaged


def _inspect(planned: Planned) -> dict[str, str]:
    """Look what is finished and set damaged files aside; copies of what lies elsewhere are brought anew."""
    store = planned.store
    if store.url:
        store.refresh()
        return {}
    with store.leases.alone("damage"):
        return quarantine_damage(store, planned.runs)


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
    """Download the models that are on the hub, before anything trains and once for all processes."""
    for name in unresolved_models(runs):
        raise unreachable(name)
    download(runs)


def _check_packages(runs: Iterable[Run]) -> None:
    """Raise ConfigError, before anything trains, for optimizers whose package is not installed."""
    for run in runs:
        owner = run.optimization if isinstance(run, FineTune) else getattr(run, "method", None)
        check_optimizer_states(getattr(owner, "updates", Updates()))


def _read_once(runs: Sequence[Run], sources: Sources, on_progress: OnProgress) -> None:
    """Read every split on disk once, so that a broken line is found before anything trains."""
    splits = dict.fromkeys(split for run in runs for split in run.splits_read)
    on_disk = [split for split in splits if not is_built_in(split.language[:3])]
    named = "{0.corpus} {0.language} {0.split}".format
    for split in one_by_one(on_disk, "reading", on_progress, named):
        for _ in sources.stream(
            split.corpus, split.language, split.split, treebanks=split.treebanks, examples=split.examples
        ):
            pass


def default_jobs(runs: Sequence[Run], threads: int = 1, devices: Sequence[Device] = ()) -> int:
    """Return how many runs to make side by side: as many as the plan allows, and there are GPUs or cores."""
    most = cores() // threads if CPU in devices or not devices else len(devices)
    return max(1, min(most, _width(runs)))


def _width(runs: Sequence[Run]) -> int:
    """Return the largest number of runs at the same depth of the graph."""
    depths: dict[str, int] = {}
    for run in runs:  # What a run needs stands before it.
        below = [depths[key] for key in map(identity, needs(run)) if key in depths]
        depths[identity(run)] = max(below, default=0) + 1
    return max(Counter(depths.values()).values(), default=1)
