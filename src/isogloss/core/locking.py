"""One process at a time: a lock file, which the system releases when the process ends."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def locked(path: Path, *, wait: bool = False) -> Iterator[bool]:
    """Hold a file's lock; yield False if another process has it, or ``wait`` until it is free.

    OSError where no file can be written.
    """
    from filelock import FileLock, Timeout

    lock = FileLock(path, blocking=wait)
    try:
        lock.acquire()
    except Timeout:
        yield False
        return
    try:
        yield True
    finally:
        lock.release()
