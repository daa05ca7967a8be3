"""Scores, and what is computed from scores: run variance and transfer gap."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from isogloss.core.rows import as_row
from isogloss.core.rows.models import ScoreRow
from isogloss.core.run_parts import Optimization, with_fields
from isogloss.diagnostics.scores import RunVariance, Scores, TransferGap, run_variance
from isogloss.encoders.tokenizers import load_tokenizer
from isogloss.tasks import TASKS
from isogloss.training.evaluation import evaluation
from made_up import tagged_sentences
from measuring import measure_setting, subject

SCORES = st.lists(st.floats(0, 1), min_size=2, max_size=6)


def row(language, score, *, model="m", main=True, metric="accuracy"):
    options = {"model": model, "language": language, "split": "dev"}
    return ScoreRow(**options, metric=metric, score=score, main=main, baseline=0.2, examples=10)


def test_scores_are_those_of_the_evaluation(bert_folder):
    task = TASKS["upos"]
    model = task.head(bert_folder, seed=0)
    options = with_fields(Optimization(), limit=32, overlap=8, precision="float32")

    def data(language):
        return evaluation(
            task, tagged_sentences(language, 10), load_tokenizer(bert_folder), options, baseline=0.25
        )

    rows = Scores().measure(measure_setting([model], data, languages=("en", "de")))
    assert rows == [
        ScoreRow(
            model=subject("0").id,
            language=language,
            split="dev",
            metric=metric,
            score=data(language).measures(model)[metric],
            main=metric == "accuracy",
            baseline=0.25 if metric == "accuracy" else None,
            examples=10,
        )
        for language in ("en", "de")
        for metric in ("accuracy", "seqeval_f1", "macro_f1", "weighted_f1", "mcc")
    ]


@given(SCORES, SCORES)
def test_run_variance_is_that_of_numpy(source, target):
    rows = [row("en", score, model=f"m{seed}") for seed, score in enumerate(source)]
    rows += [row("de", score, model=f"m{seed}") for seed, score in enumerate(target)]
    variance = run_variance(rows, ("en",))
    assert [(item.language, item.role) for item in variance] == [("en", "source"), ("de", "target")]
    for first_item, values in zip(variance, (source, target), strict=True):
        assert first_item.mean == pytest.approx(np.mean(values))
        assert first_item.std == pytest.approx(np.std(values, ddof=1), abs=1e-12)
        assert first_item.seeds == len(values)
        assert first_item.models.split() == [f"m{seed}" for seed in range(len(values))]


@given(SCORES, st.randoms())
def test_run_variance_does_not_depend_on_the_order_of_seeds(scores, random):
    rows = [row("en", score, model=f"m{seed}") for seed, score in enumerate(scores)]
    (variance_before,) = run_variance(rows, ("en",))
    random.shuffle(rows)
    (variance_after,) = run_variance(rows, ("en",))
    assert (variance_after.mean, variance_after.models) == (variance_before.mean, variance_before.models)
    assert variance_after.std == pytest.approx(variance_before.std, abs=1e-15)


def test_languages_and_metrics_are_kept_apart():
    rows = [
        row(language, 0.5, metric=metric)
        for language in ("a", "b")
        for metric in ("las", "uas")
        for _ in "xy"
    ]
    languages = [(item.language, item.metric, item.seeds) for item in run_variance(rows, ())]
    assert languages == [(language, metric, 2) for language in ("a", "b") for metric in ("las", "uas")]


def test_one_seed_has_no_spread():
    (variance,) = run_variance([row("en", 0.5)], ("en",))
    assert (variance.mean, variance.std, variance.seeds) == (0.5, None, 1)


def test_every_source_language_has_the_role_of_one():
    variance = run_variance([row(language, 0.5) for language in ("en", "fr", "de", "e")], ("en", "fr"))
    assert [item.role for item in variance] == ["source", "source", "target", "target"]
    assert [spread.role for spread in run_variance([row("en", 0.5)], ())] == [""], (
        "of target-only none is known"
    )


def test_run_variance_reads_the_main_scores_of_all_subjects():
    subjects = tuple(
        subject(
            rows=(
                as_row(value)
                for value in [row("en", score, model=model), row("en", 0, main=False, metric="f")]
            )
        )
        for model, score in (("b", 0.25), ("a", 0.75))
    )
    (measurement,) = RunVariance().measure(replace(measure_setting([]), subjects=subjects))
    assert (measurement.mean, measurement.seeds, measurement.models, measurement.metric) == (
        0.5,
        2,
        "a b",
        "accuracy",
    )


def gap(rows, source=("en",)):
    return TransferGap().measure(
        replace(
            measure_setting([], source=source), subjects=(subject(rows=(as_row(value) for value in rows)),)
        )
    )


@given(st.floats(0, 1), st.lists(st.floats(0, 1), min_size=1, max_size=5))
def test_the_transfer_gap_is_source_minus_mean_target(source, targets):
    (measurement,) = gap(
        [row("en", source), *(row(f"q{n}", score) for n, score in zip("abcde", targets, strict=False))]
    )
    assert measurement.source_score == source
    assert measurement.target_mean == pytest.approx(np.mean(targets))
    assert measurement.gap == pytest.approx(source - np.mean(targets))
    assert (measurement.model, measurement.split, measurement.metric) == ("m", "dev", "accuracy")


def test_secondary_metrics_do_not_count():
    beside = [row(language, 0.1, main=False, metric="em") for language in ("en", "de")]
    (measurement,) = gap([row("en", 0.75), *beside, row("de", 0.5)])
    assert (measurement.source_score, measurement.target_mean, measurement.metric) == (0.75, 0.5, "accuracy")


def test_several_source_languages_are_averaged():
    (measurement,) = gap([row("en", 1.0), row("fr", 0.5), row("de", 0.5)], ("en", "fr"))
    assert (measurement.source_score, measurement.gap) == (0.75, 0.25)


@pytest.mark.parametrize("codes", [["en"], ["de"], []])
def test_without_both_roles_there_is_no_gap(codes):
    assert gap([row(language, 0.5) for language in codes]) == []
