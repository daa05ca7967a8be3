"""Masked next-token prediction: hidden subwords are predicted from the states before them."""

import numpy as np
import pytest
import torch

from isogloss.core.errors import ConfigError
from isogloss.core.run_parts import Modules, with_fields
from isogloss.encoders.loading import load_model
from isogloss.encoders.prepared import prepare_folder
from isogloss.encoders.saving import save_model
from isogloss.encoders.tokenizers import load_tokenizer
from isogloss.features.pretraining.methods import MaskedLanguageModelling, MaskedNextToken
from isogloss.features.pretraining.parameters import module_parameters
from isogloss.features.pretraining.starts import load_to_continue
from isogloss.tasks.masked_lm import Masking, Vocabulary, masked_lm_loss
from made_up_text import TINY, further
from trained import equal, weights

ZERO = torch.zeros(0)

METHOD = with_fields(
    MaskedNextToken(mask="e"),
    **TINY | {"steps": 30, "checkpoint_every": 0},
    batch_subwords=96,
    evaluate_every=30,
)


@pytest.fixture
def lifted_folder(request, tmp_path):
    def make(name):
        return prepare_folder(
            request.getfixturevalue(f"{name}_folder"), "bidirectional", tmp_path / f"{name}-lifted"
        )

    return make


def masking(tokenizer, **fields):
    return Masking(vocabulary=Vocabulary.from_tokenizer(tokenizer, mask="e"), share=0.3, **fields)


def test_the_state_before_a_hidden_subword_predicts_it(llama_folder, lifted_folder):
    tokenizer = load_tokenizer(llama_folder)
    rows = [[np.arange(60, 75)], [np.arange(80, 90)]]
    inplace = masking(tokenizer).batch(rows, seed=3)
    batch_before = masking(tokenizer, next_token=True).batch(rows, seed=3)
    assert torch.equal(batch_before.masked, inplace.masked - 1)
    assert torch.equal(batch_before.gold, inplace.gold) and torch.equal(
        batch_before.subwords, inplace.subwords
    )
    model = load_to_continue(lifted_folder("llama"), seed=0)
    with torch.no_grad():
        logits = model(**batch_before.inputs()).logits
        expected = torch.nn.functional.cross_entropy(
            logits[:, :-1].flatten(0, 1)[shift_places(batch_before)], batch_before.gold
        )
        torch.testing.assert_close(masked_lm_loss(model, batch_before), expected)


def shift_places(batch):
    """The places of the predicting states in a batch without its last column."""
    width = batch.subwords.size(1)
    return batch.masked // width * (width - 1) + batch.masked % width


@pytest.mark.slow
@pytest.mark.parametrize("name", ["llama", "qwen3", "gemma3_text"])
def test_without_steps_a_decoder_stays_and_with_some_it_learns(name, lifted_folder, tmp_path):
    start = lifted_folder(name)
    training = with_fields(METHOD, steps=0, evaluate_every=None).train(further(start, tmp_path / "0"))
    save_model(training.model, training.tokenizer, tmp_path / "saved")
    assert equal(load_model(tmp_path / "saved"), load_model(start))
    assert training.tokenizer.get_vocab() == load_tokenizer(start).get_vocab()

    training = METHOD.train(further(start, tmp_path / "30"))
    scores = [row["score"] for row in training.rows if row.get("metric") == "perplexity"]
    assert len(scores) == 4 and scores[2] < 0.7 * scores[0] and scores[3] < 0.7 * scores[1]


@pytest.mark.parametrize("part", ["modules", "layers"])
def test_of_a_decoder_a_part_is_trained_and_the_rest_stays_to_the_bit(part, lifted_folder, tmp_path):
    start = lifted_folder("llama")
    inputs = further(start, tmp_path, trained=part, modules=Modules(kind="adapter"))
    then = weights(load_to_continue(start, seed=0))
    training = with_fields(METHOD, steps=4, evaluate_every=None).train(inputs)
    moved_names = {
        name for name, weight in weights(training).items() if not torch.equal(weight, then.get(name, ZERO))
    }
    own_module_parameters = module_parameters(training.model, inputs.languages).keys()
    expected = {name for name in then if "embed_tokens" not in name} if part == "layers" else set()
    assert moved_names == {*own_module_parameters, *expected}


def test_what_cannot_be_trained_is_refused(bert_folder, llama_folder, lifted_folder, tmp_path):
    def refusal(method, start):
        with pytest.raises(ConfigError) as error:
            method.train(further(start, tmp_path))
        return str(error.value)

    assert 'attention = "bidirectional"' in refusal(METHOD, llama_folder)
    assert "bert" in refusal(METHOD, bert_folder)
    assert "method masked-next-token" in refusal(MaskedLanguageModelling(), llama_folder)
    own_part = with_fields(METHOD, mask="")
    assert "mask_token" in refusal(own_part, lifted_folder("llama"))
    assert "has no subword 'unheard of'" in refusal(
        with_fields(METHOD, mask="unheard of"), lifted_folder("llama")
    )
