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


def run_in_two_processes(recipe, folder, single_output, **message):
    """Make a recipe's runs in two processes of torchrun, as precise as one did. Return what they print."""
    words = write_command(recipe, folder, single_output)
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
    environment = {"PYTHONPATH": ":".join(sys.path), "OMP_NUM_THREADS": "1", **message}
    launcher = Forked([*command, *words[1:]], env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    output, errors = launcher.communicate()
    assert not output
    return errors


def run_in_two_forks(recipe, folder, single_output, **message):
    """Do the same as another launcher does, which sets the same variables."""
    words = write_command(recipe, folder, single_output)
    with socket.socket() as free_socket:
        free_socket.bind(("127.0.0.1", 0))
        port = str(free_socket.getsockname()[1])
    joint = os.environ | {"WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, **message}
    running = [
        Forked(words, env=joint | {"RANK": rank, "LOCAL_RANK": rank}, stderr=subprocess.PIPE)
        for rank in ("0", "1")
    ]
    return "".join(process.communicate()[1] for process in running)


def write_command(recipe, folder, single_result):
    """Write the recipe. Return the words that make its runs."""
    path = folder / "together.toml"
    path.write_text(recipe, encoding="utf-8")
    as_precise_as(single_result, folder / "two")
    return [*PROGRAM, "run", str(path), "--out", str(folder / "two"), "--no-report"]


def assert_equal_but_for_rounding(record, ours, theirs):
    """Hold a record and its model against those that two processes made."""
    joint_data = json.loads((ours / record.id / "record.json").read_text(encoding="utf-8"))
    assert [row.keys() for row in joint_data["rows"]] == [row.keys() for row in record.rows]
    for row, expected in zip(joint_data["rows"], record.rows, strict=True):
        for name, value in expected.items():
            neighbours = pytest.approx(value, rel=1e-3, abs=1e-4) if isinstance(value, float) else value
            assert row[name] == neighbours, (record.title, name)
    weights = [folder / record.id / "model/model.safetensors" for folder in (ours, theirs)]
    if weights[1].exists():
        two, fields = (load_file(weight) for weight in weights)
        distance, whole_norm = (
            torch.stack([part.norm() for part in parts]).norm()
            for parts in ([fields[name] - two[name] for name in each(fields)], list(fields.values()))
        )
        assert distance <= 1e-4 * whole_norm, record.title


@pytest.mark.nightly
def test_two_processes_make_what_one_does(undisturbed_runs, tmp_path):
    """One process computes an update in the parts that two share: equal but for rounding."""
    errors = run_in_two_processes(RECIPE + META, tmp_path, undisturbed_runs.out)
    count = len(undisturbed_runs.outcome.made)
    failed_count = len(undisturbed_runs.outcome.failed)
    assert failed_count
    assert f"{count} runs made in 2 processes, 0 had been made before, {failed_count} failed." in errors
    for record in each(undisturbed_runs.records):
        assert_equal_but_for_rounding(record, tmp_path / "two", undisturbed_runs.out)
    for key, why in undisturbed_runs.outcome.failed.items():
        assert json.loads((tmp_path / "two" / key / "failed.json").read_text())["error"] == why

    again = isogloss.run(tmp_path / "together.toml", out=tmp_path / "two", jobs=1, report=False)
    assert (len(again.outcome.done), again.outcome.made) == (count, [])


@pytest.mark.nightly
@pytest.mark.slow
def test_two_processes_with_shares_of_each_model_make_what_one_does(undisturbed_runs, tmp_path):
    fields = {"ACCELERATE_USE_FSDP": "true", "FSDP_CPU_RAM_EFFICIENT_LOADING": "true"}
    output = run_in_two_forks(RECIPE, tmp_path, undisturbed_runs.out, **fields)
    records = [
        example
        for example in undisturbed_runs.records
        if (tmp_path / "two" / example.id / "record.json").exists()
    ]
    failed_count = len(undisturbed_runs.outcome.failed)
    assert (
        f"{len(records)} runs made in 2 processes, 0 had been made before, {failed_count} failed." in output
    )
    assert {"pretrain", "adjust", "fine-tune"} <= {run.kind for run in records}
    for record in each(records):
        assert_equal_but_for_rounding(record, tmp_path / "two", undisturbed_runs.out)
