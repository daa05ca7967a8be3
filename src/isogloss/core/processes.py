"""Names of processes among all that share a folder, and which of them are known to have ended."""

import os
import platform
from functools import cache
from hashlib import blake2s
from pathlib import Path
from uuid import getnode

SEVERAL = ("WORLD_SIZE", "PMI_SIZE", "OMPI_COMM_WORLD_SIZE", "MV2_COMM_WORLD_SIZE")
"""Environment variables in which launchers say how many processes they started (as Accelerate reads them)."""


def launched() -> bool:
    """Return whether, by the environment, a launcher started this process as one of several."""
    return any(os.environ.get(name, "1") != "1" for name in SEVERAL)


def cores() -> int:
    """Return how many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def this_process() -> str:
    """Return the name of this process, as no other one has it that runs at the same time, on any machine.

    HOST-PID-START: a hash of what process numbers count within, the number, and when it started, as the
    system says it (0 where it does not).
    """
    return f"{host()}-{os.getpid()}-{_started(os.getpid())}"


@cache
def host() -> str:
    """Return a hash of this machine since its last start and, in a container, of what numbers processes."""
    parts = [platform.node(), str(getnode())]
    for source in ("/proc/sys/kernel/random/boot_id", "/proc/self/ns/pid"):
        path = Path(source)
        try:
            parts.append(str(path.readlink()) if path.is_symlink() else path.read_text(encoding="utf-8"))
        except OSError:
            continue
    return blake2s("\n".join(parts).encode(), digest_size=5).hexdigest()


def has_ended(process: str) -> bool:
    """Return whether a process is known to have ended; False for those of other machines."""
    where, _, rest = process.partition("-")
    number, _, started = rest.partition("-")
    if where != host() or not number.isdigit() or os.name == "nt":
        return False
    try:
        os.kill(int(number), 0)
    except ProcessLookupError:
        return True
    except OSError:  # It is another user's.
        return False
    return started not in ("", "0", _started(int(number)))


def _started(number: int) -> str:
    """Return when a process started, in ticks since the machine did; 0 where that cannot be known."""
    try:
        stat = Path(f"/proc/{number}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    except OSError:
        return "0"
    return "ended" if stat[0] == "Z" else stat[19]
