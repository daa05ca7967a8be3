"""A recipe under torchrun: all processes compute every training, and come to what one process makes."""

import json
import subprocess
import sys

import pytest
import torch
from safetensors.torch import load_file

import isogloss
from each import each
from isogloss.core.errors import ConfigError
from tiny import tiny

RECIPE = """
title = "Together"

[[encoder]]
label = "masked"

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
accumulation = 4

[[encoder]]
label = "meta"

[encoder.pretrain]
text = ["rawtext"]
languages = ["qaa", "qab"]
lines = { qaa = 300, qab = 200 }
architecture = { layers = 1, dim = 32, heads = 2, feed_forward = 64, vocabulary = 300, positions = 64 }
modules = { kind = "adapter" }

[encoder.pretrain.method]
name = "meta-learning"
steps = 6
batch_subwords = 256
block = 32
precision = "float32"

[align]
name = "fast-align"

[[adjust]]
name = "cross-lingual-adjustment"
bitext = "bitext"
pairs = ["qaa-qab"]
start = "masked"
examples = 64
batch_size = 16
accumulation = 2
precision = "float32"

[[adjust]]
name = "contrastive-alignment"
bitext = "bitext"
pairs = ["qaa-qab"]
start = "masked"
examples = 64
batch_size = 16
precision = "float32"

[grid]
corpus = "wikiann"
source = "qaa"
seeds = [0]
targets = ["qab"]
examples = 64
dev_examples = 16
optimization = { epochs = 2, batch_size = 16, learning_rate = 1e-3, accumulation = 2, precision = "float32" }

[[grid.method]]
name = "source-only"
encoders = ["masked"]
auxiliary = { name = "alignment-loss", bitext = "bitext" }
targets = ["qab"]

[[grid.method]]
name = "x-mixup"
encoders = ["masked"]
layer = 1
decay = 2

[[grid.method]]
name = "bilingual"
label = "diverging"
encoders = ["masked"]
learning_rate = 1e30

[[measure]]
name = "scores"
examples = 20
"""


def test_a_script_in_several_processes_is_refused(monkeypatch, tmp_path):
    monkeypatch.setattr("isogloss.training.distributed.world_size", lambda: 2)
    with pytest.raises(ConfigError, match="one of 2 processes, and each would make the same"):
        isogloss.run(tiny(tmp_path), out=tmp_path / "runs", report=False)


@pytest.mark.slow
def test_two_processes_make_what_one_does(tmp_path):
    """One process computes an update in the parts that two share: equal but for rounding."""
    path = tmp_path / "together.toml"
    path.write_text(RECIPE, encoding="utf-8")
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
    isogloss_run = ["-m", "isogloss", "run", str(path), "--out", str(tmp_path / "two"), "--no-report"]
    environment = {"PYTHONPATH": ":".join(sys.path), "OMP_NUM_THREADS": "1"}
    ended = subprocess.run(
        [*command, *isogloss_run], env=environment, check=False, capture_output=True, text=True
    )
    alone = isogloss.run(path, out=tmp_path / "one", jobs=1, report=False)
    made, failed = len(alone.outcome.made), len(alone.outcome.failed)
    assert failed
    assert f"{made} runs made in 2 processes, 0 were there, {failed} failed." in ended.stderr
    assert not ended.stdout
    for record in each(alone.records):
        together = json.loads((tmp_path / "two" / record.id / "record.json").read_text(encoding="utf-8"))
        assert [row.keys() for row in together["rows"]] == [row.keys() for row in record.rows]
        for ours, theirs in zip(together["rows"], record.rows, strict=True):
            for name, value in theirs.items():
                near = pytest.approx(value, rel=1e-3, abs=1e-4) if isinstance(value, float) else value
                assert ours[name] == near, (record.title, name)
        weights = [tmp_path / out / record.id / "model/model.safetensors" for out in ("one", "two")]
        if weights[0].exists():
            one, two = map(load_file, weights)
            apart, whole = (
                torch.stack([part.norm() for part in parts]).norm()
                for parts in ([one[name] - two[name] for name in each(one)], [*one.values()])
            )
            assert apart <= 1e-4 * whole, record.title
    for key, why in alone.outcome.failed.items():
        assert json.loads((tmp_path / "two" / key / "failed.json").read_text())["error"] == why

    again = isogloss.run(path, out=tmp_path / "two", jobs=1, report=False)
    assert (len(again.outcome.done), again.outcome.made) == (made, [])
