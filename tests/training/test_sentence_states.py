import pytest
import torch

from isogloss.core.errors import ConfigError
from isogloss.encoders.loading import load_masked_lm
from isogloss.encoders.tokenizers import load_tokenizer
from isogloss.training import length_batches as module
from isogloss.training.states import sentence_states
from made_up import TEXT

LINES = [
    " ".join(TEXT.split()[start : start + length])
    for start, length in ((0, 3), (4, 9), (2, 1), (7, 12), (1, 5))
]


@pytest.fixture
def tokenizer(encoder_folder):
    return load_tokenizer(encoder_folder)


def naive(model, tokenizer, text, layer):
    ids = tokenizer(text)["input_ids"]
    with torch.inference_mode():
        states = model.base_model(torch.tensor([ids]), output_hidden_states=True).hidden_states[layer][0]
    real_places = [place for place, subword in enumerate(ids) if place not in (0, len(ids) - 1)]
    return states[real_places].mean(dim=0)


@pytest.mark.each_value
@pytest.mark.parametrize("layer", [-1, 0, 2])
@pytest.mark.parametrize("budget", [8192, 10])
def test_sentence_states_are_those_of_a_loop(encoder_folder, tokenizer, monkeypatch, layer, budget):
    monkeypatch.setattr(module, "BUDGET", budget)
    model = load_masked_lm(encoder_folder)
    ours = sentence_states(model, tokenizer, LINES, layers=(layer,), precision="float32")[0]
    theirs = torch.stack([naive(model, tokenizer, line, layer) for line in LINES])
    assert ours.dtype == torch.float32
    assert torch.allclose(ours, theirs, atol=1e-5)


def test_unknown_words_count_as_text(encoder_folder, tokenizer):
    model = load_masked_lm(encoder_folder)
    ours = sentence_states(model, tokenizer, ["日 cat"], precision="float32")[0, 0]
    assert torch.allclose(ours, naive(model, tokenizer, "日 cat", -1), atol=1e-5)


def test_long_texts_are_cut_and_empty_ones_are_zero(encoder_folder, tokenizer):
    model = load_masked_lm(encoder_folder)
    cut, whole_sentence_state, empty_sentence_state = sentence_states(
        model, tokenizer, [" ".join(["the"] * 50), "the the the", ""], limit=5, precision="float32"
    )[0]
    assert torch.allclose(cut, whole_sentence_state, atol=1e-5)
    assert not empty_sentence_state.any()


def test_texts_longer_than_the_encoder_has_positions_for_are_cut(encoder_folder, tokenizer):
    model = load_masked_lm(encoder_folder)
    states = sentence_states(model, tokenizer, [" ".join(["the"] * 400)], limit=1000, precision="float32")
    assert states.isfinite().all()


@pytest.mark.each_value
@pytest.mark.parametrize("layer", [4, -5, 99])
def test_a_layer_that_is_not_there_is_an_error(encoder_folder, tokenizer, layer):
    with pytest.raises(ConfigError, match=f"layer {layer}: .*3.*0.*3, or -1"):
        sentence_states(load_masked_lm(encoder_folder), tokenizer, LINES, layers=(-1, layer))


def test_several_layers_are_those_asked_for_one_by_one(encoder_folder, tokenizer):
    model = load_masked_lm(encoder_folder)
    joint_sentence_states = sentence_states(model, tokenizer, LINES, layers=(0, 2, -1), precision="float32")
    assert joint_sentence_states.shape == (3, len(LINES), 32)
    for index, layer in enumerate((0, 2, 3)):
        single_sentence_states = sentence_states(
            model, tokenizer, LINES, layers=(layer,), precision="float32"
        )
        assert torch.equal(joint_sentence_states[index], single_sentence_states[0])
