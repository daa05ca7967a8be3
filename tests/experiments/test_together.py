"""A recipe under ``accelerate launch``: encoders are pretrained by all processes, and all else is left."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

import isogloss
from isogloss.core.errors import ConfigError
from isogloss.experiments.engine import pretrain_together
from isogloss.experiments.plan import plan_recipe
from tiny import tiny

RECIPE = """
title = "Together"

[encoder.pretrain]
text = ["rawtext"]
languages = ["qaa", "qab"]
lines = { qaa = 300, qab = 200 }
architecture = { layers = 1, dim = 32, heads = 2, feed_forward = 64, vocabulary = 300, positions = 64 }

[encoder.pretrain.method]
steps = 12
batch_subwords = 512
block = 32
evaluate_every = 6
checkpoint_every = 5
precision = "float32"
accumulation = ACCUMULATION

[[measure]]
name = "retrieval"
corpus = "bitext"
examples = 20
"""


def recipe(folder: Path, accumulation: int) -> Path:
    path = folder / "together.toml"
    path.write_text(RECIPE.replace("ACCUMULATION", str(accumulation)), encoding="utf-8")
    return path


def test_a_script_in_several_processes_is_refused(monkeypatch, tmp_path):
    monkeypatch.setattr("isogloss.training.distributed.world_size", lambda: 2)
    with pytest.raises(ConfigError, match="one of 2 processes, and each would make the same"):
        isogloss.run(recipe(tmp_path, 2), out=tmp_path / "runs", report=False)


def test_several_processes_that_have_nothing_to_make_together_are_refused(tmp_path):
    planned = plan_recipe(str(tiny(tmp_path)), out=tmp_path / "runs")
    with pytest.raises(ConfigError, match=r"12 of its runs have no record yet. Start the same command alone"):
        pretrain_together(planned, command="", announce=lambda *_: None)


@pytest.mark.slow
def test_two_processes_make_the_encoder_of_one_and_leave_the_rest(tmp_path):
    """One process computes four parts of each update, two processes two each: equal but for rounding."""
    path = recipe(tmp_path, 4)
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
    isogloss_run = ["-m", "isogloss", "run", str(path), "--out", str(tmp_path / "two")]
    environment = {"PYTHONPATH": ":".join(sys.path), "OMP_NUM_THREADS": "1"}
    ended = subprocess.run(
        [*command, *isogloss_run], env=environment, check=False, capture_output=True, text=True
    )
    assert ended.returncode == 0, ended.stderr
    assert "1 encoders made in 2 processes, 0 failed. 1 runs have no record yet" in ended.stderr
    assert not ended.stdout

    alone = isogloss.run(path, out=tmp_path / "one", jobs=1, report=False)
    encoder = next(record for record in alone.records if record.kind == "pretrain")
    together = json.loads((tmp_path / "two" / encoder.id / "record.json").read_text(encoding="utf-8"))
    assert [row.keys() for row in together["rows"]] == [row.keys() for row in encoder.rows]
    for ours, theirs in zip(together["rows"], encoder.rows, strict=True):
        for name, value in theirs.items():
            assert ours[name] == (pytest.approx(value, rel=1e-4) if isinstance(value, float) else value)
    files = [load_file(tmp_path / out / encoder.id / "model/model.safetensors") for out in ("one", "two")]
    assert all(torch.allclose(files[0][name], files[1][name], atol=1e-5) for name in files[0])

    rest = isogloss.run(path, out=tmp_path / "two", jobs=1, report=False)
    assert rest.outcome.done == [encoder.id]
    assert len(rest.outcome.made) == 1
