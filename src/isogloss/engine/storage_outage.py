"""Waiting for a folder of runs during an outage: a server that restarts, a mount that was lost.

Runs continue from their last checkpoints when the folder is back. None is recorded as failed, and nothing
is created in place of the folder (``core.atomic_files``).
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from time import monotonic

from isogloss.core.errors import StorageError
from isogloss.core.interruption import interruption_requested
from isogloss.core.progress import OnProgress, Progress
from isogloss.store.leases import Lease
from isogloss.store.store import Store

PATIENCE = 600.0
"""Seconds that a folder is waited for."""

CHECK_EVERY = 1.0
"""Seconds between two checks of it."""

GONE = (
    "The folder of runs has gone away. See whether its disk or mount is there, then run the same command "
    "again: finished runs are kept."
)
_WAITING = "waiting for the folder of runs, which has gone away"


@dataclass
class StorageOutage:
    """Whether, why and since when a folder of runs cannot be reached, as one process sees it."""

    store: Store
    reason: str = ""
    """Why it is taken to be out of reach; empty while it is not."""
    _since: float | None = None
    _checked: float = 0.0

    def begin(self, reason: str) -> None:
        """Record that it could not be used."""
        self.reason = reason
        if self._since is None:
            self._since = monotonic()

    @contextmanager
    def noticed(self) -> Iterator[None]:
        """Record an error of the outage instead of raising it."""
        try:
            yield
        except (OSError, StorageError) as error:
            if not self.store.is_outage(error):
                raise
            self.begin(str(error))

    def end(self) -> None:
        """Record that it can be used."""
        self.reason, self._since = "", None

    def check(self, on_progress: OnProgress) -> None:
        """Check whether it is back; StorageError when the outage has lasted for too long.

        The next attempt shows whether it can be used, too: only then has the outage ended.
        """
        now, since = monotonic(), self._since or 0.0
        if now - since > PATIENCE:
            raise StorageError(f"{self.reason} (tried for {now - since:.0f} s) {GONE}")
        if now - self._checked < CHECK_EVERY:
            return
        self._checked = now
        on_progress(Progress(_WAITING, round(now - since), round(PATIENCE), self.reason))
        if self.store.is_reachable():
            self.reason = ""


def wait_while_silent(lease: Lease, on_progress: OnProgress) -> None:
    """Wait while a lease cannot be renewed; StorageError when that takes too long.

    Another process may have taken the run over: that shows when the folder is back.
    """
    since = monotonic()
    while lease.silent and not lease.lost and not interruption_requested():
        waited = monotonic() - since
        if waited > PATIENCE:
            raise StorageError(f"run {lease.key}: nobody could see that it is being made. {GONE}")
        on_progress(Progress(_WAITING, round(waited), round(PATIENCE)))
        threading.Event().wait(CHECK_EVERY)
