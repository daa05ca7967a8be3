import json
import shutil
from pathlib import Path

import pytest
import torch

from isogloss.core.errors import ModelError, StorageError
from isogloss.encoders import FAMILIES
from isogloss.encoders.loading import (
    draw_parameters,
    load_encoder_config,
    load_masked_lm,
    load_model,
    load_tokenizer,
    load_with_new_head,
    save_model,
)

LABELS = ("O", "B-PER", "I-PER")


@pytest.fixture
def folder(bert_folder, tmp_path):
    """A copy of the BERT folder that a test may break."""
    return Path(shutil.copytree(bert_folder, tmp_path / "encoder"))


def message(load, source, *args):
    with pytest.raises(ModelError) as caught:
        load(source, *args)
    text = str(caught.value)
    assert "\n" not in text
    return text


def same(one, other):
    ours, theirs = one.state_dict(), other.state_dict()
    return ours.keys() == theirs.keys() and all(torch.equal(ours[name], theirs[name]) for name in ours)


def tagger(folder, seed):
    return load_with_new_head(folder, "AutoModelForTokenClassification", labels=LABELS, seed=seed)


# What is there


def test_saved_models_load_again_to_the_bit(encoder_folder, tmp_path):
    model, tokenizer = load_masked_lm(encoder_folder), load_tokenizer(encoder_folder)
    save_model(model, tokenizer, tmp_path / "deep" / "copy")
    assert same(load_masked_lm(tmp_path / "deep" / "copy"), model)
    assert (
        load_tokenizer(tmp_path / "deep" / "copy")("the cat")["input_ids"]
        == tokenizer("the cat")["input_ids"]
    )
    assert [path.name for path in (tmp_path / "deep").iterdir()] == ["copy"]


def test_tokenizers_know_how_long_a_text_the_encoder_takes(encoder_folder):
    tokenizer = load_tokenizer(encoder_folder)
    config = load_encoder_config(encoder_folder)
    assert tokenizer.model_max_length == FAMILIES[config.model_type].longest_text(config) == 160


def test_saving_replaces_a_folder(encoder_folder, tmp_path):
    model, tokenizer = load_masked_lm(encoder_folder), load_tokenizer(encoder_folder)
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "old.txt").write_text("old")
    save_model(model, tokenizer, tmp_path / "model")
    assert not (tmp_path / "model" / "old.txt").exists()
    assert [path.name for path in tmp_path.iterdir()] == ["model"]


def test_saved_taggers_are_readable_without_isogloss(encoder_folder, tmp_path):
    from transformers import AutoModelForTokenClassification, AutoTokenizer

    model = tagger(encoder_folder, seed=1)
    save_model(model, load_tokenizer(encoder_folder), tmp_path / "tagger")
    theirs = AutoModelForTokenClassification.from_pretrained(tmp_path / "tagger")
    assert theirs.config.id2label == dict(enumerate(LABELS))
    assert theirs.config.label2id == {label: number for number, label in enumerate(LABELS)}
    given = AutoTokenizer.from_pretrained(tmp_path / "tagger")("the cat sat", return_tensors="pt")
    with torch.no_grad():
        assert torch.equal(theirs.eval()(**given).logits, model(**given).logits)


def test_loaded_models_are_in_fp32_and_evaluation_mode(folder):
    half = load_masked_lm(folder).to(torch.bfloat16)
    save_model(half, load_tokenizer(folder), folder)
    model = load_model(folder)
    assert {parameter.dtype for parameter in model.parameters()} == {torch.float32}
    assert not any(module.training for module in model.modules())


@pytest.mark.parametrize("attention", ["sdpa", "eager"])
def test_attention_is_the_one_asked_for(encoder_folder, attention):
    for model in (
        load_model(encoder_folder, attention=attention),
        load_with_new_head(
            encoder_folder, "AutoModelForTokenClassification", labels=LABELS, seed=0, attention=attention
        ),
    ):
        own = encoder_folder.name == "deberta-v2"
        assert model.config._attn_implementation == ("eager" if own else attention)


def test_encoders_without_a_pooler_stay_without(encoder_folder, tmp_path):
    encoder = load_model(encoder_folder)
    assert getattr(encoder, "pooler", None) is None
    save_model(encoder, load_tokenizer(encoder_folder), tmp_path / "encoder")
    assert same(load_model(tmp_path / "encoder"), encoder)


def test_loading_draws_no_random_number_from_outside(encoder_folder):
    before = torch.get_rng_state()
    load_model(encoder_folder)
    tagger(encoder_folder, seed=0)
    assert torch.equal(torch.get_rng_state(), before)


def test_loading_and_saving_are_silent_and_leave_transformers_as_it_was(
    encoder_folder, tmp_path, capfd, caplog
):
    from transformers.utils import logging

    before = logging.get_verbosity(), logging.is_progress_bar_enabled()
    load_model(encoder_folder)
    save_model(tagger(encoder_folder, seed=0), load_tokenizer(encoder_folder), tmp_path / "tagger")
    assert (logging.get_verbosity(), logging.is_progress_bar_enabled()) == before
    assert capfd.readouterr() == ("", "")
    assert caplog.text == ""


def test_the_configuration_is_there_without_the_weights(folder):
    (folder / "model.safetensors").unlink()
    assert load_encoder_config(folder).num_hidden_layers == 3


# New heads


def test_a_seed_gives_one_head_whatever_was_drawn_before(encoder_folder):
    one = tagger(encoder_folder, seed=5)
    torch.rand(7)
    assert same(one, tagger(encoder_folder, seed=5))
    assert not same(one, tagger(encoder_folder, seed=6))


@pytest.mark.parametrize("kind", ["AutoModelForTokenClassification", "AutoModelForSequenceClassification"])
def test_every_new_parameter_follows_the_seed_and_the_encoder_stays(encoder_folder, kind):
    encoder = load_model(encoder_folder).state_dict()
    pretrained = load_masked_lm(encoder_folder).state_dict()  # ModernBERT's head is partly that one.
    models = [load_with_new_head(encoder_folder, kind, labels=LABELS, seed=seed) for seed in (1, 1, 2)]
    first, again, other = (dict(model.named_parameters()) for model in models)
    prefix = f"{models[0].base_model_prefix}."
    for name, parameter in first.items():
        assert torch.equal(parameter, again[name])
        if name.removeprefix(prefix) in encoder:
            assert torch.equal(parameter, encoder[name.removeprefix(prefix)])
        elif name in pretrained:
            assert torch.equal(parameter, pretrained[name])
        elif parameter.ndim > 1:
            assert not torch.equal(parameter, other[name])
            assert float(parameter.detach().std()) == pytest.approx(0.2, rel=0.35)
        else:
            assert not parameter.any()


def test_the_head_is_the_same_on_encoders_with_and_without_a_pooler(bert_folder, tmp_path):
    from transformers import AutoModel

    save_model(AutoModel.from_pretrained(bert_folder), load_tokenizer(bert_folder), tmp_path / "pooled")
    kind = "AutoModelForSequenceClassification"
    with_pooler = load_with_new_head(tmp_path / "pooled", kind, labels=LABELS, seed=3)
    without = load_with_new_head(bert_folder, kind, labels=LABELS, seed=3)
    assert torch.equal(with_pooler.classifier.weight, without.classifier.weight)


def test_a_fine_tuned_head_with_the_same_labels_is_kept(encoder_folder, tmp_path):
    model = tagger(encoder_folder, seed=1)
    save_model(model, load_tokenizer(encoder_folder), tmp_path / "tagger")
    assert same(tagger(tmp_path / "tagger", seed=2), model)


@pytest.mark.parametrize("labels", [("a", "b", "c"), ("a", "b"), LABELS[::-1]])
def test_a_head_with_other_labels_is_replaced(encoder_folder, tmp_path, labels):
    save_model(tagger(encoder_folder, seed=1), load_tokenizer(encoder_folder), tmp_path / "tagger")
    kind = "AutoModelForTokenClassification"
    found = load_with_new_head(tmp_path / "tagger", kind, labels=labels, seed=1)
    assert found.config.id2label == dict(enumerate(labels))
    bare = load_model(
        encoder_folder
    )  # Without the masked-LM head, of which ModernBERT's tagger keeps a part.
    save_model(bare, load_tokenizer(encoder_folder), tmp_path / "bare")
    assert same(found, load_with_new_head(tmp_path / "bare", kind, labels=labels, seed=1))


def test_norms_of_a_new_head_start_as_norms(modernbert_folder, tmp_path):
    save_model(load_model(modernbert_folder), load_tokenizer(modernbert_folder), tmp_path / "bare")
    assert torch.equal(tagger(tmp_path / "bare", seed=0).head.norm.weight, torch.ones(32))


def test_drawing_one_parameter_does_not_touch_the_others(encoder_folder):
    model, before = tagger(encoder_folder, seed=1), tagger(encoder_folder, seed=1)
    draw_parameters(model, ["classifier.weight"], seed=2)
    changed = [
        name
        for name, value in model.state_dict().items()
        if not torch.equal(value, before.state_dict()[name])
    ]
    assert changed == ["classifier.weight"]


# What cannot be used


def test_missing_folders_are_named_with_the_nearest(folder):
    for source in (folder.with_name("encodr"), str(folder.with_name("encodr"))):
        text = message(load_model, source)
        assert text.startswith(f"{source}: no such folder. Did you mean 'encoder'?")
        assert "Give a folder with config.json and model.safetensors" in text


def test_files_are_no_folders(folder):
    assert "this is a file, not a model folder" in message(load_model, folder / "config.json")


@pytest.mark.parametrize("load", [load_model, load_tokenizer, load_encoder_config])
def test_folders_without_config_say_what_was_found(folder, load):
    (folder / "config.json").unlink()
    text = message(load, folder)
    assert (
        f"{folder}: no config.json, so this is no model folder (found: model.safetensors, tokenizer" in text
    )
    assert "Give a folder written by isogloss or by save_pretrained" in text


def test_empty_folders_are_called_empty(tmp_path):
    assert "(it is empty)" in message(load_model, tmp_path)


@pytest.mark.parametrize(("content", "what"), [("{", "this is no JSON"), ("[]", "a JSON object is expected")])
def test_damaged_configs_are_named(folder, content, what):
    (folder / "config.json").write_text(content)
    text = message(load_encoder_config, folder)
    assert text.startswith(f"{folder / 'config.json'}: {what}")


def test_impossible_configs_are_refused_in_one_line(folder):
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "hidden_size": "large"}))
    text = message(load_model, folder)
    assert "transformers cannot load this folder with AutoConfig" in text


@pytest.mark.parametrize("load", [load_model, load_encoder_config])
def test_unknown_architectures_are_refused_with_the_supported_ones(folder, load):
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "model_type": "gpt2"}))
    text = message(load, folder)
    assert "the architecture 'gpt2' is not supported." in text
    assert text.endswith(
        " Supported: bert, camembert, deberta-v2, distilbert, modernbert, roberta, xlm-roberta."
    )


def test_folders_without_tokenizer_say_how_to_add_one(folder):
    (folder / "tokenizer.json").unlink()
    text = message(load_tokenizer, folder)
    assert "no tokenizer (tokenizer.json, vocab.txt, vocab.json, sentencepiece.bpe.model, spm.model)" in text
    assert f"AutoTokenizer.from_pretrained(NAME).save_pretrained('{folder}')" in text


def test_damaged_tokenizers_are_refused_in_one_line(folder):
    (folder / "tokenizer.json").write_text("{")
    assert "transformers cannot load this folder with AutoTokenizer" in message(load_tokenizer, folder)


def test_tokenizers_without_padding_are_refused(folder):
    settings = json.loads((folder / "tokenizer_config.json").read_text())
    (folder / "tokenizer_config.json").write_text(json.dumps({**settings, "pad_token": None}))
    assert "this tokenizer cannot be used: it has no pad_token" in message(load_tokenizer, folder)


def test_folders_without_weights_say_so(folder):
    (folder / "model.safetensors").unlink()
    assert f"{folder}: no model.safetensors (found: config.json" in message(load_model, folder)


def test_pickled_weights_are_refused_with_the_way_to_convert_them(folder):
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")
    text = message(load_masked_lm, folder)
    assert "the weights are only there as pickle (pytorch_model.bin)" in text
    assert f"AutoModelForMaskedLM.from_pretrained('{folder}').save_pretrained('{folder}')" in text


@pytest.mark.parametrize("kept", [0, 4, 2000])
def test_damaged_weights_are_named(folder, kept):
    path = folder / "model.safetensors"
    path.write_bytes(path.read_bytes()[:kept])
    text = message(load_model, folder)
    assert text.startswith(f"{path}: these weights are damaged (")
    assert "Copy or download the file again" in text


def test_missing_shards_are_named(folder):
    model = load_masked_lm(folder)
    (folder / "model.safetensors").unlink()
    model.save_pretrained(folder, max_shard_size="20KB")
    assert same(load_masked_lm(folder), model)
    shard = sorted(folder.glob("model-*.safetensors"))[1]
    shard.unlink()
    assert message(load_model, folder).startswith(f"{shard}: this part of the weights is missing.")


def test_weights_without_the_whole_encoder_are_refused(folder):
    from safetensors.torch import load_file, save_file

    weights = load_file(folder / "model.safetensors")
    part = {name: value for name, value in weights.items() if ".layer.2." not in name}
    save_file(part, folder / "model.safetensors", metadata={"format": "pt"})
    assert "this is no AutoModel: the weights have no encoder.layer.2." in message(load_model, folder)
    text = message(lambda source: tagger(source, seed=0), folder)
    assert "this is no whole encoder: the weights have no bert.encoder.layer.2." in text


def test_weights_of_another_shape_are_refused(folder):
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "vocab_size": config["vocab_size"] + 1}))
    for load in (load_masked_lm, load_model, lambda source: tagger(source, seed=0)):
        assert "config.json and the weights do not belong together: " in message(load, folder)


def test_encoders_without_masked_lm_head_are_no_masked_lm(encoder_folder, tmp_path):
    save_model(load_model(encoder_folder), load_tokenizer(encoder_folder), tmp_path / "encoder")
    assert "this is no AutoModelForMaskedLM: the weights have no " in message(
        load_masked_lm, tmp_path / "encoder"
    )


def test_code_that_comes_with_a_model_is_not_run(folder):
    config = json.loads((folder / "config.json").read_text())
    config["auto_map"] = {"AutoConfig": "evil.Config", "AutoModel": "evil.Model"}
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "evil.py").write_text("raise SystemExit('ran')")
    assert load_model(folder).config.model_type == "bert"


# Saving


@pytest.mark.parametrize("error", ["os", "safetensors"])
def test_a_full_disk_is_a_storage_error_and_leaves_nothing(folder, tmp_path, monkeypatch, error):
    from safetensors import SafetensorError

    model, tokenizer = load_masked_lm(folder), load_tokenizer(folder)
    raised = {
        "os": OSError(28, "No space left on device"),
        "safetensors": SafetensorError("I/O error: No space"),
    }

    def full(*_, **__):
        raise raised[error]

    monkeypatch.setattr(model, "save_pretrained", full)
    before = (folder / "model.safetensors").read_bytes()
    with pytest.raises(StorageError, match=r"cannot write \(.*No space.*\). Free some space"):
        save_model(model, tokenizer, folder)
    assert (folder / "model.safetensors").read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == ["encoder"]
