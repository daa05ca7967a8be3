"""The benchmark of X-Mixup works, and every way learns from the same pairs."""

import subprocess
import sys
from pathlib import Path

import pytest

BENCH = Path(__file__).parent.parent.parent / "benchmarks" / "x_mixup.py"


@pytest.mark.slow
def test_every_way_is_compared_with_translate_train():
    ended = subprocess.run([sys.executable, BENCH, "--quick"], capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    rows = [line.split("|")[1:-1] for line in ended.stdout.splitlines()]
    numbers = {
        row[0].strip(): [float(cell) for cell in row[1:]]
        for row in rows
        if len(row) == 6 and row[1].strip()[:1].isdigit()
    }
    assert numbers.keys() == {"translate-train", "pairs alone", "constant ratio", "x-mixup"}
    assert numbers["translate-train"][1] == numbers["translate-train"][3] == 1
    assert all(seconds > 0 and peak > 0 for seconds, _, peak, _, _ in numbers.values())
    assert numbers["pairs alone"][4] == pytest.approx(numbers["translate-train"][4], abs=0.1)
