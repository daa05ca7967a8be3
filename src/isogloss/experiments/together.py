"""Pretraining in several processes, as ``accelerate launch -m isogloss run`` starts them.

All of them compute; only the first takes the folder's lock, writes and reports. Encoders that are pretrained
are made together; whatever else a recipe asks for is left to the same command started alone, whose records
are the same however many processes made the encoders (within the rounding of sums).
"""

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace

from isogloss.core.errors import ConfigError
from isogloss.core.identity import identity
from isogloss.core.progress import OnProgress, no_progress
from isogloss.experiments.context import RunContext, precision_here
from isogloss.experiments.encoder_runs import Pretrain
from isogloss.experiments.engine import Announce, excusable, run_serially
from isogloss.experiments.execute import compute_without_recording
from isogloss.experiments.plan import Planned
from isogloss.experiments.runs import Run
from isogloss.experiments.store import Outcome
from isogloss.training.distributed import barrier, is_main_process, main_process_first


@dataclass(frozen=True)
class Together:
    """What became of the encoders, and how many runs of the plan have no record yet."""

    outcome: Outcome
    left: int


def pretrain_together(
    planned: Planned,
    *,
    command: str,
    announce: Announce,
    on_progress: OnProgress = no_progress,
    threads: int = 1,
) -> Together:
    """Make the encoders of a plan that are pretrained from text, in all processes at once.

    ConfigError where there are none to make, and other runs have no record yet.
    """
    store = planned.store
    missing = [run for run in planned.runs if not store.is_finished(run)]
    if missing and not any(isinstance(run, Pretrain) for run in missing):
        raise ConfigError(
            f"several processes make encoders that are pretrained, and this recipe has none left; "
            f"{len(missing)} of its runs have no record yet. Start the same command alone: it makes "
            f"runs side by side (--jobs)."
        )
    context = RunContext(store=store, sources=planned.sources, on_progress=on_progress, threads=threads)
    with store.lock() if is_main_process() else nullcontext():
        if is_main_process():
            planned.write(command)
        missing = [run for run in missing if isinstance(run, Pretrain)]
        barrier()  # Every process has looked before the first record is written.
        if missing:
            with main_process_first():
                context = replace(context, precision=precision_here(store))
        outcome = run_serially(context, missing, announce) if is_main_process() else _help(context, missing)
        barrier()
    return Together(outcome, sum(not store.is_finished(run) for run in planned.runs))


def _help(context: RunContext, runs: Sequence[Run]) -> Outcome:
    """Compute beside the first process; what ends a run there ends it here too."""
    outcome = Outcome()
    for run in runs:
        try:
            compute_without_recording(context, run)
        except excusable() as error:
            outcome.failed[identity(run)] = str(error)
        else:
            outcome.made.append(identity(run))
    return outcome
