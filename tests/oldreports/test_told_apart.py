"""Models that differ in their optimization alone have names of their own in every table and comparison."""

import csv
from dataclasses import replace

import pytest

import isogloss
from isogloss.core.records import Record
from isogloss.oldreports.gather import gather
from isogloss.oldreports.told_apart import told_apart
from tiny import tiny

SETTING = {"kind": "Optimization", "learning_rate": 0.001, "batch_size": 32, "checkpoint_every": 200}
RECIPE = """
title = "Two rates"
encoder = "shipped"

[grid]
corpus = "xnli"
task = "nli"
source = "qaa"
targets = ["qad"]
seeds = [0, 1]
examples = 16
dev_examples = 4
optimization = { epochs = 1, learning_rate = [1e-3, 3e-3], batch_size = 8 }

[[grid.method]]
name = "source-only"

[[measure]]
name = "scores"
examples = 12
"""


def model(name, label, *, seed=0, start=None, encoder="mini", **numbers):
    run = {"encoder": {"kind": "pretrained", "name": encoder, "seed": seed}, "corpus": "ud", "task": "upos"}
    run |= {"seed": seed, "optimization": SETTING | numbers} | ({"start": start} if start else {})
    return Record(id=name, kind="fine-tune", title=f"{label}: ud upos en, seed {seed}", run=run)


def scores(name, needs, label):
    rows = [{"method": label, "score": 0.5}]
    return Record(
        id=name, kind="measure", title=f"scores: {label}, seed 0", run={}, needs=(needs,), rows=rows
    )


def names(*records):
    found = told_apart({one.id: one for one in records})
    return {name: one.title.split(": ud")[0] for name, one in found.items()}


def test_a_field_that_differs_is_named_and_only_where_names_were_alike():
    found = names(
        model("a", "source-only", batch_size=8),
        model("b", "source-only", seed=1),
        model("c", "target-only", batch_size=4),
        model("d", "target-only", batch_size=4, seed=1),
    )
    assert found["a"] == "source-only (batch_size=8)" and found["b"] == "source-only (batch_size=32)"
    assert found["c"] == found["d"] == "target-only"


@pytest.mark.parametrize(
    ("label", "named"),
    [
        ("x-mixup (mse=0.1)", "x-mixup (mse=0.1, learning_rate=0.1)"),
        ("x-mixup by built-in (noise=0.3)", "x-mixup (learning_rate=0.1) by built-in (noise=0.3)"),
        (
            "continual (weight=2) after source-only",
            "continual (weight=2, learning_rate=0.1) after source-only",
        ),
    ],
)
def test_the_field_stands_with_those_of_the_method(label, named):
    assert names(model("a", label, learning_rate=0.1), model("b", label))["a"] == named


def test_what_changes_no_result_and_seeds_and_encoders_tell_nothing_apart():
    one = model("a", "source-only")
    others = [
        model("b", "source-only", checkpoint_every=7),
        model("c", "source-only", seed=3),
        model("d", "source-only", encoder="other", batch_size=8),
    ]
    assert set(names(one, *others).values()) == {"source-only"}


def test_the_model_that_one_goes_on_from_counts_too():
    starts = [model("s", "source-only", learning_rate=rate).run for rate in (0.1, 0.2)]
    found = names(*(model(f"m{n}", "few-shot after source-only", start=one) for n, one in enumerate(starts)))
    assert found["m0"] == "few-shot (start learning_rate=0.1) after source-only"


def test_measurements_follow_their_model_through_others():
    records = [
        model("a", "source-only", batch_size=8),
        model("b", "source-only"),
        scores("of a", "a", "source-only"),
        replace(scores("of that", "of a", "source-only"), title="transfer-gap: source-only, seed 0"),
        replace(scores("of both", "a", "source-only"), needs=("a", "b")),
    ]
    found = told_apart({one.id: one for one in records})
    for name, title in (("of a", "scores"), ("of that", "transfer-gap")):
        assert found[name].title == f"{title}: source-only (batch_size=8), seed 0"
        assert found[name].rows == [{"method": "source-only (batch_size=8)", "score": 0.5}]
    assert found["of both"] == records[-1]
    assert told_apart(found) == found


@pytest.mark.slow
def test_a_list_of_rates_makes_a_line_for_each(tmp_path):
    out = isogloss.run(tiny(tmp_path, RECIPE), out=tmp_path / "runs", jobs=1).out
    with next((out / "tables").glob("scores-xnli-*.csv")).open(encoding="utf-8", newline="") as file:
        lines = [row for row in csv.DictReader(file) if row["language"] == "qad"]
    assert [row["method"] for row in lines] == [
        "source-only (learning_rate=0.001)",
        "source-only (learning_rate=0.003)",
    ]
    rows = {row["method"]: [] for row in lines}
    for row in gather(out).raw("scores"):
        if row["language"] == "qad":
            rows[row["method"]].append(row["score"])
    for line in lines:
        assert line["seeds"] == "2"
        assert float(line["mean"]) == pytest.approx(sum(rows[line["method"]]) / 2)
