"""Maps after the last layer: for a while, for every family, with any head; a file beside the encoder."""

import pytest
import torch

from isogloss.core.errors import ConfigError, ModelError
from isogloss.encoders import load_model, load_with_new_head
from isogloss.encoders.language_maps import (
    FILE,
    LanguageMaps,
    read_language_maps,
    speaking,
    write_language_maps,
)
from isogloss.nn.language_map import LanguageMap

IDS = torch.tensor([[2, 7, 9, 11, 3]])


@pytest.fixture
def maps():
    torch.manual_seed(0)
    return LanguageMaps("en", {"xx": LanguageMap(torch.randn(32, 32), torch.randn(32))})


def test_the_last_states_are_mapped_and_the_others_are_not(encoder_folder, maps):
    model = load_model(encoder_folder)
    with torch.no_grad():
        plain = model(IDS, output_hidden_states=True)
        with speaking(model, maps, "xx"):
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
    with torch.no_grad(), speaking(model, maps, "xx"):
        found = model(IDS).logits
        states = model.base_model(IDS).last_hidden_state
    from isogloss.encoders import family_of

    torch.testing.assert_close(family_of(model).tag_scores(model, states), found)


def test_the_first_state_is_pooled_after_the_map(bert_folder, maps):
    model = load_with_new_head(bert_folder, "AutoModelForSequenceClassification", labels=("a", "b"), seed=0)
    with torch.no_grad(), speaking(model, maps, "xx"):
        found = model.base_model(IDS)
    torch.testing.assert_close(found.pooler_output, model.base_model.pooler(found.last_hidden_state))


def test_the_source_stays_as_it_is_to_the_bit(bert_folder, maps):
    model = load_model(bert_folder)
    with torch.no_grad(), speaking(model, maps, "en"):
        assert not model._forward_hooks
        found = model(IDS).last_hidden_state
    assert torch.equal(found, model(IDS).last_hidden_state)


def test_a_hook_goes_away_when_something_fails(bert_folder, maps):
    model = load_model(bert_folder)
    with pytest.raises(KeyError), speaking(model, maps, "xx"):
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
    (tmp_path / FILE).write_bytes(b"\0" * 20)
    with pytest.raises(ModelError, match="these language maps are damaged"):
        read_language_maps(tmp_path, 32)
