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
    runs = select_kind(Measure, plan())
    names = [
        (
            run.diagnostic.name,
            run.corpus,
            run.inputs,
            [getattr(subject, "method", subject).name for subject in run.subjects],
        )
        for run in runs
    ]
    expected = [
        *(("cka", "ud", None, [name]) for name in ("pretrained", "source-only", "x-mixup")),
        ("cka", "ud", "paired", ["x-mixup"]),
        *(("cka", "xnli", None, [name]) for name in ("pretrained", "source-only", "x-mixup")),
        ("representation-map", "ud", "paired", ["x-mixup"]),
    ]
    assert sorted(names, key=str) == sorted(expected, key=str)
    read = {run.inputs: [row.language for row in run.splits_read] for run in runs if run.corpus == "ud"}
    assert read == {None: ["qaa", "qab"], "paired": ["qaa", "qab", "qab-qaa"]}


@pytest.mark.parametrize(
    ("old_name", "new_name", "message"),
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
def test_what_cannot_be_compared_is_refused_in_the_plan(get_refusal, old_name, new_name, message):
    assert old_name in RECIPE
    assert message in get_refusal(RECIPE.replace(old_name, new_name, 1))


@pytest.mark.nightly
@pytest.mark.slow
def test_a_recipe_measures_parallel_test_sets(finished_study):
    result = {}
    for record in finished_study.records:
        if record.kind == "measure":
            key = record.run["diagnostic"]["kind"], record.run["corpus"], record.run.get("inputs")
            result.setdefault(key, []).extend(record.rows)
    assert {row["sentences"] for row in result["cka", "xnli", None]} == {40}
    assert len({row["model"] for row in result["cka", "ud", None]}) == 3
    (mixing,) = (
        run.id for run in finished_study.records if run.kind == FineTune.name and "x-mixup" in run.title
    )
    single_ckas, paired_ckas = (
        {row["layer"]: row["cka"] for row in result["cka", "ud", inputs] if row["model"] == mixing}
        for inputs in (None, "paired")
    )
    assert single_ckas[1] == pytest.approx(paired_ckas[1], abs=1e-4)  # Below the layer that mixes.
    assert single_ckas[3] != pytest.approx(paired_ckas[3], abs=1e-4)
    places = result["representation-map", "ud", "paired"]
    assert {(row["what"], row["language"]) for row in places} == {
        (name, language) for name in ("centroid", "sentence") for language in ("qaa", "qab")
    }
