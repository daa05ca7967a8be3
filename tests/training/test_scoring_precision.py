"""Scoring in another precision: the numbers of autocast, and weights as they were afterwards."""

import pytest
import torch
from torch import nn

from isogloss.encoders import load_masked_lm
from isogloss.training.precision import matrices_converted, scoring

IDS = torch.tensor([[2, 9, 10, 11, 3], [2, 12, 3, 0, 0]])
MASK = torch.tensor([[1, 1, 1, 1, 1], [1, 1, 1, 0, 0]])


def test_scores_in_bfloat16_are_those_of_autocast_to_the_bit(encoder_folder):
    model = load_masked_lm(encoder_folder)
    with torch.no_grad(), torch.autocast("cpu", torch.bfloat16):
        expected = model(input_ids=IDS, attention_mask=MASK).logits
    with scoring(model, "bfloat16") as device:
        found = model(input_ids=IDS, attention_mask=MASK).logits
    assert device.type == "cpu"
    assert torch.equal(found, expected)


def test_scores_in_float32_are_the_models_own(encoder_folder):
    model = load_masked_lm(encoder_folder)
    with torch.no_grad():
        expected = model(input_ids=IDS, attention_mask=MASK).logits
    with scoring(model, "float32"):
        found = model(input_ids=IDS, attention_mask=MASK).logits
    assert torch.equal(found, expected)


def test_weights_are_the_same_objects_afterwards(bert_folder):
    model = load_masked_lm(bert_folder)
    before = dict(model.named_parameters())
    with pytest.raises(ZeroDivisionError), matrices_converted(model, torch.bfloat16):
        assert model.bert.encoder.layer[0].output.dense.weight.dtype == torch.bfloat16
        assert model.bert.embeddings.word_embeddings.weight.dtype == torch.float32
        raise ZeroDivisionError
    assert all(weight is before[name] for name, weight in model.named_parameters())


def test_layers_without_bias_stay_without():
    model = nn.Sequential(nn.Linear(2, 2, bias=False))
    with matrices_converted(model, torch.bfloat16):
        assert model[0].bias is None
    assert model[0].bias is None and model[0].weight.dtype == torch.float32
