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
IDS = [f"e{index}" for index in range(12)]


def rows(answers):
    return [
        {"id": id_, "label": answer, "gold": right}
        for id_, answer, right in zip(IDS, answers, GOLD, strict=True)
    ]


def reverse_rows(answers):
    return rows(answers)[::-1]


def dataset(answers):
    datasets = pytest.importorskip("datasets")
    return datasets.Dataset.from_list(reverse_rows(answers))


TABLES = {
    "rows": rows,
    "rows in another order": reverse_rows,
    "DataFrame": lambda answers: pd.DataFrame(reverse_rows(answers), index=range(100, 112)),
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
@pytest.mark.parametrize("first_column", COLUMNS)
def test_answers_in_any_container_are_the_same_comparison(first_column, second):
    expected = isogloss.compare(OURS, THEIRS, GOLD)
    comparison = isogloss.compare(COLUMNS[first_column](OURS), COLUMNS[second](THEIRS), COLUMNS[second](GOLD))
    assert repr(comparison) == repr(expected)


@pytest.mark.parametrize("second", TABLES)
@pytest.mark.parametrize("first_table", TABLES)
def test_tables_are_paired_by_id_and_have_gold_answers(first_table, second):
    comparison = isogloss.compare(TABLES[first_table](OURS), TABLES[second](THEIRS))
    assert repr(comparison) == repr(isogloss.compare(OURS, THEIRS, GOLD))


def test_files_are_compared_as_by_compare_outputs(tmp_path):
    paths = []
    for name, answers in (("ours", OURS), ("theirs", THEIRS)):
        paths.append(tmp_path / f"{name}.jsonl")
        paths[-1].write_text("".join(json.dumps(row) + "\n" for row in rows(answers)), encoding="utf-8")
    expected = isogloss.compare_outputs(paths).frame
    for inputs in (paths, [str(path) for path in paths]):
        assert isogloss.compare(*inputs).frame.equals(expected)


def tags(words):
    return [list(word) for word in words]


ANSWERS_OF = {
    "classes": ("label", OURS, THEIRS, GOLD, "accuracy"),
    "texts": ("label", list("abcabc"), list("abccba"), list("abcaaa"), "macro_f1"),
    "tags": (
        "labels",
        tags(["NV", "NN", "VD"]),
        tags(["NV", "VN", "VD"]),
        tags(["NV", "NN", "DD"]),
        "accuracy",
    ),
    "numbers": ("label", [0.1, 0.7, 0.2, 0.9], [0.3, 0.2, 0.1, 0.6], [0.2, 0.8, 0.4, 0.5], "pearson"),
    "answers": ("answer", ["a b", "c", "d"], ["b", "c", "e"], [["a b"], ["c d"], ["e"]], "f1"),
}
"""By name: the key in a file, answers of a system and of a baseline, gold answers, and a measure."""

SHARED = ("score", "baseline_score", "difference", "low_examples", "high_examples", "p_examples", "effect")
SHARED += ("test", "examples", "gained", "lost", "changed", "margin", "p_equivalence")


@pytest.mark.parametrize("margin", [None, 0.1])
@pytest.mark.parametrize("name", ANSWERS_OF)
def test_files_frames_and_lists_have_the_same_interval_flips_and_equivalence(name, margin, tmp_path):
    key, ours, theirs, gold, metric = ANSWERS_OF[name]
    tables = [
        [{"id": str(n), key: answer, "gold": right} for n, (answer, right) in enumerate(pairs)]
        for pairs in (zip(ours, gold, strict=True), zip(theirs, gold, strict=True))
    ]
    paths = [tmp_path / "ours.jsonl", tmp_path / "theirs.jsonl"]
    for path, table in zip(paths, tables, strict=True):
        path.write_text("".join(json.dumps(row) + "\n" for row in table), encoding="utf-8")
    expected = isogloss.compare(ours, theirs, gold, metric=metric, margin=margin)
    frame_comparison = isogloss.compare(
        *(pd.DataFrame(value) for value in tables), metric=metric, margin=margin
    )
    assert repr(frame_comparison) == repr(expected)
    for comparison in (
        isogloss.compare(*paths, metric=metric, margin=margin),
        isogloss.compare_outputs(paths, measure=metric, margin=margin),
    ):
        [row] = comparison.rows
        assert {field: row[field] for field in SHARED} == pytest.approx(
            {field: expected[field] for field in SHARED}, nan_ok=True
        )


def test_flips_of_several_languages_are_summed(tmp_path):
    paths = [tmp_path / "ours.jsonl", tmp_path / "theirs.jsonl"]
    for path, answers in zip(paths, (OURS, THEIRS), strict=True):
        lines = [{**row, "language": language} for language in ("sw", "fi", "et") for row in rows(answers)]
        path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    frame = isogloss.compare_outputs(paths, margin=0.05).frame.set_index("language")
    for field in ("gained", "lost", "changed"):
        assert frame.loc["mean", field] == 3 * frame.loc["sw", field] > 0


NOT_A_NUMBER = {
    "list": lambda bad_value: isogloss.compare([0.5, 1.0, bad_value], [0.5, 1.0, 0.0]),
    "array": lambda bad_value: isogloss.compare(np.array([0.5, 1.0, bad_value]), np.zeros(3)),
    "tensor": lambda bad_value: isogloss.compare(torch.tensor([0.5, 1.0, bad_value]), torch.zeros(3)),
    "Series": lambda bad_value: isogloss.compare(pd.Series([0.5, 1.0, bad_value]), pd.Series([0.0] * 3)),
    "seeds": lambda bad_value: isogloss.compare({7: [0.5, 1.0, bad_value]}, {7: [0.5, 1.0, 0.0]}),
    "frame": lambda bad_value: isogloss.compare(
        pd.DataFrame({"label": [0.5, 1.0, bad_value]}), pd.DataFrame({"label": [0.0] * 3})
    ),
}


@pytest.mark.parametrize("bad_text", [float("nan"), float("inf")])
@pytest.mark.parametrize("name", NOT_A_NUMBER)
def test_a_value_that_is_no_finite_number_is_refused_with_its_place(name, bad_text):
    with pytest.raises(DataError) as error:
        NOT_A_NUMBER[name](bad_text)
    assert "system[2]" in str(error.value) and str(bad_text) in str(error.value)


@pytest.mark.parametrize("margin", [0.05, 0.2, 0.6])
def test_intervals_and_equivalence_are_those_of_student_over_examples(margin):
    ours, theirs = np.random.default_rng(0).normal(size=(2, 40))
    comparison = isogloss.compare(ours, theirs, margin=margin)
    test = stats.ttest_rel(ours, theirs)
    interval = test.confidence_interval(0.95)
    assert (comparison.low_examples, comparison.high_examples) == pytest.approx((interval.low, interval.high))
    p_value_below = stats.ttest_rel(ours, theirs + margin, alternative="less").pvalue
    p_value_above = stats.ttest_rel(ours, theirs - margin, alternative="greater").pvalue
    assert comparison.p_equivalence == pytest.approx(max(p_value_below, p_value_above))
    assert comparison.margin == margin and np.isnan(comparison.low) and np.isnan(comparison.p_value)


def test_equivalence_of_seeds_is_tested_over_seeds_and_examples():
    random = np.random.default_rng(1)
    ours = {seed: random.normal(0.01, 1, 300) for seed in range(5)}
    theirs = {seed: values + random.normal(0, 0.1, 300) for seed, values in ours.items()}
    comparison = isogloss.compare(ours, theirs, margin=0.05)
    differences = [np.mean(ours[seed] - theirs[seed]) for seed in ours]
    over_seeds = max(
        stats.ttest_1samp(differences, bound, alternative=side).pvalue
        for bound, side in ((0.05, "less"), (-0.05, "greater"))
    )
    assert over_seeds <= comparison.p_equivalence < 0.05
    assert isogloss.compare(ours, theirs, margin=0.0).p_equivalence >= 0.5


def test_answers_that_became_right_or_wrong_are_counted():
    comparison = isogloss.compare(OURS, THEIRS, GOLD)
    pairs = list(zip(OURS, THEIRS, GOLD, strict=True))
    assert comparison.gained == sum(ours == gold != theirs for ours, theirs, gold in pairs)
    assert comparison.lost == sum(ours != gold == theirs for ours, theirs, gold in pairs)
    assert comparison.changed == sum(ours != theirs for ours, theirs, _ in pairs)
    assert comparison.difference == pytest.approx((comparison.gained - comparison.lost) / 12)
    seeds = isogloss.compare({0: OURS, 1: THEIRS}, {0: THEIRS, 1: THEIRS}, GOLD)
    assert (seeds.gained, seeds.lost, seeds.changed) == (
        comparison.gained,
        comparison.lost,
        comparison.changed,
    )


def test_shares_are_neither_right_nor_wrong():
    comparison = isogloss.compare([0.5, 0.25], [1.0, 0.0])
    assert (comparison.gained, comparison.lost, comparison.changed) == (None, None, None)


def test_a_comparison_prints_its_numbers_in_few_lines():
    comparison = isogloss.compare(OURS, THEIRS, GOLD, margin=0.01)
    for text in ("classification", "accuracy", "12 examples", "McNemar", "wrong", "TOST", "one seed"):
        assert text in repr(comparison)
    seeds = dict.fromkeys(range(10), OURS)
    for element in (comparison, isogloss.compare(seeds, dict.fromkeys(range(10), THEIRS), GOLD, margin=0.01)):
        assert len(repr(element)) < 400
    assert comparison.to_series()["difference"] == comparison["difference"] == comparison.difference


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
