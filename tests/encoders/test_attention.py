"""The attention offered to transformers equals its eager one."""

import json

import torch

from isogloss.encoders import load_masked_lm, load_tokenizer, offer_explicit_attention, save_model
from isogloss.encoders.attention import NAME

IDS = torch.tensor([[2, 9, 10, 11, 3], [2, 12, 3, 0, 0]])
MASK = torch.tensor([[1, 1, 1, 1, 1], [1, 1, 1, 0, 0]])


def both(folder):
    return [load_masked_lm(folder, attention=name) for name in ("eager", offer_explicit_attention())]


def test_states_are_those_of_eager_attention_to_the_bit(encoder_folder):
    eager, ours = both(encoder_folder)
    for mask in (MASK, None):
        with torch.no_grad():
            one = eager(input_ids=IDS, attention_mask=mask).logits
            other = ours(input_ids=IDS, attention_mask=mask).logits
        assert torch.equal(one, other)


def test_gradients_are_those_of_eager_attention_to_the_bit(encoder_folder):
    grads = []
    for model in both(encoder_folder):
        model(input_ids=IDS, attention_mask=MASK).logits.square().mean().backward()
        grads.append({name: p.grad for name, p in model.named_parameters() if p.grad is not None})
    assert grads[0] and all(torch.equal(grads[0][name], grads[1][name]) for name in grads[0])


def test_weights_are_dropped_while_training_alone(bert_folder):
    model = load_masked_lm(bert_folder, attention=offer_explicit_attention())
    for part in model.modules():
        if isinstance(part, torch.nn.Dropout):
            part.p = 0.0
    for layer in model.bert.encoder.layer:
        layer.attention.self.dropout.p = 0.5
    still = model(input_ids=IDS, attention_mask=MASK).logits
    model.train()
    moved = [model(input_ids=IDS, attention_mask=MASK).logits for _ in range(2)]
    assert not torch.equal(moved[0], moved[1]) and not torch.equal(moved[0], still)


def test_saved_model_does_not_ask_for_it(bert_folder, tmp_path):
    model = load_masked_lm(bert_folder, attention=offer_explicit_attention())
    save_model(model, load_tokenizer(bert_folder), tmp_path / "saved")
    assert NAME not in json.dumps(json.loads((tmp_path / "saved" / "config.json").read_text()))
