"""Scores, and what is computed from scores: run variance and transfer gap."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from measuring import measure_setting, subject

from isogloss.core.rows import as_row
from isogloss.core.rows.models import ScoreRow
from isogloss.core.run_parts import Optimization, with_fields
from isogloss.diagnostics.scores import RunVariance, Scores, TransferGap, run_variance
from isogloss.encoders.tokenizers import load_tokenizer
from isogloss.tasks import TASKS
from isogloss.training.evaluation import evaluation
from made_up import tagged_sentences

SCORES = st.lists(st.floats(0, 1), min_size=2, max_size=6)


def row(language, score, *, model="m", main=True, metric="accuracy"):
    about = {"model": model, "language": language, "split": "dev"}
    return ScoreRow(**about, metric=metric, score=score, main=main, baseline=0.2, examples=10)


def test_scores_are_those_of_the_evaluation(bert_folder):
    task = TASKS["upos"]
    model = task.head(bert_folder, seed=0)
    how = with_fields(Optimization(), limit=32, overlap=8, precision="float32")

    def data(language):
        return evaluation(
            task, tagged_sentences(language, 10), load_tokenizer(bert_folder), how, baseline=0.25
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
    found = run_variance(rows, ("en",))
    assert [(one.language, one.role) for one in found] == [("en", "source"), ("de", "target")]
    for one, values in zip(found, (source, target), strict=True):
        assert one.mean == pytest.approx(np.mean(values))
        assert one.std == pytest.approx(np.std(values, ddof=1), abs=1e-12)
        assert one.seeds == len(values)
        assert one.models.split() == [f"m{seed}" for seed in range(len(values))]


@given(SCORES, st.randoms())
def test_run_variance_does_not_depend_on_the_order_of_seeds(scores, random):
    rows = [row("en", score, model=f"m{seed}") for seed, score in enumerate(scores)]
    (before,) = run_variance(rows, ("en",))
    random.shuffle(rows)
    (after,) = run_variance(rows, ("en",))
    assert (after.mean, after.models) == (before.mean, before.models)
    assert after.std == pytest.approx(before.std, abs=1e-15)


def test_languages_and_metrics_are_kept_apart():
    rows = [
        row(language, 0.5, metric=metric)
        for language in ("a", "b")
        for metric in ("las", "uas")
        for _ in "xy"
    ]
    found = [(one.language, one.metric, one.seeds) for one in run_variance(rows, ())]
    assert found == [(language, metric, 2) for language in ("a", "b") for metric in ("las", "uas")]


def test_one_seed_has_no_spread():
    (one,) = run_variance([row("en", 0.5)], ("en",))
    assert (one.mean, one.std, one.seeds) == (0.5, None, 1)


def test_every_source_language_has_the_role_of_one():
    found = run_variance([row(language, 0.5) for language in ("en", "fr", "de", "e")], ("en", "fr"))
    assert [one.role for one in found] == ["source", "source", "target", "target"]
    assert [spread.role for spread in run_variance([row("en", 0.5)], ())] == [""], (
        "of target-only none is known"
    )


def test_run_variance_reads_the_main_scores_of_all_subjects():
    subjects = tuple(
        subject(rows=map(as_row, [row("en", score, model=model), row("en", 0, main=False, metric="f")]))
        for model, score in (("b", 0.25), ("a", 0.75))
    )
    (one,) = RunVariance().measure(replace(measure_setting([]), subjects=subjects))
    assert (one.mean, one.seeds, one.models, one.metric) == (0.5, 2, "a b", "accuracy")


def gap(rows, source=("en",)):
    return TransferGap().measure(
        replace(measure_setting([], source=source), subjects=(subject(rows=map(as_row, rows)),))
    )


@given(st.floats(0, 1), st.lists(st.floats(0, 1), min_size=1, max_size=5))
def test_the_transfer_gap_is_source_minus_mean_target(source, targets):
    (one,) = gap(
        [row("en", source), *(row(f"q{n}", score) for n, score in zip("abcde", targets, strict=False))]
    )
    assert one.source_score == source
    assert one.target_mean == pytest.approx(np.mean(targets))
    assert one.gap == pytest.approx(source - np.mean(targets))
    assert (one.model, one.split, one.metric) == ("m", "dev", "accuracy")


def test_secondary_metrics_do_not_count():
    beside = [row(language, 0.1, main=False, metric="em") for language in ("en", "de")]
    (one,) = gap([row("en", 0.75), *beside, row("de", 0.5)])
    assert (one.source_score, one.target_mean, one.metric) == (0.75, 0.5, "accuracy")


def test_several_source_languages_are_averaged():
    (one,) = gap([row("en", 1.0), row("fr", 0.5), row("de", 0.5)], ("en", "fr"))
    assert (one.source_score, one.gap) == (0.75, 0.25)


@pytest.mark.parametrize("codes", [["en"], ["de"], []])
def test_without_both_roles_there_is_no_gap(codes):
    assert gap([row(code, 0.5) for code in codes]) == []
