"""An attempt to make a run, which leases it first, and how that ended.

The lease keeps processes that share a folder of runs from making the same one. A failure is recorded where it
concerns the run alone; what concerns all (the disk, a mistake in the code) is raised.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from traceback import format_exc
from typing import Literal

import torch

from isogloss.core.errors import ConfigError, DataError, IsoglossError, ModelError, RunError, StorageError
from isogloss.core.identity import identity
from isogloss.core.leaving import Left, leave_if_lost, leaves_now, leaving
from isogloss.core.progress import OnProgress, Progress
from isogloss.engine.absence import wait_while_silent
from isogloss.engine.damage import gone, set_checkpoints_aside
from isogloss.runs.context import RunContext
from isogloss.runs.execute import make
from isogloss.runs.needs import read_by
from isogloss.runs.runs import Run
from isogloss.store.leases import Lease
from isogloss.store.store import Store
from isogloss.training.distributed import world_size

ADVICE = (
    "Lower batch_size or raise accumulation, set gradient_checkpointing, make fewer runs at a time (--jobs), "
    "or use a larger machine."
)
"""For a run whose memory ran out."""


@dataclass(frozen=True)
class Ending:
    """How an attempt to make a run ended, and what was to be said about it."""

    how: Literal["made", "there", "elsewhere", "failed", "died", "crowded", "left", "away"]
    """made; there: finished by another process before; elsewhere: one is making it; failed; died: its process
    did; crowded: the memory of the GPU it shared ran out; left: it was asked to; away: the folder of runs
    has gone away, so nothing is known of the run."""
    why: str = ""
    damaged: str = ""
    """What was wrong with its checkpoints, which were set aside."""
    expired: bytes = b""
    """The lease of a process that died, where others could not tell that it has."""


def attempt(
    context: RunContext,
    run: Run,
    expired: bytes = b"",
    *,
    begin: Callable[[], None] = lambda: None,
    shares: bool = False,
) -> Ending:
    """Make a run unless another process does or did; record its failure if that concerns it alone.

    ``begin`` is called once it is certain that the run is made here. Of one that ``shares`` its GPU with
    others it is not recorded that the memory ran out.
    """
    with context.store.guarded():
        try:
            return _attempt(context, run, expired, begin, shares=shares)
        except Exception as error:
            if not context.store.is_outage(error):
                raise
            return Ending("away", str(error))


def answer(context: RunContext, run: Run, expired: bytes, shares: bool = False) -> Ending | Exception:
    """Return how it ended, or the error for the parent to raise: it concerns all runs."""
    try:
        return attempt(context, run, expired, shares=shares)
    except Left:
        return Ending("left")
    except IsoglossError as error:
        return error
    except Exception:  # Who knows whether it can be sent.
        return RuntimeError(f"in the process that made run {identity(run)}:\n{format_exc()}")


def _attempt(
    context: RunContext, run: Run, expired: bytes, begin: Callable[[], None], *, shares: bool
) -> Ending:
    store = context.store
    with store.leases.leased(identity(run), expired=expired) as lease:
        if lease is None:
            return Ending("elsewhere")
        if store.finished_meanwhile(run):
            lease.finished = lease.was_finished = True
            return Ending("there")
        ending = _made(context, run, lease, begin, shares=shares)
        lease.finished = ending.how in ("made", "there")
        lease.was_finished = ending.how == "there"
        return ending


def _made(context: RunContext, run: Run, lease: Lease, begin: Callable[[], None], *, shares: bool) -> Ending:
    store, damaged = context.store, ""
    try:
        damaged = store.download_checkpoints(run) or set_checkpoints_aside(store, run)
        store.download(read_by(run))
        begin()
        with store.uploading_checkpoints(run, lease), leaving(partial(_check, context, lease)):
            make(replace(context, on_progress=_heeding(context.on_progress)), run)
        return Ending("made", damaged=damaged)
    except Left:
        if not lease.lost:
            raise
    except Exception as error:
        store.leases.renew(lease)
        if not lease.lost and (lease.silent or not store.is_finished(run, afresh=True)):
            return replace(_failed(store, run, error, shares=shares), damaged=damaged)
    if not store.is_finished(run, afresh=True):
        return Ending("elsewhere")
    store.remove_leftovers(run)
    return Ending("there")


def _check(context: RunContext, lease: Lease) -> None:
    """Leave a run that another process makes, or has made, while this one was paused or could not be seen."""
    context.store.leases.renew(lease, if_over=True)
    wait_while_silent(lease, context.on_progress)
    if lease.lost:
        raise Left


def _failed(store: Store, run: Run, error: Exception, *, shares: bool) -> Ending:
    if shares and ran_out(error):
        return Ending("crowded", str(error))
    if file := gone(store, read_by(run)):
        raise StorageError(
            f"{file}: it went away while another run needed it. Run the same command again: it is made anew."
        ) from error
    why = excuse(error)
    if not why or store.is_outage(error):
        raise error
    store.fail(run, why)
    return Ending("failed", why)


def _heeding(on_progress: OnProgress) -> OnProgress:
    """Report progress, and leave where this process should."""

    def heed(progress: Progress) -> None:
        on_progress(progress)
        leave_if_lost()
        if leaves_now() and world_size() == 1:  # Several leave together (``fit``).
            raise Left

    return heed


def excuse(error: Exception) -> str:
    """Return why a run failed where its error leaves the others possible; empty for those of the disk."""
    if isinstance(error, ConfigError | DataError | ModelError | RunError):
        return str(error)
    # torch has no error of its own for the machine's memory.
    of_machine = isinstance(error, RuntimeError) and "DefaultCPUAllocator" in str(error)
    if of_machine or isinstance(error, MemoryError) or ran_out(error):
        what = " ".join(str(error).split()) or type(error).__name__
        return f"the memory ran out ({what:.300}). {ADVICE}"
    return ""


def ran_out(error: Exception) -> bool:
    """Return whether an error says that a GPU's memory ran out: torch's, or that of a library it calls."""
    told = isinstance(error, RuntimeError) and re.search("out of memory|_ALLOC_FAILED", str(error))
    return isinstance(error, torch.OutOfMemoryError) or bool(told)
