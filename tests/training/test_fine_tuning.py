from dataclasses import replace

import pytest
from torch import nn

from isogloss.core.errors import ConfigError
from isogloss.core.identity import derive
from isogloss.core.progress import Progress
from isogloss.core.run_parts import Optimization
from isogloss.encoders.family import head_parameters
from isogloss.encoders.saving import save_model
from isogloss.encoders.tokenizers import load_tokenizer
from isogloss.tasks import find_task
from isogloss.training import fine_tuning
from isogloss.training.evaluation import evaluation
from isogloss.training.fine_tuning import fine_tune
from made_up import on, tagged_sentences
from says import says
from trained import equal, weights


def first_heads(setting, languages, monkeypatch):
    """The head as it is when training begins."""
    calls = []

    def look(model, *_, **__):
        calls.append((weights(model.classifier), weights(model.base_model)))
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(fine_tuning, "fit", look)
        with pytest.raises(KeyboardInterrupt):
            fine_tune(setting, on(*languages))
    return calls[0]


@pytest.mark.nightly
@pytest.mark.slow
def test_fine_tuning_learns_a_rule(make_setting):
    setting = make_setting(epochs=20, learning_rate=1e-2)
    training = fine_tune(setting, on("en"))
    scores = [row["score"] for row in training.rows if "epoch" in row]
    assert max(scores) > 0.95
    assert training.warnings == ()


def test_heads_begin_the_same_for_one_seed_whatever_the_languages(make_setting, monkeypatch):
    item = first_heads(make_setting(), ("en",), monkeypatch)
    other_first_heads = first_heads(make_setting(("en",), ("de",)), ("en", "de"), monkeypatch)
    third = first_heads(make_setting(seed=1), ("en",), monkeypatch)
    assert equal(item[0], other_first_heads[0])
    assert equal(item[1], other_first_heads[1])
    assert equal(item[1], third[1])
    assert not equal(item[0], third[0])


def test_a_seed_of_the_head_draws_the_head_and_nothing_else(make_setting, monkeypatch):
    plain, of_two = (first_heads(make_setting(seed=seed), ("en",), monkeypatch) for seed in (1, 2))
    (head, encoder) = first_heads(make_setting(seed=1, head_seed=2), ("en",), monkeypatch)
    assert equal(head, of_two[0])
    assert not equal(head, plain[0])
    assert equal(encoder, plain[1])
    same, again = (
        fine_tune(make_setting(seed=1, folder=make_setting().folder / name, **options), on("en"))
        for name, options in {"same": {}, "again": {"head_seed": 1}}.items()
    )
    assert equal(weights(same.model), weights(again.model))


def test_runs_with_one_seed_of_the_head_differ_in_order_and_dropout(make_setting, monkeypatch):
    first, second = (
        make_setting(seed=seed, head_seed=0, folder=make_setting().folder / str(seed)) for seed in (1, 2)
    )
    assert equal(*(first_heads(setting, ("en",), monkeypatch)[0] for setting in (first, second)))
    assert not equal(*(weights(fine_tune(setting, on("en")).model) for setting in (first, second)))


def test_a_new_head_may_begin_with_zeros_whatever_the_seed(make_setting, monkeypatch):
    first, second = (
        first_heads(make_setting(seed=seed, head_weights="zeros"), ("en",), monkeypatch) for seed in (1, 2)
    )
    plain = first_heads(make_setting(seed=1), ("en",), monkeypatch)
    assert all(not weight.any() for weight in first[0].values())
    assert equal(first[0], second[0])
    assert equal(first[1], plain[1])


@pytest.mark.parametrize("task", ["upos", "text-classification"])
def test_a_head_of_zeros_says_nothing_before_it_learns(any_folder, make_setting, task):
    """Only the last layer is 0, so that the others of a deeper head receive gradients."""
    setting = replace(make_setting(encoder=any_folder), task=find_task(task, ("sports", "politics", "art")))
    model = setting.task.head(any_folder, seed=derive(0, "head"), attention="eager")
    fine_tuning.begin_with_zeros(model, setting, setting.task)
    head = {name: weight for name, weight in head_parameters(model).items() if weight.ndim > 1}
    assert [bool(weight.any()) for weight in head.values()][-1] is False
    assert len([name for name, weight in head.items() if not weight.any()]) == 1


@pytest.mark.slow
def test_a_head_that_was_read_does_not_begin_with_zeros(make_setting, tmp_path, monkeypatch):
    trained_setting = make_setting(folder=tmp_path / "trained")
    training = fine_tune(trained_setting, on("en"))
    save_model(training.model, training.tokenizer, tmp_path / "model")
    setting = make_setting(encoder=tmp_path / "model", head_weights="zeros")
    assert equal(first_heads(setting, ("en",), monkeypatch)[0], weights(training.model.classifier))


def test_zeros_with_a_seed_of_the_head_are_refused():
    with says(ConfigError, "head_seed", "head_weights"):
        Optimization(head_seed=1, head_weights="zeros")


def test_the_encoders_own_dropout_is_active_in_training(make_setting, monkeypatch):
    calls = []

    def look(model, *_, **__):
        calls.extend(part.p for part in model.modules() if isinstance(part, nn.Dropout))
        raise KeyboardInterrupt

    monkeypatch.setattr(fine_tuning, "fit", look)
    with pytest.raises(KeyboardInterrupt):
        fine_tune(make_setting(), on("en"))
    assert calls
    assert set(calls) == {0.1}


def test_dropout_changes_the_loss_from_step_to_step(make_setting, monkeypatch):
    """The same batch twice, at a rate of 0: only dropout can make the losses differ."""
    losses = []
    task = type(make_setting().task)
    loss = task.loss

    def note_batch(self, model, batch):
        losses.append(loss(self, model, batch).item())
        return loss(self, model, batch)

    monkeypatch.setattr(task, "loss", note_batch)
    fine_tune(make_setting(learning_rate=0.0, batch_size=64, epochs=3), on("en"))
    assert len(set(losses)) == 3


@pytest.mark.slow
def test_the_chosen_epoch_is_the_model(make_setting):
    setting = make_setting(epochs=4, learning_rate=5e-3)
    training = fine_tune(setting, on("en"))
    epochs = [row for row in training.rows if "epoch" in row]
    (chosen_row,) = [row for row in epochs if row["chosen"]]
    assert [row["epoch"] for row in epochs] == [1, 2, 3, 4]
    assert chosen_row["score"] == max(row["score"] for row in epochs)
    dev = evaluation(setting.task, setting.dev("en"), training.tokenizer, setting.optimization)
    assert dev.score(training.model) == chosen_row["score"]


@pytest.mark.slow
def test_two_languages_choose_together_and_a_batch_holds_one(make_setting, monkeypatch):
    lines = {
        "en": {tagged_sentence.words for tagged_sentence in tagged_sentences("en", 40)},
        "de": {tagged_sentence.words for tagged_sentence in tagged_sentences("de", 40)},
    }
    assert not lines["en"] & lines["de"]
    training = fine_tune(make_setting(("en",), ("de",)), on("en", "de"))
    epochs = [row for row in training.rows if "epoch" in row]
    assert [row["language"] for row in epochs] == ["en", "de"] * 2
    means = {n: sum(row["score"] for row in epochs if row["epoch"] == n) / 2 for n in (1, 2)}
    assert {row["epoch"] for row in epochs if row["chosen"]} == {max(means, key=means.__getitem__)}


@pytest.mark.slow
def test_a_model_that_learned_nothing_is_warned_of(make_setting):
    training = fine_tune(make_setting(learning_rate=0.0), on("en"))
    (warning,) = training.warnings
    assert warning.startswith("stuck at chance: the best accuracy on en dev is ")
    assert "learning_rate" in warning


@pytest.mark.slow
def test_only_the_language_that_was_not_learned_is_warned_of(make_setting, monkeypatch):
    monkeypatch.setattr(type(make_setting().task), "majority", lambda _, __, dev: float("de" in dev[0].id))
    training = fine_tune(make_setting(("en",), ("de",), epochs=6, learning_rate=3e-3), on("en", "de"))
    assert ["on de dev" in warning for warning in training.warnings] == [True]


@pytest.mark.slow
def test_the_tokenizer_is_the_encoders_and_progress_names_the_languages(make_setting, bert_folder):
    messages: list[Progress] = []
    setting = make_setting(("en",), ("de",))
    training = fine_tune(type(setting)(**{**vars(setting), "on_progress": messages.append}), on("en", "de"))
    assert training.tokenizer.get_vocab() == load_tokenizer(bert_folder).get_vocab()
    assert {message.what for message in messages} == {"fine-tuning on en+de"}
    assert messages[-1].done == messages[-1].total


@pytest.mark.slow
def test_a_head_has_the_rate_it_is_given_and_its_encoder_another(make_setting):
    plain_training, same_training, distance = (
        fine_tune(make_setting(checkpoint_every=0, head_learning_rate=rate), on("en"))
        for rate in (None, 1e-3, 1e-12)
    )
    assert equal(plain_training.model, same_training.model)
    assert plain_training.rows == same_training.rows
    setting = make_setting()
    start = setting.task.head(setting.start, seed=derive(setting.seed, "head"))
    differences = [
        (parameter - start.get_parameter(name)).abs().max()
        for name, parameter in distance.model.named_parameters()
    ]
    head = [name.startswith("classifier") for name, _ in distance.model.named_parameters()]
    assert max(move for move, own_part in zip(differences, head, strict=True) if own_part) < 1e-8
    assert max(move for move, own_part in zip(differences, head, strict=True) if not own_part) > 1e-4
