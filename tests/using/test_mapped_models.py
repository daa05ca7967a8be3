"""A model whose encoder maps each language's states must know the language, and its export says so."""

from shutil import copytree

import pytest
import torch
from used import joined, text_file

from isogloss.core.errors import ConfigError
from isogloss.encoders.language_context import LanguageMaps, write_language_maps
from isogloss.nn.language_modules import LanguageMap
from isogloss.using import PredictOptions, load_model, predict_file
from isogloss.using.exporting import export

SENTENCES = [["the", "cat", "sat", "."], ["Anna", "happened", "slowly"]] * 4


@pytest.fixture
def model(make_model, bert_folder, tmp_path):
    copytree(bert_folder, tmp_path / "mapped")
    turned = torch.linalg.qr(torch.randn(32, 32, generator=torch.Generator().manual_seed(0))).Q
    maps = {"fr": LanguageMap(turned, torch.ones(32)), "de": LanguageMap(torch.eye(32), torch.zeros(32))}
    write_language_maps(LanguageMaps("en", maps), tmp_path / "mapped")
    return make_model(encoder=tmp_path / "mapped")


def test_answers_depend_on_the_language(model):
    english, french, german = (model.predict(SENTENCES, language=code) for code in ("en", "fr", "de"))
    assert english == german != french


def test_the_source_is_answered_as_without_maps(model, make_model):
    assert model.predict(SENTENCES, language="en") == make_model().predict(SENTENCES)


def test_a_language_must_be_said_and_known(model):
    with pytest.raises(ConfigError, match=r"not said which language it reads. Known: de, en, fr. Name it"):
        model.predict(SENTENCES)
    with pytest.raises(ConfigError, match="no map for 'sw'"):
        model.predict(SENTENCES, language="sw")


def test_files_are_predicted_in_their_language(model):
    text = joined(" ".join(words) for words in SENTENCES)
    found = list(predict_file(model, text_file(text), PredictOptions(language="fr", as_json=True)))
    assert len(found) == len(SENTENCES)
    for line, tags in zip(found, model.predict(SENTENCES, language="fr"), strict=True):
        assert f'"labels": {list(tags)}'.replace("'", '"') in line
    with pytest.raises(ConfigError, match="--language"):
        predict_file(model, text_file(text), PredictOptions())


def test_an_export_keeps_the_maps_and_says_who_does_not_apply_them(model, tmp_path):
    folder = export(model, tmp_path / "out")
    card = (folder / "README.md").read_text()
    assert (
        "onto English (en), with the\nmaps in `language_maps.safetensors`: German (de), French (fr)." in card
    )
    assert 'predict(inputs, language="de")' in card
    again = load_model(folder, precision="float32")
    assert again.predict(SENTENCES, language="fr") == model.predict(SENTENCES, language="fr")


def test_the_card_of_any_other_model_says_nothing_of_maps(make_model, tmp_path):
    assert "language_maps" not in (export(make_model(), tmp_path / "out") / "README.md").read_text()
