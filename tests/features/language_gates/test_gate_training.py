"""Learning gates prunes harmful parameters, in the given share, and keeps the model unchanged."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from isogloss.encoders.families import family_of
from isogloss.encoders.loading import load_masked_lm
from isogloss.encoders.tokenizers import load_tokenizer
from isogloss.features.language_gates.gate_training import (
    GATE_UPDATES,
    Gates,
    GateTraining,
    learn_gates,
    shift_to_target,
)
from isogloss.features.language_gates.gates import (
    GateKinds,
    gate_groups,
    kept_share,
    open_probability,
    with_gates,
)
from isogloss.tasks.masked_lm import Masking, Vocabulary, masked_lm_loss, subwords_of
from isogloss.training.batching import perplexity
from isogloss.training.gradient_conflict import masked_parts
from made_up import TEXT

UNITS = GateKinds(attention="head", feed_forward="neuron")
WORDS = TEXT.split()


def gate_settings(**changes):
    rate = changes.pop("learning_rate", GATE_UPDATES.learning_rate)
    updates = replace(GATE_UPDATES, precision="float32", learning_rate=rate)
    return GateTraining(**{"steps": 6, "rows": 4, "updates": updates} | changes)


@pytest.fixture(scope="module")
def blocks(bert_folder):
    tokenizer = load_tokenizer(bert_folder)
    lines = [" ".join(WORDS[start : start + 8]) for start in range(len(WORDS) - 8)]
    return [np.array(ids, dtype=np.int32) for ids in subwords_of(lines, tokenizer)]


def load_masking(folder):
    model = load_masked_lm(folder)
    tokenizer = load_tokenizer(folder)
    masking = Masking(
        vocabulary=Vocabulary.from_tokenizer(tokenizer), first_position=family_of(model).first_position
    )
    return model, masking


def learn_masks(folder, blocks, kinds=UNITS, *, seed=0, on_progress=lambda _: None, **changes):
    model, masking = load_masking(folder)
    groups = gate_groups(model, kinds)
    gates = learn_gates(
        (model, masking), groups, ("en", blocks), gate_settings(**changes), seed=seed, on_progress=on_progress
    )
    return gates, groups


def flat(mask):
    return torch.cat([tensor.flatten() for tensor in mask.log_alpha.values()])


def share_kept(mask, groups):
    kept_total = sum(int((mask.log_alpha[g.name] > mask.threshold).sum()) * g.parameters for g in groups)
    return kept_total / sum(group.size * group.parameters for group in groups)


@pytest.mark.slow
def test_everything_random_comes_from_the_seed(bert_folder, blocks):
    tensor, same_tensor, other_tensor = (
        flat(learn_masks(bert_folder, blocks, seed=seed)[0]) for seed in (1, 1, 2)
    )
    assert torch.equal(tensor, same_tensor)
    assert not torch.equal(tensor, other_tensor)


def test_the_model_stays_as_it_is(bert_folder, blocks):
    model, masking = load_masking(bert_folder)
    weights_before = {name: weight.detach().clone() for name, weight in model.named_parameters()}
    drawn_before = torch.get_rng_state()
    model.train()
    groups = gate_groups(model, GateKinds())
    learn_gates((model, masking), groups, ("en", blocks), gate_settings(steps=2), seed=0)
    assert model.training
    for name, weight in model.named_parameters():
        assert torch.equal(weight, weights_before[name])
        assert weight.requires_grad
        assert weight.grad is None
    assert torch.equal(torch.get_rng_state(), drawn_before)


@pytest.mark.parametrize("sparsity", [0.2, 0.5, 0.9])
def test_as_much_is_pruned_as_was_asked_for_within_one_gate(bert_folder, blocks, sparsity):
    mask, groups = learn_masks(bert_folder, blocks, sparsity=sparsity)
    largest = max(group.parameters for group in groups)
    total = sum(group.size * group.parameters for group in groups)
    assert 1 - sparsity - largest / total < share_kept(mask, groups) <= 1 - sparsity


def test_the_asked_sparsity_rises_and_is_met_in_expectation_all_along(bert_folder):
    gates = Gates(gate_groups(load_masked_lm(bert_folder), UNITS), start=0.95, seed=0)
    gates.requires_grad_(False)
    with torch.no_grad():
        gates.log_alpha += torch.randn(len(gates.log_alpha), generator=torch.Generator().manual_seed(1))
    setting = gate_settings(sparsity=0.5, settle=0.5)
    expected = [0.95, 0.725, 0.5, 0.5]
    kept_shares = [
        float(kept_share(shift_to_target(gates, setting, step), gates.sizes))
        for step in (0.0, 0.25, 0.5, 1.0)
    ]
    assert kept_shares == pytest.approx(expected, abs=1e-4)
    assert float(
        kept_share(shift_to_target(gates, gate_settings(settle=0.0), 0.0), gates.sizes)
    ) == pytest.approx(0.5, abs=1e-4)


def test_gates_start_open_as_asked_for(bert_folder):
    gates = Gates(gate_groups(load_masked_lm(bert_folder), GateKinds()), start=0.9, seed=0)
    probabilities = open_probability(gates.log_alpha)
    assert float(probabilities.detach().mean()) == pytest.approx(0.9, abs=0.001)
    assert float(probabilities.detach().std()) < 0.01


@pytest.mark.nightly
@pytest.mark.slow
def test_without_a_sparsity_the_penalty_decides(bert_folder, blocks):
    setting = {"sparsity": 0.0, "steps": 25, "learning_rate": 0.5}
    dear, groups = learn_masks(bert_folder, blocks, penalty=1e4, **setting)
    assert share_kept(dear, groups) == 0
    cheap, groups = learn_masks(bert_folder, blocks, penalty=1e-6, **setting)
    assert share_kept(cheap, groups) > 0.5


@pytest.mark.nightly
@pytest.mark.slow
def test_what_does_harm_is_pruned(bert_folder, blocks):
    """Some neurons always raise the loss, as shown by its gradient."""
    model, masking = load_masking(bert_folder)
    groups = gate_groups(model, GateKinds(attention="none", feed_forward="neuron"))
    harmful = [4, 11, 30]
    last_site = family_of(model).sites(model)[-1]
    batches = masked_parts(blocks, masking, seed=1, budget=512, language="en")
    worse = last_site.module(model, "feed_forward_out").bias
    (uphill,) = torch.autograd.grad(masked_lm_loss(model, batches[0]), worse)
    with torch.no_grad():
        last_site.module(model, "feed_forward_in").bias[harmful] = 5.0
        last_site.module(model, "feed_forward_out").weight[:, harmful] = (uphill / uphill.norm())[:, None]
    result = learn_gates(
        (model, masking),
        groups,
        ("en", blocks),
        gate_settings(steps=40, rows=8, sparsity=0.2, learning_rate=0.3),
        seed=0,
    )
    is_closed = result.log_alpha[groups[-1].name] <= result.threshold
    assert bool(is_closed[harmful].all())
    whole_perplexity = perplexity(model, batches, precision="float32")
    gates = {name: (item > result.threshold).float() for name, item in result.log_alpha.items()}
    with with_gates(model, groups, gates):
        assert perplexity(model, batches, precision="float32") < whole_perplexity


def test_progress_is_told(bert_folder, blocks):
    messages = []
    learn_masks(bert_folder, blocks, steps=3, on_progress=messages.append)
    assert (messages[-1].what, messages[-1].done, messages[-1].total) == ("gates of en", 3, 3)


def test_every_family_learns(encoder_folder, blocks):
    model, masking = load_masking(encoder_folder)
    lines = [TEXT] * 3
    own_part = [
        np.array(ids[:40], dtype=np.int32) for ids in subwords_of(lines, load_tokenizer(encoder_folder))
    ]
    groups = gate_groups(model, UNITS)
    gates = learn_gates((model, masking), groups, ("en", own_part), gate_settings(steps=2), seed=0)
    assert {group.name for group in groups} == set(gates.log_alpha)
    assert bool(flat(gates).isfinite().all())
