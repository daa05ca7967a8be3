"""Ensembled projection: the equation a word after the other, its ends, and models in a recipe."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import isogloss
from each import each
from in_translation import link_words, sentences, setting
from isogloss.core.errors import ConfigError, DataError
from isogloss.diagnostics.setting import MeasureSetting, Subject
from isogloss.encoders.loading import load_model
from isogloss.encoders.tokenizers import load_tokenizer
from isogloss.features.ensembled_projection.diagnostic import EnsembledProjection
from isogloss.runs.measure import Measure
from isogloss.tasks import TASKS
from isogloss.training.evaluation import evaluation
from isogloss.training.parallel_text import BitextSentences
from says import says

RECIPE = """
title = "Both"

[grid]
corpus = "ud"
task = "upos"
source = "qaa"
targets = ["qab"]
seeds = [0]
examples = 40
dev_examples = 20
optimization = { epochs = 1, checkpoint_every = 0 }

[[grid.method]]
name = "source-only"

[[grid.method]]
name = "translate-train"

[[measure]]
name = "ensembled-projection"
inputs = "paired"
split = "test"
examples = 20

[[measure]]
name = "scores"
methods = ["translate-train"]
split = "test"
examples = 20
"""


def draw_probabilities(seed, words, classes=3):
    values = np.random.default_rng(seed).random((words, classes)) + 0.05
    return values / values.sum(axis=1, keepdims=True)


@given(
    st.integers(0, 1000),
    st.sets(st.tuples(st.integers(0, 3), st.integers(0, 4))),
    st.sampled_from([0.0, 0.5, 0.8, 1.0]),
)
def test_each_word_has_the_mean_of_its_own_and_its_links_probabilities(seed, links, share):
    target = draw_probabilities(seed, 4)
    translated = draw_probabilities(seed + 1, 5)
    found = isogloss.ensemble_projection(target, torch.tensor(translated), sorted(links), share=share)
    for word in range(4):
        linked = [translated[linked_word] for index, linked_word in links if index == word]
        expected = target[word]
        if linked:
            expected = (1 - share) * target[word] + share * sum(linked) / len(linked)
        np.testing.assert_allclose(found[word], expected, atol=1e-6)
    np.testing.assert_allclose(found.sum(axis=1), 1, atol=1e-6)


def test_without_links_or_without_a_share_nothing_changes():
    target = draw_probabilities(0, 4)
    translated = draw_probabilities(1, 5)
    assert (isogloss.ensemble_projection(target, translated, []) == target).all()
    assert (isogloss.ensemble_projection(target, translated, [(0, 1)], share=0.0) == target).all()
    projected = isogloss.ensemble_projection(target, translated, [(0, 1)], share=1.0)
    assert (projected[0] == translated[1]).all() and (projected[1:] == target[1:]).all()


WRONG = {
    "other classes": (draw_probabilities(0, 4, 2), [(0, 0)], ("3 classes", "2")),
    "a link beyond the words": (draw_probabilities(0, 5), [(0, 5)], ("(0, 5)", "0 to 3", "0 to 4")),
    "one word": (draw_probabilities(0, 5)[0], [(0, 0)], ("translated", "[3]")),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_does_not_fit_is_refused(case):
    translated, links, facts = WRONG[case]
    with says(DataError, "ensemble_projection", *facts):
        isogloss.ensemble_projection(draw_probabilities(0, 4), translated, links)


def test_settings_that_cannot_be_are_refused():
    with says(ConfigError, "between", "1"):
        EnsembledProjection(between=("source-only",))
    with says(ConfigError, "'nli'", "tagging"):
        EnsembledProjection().check(TASKS["nli"])


@pytest.fixture
def measured(bert_folder, tmp_path):
    """The setting of a measurement of two models, with links of the translations or without."""
    own_setting = setting("upos", bert_folder, tmp_path)
    tokenizer = load_tokenizer(bert_folder)
    models = {str(seed): own_setting.task.head(bert_folder, seed=seed).eval() for seed in (1, 2)}

    def read(examples, language):
        return evaluation(own_setting.task, examples, tokenizer, own_setting.optimization, language=language)

    def make(translations):
        return MeasureSetting(
            subjects=tuple(Subject(id=name, rows=(), folder=tmp_path) for name in models),
            languages=("en", "de"),
            split="test",
            source=("en",),
            load=lambda subject: models[subject.id],
            evaluation=lambda language: read(sentences(language, 12), language),
            translated_evaluation=lambda language: read(translations, f"{language}-en"),
            encoder=lambda _: (load_model(bert_folder), tokenizer),
            bitext=lambda _: [],
            parallel=BitextSentences(lambda _: []),
        )

    return make, models


def test_scores_are_those_of_ensembled_words(measured):
    make, models = measured
    translations = link_words(sentences("en", 12))
    own_setting = make(translations)
    rows = EnsembledProjection(shares=(0.0, 0.5, 1.0)).measure(own_setting)
    data = own_setting.evaluation("de")
    translated = own_setting.translated_evaluation("de")
    scores = [part.softmax(dim=-1) for part in data.scores(models["1"])]
    projected = [part.softmax(dim=-1) for part in translated.scores(models["2"])]
    for row in each(rows):
        answers = [
            [
                data.task.labels[best]
                for best in isogloss.ensemble_projection(own, other, example.links, share=row.share).argmax(
                    axis=1
                )
            ]
            for own, other, example in zip(scores, projected, translations, strict=True)
        ]
        assert row.score == data.task.score(data.gold, answers)
        assert (row.model, row.translated_model, row.language, row.linked) == ("1", "2", "de", 1.0)
    assert rows[0].score == data.score(models["1"])


def test_words_are_linked_by_states_where_translations_have_no_links(measured):
    make, _ = measured
    rows = EnsembledProjection().measure(make([replace(x, tags=()) for x in sentences("en", 12)]))
    assert len(rows) == 3 and 0 < rows[0].linked <= 1
    strangers = [replace(x, id=f"other {x.id}") for x in sentences("en", 12)]
    with says(DataError, "ensembled-projection", "id"):
        EnsembledProjection().measure(make(strangers))


def test_a_plan_reads_the_target_and_its_translation(plan, get_refusal):
    (measurement,) = [
        run for run in plan(RECIPE) if isinstance(run, Measure) and run.diagnostic.name != "scores"
    ]
    assert [model.method.name for model in measurement.models] == ["translate-train", "source-only"]
    read = [split.language for split in measurement.splits_read]
    assert read == ["qaa", "qab", "qab-qaa"]
    assert "paired" in get_refusal(RECIPE.replace('inputs = "paired"\n', ""))


@pytest.mark.slow
def test_a_share_of_0_has_the_score_of_the_model(tmp_path):
    (tmp_path / "own.toml").write_text(RECIPE, encoding="utf-8")
    result = isogloss.run(tmp_path / "own.toml", out=tmp_path / "runs", jobs=1, report=False)
    assert not result.outcome.failed
    rows = [row for record in result.records for row in record.rows]
    (alone,) = [row["score"] for row in rows if row.get("share") == 0]
    scores = [row["score"] for row in rows if row.get("main") and row["language"] == "qab"]
    assert scores == [alone]


def test_logits_are_refused():
    """Averages of logits and probabilities would be neither."""
    with pytest.raises(DataError, match=r"translated.*softmax"):
        isogloss.ensemble_projection(np.array([[0.5, 0.5]]), np.array([[2.0, -1.0]]), [(0, 0)])
