"""Workers: where runs are made. In this process, or in others of this machine, each with few threads.

Each claims the run it is given, so that no run is made by two processes that share a folder of runs.
"""

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from multiprocessing import get_all_start_methods, get_context, parent_process
from multiprocessing.connection import Connection
from multiprocessing.connection import wait as wait_for
from multiprocessing.context import BaseContext
from multiprocessing.process import BaseProcess
from traceback import format_exc
from types import ModuleType
from typing import Literal, Protocol

import torch

from isogloss.core.errors import ConfigError, DataError, IsoglossError, ModelError, RunError
from isogloss.core.identity import identity
from isogloss.core.leaving import Left, asked_to_leave, leave_at_sigterm
from isogloss.core.progress import OnProgress, Progress
from isogloss.experiments.claims import Claim
from isogloss.experiments.context import RunContext
from isogloss.experiments.damage import set_checkpoints_aside
from isogloss.experiments.execute import make
from isogloss.experiments.runs import Run
from isogloss.training.distributed import world_size

IMPORTED_ONCE = ("isogloss.experiments.execute", "transformers.models.bert.modeling_bert")
"""What takes a new process its first seconds."""


@dataclass(frozen=True)
class Ending:
    """How an attempt to make a run ended, and what was to be said about it."""

    how: Literal["made", "there", "elsewhere", "failed", "died", "left"]
    """made; there: finished by another process before; elsewhere: one is making it; failed; died: its process
    did; left: it was asked to."""
    why: str = ""
    damaged: str = ""
    """What was wrong with its checkpoints, which were set aside."""
    expired: bytes = b""
    """The claim of a process that died, where others could not tell that it has."""


class Workers(Protocol):
    """Where several runs can be made at once."""

    @property
    def on_progress(self) -> OnProgress:
        """Whom to tell of progress."""
        ...

    def is_free(self) -> bool:
        """Return whether a run can be started."""
        ...

    def start(self, run: Run, expired: bytes) -> None:
        """Start a run; ``expired`` is the content of a claim of it that has ended."""
        ...

    def ended(self, timeout: float) -> list[tuple[Run, Ending]]:
        """Return runs that have ended, and tell of progress; wait up to ``timeout`` seconds for them."""
        ...

    def ask_to_leave(self) -> None:
        """Ask all to leave what they do."""
        ...


def attempt(
    context: RunContext, run: Run, expired: bytes = b"", *, begin: Callable[[], None] = lambda: None
) -> Ending:
    """Make a run unless another process does or did; record its failure if that concerns it alone.

    ``begin`` is called once it is certain that the run is made here.
    """
    store, damaged = context.store, ""
    with store.claims.claimed(identity(run), expired=expired) as claim:
        if claim is None:
            return Ending("elsewhere")
        if store.is_finished(run):
            claim.finished = True
            return Ending("there")
        damaged = set_checkpoints_aside(store, run)
        begin()
        try:
            make(replace(context, on_progress=_heeding(context.on_progress, claim)), run)
        except excusable() as error:
            store.fail(run, str(error))
            return Ending("failed", str(error), damaged)
        except Left:
            if claim.lost:
                return Ending("elsewhere")
            raise
        claim.finished = True
    return Ending("made", damaged=damaged)


def _heeding(on_progress: OnProgress, claim: Claim) -> OnProgress:
    """Report progress, and leave where this process should."""

    def heed(progress: Progress) -> None:
        on_progress(progress)
        if claim.lost or (asked_to_leave() and world_size() == 1):  # Several leave together (``fit``).
            raise Left

    return heed


def excusable() -> tuple[type[Exception], ...]:
    """Return the errors of one run that leave the others possible: all but those of the disk."""
    return ConfigError, DataError, ModelError, RunError, torch.OutOfMemoryError


@dataclass
class ThisProcess:
    """Makes one run at a time, here."""

    context: RunContext
    _ended: list[tuple[Run, Ending]] = field(default_factory=list)

    @property
    def on_progress(self) -> OnProgress:  # noqa: D102
        return self.context.on_progress

    def is_free(self) -> bool:  # noqa: D102
        return not self._ended

    def start(self, run: Run, expired: bytes) -> None:  # noqa: D102
        self._ended.append((run, attempt(self.context, run, expired)))

    def ended(self, timeout: float) -> list[tuple[Run, Ending]]:  # noqa: D102
        if not self._ended:
            threading.Event().wait(timeout)
        ended, self._ended = self._ended, []
        return ended

    def ask_to_leave(self) -> None:
        """Do nothing: what is made here looks for itself."""


@dataclass
class _Worker:
    """A process, the channel to it, and the run it makes."""

    process: BaseProcess
    channel: Connection
    run: Run | None = None
    has_begun: bool = False


class Processes:
    """Other processes of this machine, which end with this one."""

    def __init__(self, context: RunContext, jobs: int) -> None:
        self._on_progress = context.on_progress
        self._context = replace(context, on_progress=_tell)
        self._starting = _start_method()
        self._leaving = False
        self._workers = [self._begin() for _ in range(jobs)]

    @property
    def on_progress(self) -> OnProgress:  # noqa: D102
        return self._on_progress

    def is_free(self) -> bool:  # noqa: D102
        return any(one.run is None for one in self._workers)

    def start(self, run: Run, expired: bytes) -> None:  # noqa: D102
        worker = next(one for one in self._workers if one.run is None)
        worker.run = run
        with suppress(OSError):  # It has died; ``ended`` finds that.
            worker.channel.send((self._context, run, expired))

    def ended(self, timeout: float) -> list[tuple[Run, Ending]]:  # noqa: D102
        found: list[tuple[Run, Ending]] = []
        by_channel = {one.channel: one for one in self._workers}
        for channel in wait_for(list(by_channel), timeout):
            if isinstance(channel, Connection):
                found += self._heard(by_channel[channel])
        return found

    def ask_to_leave(self) -> None:  # noqa: D102
        self._leaving = True
        for one in self._workers:
            one.process.terminate()

    def close(self) -> None:
        """Let idle processes end, and end all others at once."""
        for one in self._workers:
            one.channel.close()
            if one.run is not None:
                one.process.kill()
        for one in self._workers:
            one.process.join()

    def _begin(self) -> _Worker:
        ours, theirs = self._starting.Pipe()
        process = self._starting.Process(target=_serve, args=(theirs,))  # type: ignore[attr-defined]
        with _main_left_alone():
            process.start()
        theirs.close()
        return _Worker(process, ours)

    def _heard(self, worker: _Worker) -> list[tuple[Run, Ending]]:
        """Return how a worker's run ended, if it has; pass its progress on."""
        try:
            while worker.channel.poll():
                told = worker.channel.recv()
                if isinstance(told, Progress):
                    self.on_progress(told)
                elif isinstance(told, Ending):
                    run, worker.run = worker.run, None
                    return [(run, told)] if run is not None else []
                elif isinstance(told, BaseException):
                    raise told
                worker.has_begun = True
        except (EOFError, OSError):
            return self._died(worker)
        return []

    def _died(self, worker: _Worker) -> list[tuple[Run, Ending]]:
        """Put another process in the place of one that died."""
        worker.process.join()
        code = worker.process.exitcode or 0
        how = f"signal {-code}" if code < 0 else f"exit code {code}"
        if self._leaving:
            self._workers.remove(worker)
            return [] if worker.run is None else [(worker.run, Ending("left"))]
        if not worker.has_begun:
            raise RunError(
                f"a process that was to make runs ended ({how}) before it could. Finished runs are kept; "
                f"make one run at a time (--jobs 1) to see why."
            )
        worker.channel.close()
        self._workers[self._workers.index(worker)] = self._begin()
        return [] if worker.run is None else [(worker.run, Ending("died", how))]


def _start_method() -> BaseContext:
    """Return how processes begin: forked from one that has imported everything, where that can be.

    Not with a GPU, whose library must not be forked, and not on a Mac, where others must not.
    """
    if torch.cuda.is_available() or sys.platform == "darwin" or "forkserver" not in get_all_start_methods():
        return get_context("spawn")
    found = get_context("forkserver")
    found.set_forkserver_preload(list(IMPORTED_ONCE))
    return found


@contextmanager
def _main_left_alone() -> Iterator[None]:
    """Keep new processes from running the user's script again."""
    main = sys.modules["__main__"]
    sys.modules["__main__"] = ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = main


_channel: list[Connection] = []
"""The way from this process to the one that asked for it; only workers have one."""


def _serve(channel: Connection) -> None:
    """Make runs as they are sent, until nobody sends any more."""
    for number in (signal.SIGINT, signal.SIGUSR1, signal.SIGUSR2):  # They reach all; the parent ends others.
        signal.signal(number, signal.SIG_IGN)
    leave_at_sigterm()
    threading.Thread(target=_end_with_parent, daemon=True).start()
    _channel[:] = [channel]
    with suppress(EOFError, OSError):
        channel.send("begun")
        while not asked_to_leave():
            channel.send(answer(*channel.recv()))


def answer(context: RunContext, run: Run, expired: bytes) -> "Ending | Exception":
    """Return how it ended, or the error for the parent to raise: it concerns all runs."""
    try:
        return attempt(context, run, expired)
    except Left:
        return Ending("left")
    except IsoglossError as error:
        return error
    except Exception:  # Who knows whether it can be sent.
        return RuntimeError(f"in the process that made run {identity(run)}:\n{format_exc()}")


def _tell(progress: Progress) -> None:
    _channel[0].send(progress)


def _end_with_parent() -> None:
    parent = parent_process()
    if parent is not None:
        wait_for([parent.sentinel])
        os._exit(1)
