"""Encoders that are trained further: they start as they were, and keep what they were."""

import random
from dataclasses import replace

import numpy as np
import pytest
import torch

import made_up_text
from isogloss.core.errors import ConfigError
from isogloss.core.run_parts import NewSubwords, Replay, with_fields
from isogloss.data.examples import Translation
from isogloss.encoders.added.active_language import LanguageMaps, attach_language_maps
from isogloss.encoders.added.language_layers import LanguageMap
from isogloss.encoders.loading import load_masked_lm, load_model, load_whole
from isogloss.encoders.saving import save_model
from isogloss.encoders.tokenizers import load_tokenizer
from isogloss.tasks.masked_lm import TextStream
from isogloss.training.batching import BatchSampling, TextBatches, language_shares
from made_up import TEXT
from made_up_text import METHOD, known_lines
from trained import equal, interrupt_batches

SLOW = pytest.mark.slow
NOTHING = with_fields(METHOD, steps=0)


def translations(first_part, second):
    for index, pair in enumerate(zip(known_lines(first_part), known_lines(second), strict=True)):
        yield Translation(id=str(index), first=pair[0], second=pair[1])


@pytest.fixture
def further(bert_folder, tmp_path):
    def make(**changes):
        inputs = {"start": bert_folder, "folder": tmp_path / "work", "translations": translations, **changes}
        return made_up_text.further(**inputs)

    return make


@pytest.mark.slow
def test_no_step_leaves_every_weight_and_the_tokenizer_as_they_were(further, encoder_folder, tmp_path):
    training = NOTHING.train(further(start=str(encoder_folder)))
    save_model(training.model, training.tokenizer, tmp_path / "saved")
    for load in (load_masked_lm, load_whole):
        assert equal(load(tmp_path / "saved"), load(encoder_folder))
    saved_tokenizer = load_tokenizer(tmp_path / "saved")
    read = load_tokenizer(encoder_folder)
    assert saved_tokenizer.get_vocab() == read.get_vocab() and saved_tokenizer(TEXT) == read(TEXT)


@pytest.mark.slow
def test_every_family_is_trained_further_and_resumes_to_the_bit(
    further, encoder_folder, tmp_path, monkeypatch
):
    setting = further(start=str(encoder_folder))
    whole_training = METHOD.train(replace(setting, folder=tmp_path / "whole"))
    with interrupt_batches(TextBatches, monkeypatch, at=5):
        METHOD.train(setting)
    again = METHOD.train(setting)
    assert equal(again, whole_training) and not equal(whole_training, load_whole(encoder_folder))
    assert again.rows == whole_training.rows


@pytest.mark.nightly
@pytest.mark.slow
def test_a_pooler_is_kept_and_dropout_comes_back(further, bert_folder, tmp_path):
    start = load_whole(bert_folder)
    start.base_model.pooler = type(load_model(bert_folder))(start.config).pooler
    start.config.hidden_dropout_prob = 0.3
    save_model(start, load_tokenizer(bert_folder), tmp_path / "start")
    training = METHOD.train(further(start=str(tmp_path / "start")))
    assert {part.p for part in training.model.modules() if isinstance(part, torch.nn.Dropout)} == {0.0}
    save_model(training.model, training.tokenizer, tmp_path / "saved")
    saved_model = load_whole(tmp_path / "saved")
    assert equal(saved_model.base_model.pooler, start.base_model.pooler)
    assert (saved_model.config.hidden_dropout_prob, saved_model.config.attention_probs_dropout_prob) == (
        0.3,
        0.1,
    )


@pytest.mark.slow
def test_a_missing_head_is_drawn_from_the_seed_and_the_encoder_stays(further, encoder_folder, tmp_path):
    save_model(load_model(encoder_folder), load_tokenizer(encoder_folder), tmp_path / "headless")
    start = str(tmp_path / "headless")
    training, again, other_training = (
        NOTHING.train(further(start=start, seed=seed, folder=tmp_path / name))
        for name, seed in (("one", 0), ("again", 0), ("other", 1))
    )
    assert equal(training, again) and not equal(training, other_training)
    assert equal(training.model.base_model, load_model(encoder_folder))


def test_translation_lm_goes_on_too(further, bert_folder):
    training = with_fields(METHOD, translation=0.5).train(further())
    assert not equal(training, load_whole(bert_folder))


@pytest.mark.nightly
@pytest.mark.slow
def test_perplexity_is_noted_before_the_first_step_and_after_each_epoch(further, tmp_path):
    method = with_fields(METHOD, evaluate_every=4, steps=40, checkpoint_every=0)
    training = method.train(further())
    rows = [row for row in training.rows if row.get("metric") == "perplexity"]
    assert [(row["step"], row["epoch"]) for row in rows][::2] == [
        (step, step // 4) for step in range(0, 44, 4)
    ]
    score_before = rows[0]["score"]
    score_after = rows[-2]["score"]
    assert rows[0]["language"] == rows[-2]["language"] == "en" and score_after < 0.7 * score_before
    training = with_fields(method, steps=0).train(further(folder=tmp_path / "nothing"))
    assert training.rows == rows[:2]


def test_an_encoder_that_maps_states_is_refused(further, bert_folder, tmp_path):
    start = load_whole(bert_folder)
    same_language_map = LanguageMap(torch.eye(32), torch.zeros(32))
    attach_language_maps(start, LanguageMaps("en", {"sw": same_language_map}))
    save_model(start, load_tokenizer(bert_folder), tmp_path / "mapped")
    with pytest.raises(ConfigError, match="language's states"):
        METHOD.train(further(start=str(tmp_path / "mapped")))


def test_rows_longer_than_the_positions_of_the_start_are_refused(further):
    with pytest.raises(ConfigError, match=r"161.*encoder.*160"):
        with_fields(METHOD, block=161, batch_subwords=200).train(further())


def test_a_tokenizer_without_mask_is_refused(further, bert_folder, tmp_path):
    tokenizer = load_tokenizer(bert_folder)
    tokenizer.mask_token = None
    save_model(load_whole(bert_folder), tokenizer, tmp_path / "maskless")
    with pytest.raises(ConfigError, match="mask_token"):
        METHOD.train(further(start=str(tmp_path / "maskless")))


# Replay


def replaying(share):
    return Replay(languages=("de",), share=share)


@pytest.mark.nightly
@pytest.mark.slow
@pytest.mark.parametrize("mixed_result", [False, True])
def test_replay_without_a_share_is_measured_and_changes_nothing(further, tmp_path, mixed_result):
    method = with_fields(METHOD, mixed=mixed_result, evaluate_every=4)
    plain_training = method.train(further(folder=tmp_path / "plain"))
    measured_training = method.train(further(replay=replaying(0.0)))
    assert equal(plain_training, measured_training)
    assert [row for row in measured_training.rows if row.get("language") != "de"] == plain_training.rows
    assert [row["step"] for row in measured_training.rows if row.get("language") == "de"] == [0, 4, 8]


def test_replayed_languages_have_their_share_and_the_others_what_is_left():
    sizes = {"en": 100, "sw": 400, "de": 50, "fr": 50}
    streams = {language: TextStream(np.zeros(size), np.zeros(1)) for language, size in sizes.items()}
    batch_sampling = BatchSampling(steps=1, batch_subwords=8, block=8, temperature=2.0)
    assert language_shares(streams, batch_sampling)["sw"] == pytest.approx(20 / (10 + 20 + 2 * 50**0.5))
    replay = Replay(languages=("de", "fr"), share=0.3)
    shares = language_shares(streams, replace(batch_sampling, replay=replay))
    assert shares == pytest.approx({"en": 0.7 / 3, "sw": 1.4 / 3, "de": 0.15, "fr": 0.15})


@pytest.mark.nightly
@SLOW
def test_replay_forgets_less(further, tmp_path):
    letters = {"en": "abc", "sw": "abc", "de": "xyz"}
    lines = {
        language: [" ".join(random.Random(n).choices(own_letter, k=9)) for n in range(60)]
        for language, own_letter in letters.items()
    }

    def last(name, share):
        setting = further(
            text=lines.__getitem__,
            held_out=lines.__getitem__,
            replay=replaying(share),
            folder=tmp_path / name,
        )
        method = with_fields(METHOD, steps=40, evaluate_every=40, checkpoint_every=0)
        return {row["language"]: row["score"] for row in method.train(setting).rows if "metric" in row}

    assert last("with", 0.5)["de"] < 0.5 * last("without", 0.0)["de"]


# New subwords


@pytest.mark.nightly
@pytest.mark.slow
@pytest.mark.parametrize(
    "embeddings",
    ["translations", *(pytest.param(name, marks=SLOW) for name in ("subword-averages", "random"))],
)
def test_an_encoder_gains_subwords_and_resumes_to_the_bit(further, tmp_path, monkeypatch, embeddings):
    def greek(language):
        return [line.translate(str.maketrans("aeiou", "αεηου")) for line in known_lines(language)]

    links = tuple((place, place) for place in range(9))
    pairs = [
        Translation(id=str(index), first=first_known_line, second=second, links=links)
        for index, (first_known_line, second) in enumerate(zip(known_lines("sw"), greek("sw"), strict=True))
    ]
    new_subwords = NewSubwords(size=90, embeddings=embeddings)
    setting = further(
        text=greek, held_out=greek, vocabulary=new_subwords, languages=("sw",), bitext={"en-sw": pairs}
    )
    method = with_fields(METHOD, evaluate_every=4)
    whole_training = method.train(replace(setting, folder=tmp_path / "whole"))
    with interrupt_batches(TextBatches, monkeypatch, at=5):
        method.train(setting)
    again = method.train(setting)
    assert (
        equal(again, whole_training) and again.tokenizer.get_vocab() == whole_training.tokenizer.get_vocab()
    )
    assert again.rows == whole_training.rows
    added_row, *sources = whole_training.rows[0].values()
    assert added_row == sum(sources) > 20
    from_translations, from_averages, random_count = (bool(count) for count in sources)
    assert from_translations == (embeddings == "translations")
    assert from_averages == (embeddings != "random") and random_count
