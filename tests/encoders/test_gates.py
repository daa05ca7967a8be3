"""Gates over every family's parameters: what a closed one switches off, and that nothing remains of them."""

import pytest
import torch
from torch import nn

from isogloss.core.errors import ConfigError
from isogloss.encoders import family_of, load_masked_lm, load_model, load_tokenizer
from isogloss.encoders.gates import (
    OF_ATTENTION,
    OF_FEED_FORWARD,
    GateKinds,
    frozen,
    gate_groups,
    gated,
    prune,
)
from isogloss.training.precision import scoring

KINDS = [
    GateKinds(attention=attention, feed_forward=feed_forward)
    for attention, feed_forward in zip(OF_ATTENTION, OF_FEED_FORWARD, strict=True)
    if attention != "none"
]
every_kind = pytest.mark.parametrize(
    "kinds", KINDS, ids=lambda kinds: f"{kinds.attention}-{kinds.feed_forward}"
)
MIXED = GateKinds(attention="head", feed_forward="row")


@pytest.fixture
def batch(encoder_folder):
    tokenizer = load_tokenizer(encoder_folder)
    return dict(tokenizer(["the cat sat", "a dog ran over hills"], padding=True, return_tensors="pt"))


def filled(folder, load=load_model):
    """A model none of whose biases is 0."""
    model = load(folder)
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if name.endswith("bias"):
                weight.normal_(0, 0.1, generator=generator)
    return model


def states(model, batch):
    with torch.no_grad():
        return model.base_model(**batch).last_hidden_state


def drawn(groups, *, seed=0, share=0.6):
    generator = torch.Generator().manual_seed(seed)
    return {group.name: (torch.rand(group.shape, generator=generator) < share).float() for group in groups}


def weights(model):
    return {name: weight.detach().clone() for name, weight in model.named_parameters()}


@every_kind
def test_open_gates_change_nothing_to_the_bit(encoder_folder, batch, kinds):
    model = filled(encoder_folder)
    plain, groups = states(model, batch), gate_groups(model, kinds)
    with gated(model, groups, {group.name: torch.ones(group.shape) for group in groups}):
        assert torch.equal(states(model, batch), plain)


@every_kind
def test_a_model_with_gates_is_the_pruned_model(encoder_folder, batch, kinds):
    model, pruned = filled(encoder_folder), filled(encoder_folder)
    groups = gate_groups(model, kinds)
    gates = drawn(groups)
    prune(pruned, gate_groups(pruned, kinds), gates)
    with gated(model, groups, gates):
        torch.testing.assert_close(states(model, batch), states(pruned, batch))
    assert not torch.allclose(states(model, batch), states(pruned, batch), atol=1e-2)


@every_kind
def test_as_many_numbers_become_0_as_closed_gates_say(encoder_folder, kinds):
    model = filled(encoder_folder)
    groups = gate_groups(model, kinds)
    gates = drawn(groups)
    before = sum(int((weight == 0).sum()) for weight in model.parameters())
    prune(model, groups, gates)
    after = sum(int((weight == 0).sum()) for weight in model.parameters())
    assert after - before == sum(int((gates[g.name] == 0).sum()) * g.parameters for g in groups)


@every_kind
def test_nothing_remains_of_gates_even_after_an_error(encoder_folder, batch, kinds):
    model = filled(encoder_folder)
    kept, names = weights(model), {name: id(weight) for name, weight in model.named_parameters()}
    plain, attributes = states(model, batch), {name: set(vars(part)) for name, part in model.named_modules()}
    groups = gate_groups(model, kinds)
    with pytest.raises(KeyError, match="stop"), gated(model, groups, drawn(groups)):
        raise KeyError("stop")
    assert {name: id(weight) for name, weight in model.named_parameters()} == names
    assert list(dict(model.named_parameters())) == list(names)
    assert all(torch.equal(weight, kept[name]) for name, weight in model.named_parameters())
    assert {name: set(vars(part)) for name, part in model.named_modules()} == attributes
    assert torch.equal(states(model, batch), plain)


@every_kind
def test_gradients_reach_every_group_and_no_parameter(encoder_folder, batch, kinds):
    model = filled(encoder_folder)
    groups = gate_groups(model, kinds)
    gates = {group.name: torch.full(group.shape, 0.7, requires_grad=True) for group in groups}
    with frozen(model), gated(model, groups, gates):
        model(**batch).last_hidden_state.square().sum().backward()
    assert all(float(gate.grad.abs().sum()) > 0 for gate in gates.values())
    assert all(weight.grad is None for weight in model.parameters())


# What a closed gate means, by hooks that know nothing of gates


def cut(model, name, places, *, before):
    """Let a module's input, or output, be 0 at some places of its last dimension."""

    def changed(values):
        values = values.clone()
        values[..., places] = 0
        return values

    module = model.get_submodule(name)
    if before:
        return module.register_forward_pre_hook(lambda _, given: (changed(given[0]), *given[1:]))
    return module.register_forward_hook(lambda _, __, out: changed(out))


def test_a_closed_head_gives_nothing_to_the_output(encoder_folder, batch):
    model = filled(encoder_folder)
    groups = gate_groups(model, GateKinds(attention="head", feed_forward="none"))
    site, width = family_of(model).sites(model)[1], 32 // 4
    gates = torch.tensor([1.0, 1, 0, 1])
    hook = cut(model, site.attention_output, slice(2 * width, 3 * width), before=True)
    expected = states(model, batch)
    hook.remove()
    with gated(model, groups, {groups[1].name: gates}):
        torch.testing.assert_close(states(model, batch), expected)


def test_a_closed_neuron_gives_nothing_to_the_output(encoder_folder, batch):
    model = filled(encoder_folder)
    groups = gate_groups(model, GateKinds(attention="none", feed_forward="neuron"))
    closed = [3, 17, 40]
    gates = torch.ones(48)
    gates[closed] = 0
    hook = cut(model, family_of(model).sites(model)[2].feed_forward_out, closed, before=True)
    expected = states(model, batch)
    hook.remove()
    with gated(model, groups, {groups[2].name: gates}):
        torch.testing.assert_close(states(model, batch), expected)


def test_a_closed_row_gives_0(encoder_folder, batch):
    model = filled(encoder_folder)
    for group in gate_groups(model, GateKinds())[-2:]:
        gates = torch.ones(group.shape)
        gates[::5] = 0
        place = group.acts[0].name.removesuffix(".weight")
        hook = cut(model, place, slice(None, None, 5), before=False)
        expected = states(model, batch)
        hook.remove()
        with gated(model, [group], {group.name: gates}):
            torch.testing.assert_close(states(model, batch), expected)


# Names, layers, composition


def test_groups_are_called_the_same_with_and_without_a_head(encoder_folder):
    encoder, model = load_model(encoder_folder), load_masked_lm(encoder_folder)
    for kinds in KINDS:
        found = [(g.name, g.layer, g.module, g.shape, g.parameters) for g in gate_groups(model, kinds)]
        assert found == [
            (g.name, g.layer, g.module, g.shape, g.parameters) for g in gate_groups(encoder, kinds)
        ]
        assert len({name for name, *_ in found}) == len(found)
        assert sorted({layer for _, layer, *_ in found}) == [1, 2, 3]


def test_gates_cover_every_matrix_of_every_layer_once(encoder_folder):
    model = load_model(encoder_folder)
    sites = family_of(model).sites(model)
    matrices = {
        id(weight)
        for site in sites
        for region in ("attention", "feed_forward")
        for _, weight in site.parameters(model, region)
        if weight.ndim == 2
    }
    for kinds in (GateKinds(), GateKinds(attention="weight", feed_forward="weight")):
        found = [
            id(model.get_parameter(member.name))
            for group in gate_groups(model, kinds)
            for member in group.acts
            if member.name.endswith("weight")
        ]
        assert len(found) == len(set(found))
        assert set(found) == matrices


def test_heads_and_neurons_count_what_leads_to_them(bert_folder):
    head, neurons, *_ = gate_groups(
        load_model(bert_folder), GateKinds(attention="head", feed_forward="neuron")
    )
    assert (head.size, head.parameters) == (4, 8 * 32 + 3 * 8 * (32 + 1))
    assert (neurons.size, neurons.parameters) == (48, 32 + 32 + 1)


def test_gates_within_gates_multiply(bert_folder):
    model = filled(bert_folder)
    batch = {"input_ids": torch.tensor([[2, 7, 9, 11, 3]])}
    groups = gate_groups(model, MIXED)
    one, other = drawn(groups, seed=1), drawn(groups, seed=2)
    with gated(model, groups, {name: gate * other[name] for name, gate in one.items()}):
        expected = states(model, batch)
    with gated(model, groups, one):
        with gated(model, groups, other):
            torch.testing.assert_close(states(model, batch), expected)
        alone = states(model, batch)
    with gated(model, groups, one):
        assert torch.equal(states(model, batch), alone)


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_a_model_with_gates_can_be_scored_in_any_precision(bert_folder, precision):
    model = filled(bert_folder)
    kept, groups = weights(model), gate_groups(model, MIXED)
    ids = torch.tensor([[2, 7, 9, 11, 3]])
    with gated(model, groups, drawn(groups)):
        exact = states(model, {"input_ids": ids})
        with scoring(model, precision):
            found = model(ids).last_hidden_state.float()
        torch.testing.assert_close(found, exact, atol=0.1, rtol=0.1)
        assert torch.equal(states(model, {"input_ids": ids}), exact)
    assert all(torch.equal(weight, kept[name]) for name, weight in model.named_parameters())


def test_a_frozen_model_is_given_back_as_it_was(bert_folder):
    model = load_model(bert_folder).train()
    model.base_model.embeddings.requires_grad_(False)
    asked = {name: weight.requires_grad for name, weight in model.named_parameters()}
    with frozen(model):
        assert not model.training
        assert not any(weight.requires_grad for weight in model.parameters())
    assert model.training
    assert {name: weight.requires_grad for name, weight in model.named_parameters()} == asked
    assert not all(asked.values())


def test_an_unknown_kind_is_an_error_that_names_the_nearest():
    with pytest.raises(ConfigError, match=r"gates: attention: no kind of gate 'heads'. Did you mean 'head'"):
        GateKinds(attention="heads")
    with pytest.raises(
        ConfigError, match=r"feed_forward: no kind of gate 'head'\. Known: neuron, none, row, weight"
    ):
        GateKinds(feed_forward="head")


def test_linear_layers_are_all_that_is_gated(encoder_folder):
    model = load_model(encoder_folder)
    gated_modules = {
        type(model.get_submodule(member.name.rpartition(".")[0]))
        for group in gate_groups(model, GateKinds())
        for member in group.acts
    }
    assert gated_modules == {nn.Linear}
