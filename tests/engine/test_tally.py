"""Counting the events of several processes: each run once, in linear time."""

from dataclasses import dataclass
from types import SimpleNamespace

import pytest

from isogloss.engine.engine import Tally
from isogloss.engine.work import RunEvent
from isogloss.store.store import Outcome


@dataclass
class Comparisons:
    count: int = 0


def keys_of(count, comparisons):
    """Return ids of runs that count how often they are hashed or compared."""

    class Key(str):
        def __hash__(self):
            comparisons.count += 1
            return str.__hash__(self)

        def __eq__(self, other):
            comparisons.count += 1
            return str.__eq__(self, other)

    return [Key(f"{index:012x}") for index in range(count)]


def tally_of(count):
    planned_namespace = SimpleNamespace(runs=range(count), store=SimpleNamespace(), titles={})
    return Tally(planned_namespace, lambda *_: None, lambda *_: None, Outcome(), ())


def order_of_events(order, keys):
    """Yield the events of two processes that made half of the runs each."""
    run_events = [RunEvent(key, "made") for key in keys]
    step = [RunEvent(key, "done") for key in keys]
    if order == "made first":
        return [*run_events, *step]
    if order == "alternating":
        return [event for pair in zip(run_events, step, strict=True) for event in pair]
    return [event for pair in zip(step, run_events, strict=True) for event in pair]


@pytest.mark.parametrize("order", ["made first", "alternating", "done first"])
def test_events_are_counted_in_linear_time(order):
    counts = []
    for size in (500, 4_000):
        comparisons = Comparisons()
        keys = keys_of(size, comparisons)
        tally = tally_of(size)
        for event in order_of_events(order, keys):
            tally(event)
        assert (len(tally.outcome.made), tally.outcome.done) == (size, [])
        counts.append(comparisons.count / size)
    assert counts[1] <= 2 * counts[0] + 4
