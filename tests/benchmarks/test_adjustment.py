"""The benchmark of adjustment works, and both sides do the same work."""

import subprocess
import sys
from pathlib import Path

import pytest

BENCH = Path(__file__).parent.parent.parent / "benchmarks" / "adjustment.py"
PRECISIONS = ("float32", "bfloat16")


@pytest.mark.slow
def test_both_ways_come_to_the_same_loss_and_ratios_are_printed():
    ended = subprocess.run([sys.executable, BENCH, "--quick"], capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    rows = [line.split("|")[1:-1] for line in ended.stdout.splitlines()]
    losses = [float(row[3]) for row in rows if len(row) == 4 and "," in row[0]]
    assert len(losses) == 4 and max(losses) < 1.2 * min(losses)  # Dropout and the order of batches differ.
    ratios = [[float(cell) for cell in row[1:]] for row in rows if row and row[0].strip() in PRECISIONS]
    assert len(ratios) == 2 and all(goal == 1.8 for _, goal, _ in ratios)
