"""A GPU computes the same as a CPU, within rounding: whole recipes run on both.

For a machine with a GPU: ``pytest --gpu tests/test_on_gpu.py``. All other tests hide GPUs.
"""

import math

import pytest
import torch

import isogloss
from test_compositions import RECIPE

pytestmark = [
    pytest.mark.slow,
    pytest.mark.every_case,  # Otherwise only the first part would run without --nightly.
    pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU here, or pytest was run without --gpu"),
]

ENCODER = """
title = "On a GPU"

[encoder.pretrain]
text = ["rawtext"]
languages = ["qaa", "qab"]
lines = { qaa = 150, qab = 150 }

[encoder.pretrain.architecture]
layers = 2
dim = 16
heads = 2
feed_forward = 32
vocabulary = 300
positions = 96
dropout = 0.0

[encoder.pretrain.method]
name = "masked-language-modelling"
steps = 3
batch_subwords = 512
block = 32
precision = "float32"
"""

GRID = """
[grid]
source = "qaa"
targets = ["qab"]
dev_examples = 4
optimization = { epochs = 1, learning_rate = 1e-3, batch_size = 4, limit = 64, precision = "float32" }
"""

TASKS = """
corpus = ["wikiann", "xnli", "squad", "ud", "pawsx"]
task = ["ner", "nli", "qa", "parsing", "paraphrase"]
seeds = [0, 1]
examples = 12

[[grid.method]]
name = "source-only"

[[measure]]
name = "scores"
examples = 6
"""

METHODS = """
corpus = "xnli"
seeds = [0, 1]
examples = 12

[[grid.method]]
name = "source-only"

[[grid.method]]
name = "translate-train"

[[grid.method]]
name = "x-mixup"
layer = 1

[[grid.method]]
name = "consistency"

[[grid.method]]
name = "average"
of = ["source-only"]
size = 2

[[measure]]
name = "scores"
examples = 6

[[measure]]
name = "label-free"
examples = 6
methods = ["source-only"]

[[measure]]
name = "link-attention"
corpus = "bitext"
methods = ["x-mixup"]
examples = 12
"""

ADJUSTED = """
[[adjust]]
name = "contrastive-alignment"
label = "c"
bitext = "bitext"
pairs = ["qaa-qab"]
examples = 64
dropout = false
precision = "float32"

[[adjust]]
name = "procrustes"
label = "p"
bitext = "bitext"
pairs = ["qaa-qab"]
examples = 64
precision = "float32"
"""

ENCODERS = """
corpus = "ud"
task = "upos"
seeds = [0]
examples = 16

[[grid.method]]
name = "source-only"

[[grid.method]]
name = "source-only"
label = "LoRA"
peft = { kind = "lora" }

[[grid.method]]
name = "source-only"
label = "task adapter"
peft = { kind = "adapter" }

[[measure]]
name = "scores"
examples = 6

[[measure]]
name = "retrieval"
corpus = "bitext"
examples = 24

[[measure]]
name = "anisotropy"
corpus = "bitext"
examples = 24
"""

ONES = {
    "compositions": RECIPE.replace("positions = 64", "positions = 64, dropout = 0.0"),
    "tasks": ENCODER + GRID + TASKS,
    "methods": ENCODER + GRID + METHODS,
    "encoders": ENCODER + ADJUSTED + GRID + ENCODERS,
}


@pytest.mark.parametrize("name", ONES)
def test_a_recipe_comes_to_the_same_numbers_on_a_gpu(name, tmp_path):
    (tmp_path / "recipe.toml").write_text(ONES[name], encoding="utf-8")
    texts = {where: make_runs(tmp_path, where) for where in ("cpu", "0")}
    assert texts["cpu"].keys() == texts["0"].keys() != set()
    differ = [text for key, rows in texts["cpu"].items() for text in differences(rows, texts["0"][key])]
    assert not differ, "\n".join(differ)


def make_runs(folder, where):
    """Make a recipe on a device. Return the rows of its records by id, and what each run is."""
    result = isogloss.run(folder / "recipe.toml", out=folder / where, devices=where, jobs=1, report=False)
    assert not result.outcome.failed, result.outcome.failed
    return {record.id: (f"{record.kind} {name_of(record)}", record.rows) for record in result.records}


def name_of(record):
    part = record.run.get("diagnostic") or record.run.get("method") or {}
    return part.get("kind", "")


def differences(left, right):
    """List the numbers that differ by more than some tenths of a percent, as sentences."""
    name, rows = left
    assert len(rows) == len(right[1]), name
    return [
        f"{name}: {key} {value} {folder[key]}"
        for row, folder in zip(rows, right[1], strict=True)
        for key, value in row.items()
        if not same(value, folder[key])
    ]


def same(left, right):
    numbers = isinstance(left, float) and isinstance(right, float)
    return math.isclose(left, right, rel_tol=5e-3, abs_tol=2e-3) if numbers else type(left) is type(right)
