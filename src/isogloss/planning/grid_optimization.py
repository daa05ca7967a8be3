"""The optimization of a grid's models: what a recipe says, checked, and what task and encoder add."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import product

from isogloss.core.errors import ConfigError, check_named
from isogloss.core.run_parts import Optimization
from isogloss.data.sources import Sources
from isogloss.recipes.checking import checked, names, refuse_empty_or_twice, refuse_unknown
from isogloss.recipes.recipe import Table
from isogloss.runs.encoder_runs import Encoder
from isogloss.runs.encoders import facts_of
from isogloss.tasks import Task, find_task
from isogloss.training.precision import PRECISIONS
from isogloss.training.setting import Reads

SPECIAL = 2
"""Subwords of every row that no window may overlap: its first and its last."""


def changes_of(table: Table) -> Iterator[Table]:
    """Yield every combination of the values of list-valued fields."""
    refuse_unknown(table, names(Optimization), "the optimization")
    lists = {key: value if isinstance(value, list) else [value] for key, value in table.items()}
    for key, values in lists.items():
        refuse_empty_or_twice(values, f".{key}")
    for combination in product(*lists.values()):
        changes = dict(zip(lists, combination, strict=True))
        found = checked(Optimization, changes)
        check_named(".precision", "precision", PRECISIONS, found.updates.precision)
        yield changes


def optimization_of(changes: Table, encoder: Encoder, task: str, sources: Sources) -> Optimization:
    """Check a model's optimization, also against what its encoder has positions for."""
    facts = facts_of(encoder, sources.encoders)
    most = facts.positions if facts else None
    found = _lengths(changes, find_task(task), most)
    check_named("precision", "precision", PRECISIONS, found.updates.precision)
    _check_averaged(found)
    if found.overlap >= found.limit - SPECIAL:
        raise ConfigError(
            f"overlap: windows of {found.limit} subwords cannot overlap by {found.overlap}. "
            f"Choose overlap at most {max(0, found.limit - SPECIAL - 1)}, or raise limit."
        )
    if most is not None and found.limit > most:
        raise ConfigError(
            f"limit: rows of {found.limit} subwords do not fit into the {most} positions of "
            f"encoder {encoder.label!r}. Lower limit (in grid.optimization) to {most} or less."
        )
    return found


def _check_averaged(found: Optimization) -> None:
    """Raise ConfigError where there are no last epochs to average."""
    if (found.averaged_epochs or 0) > found.epochs:
        raise ConfigError(
            f"averaged_epochs: found {found.averaged_epochs}, and there are {found.epochs} "
            "epochs. Choose at most that many."
        )
    if found.averaged_epochs and found.patience:
        raise ConfigError(
            "patience: a training that stops early has no last epochs to average. Leave out "
            "patience, or averaged_epochs."
        )


def _lengths(changes: Table, task: Task, most: int | None) -> Optimization:
    """Check an optimization; lengths it does not say are the task's, as far as they fit."""
    limit = task.limit if most is None else min(task.limit, most)
    found = checked(Optimization, {"limit": limit, **changes})
    overlap = min(task.overlap, task.overlap * found.limit // task.limit)
    return found if "overlap" in changes else replace(found, overlap=overlap)


def check_patience(optimization: Optimization, method: str, reads: Reads) -> None:
    """Raise ConfigError where training is to stop early and no dev set says when."""
    if optimization.patience and reads.train and not reads.dev:
        raise ConfigError(
            f"patience: no dev set chooses the epoch of {method}, so none says "
            "when to stop. Leave patience out, or let the method read a dev set."
        )
