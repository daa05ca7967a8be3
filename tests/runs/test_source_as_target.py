"""A source that is also a target is read twice if inputs are paired, and otherwise once."""

import pytest
import torch

import isogloss
from isogloss.planning.plan import plan_recipe
from isogloss.runs.measure import Measure, _Inputs
from isogloss.runs.run import RunContext
from tiny import tiny

pytestmark = pytest.mark.slow

RECIPE = """
title = "English with itself"
encoder = "shipped"

[grid]
corpus = "xnli"
task = "nli"
source = "qaa"
targets = ["qab"]
seeds = [0]
examples = 16
dev_examples = 8
optimization = { epochs = 1, learning_rate = 5e-4, batch_size = 8 }

[[grid.method]]
name = "x-mixup"
schedule = false

[[grid.method]]
name = "x-mixup"
label = "itself"
schedule = false
source_as_target = true

[[measure]]
name = "scores"
examples = 8
inputs = "paired"
languages = ["qaa", "qab"]
"""


@pytest.mark.nightly
def test_the_source_is_read_beside_itself(tmp_path):
    path = tiny(tmp_path, RECIPE)
    folder = tmp_path / "runs"
    assert not isogloss.run(path, out=folder, jobs=1, report=False).outcome.failed
    plan = plan_recipe(str(path), out=folder)
    context = RunContext(store=plan.store, sources=plan.sources)
    measures = [run for run in plan.runs if isinstance(run, Measure)]
    assert [run.model.method.source_as_target for run in measures] == [None, True]
    for run in measures:
        batches = _Inputs(context, run).paired("qaa").batches
        itself = bool(run.model.method.source_as_target)
        assert {batch.sides.paired for batch in batches} == {itself}
        if itself:
            assert all(
                torch.equal(batch.sides.source.subwords, batch.sides.target.subwords) for batch in batches
            )
        assert all(batch.sides.paired for batch in _Inputs(context, run).paired("qab").batches)
