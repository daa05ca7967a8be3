"""Language modules beside an ordinary model folder: read back to the bit, damaged or foreign ones refused."""

from shutil import copyfile, copytree

import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file
from torch import nn

from isogloss.core.errors import ModelError
from isogloss.core.run_parts import Modules
from isogloss.encoders import (
    load_masked_lm,
    load_model,
    load_tokenizer,
    load_whole,
    load_with_new_head,
    save_model,
)
from isogloss.encoders.language_context import active_language
from isogloss.encoders.language_files import MODULES_FILE, left_out, read_about
from isogloss.encoders.language_modules import add_modules, modules_of, own_parameters
from isogloss.encoders.own_head import load_with_own_head

IDS = torch.tensor([[2, 7, 9, 11, 3]])
KINDS = ("feed-forward", "attention", "adapter", "shared-adapter")
LANGUAGES = ("en", "sw", "to")


def made(folder, kind, load=load_masked_lm, fallback=""):
    model = load(folder)
    add_modules(model, Modules(kind=kind, fallback=fallback), LANGUAGES, seed=0)
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for weight in model.parameters():
            weight.add_(torch.empty_like(weight).normal_(0, 0.05, generator=generator))
    return model


def states(model, language="sw"):
    with torch.no_grad(), active_language(model, language):
        return model.base_model(IDS).last_hidden_state


LOADS = {
    "encoder": load_model,
    "masked lm": load_masked_lm,
    "whole": load_whole,
    "head": lambda folder: load_with_new_head(
        folder, "AutoModelForTokenClassification", labels=("a", "b"), seed=0
    ),
    "own head": lambda folder: load_with_own_head(folder, lambda dim: nn.Linear(dim, 2), labels="ab", seed=0),
}


@pytest.mark.parametrize("load", LOADS.values(), ids=LOADS)
@pytest.mark.parametrize("kind", KINDS)
def test_modules_come_back_to_the_bit_with_and_without_a_head(load, kind, bert_folder, tmp_path):
    returns(load, kind, bert_folder, tmp_path)


@pytest.mark.parametrize("kind", KINDS)
def test_modules_of_every_family_come_back_to_the_bit(kind, encoder_folder, tmp_path):
    returns(load_whole, kind, encoder_folder, tmp_path)


def returns(load, kind, folder, tmp_path):
    """Save a model, load it, save what was loaded, load it again: all three say the same."""
    model = made(folder, kind)
    save_model(model, load_tokenizer(folder), tmp_path / "saved")
    found = load(tmp_path / "saved")
    assert modules_of(found) == modules_of(model)
    save_model(found, load_tokenizer(folder), tmp_path / "again")
    again = load(tmp_path / "again")
    for language in LANGUAGES:
        assert torch.equal(states(found, language), states(model, language))
        assert torch.equal(states(again, language), states(model, language))
        own, theirs = (list(own_parameters(one, language).values()) for one in (model, again))
        assert all(torch.equal(x, y) for x, y in zip(own, theirs, strict=True))


@pytest.mark.parametrize("kind", KINDS)
def test_transformers_reads_the_first_languages_model_or_the_encoder_without_adapters(
    kind, encoder_folder, tmp_path
):
    model = made(encoder_folder, kind)
    save_model(model, load_tokenizer(encoder_folder), tmp_path / "saved")
    plain, info = transformers.AutoModelForMaskedLM.from_pretrained(
        tmp_path / "saved", attn_implementation="eager", output_loading_info=True
    )
    assert not info["missing_keys"] and not info["unexpected_keys"]
    if "adapter" in kind:
        with torch.no_grad():
            for language in LANGUAGES:
                for name, weight in own_parameters(model, language).items():
                    if ".up." in name:
                        weight.zero_()
            for name, weight in model.named_parameters():
                if ".of_shared-adapter." in name and ".up." in name:
                    weight.zero_()
    with torch.no_grad():
        found = plain.eval().base_model(IDS).last_hidden_state
    torch.testing.assert_close(found, states(model, "en"))
    if "adapter" not in kind:
        assert not torch.allclose(found, states(model, "sw"), atol=1e-3)


def test_kind_width_and_fallback_are_kept(bert_folder, tmp_path):
    model = load_model(bert_folder)
    add_modules(model, Modules(kind="adapter", reduction=8, fallback="to"), LANGUAGES, seed=0)
    save_model(model, load_tokenizer(bert_folder), tmp_path / "saved")
    about = modules_of(load_model(tmp_path / "saved"))
    assert about.how == Modules(kind="adapter", reduction=8, fallback="to")
    assert about.languages == LANGUAGES == read_about(tmp_path / "saved", 32).languages


def test_an_ordinary_folder_has_none_and_gets_none(bert_folder, tmp_path):
    assert read_about(bert_folder, 32) is None
    save_model(load_model(bert_folder), load_tokenizer(bert_folder), tmp_path / "saved")
    assert not (tmp_path / "saved" / MODULES_FILE).exists()


def test_modules_left_out_for_a_while_come_back(bert_folder):
    model = made(bert_folder, "adapter")
    names = {name for name, _ in model.named_parameters()}
    with left_out(model):
        assert modules_of(model) is None
        assert not any("language_modules" in name for name in model.state_dict())
    assert {name for name, _ in model.named_parameters()} == names


@pytest.fixture
def saved(bert_folder, tmp_path):
    save_model(made(bert_folder, "adapter"), load_tokenizer(bert_folder), tmp_path / "saved")
    return tmp_path / "saved"


def broken(saved, change):
    """Write the file again after a change of its weights and of what it says of them."""
    from safetensors import safe_open

    with safe_open(saved / MODULES_FILE, framework="pt") as file:
        metadata = file.metadata()
    weights = load_file(saved / MODULES_FILE)
    change(weights, metadata)
    save_file(weights, saved / MODULES_FILE, metadata=metadata)


def refusal(saved):
    with pytest.raises(ModelError) as found:
        load_model(saved)
    message = str(found.value)
    assert "\n" not in message and str(saved / MODULES_FILE) in message
    return message


def test_a_file_that_is_none_is_damaged(saved):
    (saved / MODULES_FILE).write_bytes(b"\0" * 20)
    message = refusal(saved)
    assert "these language modules are damaged" in message and "Copy the file again" in message


def test_a_file_cut_short_is_damaged(saved):
    content = (saved / MODULES_FILE).read_bytes()
    (saved / MODULES_FILE).write_bytes(content[: len(content) // 2])
    assert "damaged" in refusal(saved)


CHANGES = {
    "kind": ("kind", "ffn", "no kind of module 'ffn'"),
    "languages": ("languages", "", "is no language code"),
    "reduction": ("reduction", "four", "invalid literal"),
    "fallback": ("fallback", "fr", "'fr' has no modules itself"),
}


@pytest.mark.parametrize(("name", "value", "message"), CHANGES.values(), ids=CHANGES)
def test_what_a_file_says_of_itself_is_checked(saved, name, value, message):
    broken(saved, lambda _, metadata: metadata.update({name: value}))
    assert message in refusal(saved)


def test_a_file_that_says_nothing_is_damaged(saved):
    save_file(load_file(saved / MODULES_FILE), saved / MODULES_FILE)
    assert "damaged (KeyError: 'kind')" in refusal(saved)


def test_weights_of_another_shape_or_missing_or_too_many_are_anothers(saved):
    def other(weights, _):
        name = min(weights)
        weights[name] = torch.zeros(3)

    broken(saved, other)
    assert "these modules are another encoder's: en/encoder.layer.0" in refusal(saved)
    broken(saved, lambda weights, _: weights.pop(min(weights)))
    assert "has the shape None, and" in refusal(saved)


def test_a_file_of_another_encoder_is_refused(saved, xlm_roberta_folder, distilbert_folder, tmp_path):
    copytree(distilbert_folder, tmp_path / "other")
    copyfile(saved / MODULES_FILE, tmp_path / "other" / MODULES_FILE)
    assert "these modules are another encoder's" in refusal(tmp_path / "other")
