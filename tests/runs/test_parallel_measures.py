"""CKA and maps on parallel test sets: planned for encoders and models, refused where nothing is parallel."""

import pytest

from isogloss.runs.fine_tune import FineTune
from isogloss.runs.measure import Measure
from tiny import select_kind

RECIPE = """
title = "Parallel"

[grid]
corpus = "ud"
task = "upos"
source = "qaa"
targets = ["qab"]
seeds = [0]
examples = 16
dev_examples = 4
optimization = { epochs = 1, learning_rate = 3e-3, batch_size = 8 }

[[grid.method]]
name = "source-only"

[[grid.method]]
name = "x-mixup"
layer = 2
schedule = false

[[measure]]
name = "cka"
corpus = "xnli"
split = "test"
examples = 40

[[measure]]
name = "cka"
corpus = "ud"
examples = 30

[[measure]]
name = "cka"
corpus = "ud"
inputs = "paired"
examples = 30

[[measure]]
name = "representation-map"
corpus = "ud"
inputs = "paired"
examples = 30
points = 5
"""
PAIRED = 'corpus = "ud"\ninputs = "paired"'


def test_encoders_and_models_are_looked_at_and_pair_with_translations_those_that_mix(plan):
    found = select_kind(Measure, plan())
    about = [
        (
            run.diagnostic.name,
            run.corpus,
            run.inputs,
            [getattr(one, "method", one).name for one in run.subjects],
        )
        for run in found
    ]
    expected = [
        *(("cka", "ud", None, [one]) for one in ("pretrained", "source-only", "x-mixup")),
        ("cka", "ud", "paired", ["x-mixup"]),
        *(("cka", "xnli", None, [one]) for one in ("pretrained", "source-only", "x-mixup")),
        ("representation-map", "ud", "paired", ["x-mixup"]),
    ]
    assert sorted(about, key=str) == sorted(expected, key=str)
    read = {run.inputs: [one.language for one in run.splits_read] for run in found if run.corpus == "ud"}
    assert read == {None: ["qaa", "qab"], "paired": ["qaa", "qab", "qab-qaa"]}


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (
            'corpus = "xnli"\nsplit = "test"',
            'corpus = "xnli"\nsplit = "train"',
            "parallel",
        ),
        (
            PAIRED,
            'corpus = "bitext"\ninputs = "paired"',
            "inputs: found 'paired', but corpus 'bitext' has no",
        ),
        (PAIRED, 'corpus = "ud"\ninputs = "translated"', "no kind of inputs here 'translated'"),
        (PAIRED, 'corpus = "xnli"\ninputs = "paired"', "'xnli' holds nli, not upos"),
        (PAIRED, PAIRED + '\nmethods = ["source-only"]', "nothing"),
        ('corpus = "ud"\nexamples = 30', "examples = 30", "parallel"),
        ('corpus = "xnli"', 'corpus = "rawtext"', "'rawtext' holds text, not bitext"),
    ],
)
def test_what_cannot_be_compared_is_refused_in_the_plan(get_refusal, old, new, said):
    assert old in RECIPE
    assert said in get_refusal(RECIPE.replace(old, new, 1))


@pytest.mark.nightly
@pytest.mark.slow
def test_a_recipe_measures_parallel_test_sets(finished_study):
    found = {}
    for record in finished_study.records:
        if record.kind == "measure":
            key = record.run["diagnostic"]["kind"], record.run["corpus"], record.run.get("inputs")
            found.setdefault(key, []).extend(record.rows)
    assert {row["sentences"] for row in found["cka", "xnli", None]} == {40}
    assert len({row["model"] for row in found["cka", "ud", None]}) == 3
    (mixing,) = (
        one.id for one in finished_study.records if one.kind == FineTune.name and "x-mixup" in one.title
    )
    alone, paired = (
        {row["layer"]: row["cka"] for row in found["cka", "ud", inputs] if row["model"] == mixing}
        for inputs in (None, "paired")
    )
    assert alone[1] == pytest.approx(paired[1], abs=1e-4)  # Below the layer that mixes.
    assert alone[3] != pytest.approx(paired[3], abs=1e-4)
    places = found["representation-map", "ud", "paired"]
    assert {(row["what"], row["language"]) for row in places} == {
        (what, language) for what in ("centroid", "sentence") for language in ("qaa", "qab")
    }
