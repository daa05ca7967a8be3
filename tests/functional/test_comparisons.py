"""Predictions of two systems: intervals, equivalence and flips equal their formulas, in every container."""

import json

import numpy as np
import pandas as pd
import pytest
import torch
from scipy import stats

import isogloss
from isogloss.core.errors import ConfigError, DataError
from says import says

GOLD = [0, 1, 2, 1, 0, 2, 1, 1, 0, 2, 0, 1]
OURS = [0, 1, 2, 1, 0, 2, 1, 0, 0, 2, 0, 0]
THEIRS = [0, 1, 1, 1, 0, 0, 1, 1, 1, 0, 0, 2]
IDS = [f"e{number}" for number in range(12)]


def rows(answers):
    return [
        {"id": id_, "label": answer, "gold": right}
        for id_, answer, right in zip(IDS, answers, GOLD, strict=True)
    ]


def shuffled(answers):
    return rows(answers)[::-1]


def dataset(answers):
    datasets = pytest.importorskip("datasets")
    return datasets.Dataset.from_list(shuffled(answers))


TABLES = {
    "rows": rows,
    "rows in another order": shuffled,
    "DataFrame": lambda answers: pd.DataFrame(shuffled(answers), index=range(100, 112)),
    "Dataset": dataset,
}
COLUMNS = {
    "list": list,
    "tuple": tuple,
    "array": np.array,
    "tensor": torch.tensor,
    "Series": lambda answers: pd.Series(answers, index=range(50, 62)),
    "column": lambda answers: pd.DataFrame({"label": answers})["label"],
    "generator": iter,
}


@pytest.mark.parametrize("second", COLUMNS)
@pytest.mark.parametrize("first", COLUMNS)
def test_answers_in_any_container_are_the_same_comparison(first, second):
    expected = isogloss.compare(OURS, THEIRS, GOLD)
    found = isogloss.compare(COLUMNS[first](OURS), COLUMNS[second](THEIRS), COLUMNS[second](GOLD))
    assert repr(found) == repr(expected)


@pytest.mark.parametrize("second", TABLES)
@pytest.mark.parametrize("first", TABLES)
def test_tables_are_paired_by_id_and_have_gold_answers(first, second):
    found = isogloss.compare(TABLES[first](OURS), TABLES[second](THEIRS))
    assert repr(found) == repr(isogloss.compare(OURS, THEIRS, GOLD))


def test_files_are_compared_as_by_compare_outputs(tmp_path):
    paths = []
    for name, answers in (("ours", OURS), ("theirs", THEIRS)):
        paths.append(tmp_path / f"{name}.jsonl")
        paths[-1].write_text("".join(json.dumps(row) + "\n" for row in rows(answers)), encoding="utf-8")
    expected = isogloss.compare_outputs(paths).frame
    for given in (paths, [str(path) for path in paths]):
        assert isogloss.compare(*given).frame.equals(expected)


@pytest.mark.parametrize("margin", [0.05, 0.2, 0.6])
def test_intervals_and_equivalence_are_those_of_student_over_examples(margin):
    ours, theirs = np.random.default_rng(0).normal(size=(2, 40))
    found = isogloss.compare(ours, theirs, margin=margin)
    test = stats.ttest_rel(ours, theirs)
    interval = test.confidence_interval(0.95)
    assert (found.low_examples, found.high_examples) == pytest.approx((interval.low, interval.high))
    below = stats.ttest_rel(ours, theirs + margin, alternative="less").pvalue
    above = stats.ttest_rel(ours, theirs - margin, alternative="greater").pvalue
    assert found.p_equivalence == pytest.approx(max(below, above))
    assert found.margin == margin and np.isnan(found.low) and np.isnan(found.p_value)


def test_equivalence_of_seeds_is_tested_over_seeds_and_examples():
    random = np.random.default_rng(1)
    ours = {seed: random.normal(0.01, 1, 300) for seed in range(5)}
    theirs = {seed: values + random.normal(0, 0.1, 300) for seed, values in ours.items()}
    found = isogloss.compare(ours, theirs, margin=0.05)
    differences = [np.mean(ours[seed] - theirs[seed]) for seed in ours]
    over_seeds = max(
        stats.ttest_1samp(differences, bound, alternative=side).pvalue
        for bound, side in ((0.05, "less"), (-0.05, "greater"))
    )
    assert over_seeds <= found.p_equivalence < 0.05
    assert isogloss.compare(ours, theirs, margin=0.0).p_equivalence >= 0.5


def test_answers_that_became_right_or_wrong_are_counted():
    found = isogloss.compare(OURS, THEIRS, GOLD)
    pairs = [*zip(OURS, THEIRS, GOLD, strict=True)]
    assert found.gained == sum(ours == gold != theirs for ours, theirs, gold in pairs)
    assert found.lost == sum(ours != gold == theirs for ours, theirs, gold in pairs)
    assert found.changed == sum(ours != theirs for ours, theirs, _ in pairs)
    assert found.difference == pytest.approx((found.gained - found.lost) / 12)
    seeds = isogloss.compare({0: OURS, 1: THEIRS}, {0: THEIRS, 1: THEIRS}, GOLD)
    assert (seeds.gained, seeds.lost, seeds.changed) == (found.gained, found.lost, found.changed)


def test_shares_are_neither_right_nor_wrong():
    found = isogloss.compare([0.5, 0.25], [1.0, 0.0])
    assert (found.gained, found.lost, found.changed) == (None, None, None)


def test_a_comparison_prints_its_numbers_in_few_lines():
    found = isogloss.compare(OURS, THEIRS, GOLD, margin=0.01)
    for text in ("classification", "accuracy", "12 examples", "McNemar", "wrong", "TOST", "one seed"):
        assert text in repr(found)
    seeds = dict.fromkeys(range(10), OURS)
    for each in (found, isogloss.compare(seeds, dict.fromkeys(range(10), THEIRS), GOLD, margin=0.01)):
        assert len(repr(each)) < 400
    assert found.to_series()["difference"] == found["difference"] == found.difference


WRONG = {
    "no column of answers": (
        lambda: isogloss.compare(pd.DataFrame({"x": [1]}), pd.DataFrame({"label": [1]})),
        ("system", "columns x", "label"),
    ),
    "other ids": (lambda: isogloss.compare(rows(OURS), rows(THEIRS)[1:]), ("id", "'e0'", "same ids")),
    "an id twice": (
        lambda: isogloss.compare(rows(OURS) + rows(OURS)[:1], rows(THEIRS)),
        ("id", "twice", "once"),
    ),
    "other gold answers": (
        lambda: isogloss.compare(rows(OURS), [{**row, "gold": 0} for row in rows(THEIRS)]),
        ("gold", "differ"),
    ),
    "files and a list": (lambda: isogloss.compare("a.jsonl", "b.jsonl", [1]), ("gold", "list", "file")),
}


@pytest.mark.parametrize("name", WRONG)
def test_tables_that_do_not_fit_are_refused(name):
    call, facts = WRONG[name]
    with says(DataError, "compare", *facts):
        call()


def test_a_margin_below_zero_is_refused():
    with says(ConfigError, "compare: margin", "-0.1", "at least 0"):
        isogloss.compare([1], [0], margin=-0.1)
