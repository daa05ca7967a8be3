"""Run contestants in turns, each time in a separate process, so that neither memory nor caches are shared."""

import json
import resource
import subprocess
import sys
import time
from collections.abc import Iterable, Sequence
from pathlib import Path


def run_in_turns(
    file: str, ways: Iterable[str], rounds: int, options: Sequence[str]
) -> dict[str, list[dict[str, float]]]:
    """Run a benchmark's file with ``--way`` for each way, round by round, and return its JSON output."""
    results: dict[str, list[dict[str, float]]] = {way: [] for way in ways}
    for _ in range(rounds):
        for way, rows in results.items():
            command = [sys.executable, file, "--way", way, *options]
            process = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
            rows.append(json.loads(process.stdout.splitlines()[-1]))
    return results


def now() -> float:
    """Return processor seconds on a CPU, which other programs influence less, else wall time."""
    import torch

    if torch.cuda.is_available():
        torch.cuda.synchronize()
        return time.perf_counter()
    return time.process_time()


def resident() -> float:
    """Return the MiB of memory the process has now."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 2**20


def peak_above(start: float) -> float:
    """Return the MiB, at least 1, by which peak memory (a GPU's, if available) exceeds ``start``."""
    import torch

    if torch.cuda.is_available():
        return torch.cuda.max_memory_allocated() / 2**20
    return max(1.0, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024 - start)
