import json
import shutil

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import nn

from isogloss.core.errors import ModelError
from isogloss.encoders import family_of, load_masked_lm, load_model, load_tokenizer, save_model
from isogloss.encoders.own_head import load_with_own_head

LABELS = ("a", "b", "c")


def loaded(source, *, seed=0, labels=LABELS, out=3):
    return load_with_own_head(source, lambda dim: nn.Linear(dim, out), labels=labels, seed=seed)


def weights(model):
    return {name: weight.detach().clone() for name, weight in model.named_parameters()}


def equal(one, other):
    return one.keys() == other.keys() and all(torch.equal(one[name], other[name]) for name in one)


@pytest.fixture
def saved(encoder_folder, tmp_path):
    model = loaded(encoder_folder, seed=7)
    with torch.no_grad():
        for weight in model.parameters():
            weight.add_(0.01)
    save_model(model, load_tokenizer(encoder_folder), tmp_path / "model")
    return model, tmp_path / "model"


def test_encoder_and_head_are_found_by_their_names(encoder_folder):
    model = loaded(encoder_folder)
    prefix = model.base_model_prefix
    assert {name.partition(".")[0] for name, _ in model.named_parameters()} == {prefix, "head"}
    assert model.base_model is getattr(model, prefix)
    sites = family_of(model).sites(model)
    assert len(sites) == model.config.num_hidden_layers
    assert all(site.module(model, "block") is not None for site in sites)


def test_the_encoder_is_the_one_in_the_folder(encoder_folder):
    model, masked = loaded(encoder_folder), load_masked_lm(encoder_folder)
    assert equal(weights(model.base_model), weights(masked.base_model))
    assert not model.training


def test_a_new_head_depends_on_the_seed_and_its_names_alone(encoder_folder):
    torch.manual_seed(5)
    before = torch.random.get_rng_state()
    one, again, other = (loaded(encoder_folder, seed=seed) for seed in (1, 1, 2))
    assert torch.equal(torch.random.get_rng_state(), before)
    assert equal(weights(one), weights(again))
    assert not torch.equal(one.head.weight, other.head.weight)
    assert equal(weights(one.base_model), weights(other.base_model))
    assert not one.head.bias.any()


def test_a_saved_model_comes_back_to_the_bit_whatever_the_seed(saved):
    model, folder = saved
    back = loaded(folder, seed=3)
    assert equal(weights(model), weights(back))
    assert tuple(back.config.id2label.values()) == LABELS


def test_transformers_loads_the_encoder_without_isogloss(saved):
    from transformers import AutoModel, AutoTokenizer

    model, folder = saved
    encoder = AutoModel.from_pretrained(folder).eval()
    theirs = {n: weight for n, weight in weights(encoder).items() if not n.startswith("pooler.")}
    assert equal(weights(model.base_model), theirs)
    inputs = AutoTokenizer.from_pretrained(folder)("the cat sat", return_tensors="pt")
    with torch.no_grad():
        ours = model.base_model(**inputs).last_hidden_state
        torch.testing.assert_close(encoder(**inputs).last_hidden_state, ours)
    assert equal(weights(load_model(folder)), weights(model.base_model))


def test_a_head_for_other_labels_is_replaced(saved):
    _, folder = saved
    other = loaded(folder, labels=("a", "b", "d"), seed=1)
    assert equal(weights(other.head), weights(loaded(folder, labels=("a", "b", "d"), seed=1).head))
    assert not equal(weights(other.head), weights(loaded(folder).head))
    assert tuple(other.config.id2label.values()) == ("a", "b", "d")


def test_a_head_of_other_sizes_or_with_a_part_missing_is_refused(saved, tmp_path):
    _, folder = saved
    with pytest.raises(
        ModelError, match=r"the head there is not this task's: head\.bias has the shape \(3,\)"
    ):
        loaded(folder, out=4)
    broken = shutil.copytree(folder, tmp_path / "broken")
    left = load_file(broken / "model.safetensors")
    del left["head.bias"]
    save_file(left, broken / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(
        ModelError, match=r"head\.bias has the shape None in the weights, and \(3,\) is expected"
    ):
        loaded(broken)


def test_a_model_in_shards_comes_back_to_the_bit(saved, tmp_path):
    model, folder = saved
    shards = shutil.copytree(folder, tmp_path / "shards")
    whole = load_file(shards / "model.safetensors")
    (shards / "model.safetensors").unlink()
    places = {name: f"model-0000{1 + (name.startswith('head'))}-of-00002.safetensors" for name in whole}
    for place in set(places.values()):
        part = {name: weight for name, weight in whole.items() if places[name] == place}
        save_file(part, shards / place, metadata={"format": "pt"})
    (shards / "model.safetensors.index.json").write_text(json.dumps({"metadata": {}, "weight_map": places}))
    assert equal(weights(loaded(shards)), weights(model))
