"""Translations labelled by a teacher: soft labels for them alone, and their own tags are never looked at."""

from dataclasses import replace

import pytest
import torch

from in_translation import sentences, setting, without_tags
from isogloss.core.errors import ConfigError
from isogloss.encoders import save_model
from isogloss.methods.plain import SourceOnly, TranslateTrain
from isogloss.training import pairs as module
from isogloss.training.pairs import pseudo_labels
from trained import equal, weights

TAUGHT = TranslateTrain(labels="teacher")


@pytest.fixture(scope="module")
def teacher(bert_folder, tmp_path_factory):
    folder = tmp_path_factory.mktemp("teacher")
    made = SourceOnly().train(setting("upos", bert_folder, folder / "work"))
    save_model(made.model, made.tokenizer, folder / "model")
    return folder / "model"


def test_tags_that_translations_bring_along_change_nothing(bert_folder, teacher, tmp_path):
    given = setting("upos", bert_folder, tmp_path / "a", teacher=teacher)
    with_tags = TAUGHT.train(given)
    bare = replace(
        given,
        folder=tmp_path / "b",
        train=lambda code: without_tags(sentences(code)) if "-" in code else sentences(code),
    )
    assert equal(TAUGHT.train(bare), with_tags)
    assert TAUGHT.train(replace(bare, folder=tmp_path / "c")).rows == with_tags.rows
    carried = TranslateTrain().train(replace(given, folder=tmp_path / "d"))
    assert not equal(carried, with_tags)


def test_a_sure_teacher_is_as_good_as_gold(bert_folder, teacher, tmp_path, monkeypatch):
    def sure(task, _teacher, examples, _optimization, *, language):
        assert language == "de"
        numbers = {label: number for number, label in enumerate(task.labels)}
        gold = [[numbers[tag] for tag in by_id[example.id]] for example in examples]
        return [torch.nn.functional.one_hot(torch.tensor(row), len(numbers)).half() for row in gold]

    by_id = {one.id: one.tags for one in sentences("en-de")}
    monkeypatch.setattr(module, "pseudo_labels", sure)
    given = setting("upos", bert_folder, tmp_path / "a", teacher=teacher)
    found = TAUGHT.train(given)
    gold = TranslateTrain().train(replace(given, folder=tmp_path / "b"))
    for one, other in zip(weights(found).values(), weights(gold).values(), strict=True):
        torch.testing.assert_close(one, other, atol=2e-5, rtol=1e-4)


def test_the_probabilities_are_those_of_the_teacher(bert_folder, teacher, tmp_path, monkeypatch):
    asked = []

    def noted(task, folder, examples, how, *, language):
        asked.append((folder, list(examples), language))
        return pseudo_labels(task, folder, examples, how, language=language)

    monkeypatch.setattr(module, "pseudo_labels", noted)
    TAUGHT.train(setting("upos", bert_folder, tmp_path, teacher=teacher))
    assert asked == [(str(teacher), without_tags(sentences("en-de")), "de")]


def test_without_translations_it_is_source_only_to_the_bit(bert_folder, tmp_path):
    given = setting("upos", bert_folder, tmp_path / "a", target=())
    plain = SourceOnly().train(replace(given, folder=tmp_path / "b"))
    found = TAUGHT.train(given)
    assert equal(found, plain)
    assert found.rows == plain.rows


def test_only_tagging_has_a_teacher(bert_folder, tmp_path):
    assert [
        task for task in ("nli", "paraphrase", "qa", "upos", "ner", "parsing") if TAUGHT.needs_teacher(task)
    ] == [
        "upos",
        "ner",
    ]
    assert not TranslateTrain().needs_teacher("upos")
    given = setting("nli", bert_folder, tmp_path / "a")
    assert equal(TAUGHT.train(given), TranslateTrain().train(replace(given, folder=tmp_path / "b")))


def test_without_a_teacher_it_says_what_to_do(bert_folder, tmp_path):
    with pytest.raises(ConfigError, match="pseudo-labels: upos needs a model trained on the source alone"):
        TAUGHT.train(setting("upos", bert_folder, tmp_path))
