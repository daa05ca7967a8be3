"""The benchmark of pretraining works, and all sides do the same work."""

import subprocess
import sys
from math import log
from pathlib import Path

import pytest

BENCH = Path(__file__).parent.parent.parent / "benchmarks" / "pretraining.py"


@pytest.mark.slow
def test_all_ways_come_to_the_same_loss_and_ratios_are_printed():
    ended = subprocess.run([sys.executable, BENCH, "--quick"], capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in ended.stdout.splitlines()]
    losses = {row[0]: float(row[3]) for row in rows if len(row) == 4 and row[1].isdigit()}
    assert losses.keys() == {"isogloss", "Trainer, blocks", "Trainer, lines"}
    assert all(abs(loss - log(12000)) < 0.5 for loss in losses.values())  # One step: as good as a guess.
    ratios = {row[0]: float(row[1]) for row in rows if row and " : " in row[0]}
    assert ratios.keys() == {"isogloss : Trainer, blocks", "isogloss : Trainer, lines"}
    assert all(ratio > 0 for ratio in ratios.values())
