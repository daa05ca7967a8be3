"""A folder as a machine sees it through a network file system: slowly, and new files late.

A client of NFS remembers for up to a minute that a name was missing, and answers lookups of it without asking
the server. It asks the server when it creates or renames a file, and for all that is in a folder when that
folder is opened to be listed (close-to-open).
"""

import errno
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ASKS = ("mkdir", "replace", "rename", "unlink", "rmdir", "scandir", "listdir")
"""Calls that ask the server."""


@dataclass
class Client:
    """Missing names that one machine remembers below a folder."""

    folder: Path
    seconds: float = 60.0
    """Seconds for which the client remembers that a name was missing."""
    delay: float = 0.0
    """Seconds that each call takes."""
    missing: dict[tuple[int, int, str], float] = field(default_factory=dict)
    """Time at which a name was missing, by device and inode of its folder and by name."""
    late: int = 0
    """Number of lookups that were answered without asking the server."""


_clients = threading.local()


@contextmanager
def seen_by(client: Client) -> Iterator[Client]:
    """In this context, and in this thread, files are seen as by a client."""
    state_before = getattr(_clients, "client", None)
    _clients.client = client
    try:
        yield client
    finally:
        _clients.client = state_before


@contextmanager
def network_folders(everywhere: Client | None = None) -> Iterator[None]:
    """Replace the calls of the system. Threads without a separate client use the given one."""
    real_fields = {name: getattr(os, name) for name in ("open", "stat", "lstat", *ASKS)}

    def wrap_method(name: str) -> Any:
        def call(path: Any, *arguments: Any, **options: Any) -> Any:
            client = getattr(_clients, "client", None) or everywhere
            folder = options.get("dir_fd", options.get("src_dir_fd"))
            if client is None or not _is_below(path, folder, client):
                return real_fields[name](path, *arguments, **options)
            time.sleep(client.delay)
            if name in ASKS:
                answer = real_fields[name](path, *arguments, **options)
                result = os.path.basename(  # noqa: PTH119
                    os.fsdecode(arguments[0] if name in ("replace", "rename") else path)
                )
                client.missing = {
                    key: position for key, position in client.missing.items() if key[2] != result
                }
                return answer
            flags = arguments[0] if name == "open" and arguments else options.get("flags", 0)
            return _looked_up(
                client,
                lambda: real_fields[name](path, *arguments, **options),
                path,
                folder,
                flags,
                real_fields,
            )

        return call

    for name in real_fields:
        setattr(os, name, wrap_method(name))
    try:
        yield
    finally:
        for name, function in real_fields.items():
            setattr(os, name, function)


def _looked_up(client: Client, call: Any, path: Any, folder: int | None, flags: int, real_fields: Any) -> Any:
    """Answer a lookup: from memory where a name was missing, unless the flags ask the server."""
    part_above, name = os.path.split(os.fsdecode(path))
    status = real_fields["stat"](folder if folder is not None and not part_above else part_above or ".")
    key = (status.st_dev, status.st_ino, name)
    if not flags & os.O_CREAT and time.monotonic() - client.missing.get(key, -1e9) < client.seconds:
        client.late += 1
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
    try:
        answer = call()
    except FileNotFoundError:
        client.missing[key] = time.monotonic()
        raise
    client.missing.pop(key, None)
    if flags & os.O_DIRECTORY and not flags & os.O_PATH:
        status = os.fstat(answer)
        for known_values in list(client.missing):
            if known_values[:2] == (status.st_dev, status.st_ino):
                del client.missing[known_values]
    return answer


def _is_below(path: Any, folder: int | None, client: Client) -> bool:
    if isinstance(path, int):
        return False
    name = os.fsdecode(path)
    if folder is not None and not name.startswith("/"):
        name = f"{os.readlink(f'/proc/self/fd/{folder}')}/{name}"  # noqa: PTH115
    return name.startswith(f"{client.folder}/")
