"""The benchmark works, and both sides do the same work."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

BENCH = Path(__file__).parent.parent.parent / "benchmarks" / "bench.py"


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    out = tmp_path_factory.mktemp("bench")
    command = [sys.executable, BENCH, "--quick", "--out", out]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    (path,) = out.iterdir()
    return {**json.loads(path.read_text(encoding="utf-8")), "printed": ended.stdout}


@pytest.mark.slow
def test_every_contestant_trains_on_the_same_and_comes_to_the_same_loss(found):
    losses = [one["mean_loss"] for one in found["training"]]
    assert len(losses) == 5 and max(losses) - min(losses) < 0.05


@pytest.mark.slow
def test_both_ways_along_the_path_find_the_same_scores(found):
    first, *others = [one["scores"] for one in found["path"]]
    assert len(first) == 2
    for other in others:
        assert other == pytest.approx(first, abs=0.03)  # In bfloat16 a word in a hundred may differ.


@pytest.mark.slow
def test_every_ratio_is_printed(found):
    for ratio in found["ratios"]:
        assert f"| {ratio['name']} | {ratio['measured']:.2f} |" in found["printed"]
