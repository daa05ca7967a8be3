"""The graph of runs: what each needs, what it was made from, and an order in which all can be made."""

from dataclasses import fields

from isogloss.core.identity import identity
from isogloss.core.runs import Adjust, Encoder, FineTune, Pretrained, Run


def needs(run: Run) -> tuple[Run, ...]:
    """List the runs that must be finished before this one; an encoder that exists already is none."""
    return tuple(part for part in _parts(run) if not isinstance(part, Pretrained))


def _parts(run: Run) -> tuple[Run, ...]:
    """List the runs that stand in a run's fields."""
    found: list[Run] = []
    for one in fields(run):
        value = getattr(run, one.name)
        found += [part for part in (value if isinstance(value, tuple) else (value,)) if isinstance(part, Run)]
    return tuple(found)


def original(encoder: Encoder) -> Encoder:
    """Return the encoder that others were made from."""
    return original(encoder.encoder) if isinstance(encoder, Adjust) else encoder


def source_of(model: FineTune) -> tuple[str, ...]:
    """Return a model's source languages: its own, or those of the model it goes on from."""
    return model.source if model.source or model.start is None else source_of(model.start)


def run_id(run: Run) -> str:
    """Return the content id of a run."""
    return identity(run)


def in_order(runs: tuple[Run, ...]) -> list[Run]:
    """List all runs and what they need, each once, what is needed first."""
    ordered: dict[str, Run] = {}

    def add(run: Run) -> None:
        key = run_id(run)
        if key in ordered:
            return
        for needed in needs(run):
            add(needed)
        ordered[key] = run

    for run in runs:
        add(run)
    return list(ordered.values())
