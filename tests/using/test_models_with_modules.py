"""A model whose encoder has language modules must know the language, and its export says so."""

import pytest
import torch
from used import joined, text_file

from isogloss.core.errors import ConfigError
from isogloss.core.run_parts import Modules
from isogloss.encoders import load_model as load_encoder
from isogloss.encoders import load_tokenizer, save_model
from isogloss.encoders.language_modules import add_modules, language_parameters
from isogloss.using import PredictOptions, load_model, predict_file
from isogloss.using.exporting import export

SENTENCES = [["the", "cat", "sat", "."], ["Anna", "happened", "slowly"]] * 4


@pytest.fixture
def make(make_model, bert_folder, tmp_path):
    def made(kind):
        encoder = load_encoder(bert_folder)
        add_modules(encoder, Modules(kind=kind), ("en", "fr"), seed=0)
        with torch.no_grad():
            for weight in language_parameters(encoder, "fr").values():
                weight.add_(torch.randn(weight.shape, generator=torch.Generator().manual_seed(0)))
        save_model(encoder, load_tokenizer(bert_folder), tmp_path / kind)
        return make_model(encoder=tmp_path / kind)

    return made


@pytest.mark.parametrize("kind", ["adapter", "feed-forward", "attention"])
def test_answers_depend_on_the_language(make, make_model, kind):
    model = make(kind)
    english, french = (model.predict(SENTENCES, language=code) for code in ("en", "fr"))
    assert english == make_model().predict(SENTENCES) != french


def test_a_language_must_be_said_and_known(make):
    model = make("adapter")
    with pytest.raises(ConfigError, match=r"not said which language it reads. Known: en, fr. Name it"):
        model.predict(SENTENCES)
    with pytest.raises(ConfigError, match="none for 'sw'"):
        model.predict(SENTENCES, language="sw")
    with pytest.raises(ConfigError, match="--language"):
        predict_file(model, text_file(joined(" ".join(words) for words in SENTENCES)), PredictOptions())


@pytest.mark.parametrize(
    ("kind", "without"),
    [
        ("adapter", "run the encoder without its adapters"),
        ("feed-forward", "read every language with the modules of English (en)"),
    ],
)
def test_an_export_keeps_the_modules_and_says_who_does_not_read_them(make, kind, without, tmp_path):
    model = make(kind)
    folder = export(model, tmp_path / "out")
    card = " ".join((folder / "README.md").read_text().split())
    assert f"{kind} modules for each of these languages, in `language_modules.safetensors`" in card
    assert (
        ": English (en), French (fr). Programs that load this folder without isogloss leave that file out, "
        in card
    )
    assert without in card and 'predict(inputs, language="en")' in card
    again = load_model(folder, precision="float32")
    for language in ("en", "fr"):
        assert again.predict(SENTENCES, language=language) == model.predict(SENTENCES, language=language)


def test_the_card_of_any_other_model_says_nothing_of_modules(make_model, tmp_path):
    assert "language_modules" not in (export(make_model(), tmp_path / "out") / "README.md").read_text()


def test_an_onnx_file_of_one_language_alone_is_not_made(make, tmp_path):
    with pytest.raises(ConfigError, match="--onnx: the encoder has modules for each language"):
        export(make("adapter"), tmp_path / "out", onnx=True)
    assert not (tmp_path / "out").exists()
