"""The serial engine: make what has no record yet, one run after the other; a failure stops only its heirs."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from isogloss.core.errors import RunError
from isogloss.core.runs import Run, needs, run_id
from isogloss.experiments.execute import Workshop


@dataclass(frozen=True)
class Outcome:
    """What became of a plan: ids of runs made now, found done, and failed (with the message)."""

    made: list[str] = field(default_factory=list)
    done: list[str] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)


Announce = Callable[[Run, int, int], None]


def run_serially(shop: Workshop, runs: Sequence[Run], announce: Announce) -> Outcome:
    """Make the runs in order; those that need a failed one are failed too, the rest goes on."""
    outcome = Outcome()
    for number, run in enumerate(runs, start=1):
        key = run_id(run)
        if shop.store.is_finished(run):
            shop.store.record(run)  # A damaged record is reported before anything is built on it.
            outcome.done.append(key)
            continue
        announce(run, number, len(runs))
        missing = [run_id(needed) for needed in needs(run) if run_id(needed) in outcome.failed]
        if missing:
            _fail(shop, run, outcome, f"needs run {missing[0]}, which failed")
            continue
        try:
            shop.make(run)
        except (RunError, torch_error()) as error:
            _fail(shop, run, outcome, str(error))
        else:
            outcome.made.append(key)
    return outcome


def torch_error() -> type[Exception]:
    """Return the error torch raises when memory runs out."""
    import torch

    return torch.OutOfMemoryError


def _fail(shop: Workshop, run: Run, outcome: Outcome, message: str) -> None:
    outcome.failed[run_id(run)] = message
    shop.store.fail(run, message)


