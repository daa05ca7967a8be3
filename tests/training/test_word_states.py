"""States of words: equal to a loop over words and subwords, for every family and way to make a word."""

import pytest
import torch

from isogloss.core.errors import ConfigError
from isogloss.encoders.loading import load_masked_lm
from isogloss.encoders.subwords import SplitWords, special_subwords, split_words
from isogloss.encoders.tokenizers import load_tokenizer
from isogloss.training import length_batches as module
from isogloss.training.states import WORDS, cut, word_states

SENTENCES = [
    ["the", "slowly", "unhappening", "casual"],
    ["the"],
    [],
    ["lowly", "日", "cats", "slowed", "happening", "the"],
    ["Hà Nội", "the"],
]


@pytest.fixture
def loaded_masked_lm(encoder_folder):
    return load_masked_lm(encoder_folder), load_tokenizer(encoder_folder)


def naive(loaded_model, sentence, layer, words):
    model, tokenizer = loaded_model
    (split,) = split_words([sentence], tokenizer)
    opening, closing = special_subwords(tokenizer)
    ids = torch.tensor([[opening, *split.subwords, closing]])
    with torch.inference_mode():
        states = model.base_model(ids, output_hidden_states=True).hidden_states[layer][0, 1:-1]
    result = []
    for word in range(len(sentence)):
        own_states = [states[place] for place, owner in enumerate(split.words) if owner == word]
        result.append(
            {"first": own_states[0], "last": own_states[-1], "average": sum(own_states) / len(own_states)}[
                words
            ]
        )
    return torch.stack(result) if result else torch.empty(0, states.shape[-1])


@pytest.mark.each_value
@pytest.mark.parametrize("words", WORDS)
@pytest.mark.parametrize("budget", [8192, 12])
def test_word_states_are_those_of_a_loop(loaded_masked_lm, monkeypatch, words, budget):
    monkeypatch.setattr(module, "BUDGET", budget)
    result = word_states(*loaded_masked_lm, SENTENCES, layers=(-1, 1), words=words, precision="float32")
    assert [tensor.shape[:2] for tensor in result] == [(2, len(sentence)) for sentence in SENTENCES]
    for sentence, item in zip(SENTENCES, result, strict=True):
        for ours, layer in zip(item, (-1, 1), strict=True):
            assert torch.allclose(ours, naive(loaded_masked_lm, sentence, layer, words), atol=1e-5)


def test_some_word_has_several_subwords(loaded_masked_lm):
    """Otherwise the ways to represent a word would give equal results."""
    word_states_by_way = [
        word_states(*loaded_masked_lm, SENTENCES, words=words, precision="float32") for words in WORDS
    ]
    assert not any(
        torch.allclose(word_states_by_way[a][0], word_states_by_way[b][0])
        for a, b in ((0, 1), (0, 2), (1, 2))
    )


def test_words_beyond_the_encoders_positions_are_left_out(loaded_masked_lm):
    (word_state,) = word_states(*loaded_masked_lm, [["the", "slowly"] * 200], precision="float32")
    assert 20 < word_state.shape[1] < 400
    assert word_state.isfinite().all()


@pytest.mark.parametrize(
    ("room", "left"), [(9, 3), (6, 3), (5, 2), (4, 2), (3, 2), (2, 1), (1, 1), (0, 0), (-2, 0)]
)
def test_only_whole_words_are_kept(room, left):
    sentence = SplitWords((1, 2, 3, 4, 5, 6), (0, 1, 1, 2, 2, 2))
    kept_part = cut(sentence, room)
    assert len(set(kept_part.words)) == left
    assert kept_part.subwords == sentence.subwords[: len(kept_part.words)]
    assert len(kept_part.words) == sum(word < left for word in sentence.words)


def test_an_unknown_way_to_make_a_word_is_an_error(loaded_masked_lm):
    with pytest.raises(ConfigError, match=r"'avarage'.*average"):
        word_states(*loaded_masked_lm, SENTENCES, words="avarage")
