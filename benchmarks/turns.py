"""Contestants in turns, each time in a process of its own, so that neither memory nor caches are shared."""

import json
import subprocess
import sys
from collections.abc import Iterable, Sequence


def in_turns(
    file: str, ways: Iterable[str], rounds: int, options: Sequence[str]
) -> dict[str, list[dict[str, float]]]:
    """Run a benchmark's file with ``--way`` for each way, round by round; give the JSON of its last lines."""
    found: dict[str, list[dict[str, float]]] = {way: [] for way in ways}
    for _ in range(rounds):
        for way, measured in found.items():
            command = [sys.executable, file, "--way", way, *options]
            ended = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
            measured.append(json.loads(ended.stdout.splitlines()[-1]))
    return found
