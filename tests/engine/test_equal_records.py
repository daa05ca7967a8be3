"""Twelve runs of every kind: records of every engine equal the records of one process to the byte."""

import json

import pytest

import isogloss
from isogloss.engine.engines import ENGINES
from killed import count_runs, left, records
from tiny import as_precise_as

RECIPE = """
title = "Every kind"

[[encoder]]
label = "own"

[encoder.pretrain]
text = ["rawtext"]
languages = ["qaa", "qag"]
lines = { qaa = 120, qag = 80 }
architecture = { layers = 1, dim = 32, heads = 2, feed_forward = 64, vocabulary = 300, positions = 64 }

[encoder.pretrain.method]
steps = 4
batch_subwords = 256
block = 32
precision = "float32"

[align]
name = "fast-align"

[[adjust]]
name = "cross-lingual-adjustment"
bitext = "bitext"
pairs = ["qaa-qag"]
start = "own"
examples = 24
batch_size = 8
precision = "float32"

[translate]
name = "seq2seq"
longest = 24

[translate.train]
bitext = "bitext"
pairs = ["qaa-qag"]
examples = 40
steps = 3
batch_subwords = 256
layers = 1
dim = 32
heads = 2
feed_forward = 64
vocabulary = 300
longest = 40
precision = "float32"

[grid]
corpus = "wikiann"
source = "qaa"
targets = ["qag"]
seeds = [0]
examples = 12
dev_examples = 6
optimization = { epochs = 1, learning_rate = 5e-4, batch_size = 4, precision = "float32" }

[[grid.method]]
name = "source-only"

[[grid.method]]
name = "translate-train"
labels = "teacher"
encoders = ["own"]

[[grid.method]]
name = "average"
of = ["source-only", "translate-train"]
encoders = ["own"]

[[measure]]
name = "scores"
methods = ["source-only", "average"]
examples = 8
"""
KINDS = {"pretrain", "align", "adjust", "train-translator", "translate", "fine-tune", "measure"}


@pytest.fixture(scope="module")
def serial(tmp_path_factory):
    """The folder of the recipe, and of its runs computed sequentially."""
    folder = tmp_path_factory.mktemp("serial")
    (folder / "kinds.toml").write_text(RECIPE, encoding="utf-8")
    result = isogloss.run(folder / "kinds.toml", out=folder / "runs", engine="serial", report=False)
    assert not result.outcome.failed
    return folder


@pytest.mark.nightly
@pytest.mark.slow
def test_the_recipe_has_twelve_runs_of_every_kind(serial):
    data = [json.loads(record) for record in records(serial / "runs").values()]
    assert len(data) == 12
    assert {record["kind"] for record in data} == KINDS
    assert "average" in {record["run"].get("method", {}).get("kind") for record in data}


@pytest.mark.slow
@pytest.mark.parametrize("engine", [name for name in ENGINES if name != "serial"])
def test_an_engine_leaves_the_records_of_one_process(engine, serial, request, tmp_path):
    beyond_this_machine = {"ray": "cluster", "slurm": "local_slurm"}.get(engine)
    if beyond_this_machine:
        request.getfixturevalue(beyond_this_machine)
    options = {"slurm": {"time": 10}} if engine == "slurm" else {}
    folder = as_precise_as(serial / "runs", tmp_path / "runs")
    result = isogloss.run(serial / "kinds.toml", out=folder, engine=engine, jobs=2, report=False, **options)
    assert not result.outcome.failed
    assert records(folder) == records(serial / "runs")
    assert count_runs(folder) == dict.fromkeys(records(folder), 1)
    assert left(folder) == []
