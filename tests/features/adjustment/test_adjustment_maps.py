"""Procrustes and centring map the states of each target language. The encoder stays as it is."""

from dataclasses import replace

import pytest
import torch

from aligned import translations
from isogloss.core.errors import ConfigError
from isogloss.core.run_parts import with_fields
from isogloss.encoders.added.active_language import active_language, language_maps_of
from isogloss.encoders.loading import load_model, load_whole
from isogloss.encoders.saving import save_model
from isogloss.encoders.tokenizers import load_tokenizer
from isogloss.features.adjustment.methods import Centring, ContrastiveAlignment, LevelEncoding, Procrustes
from isogloss.methods import ADJUSTMENTS
from isogloss.training.setting import AdjustSetting
from isogloss.training.states import sentence_states

EVERY = [
    Procrustes(precision="float32"),
    Procrustes(precision="float32", reading=LevelEncoding(level="sentence")),
    Centring(precision="float32"),
    Centring(precision="float32", scale=True, reading=LevelEncoding(level="sentence")),
]


@pytest.fixture
def setting(bert_folder, tmp_path):
    pairs = {"en-xx": translations(24), "en-yy": translations(24, seed=1)}
    return AdjustSetting(start=str(bert_folder), bitext=pairs, folder=tmp_path / "work", seed=0)


def maps_by(method, setting):
    return language_maps_of(method.train(setting).model)


@pytest.mark.parametrize("method", EVERY, ids=str)
def test_the_encoder_stays_as_it_is_to_the_bit(method, setting, bert_folder):
    training = method.train(setting)
    weights_before = load_whole(bert_folder).state_dict()
    weights_after = training.model.state_dict()
    assert weights_before.keys() == weights_after.keys()
    assert all(torch.equal(weights_after[name], weight) for name, weight in weights_before.items())
    maps = language_maps_of(training.model)
    assert (maps.source, maps.maps.keys()) == ("en", {"xx", "yy"})
    assert [row["pair"] for row in training.rows] == ["en-xx", "en-yy"]


def test_a_rotation_keeps_lengths_and_angles(setting):
    matrix = maps_by(EVERY[0], setting).maps["xx"].matrix
    torch.testing.assert_close(matrix @ matrix.T, torch.eye(32), rtol=0, atol=1e-5)


def test_centring_moves_and_scales_each_dimension_alone(setting):
    shifted_matrix, scaled_matrix = (maps_by(item, setting).maps["xx"].matrix for item in EVERY[2:])
    assert torch.equal(shifted_matrix, torch.eye(32))
    assert torch.equal(scaled_matrix, torch.diag(scaled_matrix.diagonal()))
    assert not torch.equal(scaled_matrix, shifted_matrix)


@pytest.mark.parametrize("method", EVERY[1::2], ids=str)
def test_the_means_of_sentences_become_the_source_s(method, setting, bert_folder):
    model = method.train(setting).model
    tokenizer = load_tokenizer(bert_folder)
    pairs = setting.bitext
    for language, translated_pairs in (("xx", pairs["en-xx"]), ("yy", pairs["en-yy"])):
        means = []
        for language_code, side in (("en", "first"), (language, "second")):
            with active_language(model, language_code):
                texts = [getattr(item, side) for item in translated_pairs]
                means.append(sentence_states(model, tokenizer, texts, precision="float32")[0].mean(dim=0))
        torch.testing.assert_close(*means, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize(
    "method", [EVERY[0], EVERY[2], with_fields(ContrastiveAlignment(), precision="float32")], ids=str
)
def test_what_has_maps_already_is_not_adjusted_again(method, setting, tmp_path):
    mapped_training = EVERY[0].train(setting)
    save_model(mapped_training.model, mapped_training.tokenizer, tmp_path / "mapped")
    with pytest.raises(ConfigError, match="language's states"):
        method.train(replace(setting, start=str(tmp_path / "mapped")))


@pytest.mark.slow
def test_methods_say_whether_they_map(setting):
    for kind in ADJUSTMENTS.values():
        training = (kind() if kind.maps else with_fields(kind(), epochs=0)).train(setting)
        assert (language_maps_of(training.model) is not None) == kind.maps


def test_the_states_of_the_source_are_those_of_the_encoder_to_the_bit(setting, bert_folder):
    model = EVERY[0].train(setting).model
    tokenizer = load_tokenizer(bert_folder)
    texts = [pair.first for pair in setting.bitext["en-xx"]]
    with active_language(model, "en"):
        result = sentence_states(model, tokenizer, texts, precision="float32")
    assert torch.equal(
        result, sentence_states(load_model(bert_folder), tokenizer, texts, precision="float32")
    )
