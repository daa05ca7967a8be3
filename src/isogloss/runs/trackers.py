"""Trackers that follow runs while they train. Features add them to a table.

A tracker is not part of a run: a failing tracker is a warning.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from isogloss.core.errors import check_named
from isogloss.core.progress import OnProgress, Progress
from isogloss.core.records import Row
from isogloss.core.registry import Registry


@dataclass(frozen=True, kw_only=True)
class TrackedRun:
    """A run as trackers show it."""

    id: str
    title: str
    folder: Path
    """The folder of the study."""
    settings: Mapping[str, str | int | float | bool]
    facts: Mapping[str, str] = field(default_factory=dict)
    """Facts by which runs are filtered: kind, method, languages, seed, if any."""


class Follower(Protocol):
    """A tracker that follows one run."""

    def on_progress(self, progress: Progress) -> None:
        """Log the numbers of a training, and pass its progress on."""

    def finish(self, rows: Iterable[Row]) -> None:
        """Log the scores of the run."""

    def close(self) -> None:
        """End the tracker. It is also called after an error."""


class Tracker(Protocol):
    """A kind of tracker, in the table ``trackers``."""

    def check(self) -> None:
        """Raise ConfigError if its packages are not installed."""

    def follow(self, run: TrackedRun, on_progress: OnProgress) -> Follower:
        """Return what follows a run, and passes its progress on to ``on_progress``."""


TRACKERS: Registry[Tracker] = Registry({}, features="trackers")


def check_trackers(names: Iterable[str]) -> None:
    """Raise ConfigError for a tracker that is unknown or not installed."""
    check_named("--track", "tracker", TRACKERS, *names)
    for name in names:
        TRACKERS[name].check()


class Tracking:
    """The trackers of a run."""

    def __init__(self, followers: Sequence[Follower], on_progress: OnProgress) -> None:
        self.followers = followers
        self.on_progress = on_progress

    def finish(self, rows: Iterable[Row]) -> None:
        """Log the scores of the run in each tracker."""
        rows = list(rows)
        for follower in self.followers:
            follower.finish(rows)


@contextmanager
def track_run(names: Iterable[str], run: TrackedRun, on_progress: OnProgress) -> Iterator[Tracking]:
    """Let trackers follow a run until the end of the block."""
    with ExitStack() as stack:
        followers: list[Follower] = []
        for name in reversed(tuple(names)):
            followers.append(stack.enter_context(closing(TRACKERS[name].follow(run, on_progress))))
            on_progress = followers[-1].on_progress
        yield Tracking(followers[::-1], on_progress)
