"""Engines: make what has no record yet. A failure stops only the runs that need the failed one.

``run_serially`` works in this process. ``run_in_processes`` makes independent runs side by side, each
with few threads: for small models that is faster than many threads in one, and it does not suffer when
the machine is busy. Both leave the same records.

``pretrain_together`` runs in several processes that ``accelerate launch -m isogloss run`` started. All of
them compute; only the first takes the folder's lock, writes and reports. Encoders that are pretrained are
made together; whatever else a recipe asks for is left to the same command started alone, whose records are
the same however many processes made the encoders (within the rounding of sums).
"""

import os
import signal
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, fields, is_dataclass, replace
from multiprocessing import get_all_start_methods, get_context, parent_process
from multiprocessing.connection import wait as wait_for
from multiprocessing.context import BaseContext
from multiprocessing.queues import Queue
from queue import Empty
from types import ModuleType

import torch

from isogloss.core.errors import ConfigError, DataError, ModelError, RunError
from isogloss.core.identity import identity
from isogloss.core.languages import is_built_in
from isogloss.core.progress import OnProgress, Progress, no_progress
from isogloss.core.run_parts import Updates
from isogloss.data.sources import Sources
from isogloss.encoders.folders import unreachable
from isogloss.experiments.context import RunContext, precision_here
from isogloss.experiments.damage import set_damage_aside
from isogloss.experiments.encoder_runs import Pretrain, Pretrained
from isogloss.experiments.encoders import fetch
from isogloss.experiments.execute import compute_without_recording, make
from isogloss.experiments.plan import Planned
from isogloss.experiments.runs import FineTune, Run, Translate, needs, not_looked_up, parts_of
from isogloss.experiments.store import WORK, Outcome, Store
from isogloss.experiments.translations import fetch_translators
from isogloss.training.distributed import barrier, is_main_process, main_process_first
from isogloss.training.fit import check_optimizer_states

LOOK_AGAIN = 0.2
"""Seconds between polls of the processes' progress."""

IMPORTED_ONCE = ("isogloss.experiments.execute", "transformers.models.bert.modeling_bert")
"""What takes a new process its first seconds."""


Announce = Callable[[Run, int, int], None]
"""Called before a run starts, with its number, counted from 1, and how many there are."""


def make_planned(
    planned: Planned,
    *,
    jobs: int,
    announce: Announce,
    on_progress: OnProgress = no_progress,
    threads: int = 1,
    track: tuple[str, ...] = (),
) -> Outcome:
    """Make what has no record yet, ``jobs`` runs side by side (0: as many as this machine has cores for).

    Damaged runs count as missing.
    """
    planned.check_looked_at()
    damaged = set_damage_aside(planned.store, planned.runs)
    missing = [run for run in planned.runs if not planned.store.is_finished(run)]
    _check_packages(missing)
    _fetch(missing)
    fetch_translators(missing)
    _read_once(missing, planned.sources, on_progress)
    context = RunContext(
        store=planned.store, sources=planned.sources, on_progress=on_progress, threads=threads, track=track
    )
    if missing:
        context = replace(context, precision=precision_here(planned.store))
    jobs = jobs or (1 if of_script(missing) else default_jobs(missing, threads))
    jobs = min(jobs, max(1, len(missing)))
    if jobs == 1:
        outcome = run_serially(context, planned.runs, announce)
    else:
        outcome = run_in_processes(context, planned.runs, announce, jobs=jobs)
    return replace(outcome, damaged=damaged)


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


def default_jobs(runs: Sequence[Run], threads: int = 1) -> int:
    """Return how many runs to make side by side: one on a GPU, else as many as cores and plan allow."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return 1 if torch.cuda.is_available() else max(1, min(cores // threads, _width(runs)))


def _width(runs: Sequence[Run]) -> int:
    """Return the largest number of runs at the same depth of the graph."""
    depths: dict[str, int] = {}
    for run in runs:  # What a run needs stands before it.
        below = [depths[key] for key in map(identity, needs(run)) if key in depths]
        depths[identity(run)] = max(below, default=0) + 1
    return max(Counter(depths.values()).values(), default=1)


def run_serially(context: RunContext, runs: Sequence[Run], announce: Announce) -> Outcome:
    """Make the runs in order; those that need a failed one are failed too, the rest goes on."""
    outcome = Outcome()
    for run in _missing(context, runs, outcome):
        if _blocked(context, run, outcome):
            continue
        announce(run, outcome.ended + 1, len(runs))
        try:
            make(context, run)
        except excusable() as error:
            _fail(context, run, outcome, error)
        else:
            outcome.made.append(identity(run))
    return outcome


def run_in_processes(context: RunContext, runs: Sequence[Run], announce: Announce, *, jobs: int) -> Outcome:
    """Make runs in up to ``jobs`` processes, each as soon as what it needs is finished."""
    outcome = Outcome()
    waiting = _missing(context, runs, outcome)
    if not waiting:
        return outcome
    if own := of_script(waiting):
        raise ConfigError(
            f"{own}: it is defined in the script that was started, which other processes do not read. Put it "
            f"into a module of its own beside the script and import it there, or make one run at a time "
            f"(jobs=1)."
        )
    starting = _start_method()
    told: Queue[Progress] = starting.Queue()
    quiet = replace(context, on_progress=_put)
    running: dict[Future[None], Run] = {}
    with ProcessPoolExecutor(jobs, starting, _begin, (told,)) as pool:
        with _main_left_alone():
            # All processes start here: the pool notices the death of one only once a task has come back.
            for _ in range(jobs):
                pool.submit(os.getpid)
        try:
            while waiting or running:
                for run in _ready(context, waiting, outcome)[: jobs - len(running)]:
                    waiting.remove(run)
                    announce(run, outcome.ended + len(running) + 1, len(runs))
                    running[pool.submit(_make, quiet, run)] = run
                _collect(context, running, outcome)
                _tell(told, context.on_progress)
        except BaseException:
            processes = list((pool._processes or {}).values())  # Gone from the pool once it is shut down.
            pool.shutdown(wait=False, cancel_futures=True)
            for process in processes:
                process.kill()
            raise
    return outcome


def _start_method() -> BaseContext:
    """Return how processes begin: forked from one that has imported everything, where that can be.

    Not with a GPU, whose library must not be forked, and not on a Mac, where others must not.
    """
    if torch.cuda.is_available() or sys.platform == "darwin" or "forkserver" not in get_all_start_methods():
        return get_context("spawn")
    found = get_context("forkserver")
    found.set_forkserver_preload(list(IMPORTED_ONCE))
    return found


def of_script(runs: Sequence[Run]) -> str:
    """Return the name of a class among the runs' parts that the started script defines; empty if none."""
    return next(filter(None, map(_of_script, runs)), "")


def _of_script(part: object) -> str:
    if isinstance(part, tuple):
        return next(filter(None, map(_of_script, part)), "")
    if not is_dataclass(part):
        return ""
    if type(part).__module__ == "__main__":
        return type(part).__qualname__
    return _of_script(tuple(getattr(part, one.name) for one in fields(part)))


def _missing(context: RunContext, runs: Sequence[Run], outcome: Outcome) -> list[Run]:
    """List the runs without a record."""
    missing = []
    for run in runs:
        if context.store.is_finished(run):
            context.store.remove_leftovers(run, WORK)
            outcome.done.append(identity(run))
        else:
            missing.append(run)
    return missing


def _ready(context: RunContext, waiting: list[Run], outcome: Outcome) -> list[Run]:
    """List the waiting runs whose needs are finished; drop those that need a failed run."""
    for run in list(waiting):
        if _blocked(context, run, outcome):
            waiting.remove(run)
    return [run for run in waiting if all(context.store.is_finished(needed) for needed in needs(run))]


def _blocked(context: RunContext, run: Run, outcome: Outcome) -> bool:
    for needed in needs(run):
        if identity(needed) in outcome.failed:
            _fail(context, run, outcome, RunError(f"needs run {identity(needed)}, which failed"))
            return True
    return False


def _collect(context: RunContext, running: dict[Future[None], Run], outcome: Outcome) -> None:
    """Collect ended runs; an error that concerns all runs is raised."""
    ended, _ = wait(running, timeout=LOOK_AGAIN, return_when=FIRST_COMPLETED)
    for future in ended:
        run = running.pop(future)
        try:
            future.result()
        except excusable() as error:
            _fail(context, run, outcome, error)
        except BrokenProcessPool as error:
            raise RunError(
                f"run {identity(run)}: its process was ended from outside (did the memory run out?). "
                f"Finished runs are kept; run the same command again, with fewer --jobs."
            ) from error
        else:
            outcome.made.append(identity(run))


def _tell(told: "Queue[Progress]", on_progress: OnProgress) -> None:
    try:
        while True:
            on_progress(told.get_nowait())
    except Empty:
        return


_channel: "list[Queue[Progress]]" = []
"""The queue of this process, set once when it begins (a process of the pool serves one engine)."""


@contextmanager
def _main_left_alone() -> Iterator[None]:
    """Keep new processes from running the user's script again."""
    main = sys.modules["__main__"]
    sys.modules["__main__"] = ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = main


def _begin(told: "Queue[Progress]") -> None:
    """Set up a process: its channel, and its end when the one that asked for it dies."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches all; the parent ends the others.
    _channel[:] = [told]
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = parent_process()
    if parent is not None:
        wait_for([parent.sentinel])
        os._exit(1)


def _put(progress: Progress) -> None:
    _channel[0].put(progress)


def _make(context: RunContext, run: Run) -> None:
    make(context, run)


def excusable() -> tuple[type[Exception], ...]:
    """Return the errors of one run that leave the others possible: all but those of the disk."""
    return ConfigError, DataError, ModelError, RunError, torch.OutOfMemoryError


def _fail(context: RunContext, run: Run, outcome: Outcome, error: Exception) -> None:
    outcome.failed[identity(run)] = str(error)
    context.store.fail(run, str(error))


@dataclass(frozen=True)
class Together:
    """The outcome of the encoders, and how many runs of the plan have no record yet."""

    outcome: Outcome
    left: int


def pretrain_together(
    planned: Planned,
    *,
    command: str,
    announce: Announce,
    on_progress: OnProgress = no_progress,
    threads: int = 1,
    track: tuple[str, ...] = (),
) -> Together:
    """Make the encoders of a plan that are pretrained from text, in all processes at once.

    ConfigError where there are none to make, and other runs have no record yet.
    """
    planned.check_looked_at()
    store = planned.store
    missing = [run for run in planned.runs if not store.is_finished(run)]
    if missing and not any(isinstance(run, Pretrain) for run in missing):
        raise ConfigError(
            f"several processes make encoders that are pretrained, and this recipe has none left; "
            f"{len(missing)} of its runs have no record yet. Start the same command alone: it makes "
            f"runs side by side (--jobs)."
        )
    context = RunContext(
        store=store, sources=planned.sources, on_progress=on_progress, threads=threads, track=track
    )
    with store.lock() if is_main_process() else nullcontext():
        if is_main_process():
            planned.write(command)
        missing = _able_now(missing, store)
        barrier()  # Every process has looked before the first record is written.
        if missing:
            with main_process_first():
                context = replace(context, precision=precision_here(store))
        outcome = run_serially(context, missing, announce) if is_main_process() else _help(context, missing)
        barrier()
    return Together(outcome, sum(not store.is_finished(run) for run in planned.runs))


def _able_now(missing: Sequence[Run], store: Store) -> list[Run]:
    """List the encoders to pretrain that need nothing but finished runs and one another."""
    able: list[Run] = []
    for run in missing:
        if isinstance(run, Pretrain) and all(one in able or store.is_finished(one) for one in needs(run)):
            able.append(run)
    return able


def _help(context: RunContext, runs: Sequence[Run]) -> Outcome:
    """Compute along with the first process; what ends a run there ends it here too."""
    outcome = Outcome()
    for run in runs:
        try:
            compute_without_recording(context, run)
        except excusable() as error:
            outcome.failed[identity(run)] = str(error)
        else:
            outcome.made.append(identity(run))
    return outcome
