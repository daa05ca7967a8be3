"""Language modules and maps on disk, to the bit, or refused. Maps after the last layer."""

from shutil import copyfile, copytree

import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file

from isogloss.core.errors import ConfigError, ModelError
from isogloss.encoders.added.active_language import (
    LanguageMaps,
    active_language,
    check_languages,
    language_maps_of,
    map_states,
)
from isogloss.encoders.added.added_weights import (
    language_parameters,
    read_language_maps,
    without_added_modules,
    write_language_maps,
)
from isogloss.encoders.added.language_layers import LanguageMap
from isogloss.encoders.added.language_modules import modules_of
from isogloss.encoders.added.module_files import MAPS_FILE, MODULES_FILE, read_module_info
from isogloss.encoders.added.module_settings import COPIES, KINDS
from isogloss.encoders.families import family_of
from isogloss.encoders.loading import load_masked_lm, load_model, load_with_new_head
from isogloss.encoders.saving import save_model
from isogloss.encoders.tokenizers import load_tokenizer
from networks import IDS, LANGUAGES, LOADS, hooks, modular, refusal, tagger

FAMILIES = ("xlm-roberta", "modernbert", "deberta-v2", "distilbert")


def make_modular(folder, kind, fallback=""):
    model = modular(load_masked_lm(folder), kind, fallback=fallback, reduction=8)
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for weight in model.parameters():
            weight.add_(torch.empty_like(weight).normal_(0, 0.05, generator=generator))
    return model


def states(model, language="sw"):
    with torch.no_grad(), active_language(model, language):
        return model.base_model(IDS).last_hidden_state


@pytest.mark.slow
@pytest.mark.parametrize(
    ("load", "name", "kind"),
    [
        *(("whole", "bert", kind) for kind in KINDS),
        *((load, "bert", "feed-forward") for load in LOADS if load != "whole"),
        *(("whole", name, kind) for name, kind in zip(FAMILIES, KINDS, strict=False)),
    ],
)
def test_modules_come_back_to_the_bit_with_and_without_a_head(load, name, kind, request, tmp_path):
    """Save a model, load it, save what was loaded, load it again: all three give the same."""
    folder = request.getfixturevalue(f"{name.replace('-', '_')}_folder")
    model = make_modular(folder, kind, fallback="" if kind == "shared-adapter" else "to")
    save_model(model, load_tokenizer(folder), tmp_path / "saved")
    result = LOADS[load](tmp_path / "saved")
    assert modules_of(result) == modules_of(model) == read_module_info(tmp_path / "saved", 32)
    save_model(result, load_tokenizer(folder), tmp_path / "again")
    again = LOADS[load](tmp_path / "again")
    for language in LANGUAGES:
        assert torch.equal(states(result, language), states(model, language))
        assert torch.equal(states(again, language), states(model, language))
        own_language_parameters, theirs = (
            list(language_parameters(item, language).values()) for item in (model, again)
        )
        assert all(torch.equal(x, y) for x, y in zip(own_language_parameters, theirs, strict=True))


@pytest.mark.each_value
@pytest.mark.parametrize("kind", KINDS)
def test_transformers_reads_the_first_languages_model_or_the_encoder_without_adapters(
    kind, encoder_folder, tmp_path
):
    model = make_modular(encoder_folder, kind)
    save_model(model, load_tokenizer(encoder_folder), tmp_path / "saved")
    plain_model, info = transformers.AutoModelForMaskedLM.from_pretrained(
        tmp_path / "saved", attn_implementation="eager", output_loading_info=True
    )
    assert not info["missing_keys"] and not info["unexpected_keys"]
    if kind not in COPIES:
        with torch.no_grad():
            for language in LANGUAGES:
                for name, weight in language_parameters(model, language).items():
                    if ".up." in name or kind == "embedding":
                        weight.zero_()
            for name, weight in model.named_parameters():
                if ".of_shared-adapter." in name and ".up." in name:
                    weight.zero_()
    with torch.no_grad():
        last_hidden_state = plain_model.eval().base_model(IDS).last_hidden_state
    torch.testing.assert_close(last_hidden_state, states(model, "en"))
    if kind in COPIES:
        assert not torch.allclose(last_hidden_state, states(model, "sw"), atol=1e-3)


def test_modules_left_out_for_a_while_come_back(bert_folder):
    assert read_module_info(bert_folder, 32) is None
    model = make_modular(bert_folder, "adapter")
    names = {name for name, _ in model.named_parameters()}
    with without_added_modules(model):
        assert modules_of(model) is None
        assert not any("language_modules" in name for name in model.state_dict())
    assert {name for name, _ in model.named_parameters()} == names


@pytest.fixture
def saved_folder(bert_folder, tmp_path):
    save_model(make_modular(bert_folder, "adapter"), load_tokenizer(bert_folder), tmp_path / "saved")
    return tmp_path / "saved"


def rewrite_modules(saved_value, change):
    """Write the file again after a change of its weights and metadata."""
    from safetensors import safe_open

    with safe_open(saved_value / MODULES_FILE, framework="pt") as file:
        metadata = file.metadata()
    weights = load_file(saved_value / MODULES_FILE)
    change(weights, metadata)
    save_file(weights, saved_value / MODULES_FILE, metadata=metadata)


def message(saved_value):
    result = refusal(load_model, saved_value)
    assert str(saved_value / MODULES_FILE) in result
    return result


def test_a_file_that_is_none_is_damaged(saved_folder):
    (saved_folder / MODULES_FILE).write_bytes(b"\0" * 20)
    assert "(SafetensorError: " in message(saved_folder)
    save_file({"en/x": torch.ones(1)}, saved_folder / MODULES_FILE)
    assert "(KeyError: 'kind')" in message(saved_folder)


CHANGES = {
    "kind": ("kind", "ffn", "no kind of module 'ffn'"),
    "languages": ("languages", "", "modules: '' "),
    "reduction": ("reduction", "four", "invalid literal"),
    "fallback": ("fallback", "fr", "no language with modules 'fr'"),
}


@pytest.mark.parametrize(("name", "value", "change"), CHANGES.values(), ids=CHANGES)
def test_what_a_file_says_of_itself_is_checked(saved_folder, name, value, change):
    rewrite_modules(saved_folder, lambda _, metadata: metadata.update({name: value}))
    assert change in message(saved_folder)


def test_weights_of_another_shape_or_missing_or_too_many_are_anothers(saved_folder):
    def other(weights, _):
        name = min(weights)
        weights[name] = torch.zeros(3)

    rewrite_modules(saved_folder, other)
    result = message(saved_folder)
    assert ": en/encoder.layer.0" in result and "(3,)" in result
    rewrite_modules(saved_folder, lambda weights, _: weights.pop(min(weights)))
    result = message(saved_folder)
    assert ": en/encoder.layer.0" in result and "None" in result


def test_a_file_of_another_encoder_is_refused(saved_folder, distilbert_folder, tmp_path):
    copytree(distilbert_folder, tmp_path / "other")
    copyfile(saved_folder / MODULES_FILE, tmp_path / "other" / MODULES_FILE)
    result = message(tmp_path / "other")
    assert ": en/" in result and "None" in result


# Maps


@pytest.fixture
def maps():
    torch.manual_seed(0)
    return LanguageMaps("en", {"xx": LanguageMap(torch.randn(32, 32), torch.randn(32))})


def test_the_last_states_are_mapped_and_the_others_are_not(encoder_folder, maps):
    model = load_model(encoder_folder)
    with torch.no_grad():
        plain_model = model(IDS, output_hidden_states=True)
        with map_states(model, maps, ("xx",)):
            result = model(IDS, output_hidden_states=True)
        model_after = model(IDS, output_hidden_states=True)
    expected = maps.maps["xx"](plain_model.last_hidden_state)
    torch.testing.assert_close(result.last_hidden_state, expected)
    torch.testing.assert_close(result.hidden_states[-1], expected)
    for left, right in zip(result.hidden_states[:-1], plain_model.hidden_states[:-1], strict=True):
        assert torch.equal(left, right)
    assert torch.equal(model_after.last_hidden_state, plain_model.last_hidden_state)
    assert not model._forward_hooks


def test_heads_see_mapped_states(encoder_folder, maps):
    model = tagger(encoder_folder)
    with torch.no_grad(), map_states(model, maps, ("xx",)):
        logits = model(IDS).logits
        states = model.base_model(IDS).last_hidden_state
    torch.testing.assert_close(family_of(model).tag_scores(model, states), logits)


def test_the_first_state_is_pooled_after_the_map(bert_folder, maps):
    model = load_with_new_head(bert_folder, "AutoModelForSequenceClassification", labels=("a", "b"), seed=0)
    with torch.no_grad(), map_states(model, maps, ("xx",)):
        base_model = model.base_model(IDS)
    torch.testing.assert_close(
        base_model.pooler_output, model.base_model.pooler(base_model.last_hidden_state)
    )


def test_the_source_stays_as_it_is_to_the_bit(bert_folder, maps):
    model = load_model(bert_folder)
    with pytest.raises(KeyError), map_states(model, maps, ("xx",)):
        raise KeyError
    with torch.no_grad(), map_states(model, maps, ("en",)):
        assert hooks(model) == 0
        last_hidden_state = model(IDS).last_hidden_state
    assert torch.equal(last_hidden_state, model(IDS).last_hidden_state)


def test_a_language_without_a_map_is_refused(bert_folder, maps):
    with pytest.raises(ConfigError, match=r"'xy'.*'xx'\?.*en"):
        maps.of("xy")


def test_the_file_gives_back_the_maps_and_says_when_it_is_damaged(maps, tmp_path):
    assert read_language_maps(tmp_path, 32) is None
    write_language_maps(maps, tmp_path)
    language_maps = read_language_maps(tmp_path, 32)
    assert language_maps.source == "en" and language_maps.maps.keys() == {"xx"}
    assert torch.equal(language_maps.maps["xx"].matrix, maps.maps["xx"].matrix)
    (tmp_path / MAPS_FILE).write_bytes(b"\0" * 20)
    with pytest.raises(ModelError, match="modules"):
        read_language_maps(tmp_path, 32)


def test_a_pair_of_languages_is_read_as_the_one_translated_into(maps):
    assert maps.of("en-xx") is maps.of("xx")
    assert maps.of("xx-en") is None


def test_a_language_not_said_and_two_at_once_are_refused(maps):
    with pytest.raises(ConfigError, match="en"):
        maps.of("")
    with pytest.raises(ConfigError, match=r"xx\+en.*en"):
        maps.of("xx+en")


@pytest.fixture
def mapped_folder(bert_folder, maps, tmp_path):
    copytree(bert_folder, tmp_path / "mapped")
    write_language_maps(maps, tmp_path / "mapped")
    return tmp_path / "mapped"


@pytest.mark.parametrize("load", LOADS.values(), ids=LOADS)
def test_a_model_carries_its_maps_through_saving(load, mapped_folder, maps, tmp_path):
    model = load(mapped_folder)
    save_model(model, load_tokenizer(mapped_folder), tmp_path / "again")
    language_maps = language_maps_of(load(tmp_path / "again"))
    assert language_maps.source == maps.source
    assert torch.equal(language_maps.maps["xx"].matrix, maps.maps["xx"].matrix)
    assert torch.equal(language_maps.maps["xx"].shift, maps.maps["xx"].shift)
    with torch.no_grad(), active_language(model, "xx"):
        states = model.base_model(IDS).last_hidden_state
    with torch.no_grad(), active_language(model, "en"):
        assert torch.equal(maps.maps["xx"](model.base_model(IDS).last_hidden_state), states)


def test_a_model_without_maps_reads_every_language_as_it_is(bert_folder):
    model = load_model(bert_folder)
    check_languages(model, ("", "xx", "xx+en"))
    with torch.no_grad(), active_language(model, "xx"):
        assert hooks(model) == 0


def test_maps_of_another_encoder_are_refused(maps, bert_folder, tmp_path):
    copytree(bert_folder, tmp_path / "mapped")
    narrow = LanguageMaps("en", {"xx": LanguageMap(torch.eye(8), torch.zeros(8))})
    write_language_maps(narrow, tmp_path / "mapped")
    with pytest.raises(ModelError, match=r"\(8, 8\).*\(32, 32\)"):
        load_model(tmp_path / "mapped")


def test_states_are_mapped_in_their_own_precision(maps):
    states = torch.randn(3, 32)
    with torch.autocast("cpu", torch.bfloat16):
        result = maps.maps["xx"](states)
    assert torch.equal(result, maps.maps["xx"](states))
