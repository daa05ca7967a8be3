"""Scores, and what is computed from scores: run variance and transfer gap."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from looks import look_at, subject

from isogloss.core.runs import Optimization
from isogloss.diagnostics import DIAGNOSTICS
from isogloss.diagnostics.run_variance import RunVariance, run_variance
from isogloss.diagnostics.scores import Scores
from isogloss.diagnostics.transfer_gap import TransferGap
from isogloss.encoders import load_tokenizer
from isogloss.tasks import TASKS
from isogloss.training.evaluation import evaluation
from made_up import tagged

SCORES = st.lists(st.floats(0, 1), min_size=2, max_size=6)


def row(language, score, *, source="en", seed=0, method="source-only"):
    return {
        "corpus": "ud", "task": "upos", "encoder": "shipped", "method": method, "source": source,
        "target": "", "seed": seed, "language": language, "split": "dev", "metric": "accuracy",
        "score": score, "baseline": 0.2, "examples": 10,
    }  # fmt: skip


def test_scores_are_those_of_the_evaluation(bert_folder):
    task = TASKS["upos"]
    model = task.head(bert_folder, seed=0)
    how = Optimization(limit=32, overlap=8, precision="float32")

    def data(language):
        return evaluation(task, tagged(language, 10), load_tokenizer(bert_folder), how, baseline=0.25)

    rows = Scores().measure(look_at([model], data, languages=("en", "de"), columns={"method": "x"}))
    assert rows == [
        {
            "method": "x",
            "language": language,
            "split": "dev",
            "metric": "accuracy",
            "score": data(language).score(model),
            "baseline": 0.25,
            "examples": 10,
            "seqeval_f1": data(language).measures(model)["seqeval_f1"],
        }
        for language in ("en", "de")
    ]


@given(SCORES, SCORES)
def test_run_variance_is_that_of_numpy(source, target):
    rows = [row("en", score, seed=seed) for seed, score in enumerate(source)]
    rows += [row("de", score, seed=seed) for seed, score in enumerate(target)]
    found = run_variance(rows)
    assert [(one["language"], one["role"]) for one in found] == [("en", "source"), ("de", "target")]
    for one, values in zip(found, (source, target), strict=True):
        assert one["mean"] == pytest.approx(np.mean(values))
        assert one["std"] == pytest.approx(np.std(values, ddof=1), abs=1e-12)
        assert one["seeds"] == len(values)


@given(SCORES, st.randoms())
def test_run_variance_does_not_depend_on_the_order_of_seeds(scores, random):
    rows = [row("en", score, seed=seed) for seed, score in enumerate(scores)]
    (before,) = run_variance(rows)
    random.shuffle(rows)
    (after,) = run_variance(rows)
    assert after["mean"] == before["mean"]
    assert after["std"] == pytest.approx(before["std"], abs=1e-15)


def test_methods_and_languages_are_kept_apart():
    rows = [row("en", 0.5, method=method, seed=seed) for method in ("a", "b") for seed in (0, 1)]
    assert [(one["method"], one["seeds"]) for one in run_variance(rows)] == [("a", 2), ("b", 2)]


def test_one_seed_has_no_spread():
    (one,) = run_variance([row("en", 0.5)])
    assert (one["mean"], one["std"], one["seeds"]) == (0.5, None, 1)


def test_every_source_language_has_the_role_of_one():
    rows = [row(language, 0.5, source="en+fr") for language in ("en", "fr", "de", "e")]
    assert [one["role"] for one in run_variance(rows)] == ["source", "source", "target", "target"]


def test_run_variance_looks_at_the_rows_of_all_subjects():
    subjects = tuple(subject(rows=[row("en", score, seed=seed)]) for seed, score in enumerate((0.25, 0.75)))
    (one,) = RunVariance().measure(replace(look_at([]), subjects=subjects))
    assert (one["mean"], one["seeds"]) == (0.5, 2)


def gap(rows):
    return TransferGap().measure(replace(look_at([]), subjects=(subject(rows=rows),)))


@given(st.floats(0, 1), st.lists(st.floats(0, 1), min_size=1, max_size=5))
def test_the_transfer_gap_is_source_minus_mean_target(source, targets):
    (one,) = gap(
        [row("en", source), *(row(f"q{n}", score) for n, score in zip("abcde", targets, strict=False))]
    )
    assert one["source_score"] == source
    assert one["target_mean"] == pytest.approx(np.mean(targets))
    assert one["gap"] == pytest.approx(source - np.mean(targets))
    assert (one["method"], one["seed"], one["split"], one["metric"]) == ("source-only", 0, "dev", "accuracy")


def test_equal_scores_have_no_gap():
    assert gap([row("en", 0.75), row("de", 0.75)])[0]["gap"] == 0


def test_several_source_languages_are_averaged():
    (one,) = gap(
        [row("en", 1.0, source="en+fr"), row("fr", 0.5, source="en+fr"), row("de", 0.5, source="en+fr")]
    )
    assert (one["source_score"], one["gap"]) == (0.75, 0.25)


def test_without_both_sides_there_is_no_gap():
    assert gap([row("en", 0.5)]) == []
    assert gap([row("de", 0.5)]) == []
    assert gap([]) == []


def test_every_diagnostic_file_is_in_the_table():
    import inspect
    from pathlib import Path

    import isogloss.diagnostics as package

    files = {Path(inspect.getfile(one)).stem for one in DIAGNOSTICS.values()}
    parts = {"__init__", "look", "mask_rows", "parallel_states", "trained_length", "weights"}
    assert {path.stem for path in Path(package.__file__).parent.glob("*.py")} == files | parts
    assert all(one.name == name for name, one in DIAGNOSTICS.items())
    known = {"model", "cell", "scores", "seeds", "encoder", "states", "words", "text"}
    assert {one.over for one in DIAGNOSTICS.values()} <= known
