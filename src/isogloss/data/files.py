"""Where a corpus's files are: a folder on disk, or the built-in languages, which are written on demand.

Readers ask a ``Folder`` for a file and take numbered lines from it; they never learn whether it was
plain, .gz, .xz or made a moment ago.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True)
class File:
    """A text file: its ``name`` for messages, its lines, and a fingerprint of its content."""

    name: str
    read: Callable[[], Iterator[str]]
    fingerprint: Callable[[], str]

    def lines(self) -> Iterator[tuple[int, str]]:
        """Give each line with its number, counted from 1, without its line end."""
        for number, line in enumerate(self.read(), start=1):
            yield number, line.rstrip("\r\n")


class Folder(Protocol):
    """A place that holds corpora under their official (or our) folder names."""

    name: str

    def find(self, patterns: Iterable[str]) -> list[File]:
        """Give the files that match the first pattern that matches any, sorted by name; else none."""
        ...
