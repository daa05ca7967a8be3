"""Calibration: the error by a loop over bins, the temperature by scipy, and the source's temperature."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax, softmax

import isogloss
from each import each
from in_translation import READ, setting
from isogloss.core.errors import ConfigError, DataError
from isogloss.diagnostics.setting import MeasureSetting, Subject
from isogloss.encoders.tokenizers import load_tokenizer
from isogloss.features.calibration.diagnostic import Calibration
from isogloss.runs.measure import Measure
from isogloss.tasks import TASKS
from isogloss.training.evaluation import evaluation
from isogloss.training.parallel_text import BitextSentences
from says import says

SEEDS = st.integers(0, 10_000)
RECIPE = """
title = "Calibration"

[grid]
corpus = "ud"
task = "upos"
source = "qaa"
targets = ["qab", "qad"]
seeds = [0]
examples = 30
dev_examples = 30
optimization = { epochs = 1, checkpoint_every = 0 }

[[grid.method]]
name = "source-only"

[[measure]]
name = "calibration"
split = "test"
examples = 40
"""


def draw_logits(seed, items=40, classes=4, *, scale=3.0):
    draws = np.random.default_rng(seed)
    logits = draws.normal(size=(items, classes)) * scale
    right = logits.argmax(axis=1)
    return logits, np.where(draws.random(items) < 0.6, right, draws.integers(0, classes, size=items))


def sum_bins(probabilities, gold, bins):
    """Return the error by a loop over bins, each open below and closed above."""
    total = 0.0
    for number in range(bins):
        inside = [
            (max(row), row.argmax() == label)
            for row, label in zip(probabilities, gold, strict=True)
            if number / bins < max(row) <= (number + 1) / bins
        ]
        if inside:
            confidences, rights = zip(*inside, strict=True)
            total += len(inside) / len(gold) * abs(np.mean(confidences) - np.mean(rights))
    return total


@given(SEEDS, st.sampled_from([1, 3, 10, 15]))
def test_the_error_is_the_sum_over_bins(seed, bins):
    logits, gold = draw_logits(seed)
    probabilities = softmax(logits, axis=1)
    expected = sum_bins(probabilities, gold, bins)
    assert isogloss.calibration_error(probabilities, gold, bins=bins) == pytest.approx(expected)
    tensors = torch.tensor(probabilities), torch.tensor(gold)
    assert isogloss.calibration_error(*tensors, bins=bins) == pytest.approx(expected, abs=1e-6)


def test_ends_of_the_error():
    sure = np.eye(3)[[0, 1, 2]]
    assert isogloss.calibration_error(sure, [0, 1, 2]) == 0
    assert isogloss.calibration_error(sure, [1, 2, 0]) == 1
    assert isogloss.calibration_error(np.full((4, 4), 0.25), [0, 1, 2, 0]) == pytest.approx(0.25)


@given(SEEDS)
def test_the_temperature_has_the_least_loss(seed):
    logits, gold = draw_logits(seed)

    def loss(temperature):
        return -log_softmax(logits / temperature, axis=1)[np.arange(len(gold)), gold].mean()

    expected = minimize_scalar(loss, bounds=(0.01, 100), method="bounded", options={"xatol": 1e-9}).x
    found = isogloss.fit_temperature(logits, gold)
    assert found == pytest.approx(expected, rel=1e-3)
    assert loss(found) <= loss(1.0)
    assert isogloss.fit_temperature(5 * logits, gold) == pytest.approx(5 * found, rel=1e-6)
    assert isogloss.fit_temperature(logits + 7, gold) == pytest.approx(found, rel=1e-6)


def test_a_temperature_makes_a_model_that_is_too_sure_calibrated():
    draws = np.random.default_rng(0)
    logits = draws.normal(size=(20_000, 3)) * 2
    gold = (softmax(logits, axis=1).cumsum(axis=1) > draws.random((20_000, 1))).argmax(axis=1)
    assert isogloss.fit_temperature(logits, gold) == pytest.approx(1, abs=0.03)
    temperature = isogloss.fit_temperature(4 * logits, gold)
    assert temperature == pytest.approx(4, abs=0.12)
    sure, scaled = (softmax(4 * logits / divisor, axis=1) for divisor in (1, temperature))
    assert isogloss.calibration_error(sure, gold) > 0.1
    assert isogloss.calibration_error(scaled, gold) < 0.02


def test_items_without_a_label_are_ignored():
    logits, gold = draw_logits(0)
    gold[::3] = -100
    kept = gold != -100
    assert isogloss.fit_temperature(logits, gold) == isogloss.fit_temperature(logits[kept], gold[kept])
    probabilities = softmax(logits, axis=1)
    expected = isogloss.calibration_error(probabilities[kept], gold[kept])
    assert isogloss.calibration_error(probabilities, gold) == expected


WRONG = {
    "logits as probabilities": (isogloss.calibration_error, [[2.0, -1.0]], [0], ("softmax",)),
    "labels of another set": (isogloss.fit_temperature, [[2.0, -1.0]], [2], ("2", "0 to 1")),
    "fewer labels": (isogloss.fit_temperature, [[2.0, -1.0]], [0, 1], ("[1, 2]", "[2]")),
    "no labels": (isogloss.fit_temperature, [[2.0, -1.0]], [-100], ("label",)),
    "infinite logits": (isogloss.fit_temperature, [[np.inf, -1.0]], [0], ("finite",)),
}


@pytest.mark.parametrize("case", WRONG)
def test_numbers_and_labels_that_do_not_fit_are_refused(case):
    function, numbers, gold, facts = WRONG[case]
    with says(DataError, function.__name__, *facts):
        function(np.array(numbers), gold)


def read_evaluation(own_setting, tokenizer, language, seed):
    task = own_setting.task
    examples = READ[task.name](language, 16, seed=seed)
    return evaluation(task, examples, tokenizer, own_setting.optimization, language=language)


@pytest.mark.parametrize("task", ["upos", "nli"])
def test_rows_are_what_the_functions_return(task, bert_folder, tmp_path):
    own_setting = setting(task, bert_folder, tmp_path)
    tokenizer = load_tokenizer(bert_folder)
    model = own_setting.task.head(bert_folder, seed=0).eval()
    measure_setting = MeasureSetting(
        subjects=(Subject(id="m", rows=(), folder=tmp_path),),
        languages=("en", "de"),
        split="test",
        source=("en",),
        load=lambda _: model,
        evaluation=lambda language: read_evaluation(own_setting, tokenizer, language, 0),
        tuning_evaluation=lambda language: read_evaluation(own_setting, tokenizer, language, 5),
        encoder=lambda _: (model, tokenizer),
        bitext=lambda _: [],
        parallel=BitextSentences(lambda _: []),
    )
    rows = Calibration(bins=5).measure(measure_setting)

    def read_logits(language, seed):
        data = read_evaluation(own_setting, tokenizer, language, seed)
        scores = [part.reshape(-1, len(own_setting.task.labels)) for part in data.scores(model)]
        return torch.cat(scores).double().numpy(), [label for row in data.rows for label in row.gold]

    temperature = isogloss.fit_temperature(*read_logits("en", 5))
    for row in each(rows):
        logits, gold = read_logits(row.language, 0)
        probabilities = softmax(logits, axis=1)
        assert row.temperature == pytest.approx(temperature)
        assert row.error == pytest.approx(isogloss.calibration_error(probabilities, gold, bins=5))
        scaled = softmax(logits / temperature, axis=1)
        assert row.scaled_error == pytest.approx(isogloss.calibration_error(scaled, gold, bins=5))
        assert row.accuracy == pytest.approx((logits.argmax(axis=1) == gold).mean())
        assert row.items == len(gold)
    without_source = Calibration().measure(replace(measure_setting, languages=("de",)))
    found = [(row.language, row.temperature, row.scaled_error) for row in without_source]
    assert found == [("de", None, None)]


def test_tasks_without_classes_are_refused():
    with says(ConfigError, "calibration", "'qa'"):
        Calibration().check(TASKS["qa"])


def test_a_plan_reads_dev_only_in_the_source(plan):
    (measurement,) = [run for run in plan(RECIPE) if isinstance(run, Measure)]
    read = [(split.language, split.split) for split in measurement.splits_read]
    assert read == [("qaa", "dev"), ("qaa", "test"), ("qab", "test"), ("qad", "test")]


@pytest.mark.slow
def test_a_recipe_measures_every_language_with_one_temperature(tmp_path):
    (tmp_path / "own.toml").write_text(RECIPE, encoding="utf-8")
    result = isogloss.run(tmp_path / "own.toml", out=tmp_path / "runs", jobs=1, report=False)
    assert not result.outcome.failed
    rows = [row for record in result.records for row in record.rows if "scaled_error" in row]
    assert [row["language"] for row in rows] == ["qaa", "qab", "qad"]
    assert len({row["temperature"] for row in rows}) == 1
