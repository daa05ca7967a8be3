"""The benchmark of meta-learning works, and every form costs more than joint training."""

import subprocess
import sys
from pathlib import Path

import pytest

BENCH = Path(__file__).parent.parent.parent / "benchmarks" / "meta_learning.py"


@pytest.mark.slow
def test_every_form_is_compared_with_joint_training():
    ended = subprocess.run([sys.executable, BENCH, "--quick"], capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    rows = [line.split("|")[1:-1] for line in ended.stdout.splitlines()]
    numbers = [row for row in rows if len(row) == 5 and row[1].strip()[:1].isdigit()]
    ratios = {row[0].strip(): float(row[2]) for row in numbers}
    assert ratios.keys() == {"joint", "first-order", "finite-difference", "exact"}
    assert ratios["joint"] == 1
    assert all(ratio > 1 for form, ratio in ratios.items() if form != "joint")
