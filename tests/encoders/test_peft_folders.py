"""Folders of the library peft: read as models and encoders, with the base they name."""

import json
import shutil

import pytest
import torch
import transformers

from isogloss.encoders.added.peft_folders import complete_folder
from isogloss.encoders.loading import load_model, load_with_new_head
from isogloss.encoders.tokenizers import load_tokenizer
from isogloss.runs.pretrained import identify_encoder, model_folder
from isogloss.using import load_model as load_fine_tuned
from networks import IDS, LABELS, refusal

peft = pytest.importorskip("peft")


@pytest.fixture
def make(bert_folder, tmp_path, monkeypatch):
    """Save LoRA on a tiny encoder as its own scripts would."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))

    def save(auto_class="AutoModelForTokenClassification", task="TOKEN_CLS", base=bert_folder, **options):
        heads = {"num_labels": 3} if "For" in auto_class else {}
        with torch.random.fork_rng():
            torch.manual_seed(3)
            model = getattr(transformers, auto_class).from_pretrained(base, **heads)
            config = peft.LoraConfig(task_type=task, r=2, target_modules=["query", "value"], **options)
            model = peft.get_peft_model(model.eval(), config)
            with torch.no_grad():
                for name, weight in model.named_parameters():
                    if "lora_" in name:
                        weight.normal_(0, 0.3)
        model.save_pretrained(tmp_path / "theirs")
        return model.eval(), tmp_path / "theirs"

    return save


def test_adapters_with_a_head_are_a_model(make):
    theirs, folder = make()
    ours = load_fine_tuned(folder, precision="float32")
    assert (ours.task.name, ours.provenance.run) == ("word-tagging", "theirs")
    with torch.no_grad():
        torch.testing.assert_close(ours.network(IDS).logits, theirs(IDS).logits, atol=1e-5, rtol=1e-5)
    assert len(ours.predict([["the", "cat"]])[0]) == 2


def test_a_saved_pooler_makes_a_classifier_whole(make):
    theirs, folder = make(
        "AutoModelForSequenceClassification", "SEQ_CLS", modules_to_save=["classifier", "pooler"]
    )
    with torch.no_grad():
        ours = load_fine_tuned(folder).network(IDS).logits
        torch.testing.assert_close(ours, theirs(IDS).logits, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("auto_class", ["AutoModelForTokenClassification", "AutoModel"])
def test_adapters_are_an_encoder(make, auto_class):
    theirs, folder = make(auto_class, "TOKEN_CLS" if "For" in auto_class else "FEATURE_EXTRACTION")
    encoder = load_model(model_folder(str(folder)))
    inner = theirs.base_model.model
    with torch.no_grad():
        states = getattr(inner, "bert", inner)(IDS).last_hidden_state
        torch.testing.assert_close(encoder(IDS).last_hidden_state, states, atol=1e-5, rtol=1e-5)
    names = identify_encoder(str(folder))
    assert names.source == "theirs" and names == identify_encoder(str(folder))


def test_a_new_head_is_put_on_them(make):
    _, folder = make("AutoModel", "FEATURE_EXTRACTION")
    model = load_with_new_head(
        complete_folder(folder), "AutoModelForTokenClassification", labels=LABELS, seed=0
    )
    assert model.classifier.weight.shape[0] == 3
    assert load_tokenizer(complete_folder(folder)).is_fast


def test_a_missing_pooler_is_not_drawn_anew(bert_folder, tmp_path, make):
    base = tmp_path / "base"
    load_tokenizer(bert_folder).save_pretrained(base)
    transformers.AutoModelForMaskedLM.from_pretrained(bert_folder).save_pretrained(base)
    _, folder = make("AutoModelForSequenceClassification", "SEQ_CLS", base=base)
    assert "saved without bert.pooler.dense.bias (and 1 more)" in refusal(load_fine_tuned, folder)


@pytest.mark.parametrize("change", ["base", "weights", "adapterhub"])
def test_what_cannot_be_completed_is_described(make, change):
    _, folder = make()
    path = folder / "adapter_config.json"
    body = json.loads(path.read_text())
    if change == "base":
        path.write_text(json.dumps(body | {"base_model_name_or_path": "/no/such folder"}))
        message = "adapters, '/no/such folder'"
    elif change == "weights":
        (folder / "adapter_model.safetensors").unlink()
        message = "adapter_model.safetensors"
    else:
        path.write_text(json.dumps({"config": {}, "model_type": "bert"}))
        message = "library adapters)"
    assert message in refusal(load_fine_tuned, folder)
    assert message in refusal(model_folder, str(folder))


def test_a_changed_base_is_another_model(make, bert_folder, tmp_path):
    base = tmp_path / "base"
    shutil.copytree(bert_folder, base)
    _, folder = make(base=base)
    folder_before = complete_folder(folder)
    (base / "config.json").write_text((base / "config.json").read_text() + "\n")
    assert complete_folder(folder) != folder_before


def test_a_base_on_the_hub_is_pinned(make, bert_folder, hub_cache):
    hub_cache("me/base", bert_folder)
    _, folder = make()
    path = folder / "adapter_config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"base_model_name_or_path": "me/base"}))
    model = complete_folder(folder)
    base = json.loads((model / "difference.json").read_text())["base"]
    assert base.startswith("me/base@") and len(base) == len("me/base@") + 40
    assert load_fine_tuned(folder).task.name == "word-tagging"


def test_adapters_on_the_hub_are_downloaded_first(make, hub_cache):
    _, folder = make()
    hub_cache("me/adapters", folder)
    assert "me/adapters:" in refusal(load_fine_tuned, "me/adapters")
