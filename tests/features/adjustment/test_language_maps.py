"""Language maps of an encoder follow from its matched states, and align translations."""

import pytest
import torch

from aligned import Slowly, load_in_float64, translations
from isogloss.core.errors import ConfigError, DataError
from isogloss.data.examples import Translation
from isogloss.encoders.added.active_language import map_states
from isogloss.encoders.loading import load_model
from isogloss.encoders.tokenizers import load_tokenizer
from isogloss.features.adjustment.maps import Moments, language_map
from isogloss.features.adjustment.methods import language_maps
from isogloss.training.bitext import PairEncoding, read_bitext
from isogloss.training.states import sentence_states


def maps_of(folder, bitext, kind, **encoding):
    read = read_bitext(bitext, load_tokenizer(folder), PairEncoding(**({"pulled": "words"} | encoding)))
    return language_maps(load_model(folder), read, kind, precision="float32")


def test_maps_follow_from_the_states_of_linked_words(encoder_folder):
    pairs = translations(12)
    result = maps_of(encoder_folder, {"en-xx": pairs}, "normalisation").maps["xx"]
    slow = load_in_float64(encoder_folder)
    slowly = Slowly(encoder_folder, aligned="words")
    with torch.no_grad():
        linked_items = [item for pair in pairs for item in slowly.items(slow, pair)[0]]
    moments = Moments(32)
    moments.add(*(torch.stack(side) for side in zip(*linked_items, strict=True)))
    expected = language_map(moments, "normalisation")
    torch.testing.assert_close(result.matrix, expected.matrix, rtol=1e-3, atol=1e-4)
    torch.testing.assert_close(result.shift, expected.shift, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("kind", ["rotation", "centring"])
def test_mapped_sentences_lie_nearer_to_their_translations(bert_folder, kind):
    pairs = translations(40)
    maps = maps_of(bert_folder, {"en-xx": pairs}, kind, pulled="sentences")
    model = load_model(bert_folder)
    tokenizer = load_tokenizer(bert_folder)

    def states(side, language):
        texts = [getattr(pair, side) for pair in pairs]
        with map_states(model, maps, (language,)):
            return sentence_states(model, tokenizer, texts, precision="float32")

    source = states("first", "en")
    total_before, total_after = (
        (states("second", language) - source).square().sum() for language in ("en", "xx")
    )
    assert float(total_after) < float(total_before)


def test_one_source_is_asked_for(bert_folder):
    with pytest.raises(ConfigError, match="pairs en-xx, de-xx"):
        maps_of(bert_folder, {"en-xx": translations(2), "de-xx": translations(2)}, "rotation")
    with pytest.raises(ConfigError, match="pairs"):
        maps_of(bert_folder, {}, "rotation")


def test_nothing_to_map_by_is_said(bert_folder):
    unlinked_translations = [Translation(id="0", first="a cat", second="tac a", links=())]
    with pytest.raises(DataError, match="en-xx:"):
        maps_of(bert_folder, {"en-xx": unlinked_translations}, "rotation")
