"""A model whose encoder has modules or maps for languages must know the language, and its export says so."""

from shutil import copytree

import pytest
import torch

from each import each
from isogloss.core.errors import ConfigError
from isogloss.core.run_parts import Modules
from isogloss.encoders.added.active_language import LanguageMaps
from isogloss.encoders.added.added_weights import language_parameters, write_language_maps
from isogloss.encoders.added.language_layers import LanguageMap
from isogloss.encoders.added.language_modules import add_modules
from isogloss.encoders.added.task_adapters import add_task_adapter
from isogloss.encoders.loading import load_model as load_encoder
from isogloss.encoders.saving import save_model
from isogloss.encoders.tokenizers import load_tokenizer
from isogloss.features.publishing.exporting import export
from isogloss.using import PredictOptions, load_model, predict_file
from used import join_lines, text_file

SENTENCES = [["the", "cat", "sat", "."], ["Anna", "happened", "slowly"]] * 4
TEXT = join_lines(" ".join(words) for words in SENTENCES)
SAID = {
    "maps": (
        "onto English (en), with the maps in `language_maps.safetensors`: German (de), French (fr).",
        'predict(inputs, language="de")',
    ),
    "adapter": (
        "adapter modules for each of these languages, in `language_modules.safetensors`: English (en), "
        "French (fr). Programs that load this folder without isogloss leave that file out, ",
        "run the encoder without its adapters",
        'predict(inputs, language="en")',
    ),
    "feed-forward": (
        "feed-forward modules for each of these languages, in `language_modules.safetensors`",
        "read every language with the modules of English (en)",
    ),
    "attention": ("attention modules for each of these languages",),
    "task": (
        "run the encoder without its adapters",
        "Only adapters of the task and the head were trained; the adapters are in `task_adapter",
    ),
}
"""Sentence in the card of an exported model, by the kind of the encoder's parts."""


@pytest.fixture
def make(make_model, bert_folder, tmp_path):
    """Make a tagger whose encoder differs between English, which it reads as without parts, and French."""

    def make_with_parts(kind):
        folder = tmp_path / kind
        generator = torch.Generator().manual_seed(0)
        if kind == "maps":
            copytree(bert_folder, folder)
            turned_value = torch.linalg.qr(torch.randn(32, 32, generator=generator)).Q
            maps = {"fr": LanguageMap(turned_value, torch.ones(32))}
            maps["de"] = LanguageMap(torch.eye(32), torch.zeros(32))
            write_language_maps(LanguageMaps("en", maps), folder)
            return make_model(encoder=folder)
        encoder = load_encoder(bert_folder)
        modules = Modules(kind="adapter", invertible=True) if kind == "task" else Modules(kind=kind)
        add_modules(encoder, modules, ("en", "fr"), seed=0)
        if kind == "task":
            add_task_adapter(encoder, 4, seed=0)
        with torch.no_grad():
            for weight in language_parameters(encoder, "fr").values():
                weight.add_(torch.randn(weight.shape, generator=torch.Generator().manual_seed(0)))
        save_model(encoder, load_tokenizer(bert_folder), folder)
        return make_model(encoder=folder)

    return make_with_parts


@pytest.mark.parametrize("kind", SAID)
def test_answers_depend_on_the_language(make, make_model, kind):
    model = make(kind)
    english, french = (model.predict(SENTENCES, language=language) for language in ("en", "fr"))
    assert english == make_model().predict(SENTENCES) != french
    assert kind != "maps" or model.predict(SENTENCES, language="de") == english  # Its map changes nothing.


@pytest.mark.parametrize(
    ("kind", "known_name", "unknown_name"),
    [("maps", "de, en, fr", "'sw'"), ("adapter", "en, fr", "'sw'")],
)
def test_a_language_must_be_given_and_known(make, kind, known_name, unknown_name):
    model = make(kind)
    with pytest.raises(ConfigError, match=f"{known_name}"):
        model.predict(SENTENCES)
    with pytest.raises(ConfigError, match=unknown_name):
        model.predict(SENTENCES, language="sw")
    with pytest.raises(ConfigError, match="--language"):
        predict_file(model, text_file(TEXT), PredictOptions())


def test_files_are_predicted_in_their_language(make):
    model = make("maps")
    files = list(predict_file(model, text_file(TEXT), PredictOptions(language="fr", as_json=True)))
    for line, tags in each(zip(files, model.predict(SENTENCES, language="fr"), strict=True)):
        assert f'"labels": {list(tags)}'.replace("'", '"') in line


@pytest.mark.slow
@pytest.mark.parametrize("kind", SAID)
def test_an_export_keeps_the_parts_and_says_who_does_not_use_them(make, kind, tmp_path):
    model = make(kind)
    folder = export(model, tmp_path / "out")
    card = " ".join((folder / "README.md").read_text().split())
    assert [message for message in SAID[kind] if message not in card] == []
    again = load_model(folder, precision="float32")
    for language in ("en", "fr"):
        assert again.predict(SENTENCES, language=language) == model.predict(SENTENCES, language=language)


def test_the_card_of_any_other_model_says_nothing_of_languages(make_model, tmp_path):
    card = (export(make_model(), tmp_path / "out") / "README.md").read_text()
    assert "language_maps" not in card and "language_modules" not in card


def test_an_onnx_file_of_one_language_alone_is_not_made(make, tmp_path):
    with pytest.raises(ConfigError, match=r"--onnx: .*encoder"):
        export(make("adapter"), tmp_path / "out", onnx=True)
    assert not (tmp_path / "out").exists()
