"""An attempt to make a run, which leases it first, and its result.

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
from isogloss.core.interruption import Interrupted, should_stop, stop_if_lost, stopping_if_lost
from isogloss.core.progress import OnProgress, Progress
from isogloss.engine.damage import missing_file, quarantine_checkpoints
from isogloss.engine.storage_outage import wait_while_silent
from isogloss.runs.execute import make
from isogloss.runs.run import Run, RunContext, read_by
from isogloss.store.leases import Lease
from isogloss.store.store import Store
from isogloss.training.distributed import world_size

ADVICE = (
    "Lower batch_size or raise accumulation, set gradient_checkpointing, make fewer runs at a time (--jobs), "
    "or use a larger machine."
)
"""For a run whose memory ran out."""


@dataclass(frozen=True)
class AttemptResult:
    """The result of an attempt to make a run, and its reason."""

    state: Literal[
        "made", "finished", "elsewhere", "failed", "died", "out_of_memory", "interrupted", "outage"
    ]
    """finished: by another process before; elsewhere: another process is making it; died: its process ended
    from outside; out_of_memory: the memory of the GPU it shared ran out; outage: the folder of runs cannot
    be reached, so the state of the run is unknown."""
    reason: str = ""
    damaged: str = ""
    """What was wrong with its checkpoints, which were quarantined."""
    expired: bytes = b""
    """The lease of a process that died, where others could not tell that it has."""


def attempt(
    context: RunContext,
    run: Run,
    expired: bytes = b"",
    *,
    begin: Callable[[], None] = lambda: None,
    shares: bool = False,
) -> AttemptResult:
    """Make a run unless another process has or does; record failures specific to this run.

    ``begin`` is called once it is certain that the run is made here. If it ``shares`` its GPU with other
    runs, running out of memory is not recorded as a failure.
    """
    with context.store.guarded():
        try:
            return _attempt(context, run, expired, begin, shares=shares)
        except Exception as error:
            if not context.store.is_outage(error):
                raise
            return AttemptResult("outage", str(error))


def answer(context: RunContext, run: Run, expired: bytes, shares: bool = False) -> AttemptResult | Exception:
    """Return the result, or an error that concerns all runs, for the parent process to raise."""
    try:
        return attempt(context, run, expired, shares=shares)
    except Interrupted:
        return AttemptResult("interrupted")
    except IsoglossError as error:
        return error
    except Exception:  # It may not be possible to pickle it.
        return RuntimeError(f"in the process that made run {identity(run)}:\n{format_exc()}")


def _attempt(
    context: RunContext, run: Run, expired: bytes, begin: Callable[[], None], *, shares: bool
) -> AttemptResult:
    store = context.store
    with store.leases.leased(identity(run), expired=expired) as lease:
        if lease is None:
            return AttemptResult("elsewhere")
        if store.finished_meanwhile(run):
            lease.finished = lease.was_finished = True
            return AttemptResult("finished")
        result = _made(context, run, lease, begin, shares=shares)
        lease.finished = result.state in ("made", "finished")
        lease.was_finished = result.state == "finished"
        return result


def _made(
    context: RunContext, run: Run, lease: Lease, begin: Callable[[], None], *, shares: bool
) -> AttemptResult:
    store, damaged = context.store, ""
    try:
        damaged = store.download_checkpoints(run) or quarantine_checkpoints(store, run)
        store.download(read_by(run))
        begin()
        with store.uploading_checkpoints(run, lease), stopping_if_lost(partial(_check, context, lease)):
            make(replace(context, on_progress=_stoppable(context.on_progress)), run)
        return AttemptResult("made", damaged=damaged)
    except Interrupted:
        if not lease.lost:
            raise
    except Exception as error:
        store.leases.renew(lease)
        if not lease.lost and (lease.silent or not store.is_finished(run, afresh=True)):
            return replace(_failed(store, run, error, shares=shares), damaged=damaged)
    if not store.is_finished(run, afresh=True):
        return AttemptResult("elsewhere")
    store.remove_leftovers(run)
    return AttemptResult("finished")


def _check(context: RunContext, lease: Lease) -> None:
    """Stop if another process has taken the run over while this one was paused or could not be seen."""
    context.store.leases.renew(lease, if_over=True)
    wait_while_silent(lease, context.on_progress)
    if lease.lost:
        raise Interrupted


def _failed(store: Store, run: Run, error: Exception, *, shares: bool) -> AttemptResult:
    if shares and ran_out(error):
        return AttemptResult("out_of_memory", str(error))
    if file := missing_file(store, read_by(run)):
        raise StorageError(
            f"{file}: it went away while another run needed it. Run the same command again: it is made anew."
        ) from error
    reason = failure_reason(error)
    if not reason or store.is_outage(error):
        raise error
    store.fail(run, reason)
    return AttemptResult("failed", reason)


def _stoppable(on_progress: OnProgress) -> OnProgress:
    """Report progress, and stop where this process should."""

    def report(progress: Progress) -> None:
        on_progress(progress)
        stop_if_lost()
        if should_stop() and world_size() == 1:  # Several leave together (``fit``).
            raise Interrupted

    return report


def failure_reason(error: Exception) -> str:
    """Return why a run failed if other runs can go on; empty for errors of the disk."""
    if isinstance(error, ConfigError | DataError | ModelError | RunError):
        return str(error)
    # torch has no error of its own for the machine's memory.
    of_machine = isinstance(error, RuntimeError) and "DefaultCPUAllocator" in str(error)
    if of_machine or isinstance(error, MemoryError) or ran_out(error):
        message = " ".join(str(error).split()) or type(error).__name__
        return f"the memory ran out ({message:.300}). {ADVICE}"
    return ""


def ran_out(error: Exception) -> bool:
    """Return whether an error says that a GPU's memory ran out: torch's, or that of a library it calls."""
    message = str(error) if isinstance(error, RuntimeError) else ""
    return isinstance(error, torch.OutOfMemoryError) or bool(
        re.search("out of memory|_ALLOC_FAILED", message)
    )
