"""Maps after the last layer: for a while, for every family, with any head; a file beside the encoder."""

from shutil import copytree

import pytest
import torch
from torch import nn

from isogloss.core.errors import ConfigError, ModelError
from isogloss.encoders import load_model, load_tokenizer, load_whole, load_with_new_head, save_model
from isogloss.encoders.language_context import (
    LanguageMaps,
    active_language,
    check_languages,
    language_maps_of,
    mapped,
)
from isogloss.encoders.language_files import MAPS_FILE, read_language_maps, write_language_maps
from isogloss.encoders.own_head import load_with_own_head
from isogloss.nn.language_modules import LanguageMap

IDS = torch.tensor([[2, 7, 9, 11, 3]])


@pytest.fixture
def maps():
    torch.manual_seed(0)
    return LanguageMaps("en", {"xx": LanguageMap(torch.randn(32, 32), torch.randn(32))})


def test_the_last_states_are_mapped_and_the_others_are_not(encoder_folder, maps):
    model = load_model(encoder_folder)
    with torch.no_grad():
        plain = model(IDS, output_hidden_states=True)
        with mapped(model, maps, ("xx",)):
            found = model(IDS, output_hidden_states=True)
        after = model(IDS, output_hidden_states=True)
    expected = maps.maps["xx"](plain.last_hidden_state)
    torch.testing.assert_close(found.last_hidden_state, expected)
    torch.testing.assert_close(found.hidden_states[-1], expected)
    for one, other in zip(found.hidden_states[:-1], plain.hidden_states[:-1], strict=True):
        assert torch.equal(one, other)
    assert torch.equal(after.last_hidden_state, plain.last_hidden_state)
    assert not model._forward_hooks


def test_heads_see_mapped_states(encoder_folder, maps):
    model = load_with_new_head(encoder_folder, "AutoModelForTokenClassification", labels=("a", "b"), seed=0)
    with torch.no_grad(), mapped(model, maps, ("xx",)):
        found = model(IDS).logits
        states = model.base_model(IDS).last_hidden_state
    from isogloss.encoders import family_of

    torch.testing.assert_close(family_of(model).tag_scores(model, states), found)


def test_the_first_state_is_pooled_after_the_map(bert_folder, maps):
    model = load_with_new_head(bert_folder, "AutoModelForSequenceClassification", labels=("a", "b"), seed=0)
    with torch.no_grad(), mapped(model, maps, ("xx",)):
        found = model.base_model(IDS)
    torch.testing.assert_close(found.pooler_output, model.base_model.pooler(found.last_hidden_state))


def test_the_source_stays_as_it_is_to_the_bit(bert_folder, maps):
    model = load_model(bert_folder)
    with torch.no_grad(), mapped(model, maps, ("en",)):
        assert not model._forward_hooks
        found = model(IDS).last_hidden_state
    assert torch.equal(found, model(IDS).last_hidden_state)


def test_a_hook_goes_away_when_something_fails(bert_folder, maps):
    model = load_model(bert_folder)
    with pytest.raises(KeyError), mapped(model, maps, ("xx",)):
        raise KeyError
    assert not model._forward_hooks


def test_a_language_without_a_map_is_refused(bert_folder, maps):
    with pytest.raises(ConfigError, match=r"no map for 'xy'. Did you mean 'xx'\? Known: en, xx. Adjust it"):
        maps.of("xy")


def test_the_file_gives_back_the_maps_and_says_when_it_is_damaged(maps, tmp_path):
    assert read_language_maps(tmp_path, 32) is None
    write_language_maps(maps, tmp_path)
    found = read_language_maps(tmp_path, 32)
    assert found.source == "en" and found.maps.keys() == {"xx"}
    assert torch.equal(found.maps["xx"].matrix, maps.maps["xx"].matrix)
    (tmp_path / MAPS_FILE).write_bytes(b"\0" * 20)
    with pytest.raises(ModelError, match="these language maps are damaged"):
        read_language_maps(tmp_path, 32)


def test_a_pair_of_languages_is_read_as_the_one_translated_into(maps):
    assert maps.of("en-xx") is maps.of("xx")
    assert maps.of("xx-en") is None


def test_a_language_not_said_and_two_at_once_are_refused(maps):
    with pytest.raises(ConfigError, match=r"not said which language it reads. Known: en, xx. Name it"):
        maps.of("")
    with pytest.raises(ConfigError, match=r"xx\+en is two languages in one input. Known: en, xx."):
        maps.of("xx+en")


@pytest.fixture
def mapped_folder(encoder_folder, maps, tmp_path):
    copytree(encoder_folder, tmp_path / "mapped")
    write_language_maps(maps, tmp_path / "mapped")
    return tmp_path / "mapped"


LOADS = {
    "encoder": load_model,
    "whole": load_whole,
    "head": lambda folder: load_with_new_head(
        folder, "AutoModelForTokenClassification", labels=("a", "b"), seed=0
    ),
    "own head": lambda folder: load_with_own_head(folder, lambda dim: nn.Linear(dim, 2), labels="ab", seed=0),
}


@pytest.mark.parametrize("load", LOADS.values(), ids=LOADS)
def test_a_model_carries_its_maps_through_saving(load, mapped_folder, maps, tmp_path):
    model = load(mapped_folder)
    save_model(model, load_tokenizer(mapped_folder), tmp_path / "again")
    found = language_maps_of(load(tmp_path / "again"))
    assert found.source == maps.source
    assert torch.equal(found.maps["xx"].matrix, maps.maps["xx"].matrix)
    assert torch.equal(found.maps["xx"].shift, maps.maps["xx"].shift)
    with torch.no_grad(), active_language(model, "xx"):
        states = model.base_model(IDS).last_hidden_state
    with torch.no_grad(), active_language(model, "en"):
        assert torch.equal(maps.maps["xx"](model.base_model(IDS).last_hidden_state), states)


def test_a_model_without_maps_reads_every_language_as_it_is(bert_folder):
    model = load_model(bert_folder)
    check_languages(model, ("", "xx", "xx+en"))
    with torch.no_grad(), active_language(model, "xx"):
        assert not model._forward_hooks


def test_maps_of_another_encoder_are_refused(maps, bert_folder, tmp_path):
    copytree(bert_folder, tmp_path / "mapped")
    narrow = LanguageMaps("en", {"xx": LanguageMap(torch.eye(8), torch.zeros(8))})
    write_language_maps(narrow, tmp_path / "mapped")
    with pytest.raises(ModelError, match=r"map of xx has the shape \(8, 8\), and the encoder is 32 wide"):
        load_model(tmp_path / "mapped")


def test_states_are_mapped_in_their_own_precision(maps):
    states = torch.randn(3, 32)
    with torch.autocast("cpu", torch.bfloat16):
        found = maps.maps["xx"](states)
    assert torch.equal(found, maps.maps["xx"](states))
