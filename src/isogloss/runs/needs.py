"""What each run needs, and an order to make all runs in."""

from collections.abc import Iterable
from dataclasses import fields

from isogloss.core.identity import identity
from isogloss.runs.encoder_runs import Align, Pretrained
from isogloss.runs.runs import Run


def parts_of(run: Run) -> tuple[Run, ...]:
    """List the runs that stand in a run's fields."""
    found: list[Run] = []
    for one in fields(run):
        value = getattr(run, one.name)
        found += [part for part in (value if isinstance(value, tuple) else (value,)) if isinstance(part, Run)]
    return tuple(found)


def needs(run: Run) -> tuple[Run, ...]:
    """List the runs that must be finished before this one; an encoder that exists already is none."""
    return tuple(part for part in parts_of(run) if not isinstance(part, Pretrained))


def read_by(run: Run) -> tuple[Run, ...]:
    """List the runs whose files are read to make this one: what it needs, and what its links link."""
    needed = needs(run)
    linked = [one.tokenizer for one in needed if isinstance(one, Align) and one.tokenizer]
    return tuple(dict.fromkeys((*needed, *(one for one in linked if not isinstance(one, Pretrained)))))


def not_looked_up(runs: Iterable[Run]) -> list[Pretrained]:
    """List the hub models that runs need and whose commits are not known."""
    models = {part for run in runs for part in parts_of(run) if isinstance(part, Pretrained)}
    return sorted(
        (one for one in models if not one.data and one.revision is None), key=lambda one: one.source
    )


def in_order(runs: Iterable[Run]) -> list[Run]:
    """List all runs and what they need, each once, what is needed first."""
    ordered: dict[str, Run] = {}

    def add(run: Run) -> None:
        key = identity(run)
        if key in ordered:
            return
        for needed in needs(run):
            add(needed)
        ordered[key] = run

    for run in runs:
        add(run)
    return list(ordered.values())
