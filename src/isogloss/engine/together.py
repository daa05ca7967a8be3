"""One run in several processes, as ``accelerate launch -m isogloss run`` (or torchrun) starts them.

Trainings are computed by all of them, each a part of every update's batch; gradients are summed, so that an
update is that of one process within rounding. Whatever does not train is made by the main process alone,
which leases runs, decides, writes and reports; a checkpoint may be gone on from in another number of
processes, or in one. A folder that all of them see is needed.

What fails (a loss that diverges, data that cannot be read) fails in all of them at the same place, and is
recorded. A process that dies, or whose device runs out of memory, ends all: the launcher sees to that.
"""

import time
from collections.abc import Callable
from contextlib import nullcontext, suppress
from dataclasses import replace
from functools import partial

from isogloss.core.errors import ConfigError, DataError, ModelError, RunError, StorageError
from isogloss.core.identity import identity
from isogloss.core.interruption import interruptible
from isogloss.core.progress import OnProgress, no_progress
from isogloss.engine.attempts import AttemptResult, attempt
from isogloss.engine.engine import prepared
from isogloss.engine.engines import Execution
from isogloss.engine.schedule import FAILED_BEFORE, POLL_OTHERS
from isogloss.engine.storage_outage import GONE
from isogloss.planning.plan import Announce, Planned
from isogloss.runs.execute import compute_without_recording
from isogloss.runs.run import Run, RunContext, needs
from isogloss.store.store import Outcome
from isogloss.training.distributed import alone, barrier, from_main_process, is_main_process


def make_together(
    planned: Planned,
    execution: Execution,
    *,
    announce: Announce = lambda *_: None,
    on_progress: OnProgress = no_progress,
) -> Outcome:
    """Make what has no record yet, one run after the other, in all processes; each returns what became of it.

    Out-of-memory errors are raised.
    """
    if is_main_process():
        with alone():
            context, damaged = prepared(planned, execution, on_progress)
    barrier()  # Now what is damaged is gone, and the precision is known.
    if not is_main_process():
        context, damaged = prepared(planned, replace(execution, retry_failed=False), no_progress)
    outcome = Outcome(damaged=damaged)
    with interruptible():
        for number, run in enumerate(planned.runs, 1):
            begin = partial(announce, planned.begun(run, number, len(planned.runs)))
            result = _made(context, run, outcome, begin) if is_main_process() else _helped(context, run)
            if result.state == "outage":  # The others may be amid a training, and cannot begin it again.
                raise StorageError(f"{result.reason} {GONE}")
            state, reason = from_main_process(partial(_state_and_reason, result))
            if state == "failed":
                outcome.failed[identity(run)] = reason
            else:
                (outcome.made if state == "made" else outcome.done).append(identity(run))
    return outcome


def _made(context: RunContext, run: Run, outcome: Outcome, announce: Callable[[], None]) -> AttemptResult:
    """Make a run as the main process: with all others if it trains, else while they wait."""
    store, announced = context.store, False

    def begin() -> None:
        nonlocal announced
        announce()
        if run.trains:
            announced = from_main_process(lambda: True)

    failed = next((key for key in map(identity, needs(run)) if key in outcome.failed), "")
    if failed:
        result = AttemptResult("failed", f"needs run {failed}, which failed")
        store.fail(run, result.reason, needs=failed)
    elif store.is_finished(run):
        result = AttemptResult("finished")
    elif reason := store.failure(run, afresh=True):
        result = AttemptResult("failed", f"{reason} ({FAILED_BEFORE})")
    else:
        with nullcontext() if run.trains else alone():
            result = attempt(context, run, begin=begin)
            while result.state == "elsewhere" and not announced:
                time.sleep(POLL_OTHERS)
                result = attempt(context, run, store.leases.expired(identity(run)) or b"", begin=begin)
    if not announced:
        from_main_process(lambda: False)
    return result


def _helped(context: RunContext, run: Run) -> AttemptResult:
    """Compute along with the main process where it asks for that."""
    if from_main_process(lambda: False):
        with suppress(ConfigError, DataError, ModelError, RunError):  # The main process meets it, too.
            compute_without_recording(context, run)
    return AttemptResult("finished")


def _state_and_reason(result: AttemptResult) -> list[str]:
    return [result.state, result.reason]
