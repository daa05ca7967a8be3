"""Folders as they lie on the hub: by older versions, in half precision, with parts missing or added."""

import json
import shutil
import sys
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from isogloss.core.errors import ModelError
from isogloss.encoders import FAMILIES, load_masked_lm, load_model, load_tokenizer
from isogloss.encoders.loading import load_with_new_head


@pytest.fixture
def hub_folder(encoder_folder, tmp_path):
    return Path(shutil.copytree(encoder_folder, tmp_path / encoder_folder.name))


def rewritten(hub_folder, change):
    """Give the weights other names or types, or none when ``change`` returns none."""
    weights = load_file(hub_folder / "model.safetensors")
    changed = dict(pair for name, value in weights.items() if (pair := change(name, value)))
    save_file(changed, hub_folder / "model.safetensors", metadata={"format": "pt"})


def same(one, other):
    ours, theirs = one.state_dict(), other.state_dict()
    return ours.keys() == theirs.keys() and all(torch.equal(ours[name], theirs[name]) for name in ours)


def test_names_of_norms_from_the_time_of_tensorflow_are_understood(encoder_folder, hub_folder):
    def old(name, value):
        return name.replace("LayerNorm.weight", "LayerNorm.gamma").replace(
            "LayerNorm.bias", "LayerNorm.beta"
        ), value

    rewritten(hub_folder, old)
    assert same(load_model(hub_folder), load_model(encoder_folder))
    assert same(load_masked_lm(hub_folder), load_masked_lm(encoder_folder))


def test_weights_of_the_encoder_alone_are_understood(encoder_folder, hub_folder):
    prefix = f"{load_masked_lm(encoder_folder).base_model_prefix}."

    def bare(name, value):
        return (name.removeprefix(prefix), value) if name.startswith(prefix) else None

    rewritten(hub_folder, bare)
    assert same(load_model(hub_folder), load_model(encoder_folder))
    kind = "AutoModelForTokenClassification"
    model = load_with_new_head(hub_folder, kind, labels=("a", "b"), seed=0)
    assert same(model.base_model, load_model(encoder_folder))


def test_numbers_of_positions_among_the_weights_are_passed_over(encoder_folder, hub_folder):
    weights = load_file(hub_folder / "model.safetensors")
    prefix = load_masked_lm(encoder_folder).base_model_prefix
    weights[f"{prefix}.embeddings.position_ids"] = torch.arange(160).unsqueeze(0)
    save_file(weights, hub_folder / "model.safetensors", metadata={"format": "pt"})
    assert same(load_model(hub_folder), load_model(encoder_folder))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_weights_in_half_precision_are_trained_in_full(encoder_folder, hub_folder, dtype):
    rewritten(hub_folder, lambda name, value: (name, value.to(dtype)))
    config = json.loads((hub_folder / "config.json").read_text())
    (hub_folder / "config.json").write_text(json.dumps({**config, "torch_dtype": str(dtype)[6:]}))
    full, half = load_model(encoder_folder).state_dict(), load_model(hub_folder).state_dict()
    assert all(torch.equal(half[name], full[name].to(dtype).float()) for name in full)


def test_families_without_segments_are_given_none(encoder_folder):
    """The tokenizer may come from BERT, which has them."""
    encoded = load_tokenizer(encoder_folder)("the cat", "a dog")
    assert ("token_type_ids" in encoded) == (encoder_folder.name == "bert")


def test_what_is_saved_gives_plain_transformers_no_segments_either(distilbert_folder, tmp_path):
    from transformers import AutoTokenizer

    assert "token_type_ids" in AutoTokenizer.from_pretrained(distilbert_folder)("a")
    load_tokenizer(distilbert_folder).save_pretrained(tmp_path)
    shutil.copy(distilbert_folder / "config.json", tmp_path)
    assert "token_type_ids" not in AutoTokenizer.from_pretrained(tmp_path)("a")


def test_mdebertas_own_masked_lm_head_is_run_where_config_asks_for_it(deberta_v2_folder, tmp_path):
    from transformers import AutoConfig, AutoModelForMaskedLM

    config = AutoConfig.from_pretrained(deberta_v2_folder)
    config.legacy = False
    model = AutoModelForMaskedLM.from_config(config).eval()
    ids = torch.arange(4, 10).unsqueeze(0)
    with torch.no_grad():
        states = model.base_model(ids).last_hidden_state
        torch.testing.assert_close(FAMILIES["deberta-v2"].masked_lm_scores(model, states), model(ids).logits)


@pytest.mark.parametrize("name", ["roberta", "camembert"])
def test_sisters_of_xlm_r_are_read_like_it(xlm_roberta_folder, tmp_path, name):
    from transformers import AutoModelForMaskedLM

    sister = Path(shutil.copytree(xlm_roberta_folder, tmp_path / name))
    config = json.loads((sister / "config.json").read_text())
    changed = {**config, "model_type": name, "architectures": [f"{name.capitalize()}ForMaskedLM"]}
    (sister / "config.json").write_text(json.dumps(changed))
    ours, theirs = load_masked_lm(sister), AutoModelForMaskedLM.from_pretrained(sister)
    assert type(ours).__name__ == f"{name.capitalize()}ForMaskedLM"
    assert same(ours, theirs)
    family, ids = FAMILIES[name], torch.tensor([[0, 7, 8, 2]])
    with torch.no_grad():
        states = ours.base_model(ids).last_hidden_state
        torch.testing.assert_close(family.masked_lm_scores(ours, states), ours(ids).logits)
        assert torch.equal(states, load_model(xlm_roberta_folder)(ids).last_hidden_state)
    assert len(family.sites(ours)) == 3
    assert family.longest_text(ours.config) == 160


def test_pickle_alone_is_refused_with_the_way_to_convert_it(hub_folder):
    (hub_folder / "model.safetensors").rename(hub_folder / "pytorch_model.bin")
    with pytest.raises(ModelError, match=r"only there as pickle \(pytorch_model.bin\).*save_pretrained"):
        load_model(hub_folder)


def test_subwords_that_open_and_close_a_text_may_be_called_otherwise(modernbert_folder, tmp_path):
    """As in the tokenizers of language models, which mmBERT has one of."""
    shutil.copytree(modernbert_folder, tmp_path / "encoder")
    path = tmp_path / "encoder" / "tokenizer_config.json"
    config = json.loads(path.read_text())
    config |= {"bos_token": config.pop("cls_token"), "eos_token": config.pop("sep_token")}
    path.write_text(json.dumps(config))
    tokenizer = load_tokenizer(tmp_path / "encoder")
    assert (tokenizer.cls_token, tokenizer.sep_token) == ("[CLS]", "[SEP]")
    assert tokenizer("the")["input_ids"] == load_tokenizer(modernbert_folder)("the")["input_ids"]


def test_sentencepiece_that_is_not_installed_is_named(deberta_v2_folder, tmp_path, monkeypatch):
    shutil.copytree(deberta_v2_folder, tmp_path / "encoder")
    model = tmp_path / "encoder" / "spm.model"
    (tmp_path / "encoder" / "tokenizer.json").rename(model)
    monkeypatch.setitem(sys.modules, "sentencepiece.sentencepiece_model_pb2", None)
    with pytest.raises(ModelError) as caught:
        load_tokenizer(tmp_path / "encoder")
    assert str(caught.value) == (
        f"{model}: this tokenizer is read with the packages sentencepiece and protobuf, which are not both "
        f"installed. Install them (pip install sentencepiece protobuf), or save the tokenizer as "
        f"tokenizer.json where they are."
    )
