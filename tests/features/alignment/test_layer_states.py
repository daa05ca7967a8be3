import pytest
import torch

from isogloss.core.errors import ConfigError
from isogloss.encoders.loading import load_model
from isogloss.encoders.subwords import SplitWords, split_words
from isogloss.encoders.tokenizers import load_tokenizer
from isogloss.features.alignment.encoder_similarity import default_layer, subword_states

SENTENCES = [["the", "cat", "sat", "on", "the", "mat", "."], ["a", "dog", "ran"], [], ["unbelievable"]]


@pytest.mark.each_value
@pytest.mark.parametrize("layer", range(4))
def test_states_are_those_of_the_whole_encoder_one_sentence_at_a_time(encoder_folder, layer):
    model = load_model(encoder_folder)
    tokenizer = load_tokenizer(encoder_folder)
    splits = split_words(SENTENCES, tokenizer)
    result = subword_states(model, tokenizer, splits, layer=layer, precision="float32")
    assert not any(part._forward_hooks for part in model.modules())
    for split, states in zip(splits, result, strict=True):
        assert states.shape == (len(split.subwords), model.config.hidden_size)
        if split.subwords:
            row = torch.tensor([[tokenizer.cls_token_id, *split.subwords, tokenizer.sep_token_id]])
            with torch.inference_mode():
                whole_hidden_state = model(input_ids=row, output_hidden_states=True).hidden_states[layer][
                    0, 1:-1
                ]
            torch.testing.assert_close(states, whole_hidden_state, atol=1e-5, rtol=1e-4)


def test_later_layers_are_not_computed(bert_folder):
    model = load_model(bert_folder)
    tokenizer = load_tokenizer(bert_folder)
    model.encoder.layer[2].forward = None
    assert (
        len(subword_states(model, tokenizer, split_words(SENTENCES, tokenizer), layer=2, precision="float32"))
        == 4
    )


def test_a_sentence_longer_than_the_encoder_takes_has_a_state_for_every_subword(bert_folder):
    model = load_model(bert_folder)
    tokenizer = load_tokenizer(bert_folder)
    (word,) = tokenizer.convert_tokens_to_ids(["cat"])
    long_split_words = SplitWords((word,) * 400, tuple(range(400)))
    (states,) = subword_states(model, tokenizer, [long_split_words], layer=2, precision="float32")
    (start,) = subword_states(
        model, tokenizer, [SplitWords((word,) * 158, tuple(range(158)))], layer=2, precision="float32"
    )
    assert states.shape == (400, 32)
    torch.testing.assert_close(states[:100], start[:100], atol=1e-5, rtol=1e-4)


def test_default_layer_is_the_eighth_of_twelve():
    assert [default_layer(layers) for layers in (12, 24, 6, 4, 1)] == [8, 16, 4, 3, 1]


def test_layers_are_counted_from_either_end(bert_folder):
    model = load_model(bert_folder)
    tokenizer = load_tokenizer(bert_folder)
    splits = split_words(SENTENCES[:1], tokenizer)
    last_num_hidden_layers = model.config.num_hidden_layers

    def states(layer):
        return subword_states(model, tokenizer, splits, layer=layer, precision="float32")[0]

    assert torch.equal(states(-1), states(last_num_hidden_layers))
    assert torch.equal(states(-last_num_hidden_layers - 1), states(0))
    with pytest.raises(
        ConfigError, match=f"no layer {last_num_hidden_layers + 1}: .*encoder.*{last_num_hidden_layers}.*0"
    ):
        states(last_num_hidden_layers + 1)
