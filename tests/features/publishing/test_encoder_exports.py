"""Encoders and adapters that leave: folders for transformers, sentence-transformers, peft and adapters."""

import json

import pytest
import torch
from huggingface_hub import constants

import isogloss
from fake_hub import TOKEN, fake_hub
from isogloss.core.errors import ConfigError, ModelError, StorageError
from isogloss.encoders.added.active_language import active_language
from isogloss.encoders.loading import load_model as load_encoder
from isogloss.encoders.tokenizers import load_tokenizer
from isogloss.features.publishing.adapters import AdapterExport, attach
from isogloss.features.publishing.pushing import PushOptions, load_exportable, push
from isogloss.using import load_model

RECIPE = """
title = "Encoders that leave"

[[encoder]]
label = "mad-x"

[encoder.pretrain]
start = "shipped"
text = ["rawtext"]
languages = ["qaa", "qad"]
lines = { qaa = 60, qad = 60 }
modules = { kind = "adapter", after = "feed-forward", invertible = true, normed = true, leave_out = [-1] }
trained = "modules"
method = { steps = 2, batch_subwords = 256 }

[[encoder]]
label = "further"

[encoder.pretrain]
start = "shipped"
text = ["rawtext"]
languages = ["qaa", "qad"]
lines = { qaa = 60, qad = 60 }
method = { steps = 2, batch_subwords = 256 }

[align]
name = "fast-align"

[[adjust]]
name = "cross-lingual-adjustment"
bitext = "bitext"
pairs = ["qaa-qad"]
examples = 40
start = "further"

[grid]
corpus = "ud"
task = "upos"
source = "qaa"
targets = ["qad"]
seeds = [0]
examples = 8
dev_examples = 4
optimization = { epochs = 1, batch_size = 8 }

[[grid.method]]
name = "source-only"
peft = { kind = "adapter", reduction = 16 }
encoders = ["mad-x"]

[[grid.method]]
name = "source-only"
peft = { kind = "lora", rank = 2 }
encoders = ["further"]
"""
TEXTS = ["tuki mirne baboza nir", "sirjor bultujen"]

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def _own_cache(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture(scope="module")
def runs(runs_of):
    """The folders of the runs by what made them."""
    folder = runs_of("encoders-that-leave", RECIPE)
    titles = {path.parent: json.loads(path.read_text())["title"] for path in folder.glob("*/record.json")}
    parts = {
        "mad-x": "modules trained on",
        "adjusted": "cross-lingual-adjustment",
        "adapter": "source-only + adapter",
        "lora": "source-only + lora",
    }
    return {name: next(p for p, title in titles.items() if part in title) for name, part in parts.items()}


def mean_states(folder, texts=TEXTS):
    batch = load_tokenizer(folder)(texts, padding=True, return_tensors="pt")
    with torch.no_grad():
        states = load_encoder(folder)(**batch).last_hidden_state
    real_attention_mask = batch["attention_mask"].unsqueeze(-1)
    return (states * real_attention_mask).sum(dim=1) / real_attention_mask.sum(dim=1)


@pytest.mark.nightly
def test_an_adjusted_encoder_leaves_whole(runs, tmp_path):
    folder = load_exportable(runs["adjusted"]).write(tmp_path / "out")
    assert torch.equal(mean_states(folder), mean_states(runs["adjusted"] / "model"))
    card = (folder / "README.md").read_text()
    assert "library_name: sentence-transformers" in card and "SentenceTransformer(" in card
    assert "cross-lingual-adjustment on qaa-qad" in card
    parts = json.loads((folder / "modules.json").read_text())
    assert [(part["path"], part["type"]) for part in parts] == [
        ("", "sentence_transformers.models.Transformer"),
        ("1_Pooling", "sentence_transformers.models.Pooling"),
    ]
    pooling = json.loads((folder / "1_Pooling" / "config.json").read_text())
    assert pooling == {"word_embedding_dimension": 128, "pooling_mode_mean_tokens": True}
    with pytest.raises(ModelError, match=r"sentence-transformers \(BertForMaskedLM\)"):
        load_model(folder)


def test_sentence_transformers_makes_the_same_vectors(runs, tmp_path):
    library = pytest.importorskip("sentence_transformers")
    folder = load_exportable(runs["adjusted"]).write(tmp_path / "out")
    vectors = library.SentenceTransformer(str(folder), device="cpu").encode(TEXTS)
    torch.testing.assert_close(torch.tensor(vectors), mean_states(folder))


def test_an_encoder_with_modules_leaves_with_them_and_says_so(runs, tmp_path):
    folder = load_exportable(runs["mad-x"]).write(tmp_path / "out")
    assert (folder / "language_modules.safetensors").is_file()
    assert "**Not the whole model.** It has adapter modules for each" in (folder / "README.md").read_text()


def test_adapters_of_languages_leave_alone_and_come_back(runs, tmp_path):
    folder = load_exportable(runs["mad-x"]).write(tmp_path / "out", adapter=True)
    assert sorted(path.name for path in folder.iterdir()) == ["README.md", "qaa", "qad"]
    card = (folder / "README.md").read_text()
    assert "library_name: adapter-transformers" in card and 'load_adapter("FOLDER/qad"' in card
    again = attach("shipped", tmp_path / "in", {language: folder / language for language in ("qaa", "qad")})
    ids = torch.tensor([[2, 17, 29, 31, 3]])
    for language_code in ("qaa", "qad"):
        with torch.no_grad():
            ours, theirs = (load_encoder(path) for path in (runs["mad-x"] / "model", again))
            with active_language(ours, language_code), active_language(theirs, language_code):
                assert torch.equal(ours(ids).last_hidden_state, theirs(ids).last_hidden_state)


def test_a_tasks_adapter_leaves_with_its_head_and_comes_back(runs, tmp_path):
    model = load_model(runs["adapter"], precision="float32")
    folder = model.export(tmp_path / "out", adapter=True)
    assert 'Stack("qaa", "task")' in (folder / "README.md").read_text()
    languages = {language: folder / language for language in ("qaa", "qad")}
    attached_value = attach("shipped", tmp_path / "in", languages, task=folder / "task")
    again = load_model(attached_value, precision="float32")
    words = [text.split() for text in TEXTS]
    for language_code in ("qaa", "qad"):
        assert again.predict(words, language=language_code) == model.predict(words, language=language_code)
    assert type(again.network).__name__ == "BertForTokenClassification"


@pytest.mark.nightly
def test_lora_leaves_alone_and_names_its_base(runs, tmp_path):
    peft = pytest.importorskip("peft")
    from transformers import AutoModelForTokenClassification

    model = load_model(runs["lora"], precision="float32")
    folder = model.export(tmp_path / "out", adapter=True)
    assert {path.name for path in folder.iterdir()} == {
        "README.md",
        "adapter_config.json",
        "adapter_model.safetensors",
        "config.json",
    }
    again = load_model(folder, precision="float32")
    assert again.provenance == model.provenance
    assert again.predict([text.split() for text in TEXTS]) == model.predict([text.split() for text in TEXTS])
    base = json.loads((folder / "adapter_config.json").read_text())["base_model_name_or_path"]
    card = (folder / "README.md").read_text()
    assert "library_name: peft" in card and 'from_pretrained("ENCODER", num_labels=17)' in card
    assert "a local encoder (shipped, pretrained further on qaa qad). Put its" in card and base not in card
    theirs = AutoModelForTokenClassification.from_pretrained(base, num_labels=17)
    theirs = peft.PeftModel.from_pretrained(theirs, str(folder)).eval()
    ids = torch.tensor([[2, 17, 29, 31, 3]])
    with torch.no_grad():
        torch.testing.assert_close(theirs(ids).logits, model.network(ids).logits, atol=1e-5, rtol=1e-5)


@pytest.mark.nightly
def test_a_base_in_a_folder_is_described_and_one_on_the_hub_is_loaded_by_its_commit(tmp_path):
    local = AdapterExport("peft", str(tmp_path))
    assert local.base_code == '"ENCODER"'
    assert local.base_text("gemma, a local folder").startswith("a local encoder (gemma, a local folder). ")
    hub_adapter_export = AdapterExport("peft", f"owner/name@{'0' * 40}")
    assert hub_adapter_export.base_code == f'"owner/name", revision="{"0" * 40}"'
    assert hub_adapter_export.base_text("any") == hub_adapter_export.base


def test_what_has_no_adapters_or_no_answers_is_refused(runs, tmp_path):
    encoder = load_exportable(runs["adjusted"])
    with pytest.raises(ConfigError, match="adapters"):
        encoder.write(tmp_path / "out", adapter=True)
    with pytest.raises(ConfigError, match=r"--onnx: .*encoder"):
        encoder.write(tmp_path / "out", onnx=True)
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").touch()
    with pytest.raises(StorageError, match="earlier"):
        encoder.write(tmp_path / "full")
    with pytest.raises(ModelError, match="fine-tune"):
        isogloss.load_model(runs["adjusted"])
    with pytest.raises(ConfigError, match=r"--adapter: .*ONNX"):
        load_model(runs["lora"]).export(tmp_path / "out", adapter=True, onnx=True)
    with pytest.raises(ConfigError, match="attach:"):
        attach("shipped", tmp_path / "out", {})
    assert not (tmp_path / "out").exists()


@pytest.mark.nightly
def test_an_encoder_is_pushed_with_the_card_of_its_name(runs, monkeypatch):
    encoder = load_exportable(runs["adjusted"])
    with fake_hub() as hub:
        values = {"ENDPOINT": hub.address, "HF_HUB_DISABLE_XET": True, "HF_HUB_OFFLINE": False}
        for name, value in values.items():
            monkeypatch.setattr(constants, name, value)
        monkeypatch.setenv("HF_TOKEN", TOKEN)
        assert push(encoder, PushOptions(name="adjusted")).startswith(f"{hub.address}/me/adjusted/commit/")
        (received_branch,) = hub.repositories["me/adjusted"].branches.values()
    assert {"modules.json", "1_Pooling/config.json", "model.safetensors"} <= received_branch.keys()
    assert 'SentenceTransformer("me/adjusted")' in received_branch["README.md"].decode()
