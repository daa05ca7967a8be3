"""Models on disk: saved and loaded to the bit, new heads only from their seed, folders of the hub."""

import json
import os
import shutil
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from each import each
from isogloss.core.errors import ModelError, StorageError
from isogloss.encoders.computation import EXPLICIT, offer_explicit_attention
from isogloss.encoders.families import family_of
from isogloss.encoders.loading import load_masked_lm, load_model, load_with_new_head
from isogloss.encoders.saving import save_model
from isogloss.encoders.tokenizers import load_tokenizer
from networks import LABELS, LOADS, change_config, same, tagger, weights, with_own_head


@pytest.fixture
def copy(encoder_folder, tmp_path):
    """A copy of a folder that a test may change."""
    return Path(shutil.copytree(encoder_folder, tmp_path / encoder_folder.name))


def rewrite_weights(folder, change):
    """Give the weights other names or types, or none when ``change`` returns none."""
    file = load_file(folder / "model.safetensors")
    changed_pairs = dict(pair for name, value in file.items() if (pair := change(name, value)))
    save_file(changed_pairs, folder / "model.safetensors", metadata={"format": "pt"})


def test_saved_models_load_again_to_the_bit(encoder_folder, tmp_path):
    model = load_masked_lm(encoder_folder)
    tokenizer = load_tokenizer(encoder_folder)
    save_model(model, tokenizer, tmp_path / "deep" / "copy")
    assert same(load_masked_lm(tmp_path / "deep" / "copy"), model)
    assert (
        load_tokenizer(tmp_path / "deep" / "copy")("the cat")["input_ids"]
        == tokenizer("the cat")["input_ids"]
    )
    assert [path.name for path in (tmp_path / "deep").iterdir()] == ["copy"]


def test_saving_replaces_a_folder(encoder_folder, tmp_path):
    model = load_masked_lm(encoder_folder)
    tokenizer = load_tokenizer(encoder_folder)
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "old.txt").write_text("old")
    save_model(model, tokenizer, tmp_path / "model")
    assert not (tmp_path / "model" / "old.txt").exists()
    assert [path.name for path in tmp_path.iterdir()] == ["model"]


def test_what_was_there_stays_where_the_last_step_of_saving_fails(bert_folder, tmp_path, monkeypatch):
    model = load_model(bert_folder)
    tokenizer = load_tokenizer(bert_folder)
    place = tmp_path / "model"
    save_model(model, tokenizer, place)
    rename = os.replace

    def failing(source, target, **options):
        if str(source).endswith(".tmp") and target == place.name:
            raise OSError(5, "Input/output error")
        return rename(source, target, **options)

    monkeypatch.setattr(os, "replace", failing)
    with pytest.raises(StorageError, match="Input/output error"):
        save_model(tagger(bert_folder), tokenizer, place)
    assert same(load_model(place), model)
    assert [path.name for path in tmp_path.iterdir()] == ["model"]


def test_saved_taggers_are_readable_without_isogloss(encoder_folder, tmp_path):
    from transformers import AutoModelForTokenClassification, AutoTokenizer

    model = tagger(encoder_folder, seed=1)
    save_model(model, load_tokenizer(encoder_folder), tmp_path / "tagger")
    theirs = AutoModelForTokenClassification.from_pretrained(tmp_path / "tagger")
    assert theirs.config.id2label == dict(enumerate(LABELS))
    assert theirs.config.label2id == {label: index for index, label in enumerate(LABELS)}
    inputs = AutoTokenizer.from_pretrained(tmp_path / "tagger")("the cat sat", return_tensors="pt")
    with torch.no_grad():
        assert torch.equal(theirs.eval()(**inputs).logits, model(**inputs).logits)


def test_loaded_models_are_in_fp32_and_evaluation_mode(copy):
    save_model(load_masked_lm(copy).to(torch.bfloat16), load_tokenizer(copy), copy)
    model = load_model(copy)
    assert {parameter.dtype for parameter in model.parameters()} == {torch.float32}
    assert not any(module.training for module in model.modules())


@pytest.mark.slow
@pytest.mark.parametrize("attention", ["sdpa", "eager", EXPLICIT])
def test_attention_is_the_one_asked_for_and_is_not_saved(encoder_folder, tmp_path, attention):
    offer_explicit_attention()
    model = load_model(encoder_folder, attention=attention)
    is_own = "attention-kinds" in family_of(model).lacks
    expected = "eager" if is_own else attention
    assert model.config._attn_implementation == expected
    assert tagger(encoder_folder, attention=attention).config._attn_implementation == expected
    save_model(model, load_tokenizer(encoder_folder), tmp_path / "saved")
    assert EXPLICIT not in (tmp_path / "saved" / "config.json").read_text()


def test_encoders_without_a_pooler_stay_without(encoder_folder, tmp_path):
    encoder = load_model(encoder_folder)
    assert getattr(encoder, "pooler", None) is None
    save_model(encoder, load_tokenizer(encoder_folder), tmp_path / "encoder")
    assert same(load_model(tmp_path / "encoder"), encoder)


@pytest.mark.each_value
@pytest.mark.parametrize("load", LOADS.values(), ids=LOADS)
def test_loading_draws_no_random_number_from_outside(encoder_folder, load):
    rng_state_before = torch.get_rng_state()
    load(encoder_folder)
    assert torch.equal(torch.get_rng_state(), rng_state_before)


def test_loading_and_saving_are_silent_and_leave_transformers_as_it_was(
    encoder_folder, tmp_path, capfd, caplog
):
    from transformers.utils import logging

    state_before = logging.get_verbosity(), logging.is_progress_bar_enabled()
    load_model(encoder_folder)
    save_model(tagger(encoder_folder, seed=0), load_tokenizer(encoder_folder), tmp_path / "tagger")
    assert (logging.get_verbosity(), logging.is_progress_bar_enabled()) == state_before
    assert capfd.readouterr() == ("", "")
    assert caplog.text == ""


# New heads


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["AutoModelForSequenceClassification", "AutoModelForQuestionAnswering"])
def test_every_new_parameter_follows_the_seed_and_the_encoder_stays(encoder_folder, kind):
    encoder = load_model(encoder_folder).state_dict()
    pretrained_weights = load_masked_lm(encoder_folder).state_dict()  # ModernBERT's head is partly that one.
    models = [load_with_new_head(encoder_folder, kind, labels=LABELS[:2], seed=seed) for seed in (1, 1, 2)]
    first_parameters, again, other_parameters = (dict(model.named_parameters()) for model in models)
    prefix = f"{models[0].base_model_prefix}."
    for name, parameter in each(first_parameters.items()):
        assert torch.equal(parameter, again[name])
        if name.removeprefix(prefix) in encoder:
            assert torch.equal(parameter, encoder[name.removeprefix(prefix)])
        elif name in pretrained_weights:
            assert torch.equal(parameter, pretrained_weights[name])
        elif parameter.ndim > 1:
            assert not torch.equal(parameter, other_parameters[name])
            assert float(parameter.detach().std()) == pytest.approx(0.2, rel=0.35)
        else:
            assert not parameter.any()


def test_the_head_is_the_same_on_encoders_with_and_without_a_pooler(bert_folder, tmp_path):
    from transformers import AutoModel

    save_model(AutoModel.from_pretrained(bert_folder), load_tokenizer(bert_folder), tmp_path / "pooled")
    kind = "AutoModelForSequenceClassification"
    with_pooler = load_with_new_head(tmp_path / "pooled", kind, labels=LABELS, seed=3)
    plain_result = load_with_new_head(bert_folder, kind, labels=LABELS, seed=3)
    assert torch.equal(with_pooler.classifier.weight, plain_result.classifier.weight)


def test_a_fine_tuned_head_with_the_same_labels_is_kept(encoder_folder, tmp_path):
    model = tagger(encoder_folder, seed=1)
    save_model(model, load_tokenizer(encoder_folder), tmp_path / "tagger")
    assert same(tagger(tmp_path / "tagger", seed=2), model)


def test_a_head_whose_labels_stand_in_another_order_is_kept_in_this_one(encoder_folder, tmp_path):
    model = tagger(encoder_folder, seed=1)
    save_model(model, load_tokenizer(encoder_folder), tmp_path / "tagger")
    order = [2, 0, 1]
    labels = tuple(LABELS[place].upper() for place in order)
    result = load_with_new_head(tmp_path / "tagger", "AutoModelForTokenClassification", labels=labels, seed=2)
    assert result.config.id2label == dict(enumerate(labels))
    subwords = torch.tensor([[2, 9, 8, 3]])
    with torch.inference_mode():
        logits_before, logits_after = (item(input_ids=subwords).logits for item in (model, result))
    torch.testing.assert_close(logits_after, logits_before[..., order], rtol=0, atol=0)


@pytest.mark.slow
@pytest.mark.parametrize("labels", [("a", "b", "c"), ("a", "b"), (*LABELS[:2], "c")])
def test_a_head_with_other_labels_is_replaced(encoder_folder, tmp_path, labels):
    save_model(tagger(encoder_folder, seed=1), load_tokenizer(encoder_folder), tmp_path / "tagger")
    kind = "AutoModelForTokenClassification"
    model = load_with_new_head(tmp_path / "tagger", kind, labels=labels, seed=1)
    assert model.config.id2label == dict(enumerate(labels))
    bare_model = load_model(
        encoder_folder
    )  # Without the masked-LM head, of which ModernBERT's tagger keeps a part.
    save_model(bare_model, load_tokenizer(encoder_folder), tmp_path / "bare")
    assert same(model, load_with_new_head(tmp_path / "bare", kind, labels=labels, seed=1))


def test_norms_of_a_new_head_start_as_norms(modernbert_folder, tmp_path):
    save_model(load_model(modernbert_folder), load_tokenizer(modernbert_folder), tmp_path / "bare")
    assert torch.equal(tagger(tmp_path / "bare", seed=0).head.norm.weight, torch.ones(32))


# Heads of isogloss


@pytest.fixture
def saved_model(encoder_folder, tmp_path):
    model = with_own_head(encoder_folder, seed=7)
    with torch.no_grad():
        for weight in model.parameters():
            weight.add_(0.01)
    save_model(model, load_tokenizer(encoder_folder), tmp_path / "model")
    return model, tmp_path / "model"


def test_encoder_and_head_are_found_by_their_names(encoder_folder):
    model = with_own_head(encoder_folder)
    prefix = model.base_model_prefix
    assert {name.partition(".")[0] for name, _ in model.named_parameters()} == {prefix, "head"}
    assert model.base_model is getattr(model, prefix)
    sites = family_of(model).sites(model)
    assert len(sites) == model.config.num_hidden_layers
    assert all(site.module(model, "block") is not None for site in sites)


def test_a_saved_model_comes_back_to_the_bit_whatever_the_seed(saved_model):
    model, folder = saved_model
    back = with_own_head(folder, seed=3)
    assert same(weights(model), weights(back))
    assert tuple(back.config.id2label.values()) == LABELS


def test_transformers_loads_the_encoder_without_isogloss(saved_model):
    from transformers import AutoModel, AutoTokenizer

    model, folder = saved_model
    encoder = AutoModel.from_pretrained(folder).eval()
    theirs = {n: weight for n, weight in weights(encoder).items() if not n.startswith("pooler.")}
    assert same(weights(model.base_model), theirs)
    inputs = AutoTokenizer.from_pretrained(folder)("the cat sat", return_tensors="pt")
    with torch.no_grad():
        ours = model.base_model(**inputs).last_hidden_state
        torch.testing.assert_close(encoder(**inputs).last_hidden_state, ours)
    assert same(weights(load_model(folder)), weights(model.base_model))


def test_an_own_head_for_other_labels_is_replaced(saved_model):
    _, folder = saved_model
    other_model = with_own_head(folder, labels=("a", "b", "d"), seed=1)
    assert same(
        weights(other_model.head), weights(with_own_head(folder, labels=("a", "b", "d"), seed=1).head)
    )
    assert not same(weights(other_model.head), weights(with_own_head(folder).head))
    assert tuple(other_model.config.id2label.values()) == ("a", "b", "d")


def test_a_head_of_other_sizes_or_with_a_part_missing_is_refused(saved_model, tmp_path):
    _, folder = saved_model
    with pytest.raises(ModelError, match=r"task's:.*head\.bias.*\(3,\)"):
        with_own_head(folder, out=4)
    broken_folder = shutil.copytree(folder, tmp_path / "broken")
    left = load_file(broken_folder / "model.safetensors")
    del left["head.bias"]
    save_file(left, broken_folder / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(ModelError, match=r"head\.bias has the shape None in the weights; expected \(3,\)"):
        with_own_head(broken_folder)


def test_a_model_in_shards_comes_back_to_the_bit(saved_model, tmp_path):
    model, folder = saved_model
    shards = shutil.copytree(folder, tmp_path / "shards")
    whole_file = load_file(shards / "model.safetensors")
    (shards / "model.safetensors").unlink()
    places = {name: f"model-0000{1 + (name.startswith('head'))}-of-00002.safetensors" for name in whole_file}
    for place in set(places.values()):
        part = {name: weight for name, weight in whole_file.items() if places[name] == place}
        save_file(part, shards / place, metadata={"format": "pt"})
    (shards / "model.safetensors.index.json").write_text(json.dumps({"metadata": {}, "weight_map": places}))
    assert same(weights(with_own_head(shards)), weights(model))


# Folders as they are on the hub: by older versions, in half precision, with parts missing or added


def test_names_of_norms_from_the_time_of_tensorflow_are_understood(encoder_folder, copy):
    def old(name, value):
        return name.replace("LayerNorm.weight", "LayerNorm.gamma").replace(
            "LayerNorm.bias", "LayerNorm.beta"
        ), value

    rewrite_weights(copy, old)
    assert same(load_model(copy), load_model(encoder_folder))
    assert same(load_masked_lm(copy), load_masked_lm(encoder_folder))


@pytest.mark.slow
def test_weights_of_the_encoder_alone_are_understood(encoder_folder, copy):
    prefix = f"{load_masked_lm(encoder_folder).base_model_prefix}."

    def bare(name, value):
        return (name.removeprefix(prefix), value) if name.startswith(prefix) else None

    rewrite_weights(copy, bare)
    assert same(load_model(copy), load_model(encoder_folder))
    assert same(tagger(copy).base_model, load_model(encoder_folder))


def test_numbers_of_positions_among_the_weights_are_passed_over(encoder_folder, copy):
    weights = load_file(copy / "model.safetensors")
    prefix = load_masked_lm(encoder_folder).base_model_prefix
    weights[f"{prefix}.embeddings.position_ids"] = torch.arange(160).unsqueeze(0)
    save_file(weights, copy / "model.safetensors", metadata={"format": "pt"})
    assert same(load_model(copy), load_model(encoder_folder))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_weights_in_half_precision_are_trained_in_full(encoder_folder, copy, dtype):
    rewrite_weights(copy, lambda name, value: (name, value.to(dtype)))
    change_config(copy, torch_dtype=str(dtype)[6:])
    full_weights = load_model(encoder_folder).state_dict()
    half_weights = load_model(copy).state_dict()
    assert all(
        torch.equal(half_weights[name], full_weights[name].to(dtype).float()) for name in each(full_weights)
    )


def test_families_without_segments_are_given_none(encoder_folder):
    """The tokenizer may come from BERT, which has them."""
    encoding = load_tokenizer(encoder_folder)("the cat", "a dog")
    assert ("token_type_ids" in encoding) == (encoder_folder.name == "bert")


def test_what_is_saved_gives_plain_transformers_no_segments_either(distilbert_folder, tmp_path):
    from transformers import AutoTokenizer

    assert "token_type_ids" in AutoTokenizer.from_pretrained(distilbert_folder)("a")
    load_tokenizer(distilbert_folder).save_pretrained(tmp_path)
    shutil.copy(distilbert_folder / "config.json", tmp_path)
    assert "token_type_ids" not in AutoTokenizer.from_pretrained(tmp_path)("a")


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


@pytest.mark.parametrize("error", ["os", "safetensors"])
def test_a_full_disk_is_a_storage_error_and_leaves_nothing(copy, tmp_path, monkeypatch, error):
    from safetensors import SafetensorError

    model = load_masked_lm(copy)
    tokenizer = load_tokenizer(copy)
    raised_value = {
        "os": OSError(28, "No space left on device"),
        "safetensors": SafetensorError("I/O error: No space left on device (os error 28)"),
    }

    def full(*_, **__):
        raise raised_value[error]

    monkeypatch.setattr(model, "save_pretrained", full)
    content_before = (copy / "model.safetensors").read_bytes()
    with pytest.raises(StorageError, match="write"):
        save_model(model, tokenizer, copy)
    assert (copy / "model.safetensors").read_bytes() == content_before
    assert [path.name for path in tmp_path.iterdir()] == [copy.name]
