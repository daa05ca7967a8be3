"""Claims of runs as files in a store: how long it takes to answer tells what was seen of others."""

import time
from dataclasses import dataclass, field
from functools import cache

from isogloss.store.leases import FOLDER, LOG, Claims, IsOwn
from isogloss.store.remote import Remote

LONG = 5.0
"""Seconds after which a small file that was read at last counts as one that could not be seen."""

LINES = 100
"""Lines of a file that is added to: object stores write whole files alone, so that long ones grow dear."""


@dataclass
class RemoteBoard:
    """The files of claims in a store."""

    remote: Remote
    _lines: dict[str, list[str]] = field(default_factory=dict)

    @property
    def interruptions(self) -> int:  # noqa: D102
        return self.remote.interruptions

    def create(self, name: str, content: bytes) -> bool:  # noqa: D102
        return self.remote.create(f"{FOLDER}/{name}", content)

    def read(self, name: str) -> bytes | None:  # noqa: D102
        began = time.monotonic()
        content = self.remote.read(f"{FOLDER}/{name}")
        if time.monotonic() - began > LONG:  # The package has waited by itself.
            self.remote.interruptions += 1
        return content

    def write(self, name: str, content: bytes, is_own: IsOwn = lambda _: True) -> bool:
        """Write a file that is there; a sign of life that comes late is none, so nothing is waited for."""
        before = self.remote.read(f"{FOLDER}/{name}", waits=False)
        if before is None or not is_own(before):
            return False
        self.remote.write(f"{FOLDER}/{name}", content, waits=False)
        return True

    def remove(self, name: str) -> None:  # noqa: D102
        self.remote.remove([f"{FOLDER}/{name}"], waits=False)

    def append(self, name: str, line: str, *, begins: bool) -> None:  # noqa: ARG002, D102
        lines = self._lines.setdefault(name, [])
        lines.append(line)
        part = (len(lines) - 1) // LINES
        stem, dot, ending = name.partition(".")
        text = "".join(lines[part * LINES :])
        self.remote.write(f"{FOLDER}/{stem}{f'-{part + 1}' if part else ''}{dot}{ending}", text.encode())


@cache
def claims_of(remote: Remote) -> Claims:
    """Return the claims of a store, the same ones for all of this process."""
    return Claims(RemoteBoard(remote), log=LOG)
