import errno
from dataclasses import replace
from functools import cache

import pytest
import torch

from isogloss.core.errors import ConfigError, DataError, ModelError, StorageError
from isogloss.core.run_parts import with_fields
from isogloss.data.examples import Translation
from isogloss.encoders import FAMILIES
from isogloss.encoders.loading import load_masked_lm
from isogloss.encoders.saving import save_model
from isogloss.encoders.tokenizers import load_tokenizer
from isogloss.features.pretraining import methods as module
from isogloss.features.pretraining import training as pretraining
from isogloss.training.batching import TextBatches
from made_up_text import LETTERS, METHOD, line, lines, text_setting
from trained import equal, interrupt_batches, weights


def translations(first_part, second):
    for index in range(40):
        yield Translation(id=str(index), first=line(first_part, index), second=line(second, index))


@pytest.fixture
def setting(request, tmp_path):
    family = getattr(request, "param", "bert")
    return text_setting(tmp_path / "work", family=family, translations=translations)


two_tokenizers = pytest.mark.parametrize("setting", ["bert", "xlm-roberta"], indirect=True)


@pytest.fixture(scope="module")
def uninterrupted_run(tmp_path_factory):
    """Train without an interruption, once for each method."""

    def train_whole(method):
        return method.train(text_setting(tmp_path_factory.mktemp("whole"), translations=translations))

    return cache(train_whole)


# Pretraining


def test_an_encoder_that_learns_nothing_is_warned_of(setting):
    method = with_fields(METHOD, steps=2, learning_rate=1e-9, checkpoint_every=0, evaluate_every=2)
    warnings = method.train(replace(setting, held_out=lines)).warnings
    assert len(warnings) == len(LETTERS)
    assert all(f"{language}: perplexity " in text for language, text in zip(LETTERS, warnings, strict=True))


@pytest.mark.nightly
@pytest.mark.slow
@two_tokenizers
def test_losses_and_perplexity_fall_as_a_text_is_learned(setting):
    method = with_fields(METHOD, steps=120, learning_rate=1e-2, checkpoint_every=0, evaluate_every=20)
    again_and_again = {name: lambda language: [line(language, 0)] * 20 for name in ("text", "held_out")}
    training = method.train(replace(setting, **again_and_again))
    losses = [row["loss"] for row in training.rows if "loss" in row]
    assert losses[-1] < 0.6 * losses[0]
    for language in LETTERS:
        scores = [row["score"] for row in training.rows if row.get("language") == language]
        assert scores[-1] < 0.6 * scores[0]


@pytest.mark.slow
@two_tokenizers
@pytest.mark.parametrize("translation", [0.0, 0.5])
def test_pretraining_twice_gives_the_same_encoder(setting, tmp_path, translation):
    method = with_fields(METHOD, translation=translation)
    training = method.train(setting)
    other_training = method.train(replace(setting, folder=tmp_path / "again"))
    assert equal(training, other_training)
    assert (
        training.tokenizer.backend_tokenizer.to_str() == other_training.tokenizer.backend_tokenizer.to_str()
    )
    assert training.rows == other_training.rows


@pytest.mark.nightly
@pytest.mark.slow
@pytest.mark.parametrize(
    "family", [name for name, family in FAMILIES.items() if "new-encoders" not in family.lacks]
)
def test_every_family_is_pretrained_resumes_and_loads_with_its_dropout(tmp_path, monkeypatch, family):
    setting = text_setting(tmp_path / "work", family=family, vocabulary=300)
    whole_training = METHOD.train(replace(setting, folder=tmp_path / "whole"))
    with interrupt_batches(TextBatches, monkeypatch, at=5):
        METHOD.train(setting)
    again = METHOD.train(setting)
    assert equal(again, whole_training)
    assert again.rows == whole_training.rows

    save_model(whole_training.model, whole_training.tokenizer, tmp_path / "encoder")
    loaded_model = load_masked_lm(tmp_path / "encoder")
    read = load_tokenizer(tmp_path / "encoder")
    assert equal(loaded_model, whole_training)
    assert read("abc de")["input_ids"] == whole_training.tokenizer("abc de")["input_ids"]
    assert {getattr(loaded_model.config, name) for name in FAMILIES[family].dropouts} == {0.25}


def test_translation_lm_is_refused_where_positions_cannot_be_counted_anew(tmp_path):
    with pytest.raises(ModelError) as error:
        with_fields(METHOD, translation=0.5).train(
            text_setting(tmp_path, family="deberta-v2", translations=translations)
        )
    message = str(error.value)
    assert message.startswith("translation LM")
    assert "deberta-v2" in message and "bert or " in message


def test_another_seed_gives_another_encoder(setting, uninterrupted_run):
    training = uninterrupted_run(METHOD)
    other_training = METHOD.train(replace(setting, seed=1))
    assert not equal(training, other_training)
    assert training.tokenizer.get_vocab() == other_training.tokenizer.get_vocab()


@pytest.mark.slow
@pytest.mark.parametrize("stop", [0, 2, 3, 5, 7])
@pytest.mark.parametrize(
    "options", [{}, {"evaluate_every": 3}, {"evaluate_every": 3, "accumulation": 3}], ids=str
)
def test_a_pretraining_that_was_interrupted_ends_as_if_it_was_not(
    setting, uninterrupted_run, monkeypatch, stop, options
):
    method = with_fields(METHOD, translation=0.3, **options)
    with interrupt_batches(TextBatches, monkeypatch, at=stop):
        method.train(setting)
    again = method.train(setting)
    expected = uninterrupted_run(method)
    assert equal(again, expected)
    assert again.rows == expected.rows


@pytest.mark.sample(3)
@pytest.mark.parametrize("stop", range(0, 180, 25))
def test_an_interruption_while_text_is_read_changes_nothing(setting, uninterrupted_run, monkeypatch, stop):
    from isogloss.tasks import masked_lm

    def stopping(language):
        for text in lines(language):
            if len(read) == stop:
                raise KeyboardInterrupt
            read.append(text)
            yield text

    monkeypatch.setattr(masked_lm, "LINES_PER_CALL", 7)
    method = with_fields(METHOD, vocabulary_lines=60)
    read = []
    with pytest.raises(KeyboardInterrupt):
        method.train(replace(setting, text=stopping))
    again = method.train(setting)
    assert equal(again, uninterrupted_run(method))


def test_text_is_read_once_and_not_at_all_when_resuming(setting, monkeypatch):
    read = []

    def note_language(language):
        for index, text in enumerate(lines(language)):
            read.append((language, index))
            yield text

    method = with_fields(METHOD, vocabulary_lines=30)
    method.train(replace(setting, text=note_language))
    assert sorted(read) == sorted((language, index) for language in LETTERS for index in range(60))
    read.clear()
    method.train(replace(setting, text=note_language))
    assert read == []


def test_the_vocabulary_sees_the_same_number_of_lines_of_each_language(setting, monkeypatch):
    calls = []
    train = pretraining.train_tokenizer

    def note_training(inputs, **options):
        calls.extend(inputs)
        return train(calls, **options)

    monkeypatch.setattr(pretraining, "train_tokenizer", note_training)
    with_fields(METHOD, vocabulary_lines=30).train(setting)
    assert calls == [line(language, index) for language in LETTERS for index in range(10)]


def test_a_resumed_pretraining_keeps_its_tokenizer(setting, monkeypatch):
    METHOD.train(setting)
    monkeypatch.setattr(pretraining, "train_tokenizer", None)
    training = METHOD.train(setting)
    assert len(training.tokenizer) <= 90


def test_the_saved_encoder_has_the_architectures_dropout_and_the_training_none(setting, tmp_path):
    training = METHOD.train(setting)
    assert {part.p for part in training.model.modules() if isinstance(part, torch.nn.Dropout)} == {0.0}
    save_model(training.model, training.tokenizer, tmp_path / "model")
    loaded_model = load_masked_lm(tmp_path / "model")
    assert {part.p for part in loaded_model.modules() if isinstance(part, torch.nn.Dropout)} == {0.25}
    assert equal(loaded_model, training)
    assert load_tokenizer(tmp_path / "model").get_vocab() == training.tokenizer.get_vocab()


@pytest.mark.nightly
@pytest.mark.slow
def test_dropout_may_be_asked_for_in_pretraining_and_changes_what_is_learned_alone(setting, tmp_path):
    def train_named(name, start="", **options):
        shape = {"start": start, "architecture": None} if start else {}
        training = with_fields(METHOD, steps=2, **options).train(
            replace(setting, folder=tmp_path / name, **shape)
        )
        save_model(training.model, training.tokenizer, tmp_path / f"{name} saved")
        return training

    plain_result = train_named("plain")
    none = train_named("none", dropout=0.0)
    dropped_value = train_named("dropped", dropout=0.1)
    assert equal(plain_result, none) and not equal(plain_result, dropped_value)
    rates = {
        load_masked_lm(tmp_path / f"{name} saved").config.hidden_dropout_prob for name in ("plain", "dropped")
    }
    assert rates == {setting.architecture.dropout}
    start = str(tmp_path / "plain saved")
    assert not equal(train_named("further", start), train_named("further dropped", start, dropout=0.1))


# Perplexity on held-out text

EVALUATED = with_fields(METHOD, evaluate_every=3)


def test_perplexity_is_noted_for_each_language_after_each_epoch_and_the_last_step(setting):
    training = EVALUATED.train(setting)
    rows = [row for row in training.rows if "metric" in row]
    assert [(row["step"], row["epoch"], row["language"]) for row in rows] == [
        (step, epoch, language) for step, epoch in ((3, 1), (6, 2), (8, 3)) for language in LETTERS
    ]
    assert {(row["split"], row["metric"]) for row in rows} == {("dev", "perplexity")}
    assert all(row["score"] > 1 for row in rows)


def test_perplexity_chooses_nothing_and_changes_nothing(setting, uninterrupted_run):
    plain_training = uninterrupted_run(METHOD)
    evaluated_training = EVALUATED.train(setting)
    assert equal(plain_training, evaluated_training)
    assert plain_training.rows == [row for row in evaluated_training.rows if "metric" not in row]


@two_tokenizers
def test_held_out_text_is_no_part_of_the_vocabulary_nor_trained_on(setting, monkeypatch):
    calls = []
    train = pretraining.train_tokenizer

    def note_training(inputs, **options):
        calls.extend(inputs)
        return train(calls, **options)

    monkeypatch.setattr(pretraining, "train_tokenizer", note_training)
    other_setting = replace(setting, held_out=lambda _: ["xyz xyz a xyz xyz"])
    tokenizer, streams, held_out = pretraining._read(other_setting, EVALUATED)
    assert not any("x" in text for text in calls)
    for language in LETTERS:
        assert tokenizer.unk_token_id not in streams[language].subwords
        assert tokenizer.unk_token_id in held_out[language].subwords


def test_the_same_update_in_parts_is_the_same_within_rounding(setting, uninterrupted_run):
    joint_training = uninterrupted_run(METHOD)
    parts = with_fields(METHOD, accumulation=3).train(setting)
    assert all(
        torch.allclose(left, right, atol=1e-4)
        for left, right in zip(weights(joint_training).values(), weights(parts).values(), strict=True)
    )
    losses = [row["loss"] for row in joint_training.rows]
    assert [row["loss"] for row in parts.rows] == pytest.approx(losses, abs=1e-4)


def test_layers_that_are_computed_anew_give_the_same_model_to_the_bit(setting, tmp_path):
    whole_training = METHOD.train(setting)
    method = with_fields(METHOD, gradient_checkpointing=True)
    training = method.train(replace(setting, folder=tmp_path / "again"))
    assert equal(training, whole_training)
    assert training.rows == whole_training.rows


def test_perplexity_without_held_out_text_is_refused(setting):
    with pytest.raises(DataError, match=r"evaluate_every.*held-out"):
        EVALUATED.train(replace(setting, text=unread, held_out=None))


# Mistakes are reported before text is read


def unread(language):
    raise AssertionError("the text was read")
    yield


def test_rows_longer_than_the_positions_are_refused(setting):
    with pytest.raises(ConfigError, match=r"17.*16"):
        with_fields(METHOD, block=17).train(replace(setting, text=unread))


def test_translation_without_bitext_is_refused(setting):
    with pytest.raises(DataError, match=r"^translation LM .*'bitext'"):
        with_fields(METHOD, translation=0.1).train(replace(setting, text=unread, translations=None))


def test_an_empty_language_is_an_error_that_names_it(setting):
    with pytest.raises(DataError, match="sw:"):
        METHOD.train(
            replace(setting, text=lambda language: lines(language) if language != "sw" else iter(()))
        )


def test_a_full_disk_is_a_storage_error(setting, monkeypatch):
    def full(*_, **__):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(StorageError, match="device"):
        METHOD.train(setting)


# Translations


@two_tokenizers
def test_texts_that_share_a_source_become_one_of_several_languages(setting):
    method = with_fields(METHOD, translation=1.0)
    tokenizer, *_ = pretraining._read(setting, method)
    texts = module._translations(setting, tokenizer, method.training.block)
    assert len(texts) == 40
    for index, text in enumerate(texts):
        assert list(text) == ["en", "de", "sw"]
        for language, ids in text.items():
            expected = tokenizer(line(language, index), add_special_tokens=False)["input_ids"]
            assert ids.tolist() == expected[: method.training.block - 2]
