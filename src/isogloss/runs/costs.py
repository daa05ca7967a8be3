"""Estimates of what runs cost: peak memory, operations of trainings, and time, before anything is made.

Peak memory takes all rows to be as long as allowed; the formulas are in ``training.memory``.

A subword that goes through a model and back takes 6 operations for each parameter that is no embedding, and
12·n·d·L for attention over rows of L subwords (n layers of width d); where subwords are predicted, 6·V·d for
each. An example counts as one row that is as long as allowed: most are shorter, long ones several windows.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable

from isogloss.core.identity import identity
from isogloss.core.records import read_made
from isogloss.runs.run import Folders, Run
from isogloss.store.store import Store
from isogloss.training.evaluation import BUDGET
from isogloss.training.memory import Cost, Load, Machine, Shape, scoring_memory, training_memory
from isogloss.training.precision import device, resolved_precision

SCORED_LENGTH = 128
"""Subwords of the rows of which a scored batch is taken to consist."""


def peak_memory(run: Run, folders: Folders, *, on: Machine | None = None) -> int | None:
    """Return the bytes that a run takes at its peak: 0 without a model, None where that is not known.

    ``on`` is the machine and its precision; left out, this process's device in the run's own precision.
    Not known are encoders that are not on this machine, meta-learning, translation models that were made
    elsewhere, diagnostics that compute gradients, and training on choices whose options are lists.
    """
    if on is None:
        here = device()
        on = Machine(half=resolved_precision(run.precision, here) == "bfloat16", gpu=here.type == "cuda")
    return run.memory(folders, on)


def scoring(shape: Shape, machine: Machine, *, models: int = 1) -> int:
    """Return the bytes of scoring: of dev sets, of measurements, of states before an adjustment."""
    load = Load(rows=BUDGET // SCORED_LENGTH, length=SCORED_LENGTH)
    return scoring_memory(shape, load, machine, models=models)


def encoder_training(cost: Cost, shape: Shape, machine: Machine, *, trained: int | None = None) -> int:
    """Return the bytes of the training of an encoder."""
    copies = round(4 * cost.copies * shape.parameters)
    return copies + training_memory(shape, cost.batch, cost.updates, machine, best=False, trained=trained)


def encoder_training_operations(cost: Cost, shape: Shape) -> float:
    """Return the operations of all batches of the training of an encoder."""
    batch = cost.batch
    predicted = batch.predicted / batch.subwords
    return training_operations(shape, cost.steps * batch.subwords, batch.length, predicted=predicted)


def training_operations(shape: Shape, subwords: float, length: int, *, predicted: float = 0) -> float:
    """Return the operations of training on so many subwords in rows of a length.

    ``predicted`` is the share of subwords at which the whole vocabulary is scored.
    """
    inside = shape.parameters - shape.vocabulary * shape.dim
    attention = 12 * shape.layers * shape.dim * length
    return subwords * (6 * inside + attention + 6 * predicted * shape.vocabulary * shape.dim)


def seconds_left(runs: Iterable[Run], done: Collection[str], store: Store) -> tuple[float, int]:
    """Return the seconds that unfinished runs take one after another, and how many cannot be estimated.

    Each is taken to be the mean of the finished ones with its method or diagnostic and its corpus.
    """
    took: dict[tuple[str, ...], list[float]] = defaultdict(list)
    left: list[tuple[str, ...]] = []
    for run in runs:
        part = getattr(run, "method", None) or getattr(run, "diagnostic", None)
        group = (run.name, getattr(part, "name", ""), getattr(run, "corpus", ""))
        if identity(run) not in done:
            left.append(group)
            continue
        if (seconds := read_made(store.folder(run)).seconds) is not None:
            took[group].append(seconds)
    means = [sum(took[group]) / len(took[group]) for group in left if group in took]
    return sum(means), len(left) - len(means)
