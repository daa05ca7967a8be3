"""Mixing the states that a layer returns: any family can, and what leaves the layer is the formula's."""

import math

import pytest
import torch
from test_mixup import LENGTHS, mixup, pairs, states
from test_mixup_links import links_of
from torch.nn.functional import cosine_similarity

import isogloss
from isogloss.encoders.families import family_of
from isogloss.encoders.mixup import load_mixup, mixing, save_mixup
from networks import fresh

FAMILIES = ("bert", "modernbert", "gemma3_text", "llama", "qwen3", "mt5", "deberta_v2", "xmod")


@pytest.fixture(params=FAMILIES)
def folder(request):
    return request.getfixturevalue(f"{request.param}_folder")


def leaving(model, layer, rows, mask=None, options=None, links=None):
    """Return the states that a layer's successor reads, the last states and the trace."""
    calls = []
    block = family_of(model).sites(model)[layer].module(model, "block")
    handle = block.register_forward_pre_hook(
        lambda _, inputs, row: calls.append(inputs[0] if inputs else row["hidden_states"]),
        with_kwargs=True,
    )
    with (
        torch.no_grad(),
        mixing(model, options or mixup(ratio=0.0, mixed="states"), mask, links=links) as trace,
    ):
        last_hidden_state = model.base_model(input_ids=rows, attention_mask=mask).last_hidden_state
    handle.remove()
    return calls[0], last_hidden_state, trace


def score_by_cosine(target, source):
    return 20 * cosine_similarity(target[:, None], source[None], dim=2)


def entropy(raw):
    weights = raw.softmax(dim=1)
    return -(weights * weights.log()).sum(dim=1).mean().item()


def formula(target, source, raw, options):
    """Return (1-λ)h_T + λ·A·h_S of two texts, and λ."""
    ratio = 0.5
    if options.learned:
        ratio /= 1 + math.exp(-(-0.5 * (entropy(raw) + entropy(raw.T)) + 1.0))
    return (1 - ratio) * target + ratio * raw.softmax(dim=1) @ source, ratio


@pytest.mark.each_value
@pytest.mark.parametrize("learned_value", [True, False])
def test_what_leaves_the_layer_is_the_formula(folder, learned_value):
    """Text by text, without padding."""
    model = fresh(folder).double()
    options = mixup(layer=2, learned=learned_value, mixed="states")
    options.ratio_module.double()
    rows, mask = pairs()
    mixed_leaving, _, trace = leaving(model, 2, rows, mask, options)
    for index, (source_length, target_length) in enumerate(LENGTHS):
        source = leaving(model, 2, rows[index : index + 1, :source_length])[0][0]
        target = leaving(model, 2, rows[3 + index : 4 + index, :target_length])[0][0]
        expected, ratio = formula(target, source, score_by_cosine(target, source), options)
        assert trace.ratios[index].item() == pytest.approx(ratio, abs=1e-6)
        assert torch.allclose(mixed_leaving[index, :source_length], source, rtol=0, atol=1e-6)
        assert torch.allclose(mixed_leaving[3 + index, :target_length], expected, rtol=0, atol=1e-5)


def test_a_ratio_of_0_is_no_mixing_to_the_bit(folder):
    model = fresh(folder)
    rows, mask = pairs()
    assert torch.equal(states(model, rows, mask, mixup(ratio=0.0, mixed="states")), states(model, rows, mask))


def test_the_source_goes_on_unmixed_and_the_target_does_not(folder):
    model = fresh(folder)
    rows, mask = pairs()
    plain_states = states(model, rows, mask)
    mixed_states = states(model, rows, mask, mixup(1, mixed="states"))
    real_mask = mask.bool()
    assert torch.equal(mixed_states[:3], plain_states[:3])
    assert not torch.isclose(mixed_states[3:], plain_states[3:], atol=1e-4).all(dim=2)[real_mask[3:]].any()


def test_links_or_weights_of_a_translator_say_what_is_mixed(folder):
    model = fresh(folder).double()
    options = mixup(layer=2, learned=False, attends="links", mixed="states")
    rows, mask = pairs()
    linked_tensor = links_of(rows.size(1))
    attention = linked_tensor * torch.rand(linked_tensor.shape, generator=torch.Generator().manual_seed(3))
    plain_leaving, plain_last, _ = leaving(model, 2, rows, mask)
    source, target = plain_leaving.chunk(2)
    for links in (linked_tensor, attention):
        mixed_leaving, last_leaving, trace = leaving(model, 2, rows, mask, options, links)
        values = links.any(dim=2)
        weights = links.double() / links.double().sum(dim=2, keepdim=True)
        expected = 0.5 * target + 0.5 * weights @ source
        assert values.sum() > 3
        assert torch.allclose(mixed_leaving[3:][values], expected[values], rtol=0, atol=1e-5)
        assert torch.equal(mixed_leaving[3:][~values], target[~values])
        assert torch.equal(last_leaving[5], plain_last[5]) and trace.ratios.tolist() == [0.5, 0.5, 0.0]


def test_how_states_are_mixed_is_saved(tmp_path):
    options = mixup(mixed="states")
    save_mixup(options, tmp_path)
    assert load_mixup(tmp_path) == options


def test_gradients_reach_both_texts_and_the_ratio(folder):
    model = fresh(folder)
    options = mixup(mixed="states")
    rows, mask = pairs()
    states(model, rows, mask, options)[3:].square().sum().backward()
    assert all(weight.grad is not None for weight in options.ratio_module.parameters())
    embedded_grad = model.get_input_embeddings().weight.grad
    sources = rows[:3][mask[:3].bool()]
    assert embedded_grad[sources].abs().sum(dim=1).gt(0).all()


def test_the_function_mixes_alike(folder):
    model = fresh(folder)
    rows, mask = pairs()
    inputs = {"input_ids": rows, "attention_mask": mask}
    with torch.no_grad(), isogloss.mixing(model, layer=2, ratio=0.3, mask=mask, mixed="states"):
        mixed_last_hidden_state = model.base_model(**inputs).last_hidden_state
    same_mixup = mixup(ratio=0.3, learned=False, mixed="states")
    assert torch.equal(mixed_last_hidden_state, states(model, rows, mask, same_mixup))
