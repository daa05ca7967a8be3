"""Let the n-th call of the system below a folder fail, as a full, broken or read-only disk lets it.

Calls are counted by Python's own events (``sys.addaudithook``) and by files that are opened through
``open`` or ``os.fdopen``, which are replaced while a test lasts.
"""

import builtins
import io
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

EVENTS = (
    "open",
    "os.mkdir",
    "os.rename",
    "os.remove",
    "os.rmdir",
    "os.chmod",
    "os.listdir",
    "os.scandir",
    "os.truncate",
)
"""Python's events of calls that get a path as their first argument."""

FILE_CALLS = ("read", "readall", "write", "flush", "truncate", "close", "seek")
"""Calls on an open file that may reach the disk."""


@dataclass
class Faults:
    """Calls that fail below a folder, and calls so far."""

    folder: Path
    number: int = 0
    """The first call that fails, counted from 1. 0: none."""
    error: int = 0
    stays: bool = False
    """Whether all later calls also fail."""
    calls: list[str] = field(default_factory=list)

    def count(self, call: str, path: object) -> None:
        """Count a call if it is below the folder, and fail where it is its turn."""
        if not isinstance(path, str | bytes | os.PathLike):
            return
        name = os.path.abspath(os.fsdecode(path))  # noqa: PTH100
        if name != str(self.folder) and not name.startswith(f"{self.folder}{os.sep}"):
            return
        self.calls.append(f"{call} {name}")
        count = len(self.calls)
        if self.number and (count == self.number or (self.stays and count > self.number)):
            is_named = call in EVENTS or call == "os.stat"  # Calls on an open file name none.
            raise OSError(self.error, os.strerror(self.error), *([name] if is_named else []))


class _File:
    """An open file whose calls are counted."""

    def __init__(self, file: Any, faults: Faults, path: object) -> None:
        self._file = file
        self._faults = faults
        self._path = path

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._file, name)
        if name not in FILE_CALLS:
            return value

        def call(*arguments: Any) -> Any:
            try:
                self._faults.count(name, self._path)
            except OSError:
                if name == "close":
                    value()
                raise
            return value(*arguments)

        return call

    def __iter__(self) -> Iterator[Any]:
        self._faults.count("read", self._path)
        return iter(self._file)

    def __enter__(self) -> "_File":
        self._file.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


armed_faults: list[Faults] = []


def _hook(event: str, arguments: tuple[Any, ...]) -> None:
    if armed_faults and event in EVENTS:
        armed_faults[0].count(event, arguments[0])


hooks: list[Callable[..., None]] = []


@contextmanager
def failing(faults: Faults) -> Iterator[Faults]:
    """Count the calls below a folder in this context, and let those fail whose turn it is."""
    if not hooks:
        sys.addaudithook(_hook)
        hooks.append(_hook)
    real_open = io.open
    real_fdopen = os.fdopen
    real_stat = os.stat
    real_os_open = os.open
    descriptors: dict[int, object] = {}

    def open_counted(path: Any, *arguments: Any, **options: Any) -> Any:
        file = real_open(path, *arguments, **options)
        return _File(file, faults, descriptors.get(path, path) if isinstance(path, int) else path)

    def fdopen_counted(number: int, *arguments: Any, **options: Any) -> Any:
        return _File(real_fdopen(number, *arguments, **options), faults, descriptors.get(number))

    def os_open(path: Any, *arguments: Any, **options: Any) -> int:
        index = real_os_open(path, *arguments, **options)
        descriptors[index] = path
        return index

    def stat_counted(path: Any, *arguments: Any, **options: Any) -> Any:
        faults.count("os.stat", path)
        return real_stat(path, *arguments, **options)

    def is_below(path: Any) -> bool:
        return isinstance(path, int) or os.fsdecode(path).startswith(str(faults.folder))

    io.open = builtins.open = lambda path, *a, **o: (open_counted if is_below(path) else real_open)(
        path, *a, **o
    )  # type: ignore[assignment]
    os.fdopen = fdopen_counted
    os.open = os_open
    os.stat = stat_counted  # type: ignore[assignment]
    armed_faults.append(faults)
    try:
        yield faults
    finally:
        armed_faults.clear()
        io.open = builtins.open = real_open
        os.fdopen = real_fdopen
        os.open = real_os_open
        os.stat = real_stat
