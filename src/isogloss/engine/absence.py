"""Waiting for a folder of runs that has gone away: a server that starts again, a mount that was lost.

What is being made then goes on from its last checkpoint when the folder is back. Nothing is recorded as
failed, and nothing made anew in the folder's place (``core.presence``).
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from time import monotonic

from isogloss.core.errors import StorageError
from isogloss.core.leaving import asked_to_leave
from isogloss.core.progress import OnProgress, Progress
from isogloss.store.leases import Lease
from isogloss.store.store import Store

PATIENCE = 600.0
"""Seconds that a folder is waited for."""

AGAIN = 1.0
"""Seconds between two looks at it."""

GONE = (
    "The folder of runs has gone away. See whether its disk or mount is there, then run the same command "
    "again: finished runs are kept."
)
_WAITING = "waiting for the folder of runs, which has gone away"


@dataclass
class Absence:
    """Whether, why and since when a folder of runs is away, as one process sees it."""

    store: Store
    why: str = ""
    """Why it is taken to be away; empty while it is not."""
    _since: float | None = None
    _looked: float = 0.0

    def begin(self, why: str) -> None:
        """Note that it could not be used."""
        self.why = why
        if self._since is None:
            self._since = monotonic()

    @contextmanager
    def noticed(self) -> Iterator[None]:
        """Note an error that says that the folder is away, instead of raising it."""
        try:
            yield
        except (OSError, StorageError) as error:
            if not self.store.is_outage(error):
                raise
            self.begin(str(error))

    def end(self) -> None:
        """Note that it can be used."""
        self.why, self._since = "", None

    def look(self, on_progress: OnProgress) -> None:
        """Look whether it is there; StorageError when it has been away for too long.

        Whether it can be used, too, the next attempt says: until one could, the absence has not ended.
        """
        now, since = monotonic(), self._since or 0.0
        if now - since > PATIENCE:
            raise StorageError(f"{self.why} (tried for {now - since:.0f} s) {GONE}")
        if now - self._looked < AGAIN:
            return
        self._looked = now
        on_progress(Progress(_WAITING, round(now - since), round(PATIENCE), self.why))
        if self.store.is_reachable():
            self.why = ""


def wait_while_silent(lease: Lease, on_progress: OnProgress) -> None:
    """Wait while no sign of life can be written; StorageError where that takes too long.

    The run may be another process's by now: whether it is can be seen when the folder is back.
    """
    since = monotonic()
    while lease.silent and not lease.lost and not asked_to_leave():
        waited = monotonic() - since
        if waited > PATIENCE:
            raise StorageError(f"run {lease.key}: nobody could see that it is being made. {GONE}")
        on_progress(Progress(_WAITING, round(waited), round(PATIENCE)))
        threading.Event().wait(AGAIN)
