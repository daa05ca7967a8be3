"""A recipe under torchrun: all processes compute every training, and come to what one process makes."""

import json
import os
import socket
import subprocess
import sys

import pytest
import torch
from safetensors.torch import load_file

import isogloss
from each import each
from forked import PROGRAM, Forked
from isogloss.core.errors import ConfigError
from tiny import as_precise_as, tiny

RECIPE = """
title = "Together"

[[encoder]]
label = "masked"

[encoder.pretrain]
text = ["rawtext"]
languages = ["qaa", "qag"]
lines = { qaa = 300, qag = 200 }
architecture = { layers = 1, dim = 32, heads = 2, feed_forward = 64, vocabulary = 300, positions = 64 }

[encoder.pretrain.method]
steps = 6
batch_subwords = 256
block = 32
evaluate_every = 3
checkpoint_every = 5
precision = "float32"
accumulation = 4

[align]
name = "fast-align"

[[adjust]]
name = "cross-lingual-adjustment"
bitext = "bitext"
pairs = ["qaa-qag"]
start = "masked"
examples = 32
batch_size = 16
accumulation = 2
precision = "float32"

[[adjust]]
name = "contrastive-alignment"
bitext = "bitext"
pairs = ["qaa-qag"]
start = "masked"
examples = 32
batch_size = 16
precision = "float32"

[grid]
corpus = "wikiann"
source = "qaa"
seeds = [0]
targets = ["qag"]
examples = 32
dev_examples = 8
optimization = { epochs = 2, batch_size = 16, learning_rate = 1e-3, accumulation = 2, precision = "float32" }

[[grid.method]]
name = "source-only"
encoders = ["masked"]
auxiliary = { name = "alignment-loss", bitext = "bitext" }
targets = ["qag"]

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
META = """
[[encoder]]
label = "meta"

[encoder.pretrain]
text = ["rawtext"]
languages = ["qaa", "qag"]
lines = { qaa = 300, qag = 200 }
architecture = { layers = 1, dim = 32, heads = 2, feed_forward = 64, vocabulary = 300, positions = 64 }
modules = { kind = "adapter" }

[encoder.pretrain.method]
name = "meta-learning"
steps = 3
batch_subwords = 256
block = 32
precision = "float32"
"""


def test_a_script_in_several_processes_is_refused(monkeypatch, tmp_path):
    monkeypatch.setattr("isogloss.training.distributed.world_size", lambda: 2)
    with pytest.raises(ConfigError, match="2 processes"):
        isogloss.run(tiny(tmp_path), out=tmp_path / "runs", report=False)


@pytest.fixture(scope="module")
def undisturbed_runs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("undisturbed_runs")
    (folder / "together.toml").write_text(RECIPE + META, encoding="utf-8")
    return isogloss.run(folder / "together.toml", out=folder / "one", jobs=1, report=False)


def run_in_two_processes(recipe, folder, alone, **said):
    """Make a recipe's runs in two processes of torchrun, as precise as one did; return what they print."""
    words = write_command(recipe, folder, alone)
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
    environment = {"PYTHONPATH": ":".join(sys.path), "OMP_NUM_THREADS": "1", **said}
    launcher = Forked([*command, *words[1:]], env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    printed, errors = launcher.communicate()
    assert not printed
    return errors


def run_in_two_forks(recipe, folder, alone, **said):
    """Do the same as another launcher does, which sets the same variables."""
    words = write_command(recipe, folder, alone)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    joint = os.environ | {"WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, **said}
    running = [
        Forked(words, env=joint | {"RANK": rank, "LOCAL_RANK": rank}, stderr=subprocess.PIPE)
        for rank in ("0", "1")
    ]
    return "".join(process.communicate()[1] for process in running)


def write_command(recipe, folder, alone):
    """Write the recipe; return the words that make its runs."""
    path = folder / "together.toml"
    path.write_text(recipe, encoding="utf-8")
    as_precise_as(alone, folder / "two")
    return [*PROGRAM, "run", str(path), "--out", str(folder / "two"), "--no-report"]


def assert_equal_but_for_rounding(record, ours, theirs):
    """Hold a record and its model against those that two processes made."""
    together = json.loads((ours / record.id / "record.json").read_text(encoding="utf-8"))
    assert [row.keys() for row in together["rows"]] == [row.keys() for row in record.rows]
    for row, expected in zip(together["rows"], record.rows, strict=True):
        for name, value in expected.items():
            near = pytest.approx(value, rel=1e-3, abs=1e-4) if isinstance(value, float) else value
            assert row[name] == near, (record.title, name)
    weights = [folder / record.id / "model/model.safetensors" for folder in (ours, theirs)]
    if weights[1].exists():
        two, one = map(load_file, weights)
        apart, whole = (
            torch.stack([part.norm() for part in parts]).norm()
            for parts in ([one[name] - two[name] for name in each(one)], [*one.values()])
        )
        assert apart <= 1e-4 * whole, record.title


@pytest.mark.nightly
def test_two_processes_make_what_one_does(undisturbed_runs, tmp_path):
    """One process computes an update in the parts that two share: equal but for rounding."""
    printed = run_in_two_processes(RECIPE + META, tmp_path, undisturbed_runs.out)
    made, failed = len(undisturbed_runs.outcome.made), len(undisturbed_runs.outcome.failed)
    assert failed
    assert f"{made} runs made in 2 processes, 0 had been made before, {failed} failed." in printed
    for record in each(undisturbed_runs.records):
        assert_equal_but_for_rounding(record, tmp_path / "two", undisturbed_runs.out)
    for key, why in undisturbed_runs.outcome.failed.items():
        assert json.loads((tmp_path / "two" / key / "failed.json").read_text())["error"] == why

    again = isogloss.run(tmp_path / "together.toml", out=tmp_path / "two", jobs=1, report=False)
    assert (len(again.outcome.done), again.outcome.made) == (made, [])


@pytest.mark.nightly
@pytest.mark.slow
def test_two_processes_with_shares_of_each_model_make_what_one_does(undisturbed_runs, tmp_path):
    said = {"ACCELERATE_USE_FSDP": "true", "FSDP_CPU_RAM_EFFICIENT_LOADING": "true"}
    printed = run_in_two_forks(RECIPE, tmp_path, undisturbed_runs.out, **said)
    made = [one for one in undisturbed_runs.records if (tmp_path / "two" / one.id / "record.json").exists()]
    failed = len(undisturbed_runs.outcome.failed)
    assert f"{len(made)} runs made in 2 processes, 0 had been made before, {failed} failed." in printed
    assert {"pretrain", "adjust", "fine-tune"} <= {one.kind for one in made}
    for record in each(made):
        assert_equal_but_for_rounding(record, tmp_path / "two", undisturbed_runs.out)
