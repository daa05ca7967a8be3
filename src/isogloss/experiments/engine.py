"""Engines: make what has no record yet. A failure stops only the runs that need the failed one.

``run_serially`` works in this process. ``run_in_processes`` makes independent runs side by side, each
with few threads: for small models that is faster than many threads in one, and it does not suffer when
the machine is busy. Both leave the same records.
"""

import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import fields, is_dataclass, replace
from multiprocessing import get_context
from multiprocessing.queues import Queue
from queue import Empty
from types import ModuleType
from typing import Any

from isogloss.core.errors import ConfigError, DataError, ModelError, RunError
from isogloss.core.progress import OnProgress, Progress
from isogloss.core.run_graph import needs, run_id
from isogloss.core.runs import Run
from isogloss.experiments.execute import make
from isogloss.experiments.run_context import WORK, RunContext
from isogloss.experiments.store import Outcome

LOOK_AGAIN = 0.2
"""Seconds between looks at what the processes tell, and at whether the parent still lives."""


Announce = Callable[[Run, int, int], None]
"""Called before a run starts, with its number, counted from 1, and how many there are."""


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
            outcome.made.append(run_id(run))
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
    spawning = get_context("spawn")
    told: Queue[Progress] = spawning.Queue()
    quiet = replace(context, on_progress=_put)
    running: dict[Future[None], Run] = {}
    with ProcessPoolExecutor(jobs, spawning, _begin, (told, os.getpid())) as pool:
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


def of_script(runs: Sequence[Run]) -> str:
    """Name a part of the runs whose class only the script that was started knows, if there is one."""
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
            outcome.done.append(run_id(run))
        else:
            missing.append(run)
    return missing


def _ready(context: RunContext, waiting: list[Run], outcome: Outcome) -> list[Run]:
    """List the waiting runs whose needs are finished; drop those that can never be."""
    for run in list(waiting):
        if _blocked(context, run, outcome):
            waiting.remove(run)
    return [run for run in waiting if all(context.store.is_finished(needed) for needed in needs(run))]


def _blocked(context: RunContext, run: Run, outcome: Outcome) -> bool:
    for needed in needs(run):
        if run_id(needed) in outcome.failed:
            _fail(context, run, outcome, RunError(f"needs run {run_id(needed)}, which failed"))
            return True
    return False


def _collect(context: RunContext, running: dict[Future[None], Run], outcome: Outcome) -> None:
    """Note what ended; an error that is every run's ends everything."""
    ended, _ = wait(running, timeout=LOOK_AGAIN, return_when=FIRST_COMPLETED)
    for future in ended:
        run = running.pop(future)
        try:
            future.result()
        except excusable() as error:
            _fail(context, run, outcome, error)
        except BrokenProcessPool as error:
            raise RunError(
                f"run {run_id(run)}: its process was ended from outside (did the memory run out?). "
                f"Finished runs are kept; run the same command again, with fewer --jobs."
            ) from error
        else:
            outcome.made.append(run_id(run))


def _tell(told: "Queue[Progress]", on_progress: OnProgress) -> None:
    try:
        while True:
            on_progress(told.get_nowait())
    except Empty:
        return


_channel: list[Any] = []
"""The queue of this process, set once when it begins (a process of the pool serves one engine)."""


@contextmanager
def _main_left_alone() -> Iterator[None]:
    """Keep a new process from running the user's script again: it needs nothing of that."""
    main = sys.modules["__main__"]
    sys.modules["__main__"] = ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = main


def _begin(told: "Queue[Progress]", parent: int) -> None:
    """Prepare a process: its channel, and an end when the parent dies."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches all; the parent ends the others.
    _channel[:] = [told]
    threading.Thread(target=_end_with, args=(parent,), daemon=True).start()


def _end_with(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(LOOK_AGAIN)
    os._exit(1)


def _put(progress: Progress) -> None:
    _channel[0].put(progress)


def _make(context: RunContext, run: Run) -> None:
    make(context, run)


def excusable() -> tuple[type[Exception], ...]:
    """Errors of one run that leave the others possible: all but those of the disk, which are everyone's."""
    import torch

    return ConfigError, DataError, ModelError, RunError, torch.OutOfMemoryError


def _fail(context: RunContext, run: Run, outcome: Outcome, error: Exception) -> None:
    outcome.failed[run_id(run)] = str(error)
    context.store.fail(run, str(error))
