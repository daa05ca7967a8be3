"""Gates over every family's parameters: what a closed one switches off, and that nothing remains of them."""

from dataclasses import asdict, replace
from shutil import copytree

import pytest
import torch

from each import each
from isogloss.core.errors import ConfigError, ModelError, StorageError
from isogloss.data.result_files import write_tensors
from isogloss.encoders.added.active_language import LanguageMaps, language_maps_of
from isogloss.encoders.added.added_weights import write_language_maps
from isogloss.encoders.added.language_layers import LanguageMap
from isogloss.encoders.families import family_of
from isogloss.encoders.loading import load_whole
from isogloss.features.language_gates.gate_training import without_gradients
from isogloss.features.language_gates.gates import (
    OF_ATTENTION,
    OF_FEED_FORWARD,
    GateKinds,
    Mask,
    gate_groups,
    mask_tensors,
    prune,
    prune_encoder,
    read_mask,
    read_masks,
    with_gates,
)
from isogloss.methods.plain import SourceOnly
from isogloss.training.precision import scoring
from networks import IDS, batch_of, fresh, weights

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
def encoder_folder(any_folder):
    return any_folder


@pytest.fixture
def batch(encoder_folder):
    return batch_of(encoder_folder)


def fill_biases(folder):
    """A model none of whose biases is 0."""
    model = fresh(folder)
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if name.endswith("bias"):
                weight.normal_(0, 0.1, generator=generator)
    return model


def states(model, batch):
    with torch.no_grad():
        return model.base_model(**batch).last_hidden_state


def draw_masks(groups, *, seed=0, share=0.6):
    generator = torch.Generator().manual_seed(seed)
    return {group.name: (torch.rand(group.shape, generator=generator) < share).float() for group in groups}


@pytest.mark.each_value
@every_kind
def test_open_gates_change_nothing_to_the_bit(encoder_folder, batch, kinds):
    model = fill_biases(encoder_folder)
    plain_last_hidden_state = states(model, batch)
    groups = gate_groups(model, kinds)
    with with_gates(model, groups, {group.name: torch.ones(group.shape) for group in groups}):
        assert torch.equal(states(model, batch), plain_last_hidden_state)


@pytest.mark.each_value
@every_kind
def test_a_model_with_gates_is_the_pruned_model(encoder_folder, batch, kinds):
    model = fill_biases(encoder_folder)
    pruned_model = fill_biases(encoder_folder)
    groups = gate_groups(model, kinds)
    gates = draw_masks(groups)
    zeros = sum(int((weight == 0).sum()) for weight in pruned_model.parameters())
    prune(pruned_model, gate_groups(pruned_model, kinds), gates)
    closed_total = sum(int((gates[group.name] == 0).sum()) * group.parameters for group in groups)
    assert sum(int((weight == 0).sum()) for weight in pruned_model.parameters()) == zeros + closed_total
    with with_gates(model, groups, gates):
        torch.testing.assert_close(states(model, batch), states(pruned_model, batch))
    assert not torch.allclose(states(model, batch), states(pruned_model, batch), atol=1e-2)


@pytest.mark.each_value
@every_kind
def test_nothing_remains_of_gates_even_after_an_error(encoder_folder, batch, kinds):
    model = fill_biases(encoder_folder)
    kept_weights = weights(model)
    names = {name: id(weight) for name, weight in model.named_parameters()}
    plain_last_hidden_state = states(model, batch)
    attributes = {name: set(vars(part)) for name, part in model.named_modules()}
    groups = gate_groups(model, kinds)
    with pytest.raises(KeyError, match="stop"), with_gates(model, groups, draw_masks(groups)):
        raise KeyError("stop")
    assert {name: id(weight) for name, weight in model.named_parameters()} == names
    assert list(dict(model.named_parameters())) == list(names)
    assert all(torch.equal(weight, kept_weights[name]) for name, weight in model.named_parameters())
    assert {name: set(vars(part)) for name, part in model.named_modules()} == attributes
    assert torch.equal(states(model, batch), plain_last_hidden_state)


@pytest.mark.each_value
@every_kind
def test_gradients_reach_every_group_and_no_parameter(encoder_folder, batch, kinds):
    model = fill_biases(encoder_folder)
    groups = gate_groups(model, kinds)
    gates = {group.name: torch.full(group.shape, 0.7, requires_grad=True) for group in groups}
    with without_gradients(model), with_gates(model, groups, gates):
        model(**batch).last_hidden_state.square().sum().backward()
    assert all(float(gate.grad.abs().sum()) > 0 for gate in each(gates.values()))
    assert all(weight.grad is None for weight in model.parameters())


# What a closed gate means, by hooks that know nothing of gates


def cut(model, name, places, *, state_before):
    """Let a module's input, or output, be 0 at some places of its last dimension."""

    def change_values(values):
        values = values.clone()
        values[..., places] = 0
        return values

    module = model.get_submodule(name)
    if state_before:
        return module.register_forward_pre_hook(lambda _, inputs: (change_values(inputs[0]), *inputs[1:]))
    return module.register_forward_hook(lambda _, __, output: change_values(output))


@pytest.mark.each_value
@pytest.mark.parametrize("unit", ["head", "neuron"])
def test_a_closed_unit_gives_nothing_to_the_output(encoder_folder, batch, unit):
    model = fill_biases(encoder_folder)
    site = family_of(model).sites(model)[1]
    none = GateKinds(attention="none", feed_forward="none")
    kinds = replace(none, **{"attention" if unit == "head" else "feed_forward": unit})
    group = gate_groups(model, kinds)[1]
    attention_output = site.attention_output if unit == "head" else site.feed_forward_out
    closed_values = [1, 3]
    width = model.get_submodule(attention_output).in_features // 4 if unit == "head" else 1
    gates = torch.ones(group.shape)
    gates[closed_values] = 0
    hook = cut(
        model,
        attention_output,
        [closed_value * width + n for closed_value in closed_values for n in range(width)],
        state_before=True,
    )
    expected = states(model, batch)
    hook.remove()
    with with_gates(model, [group], {group.name: gates}):
        torch.testing.assert_close(states(model, batch), expected)


def test_a_closed_row_gives_0(encoder_folder, batch):
    model = fill_biases(encoder_folder)
    for group in each(gate_groups(model, GateKinds())[-2:]):
        gates = torch.ones(group.shape)
        gates[::5] = 0
        place = group.gated_parameters[0].name.removesuffix(".weight")
        hook = cut(model, place, slice(None, None, 5), state_before=False)
        expected = states(model, batch)
        hook.remove()
        with with_gates(model, [group], {group.name: gates}):
            torch.testing.assert_close(states(model, batch), expected)


# Names, layers, composition


def test_groups_are_called_the_same_with_and_without_a_head(encoder_folder):
    encoder = fresh(encoder_folder)
    model = load_whole(encoder_folder)
    for kinds in KINDS:
        names = [(g.name, g.layer, g.module, g.shape, g.parameters) for g in gate_groups(model, kinds)]
        assert names == [
            (g.name, g.layer, g.module, g.shape, g.parameters) for g in gate_groups(encoder, kinds)
        ]
        assert len({name for name, *_ in names}) == len(names)
        assert sorted({layer for _, layer, *_ in names}) == [1, 2, 3]


def test_gates_cover_every_matrix_of_every_layer_once(encoder_folder):
    model = fresh(encoder_folder)
    sites = family_of(model).sites(model)
    matrices = {
        id(weight)
        for site in sites
        for region in ("attention", "feed_forward")
        for name, weight in site.parameters(model, region)
        if weight.ndim == 2 and "adapter_modules" not in name and "relative_attention_bias" not in name
    }
    for kinds in (GateKinds(), GateKinds(attention="weight", feed_forward="weight")):
        ids = [
            id(model.get_parameter(member.name))
            for group in gate_groups(model, kinds)
            for member in group.gated_parameters
            if member.name.endswith("weight")
        ]
        assert len(ids) == len(set(ids)) == len(matrices) > 0
        assert set(ids) == matrices


def test_gates_within_gates_multiply(bert_folder):
    model = fill_biases(bert_folder)
    batch = {"input_ids": torch.tensor([[2, 7, 9, 11, 3]])}
    groups = gate_groups(model, MIXED)
    floats = draw_masks(groups, seed=1)
    other_floats = draw_masks(groups, seed=2)
    with with_gates(model, groups, {name: gate * other_floats[name] for name, gate in floats.items()}):
        expected = states(model, batch)
    with with_gates(model, groups, floats):
        with with_gates(model, groups, other_floats):
            torch.testing.assert_close(states(model, batch), expected)
        single_last_hidden_state = states(model, batch)
    with with_gates(model, groups, floats):
        assert torch.equal(states(model, batch), single_last_hidden_state)


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_a_model_with_gates_can_be_scored_in_any_precision(bert_folder, precision):
    model = fill_biases(bert_folder)
    kept_weights = weights(model)
    groups = gate_groups(model, MIXED)
    ids = torch.tensor([[2, 7, 9, 11, 3]])
    with with_gates(model, groups, draw_masks(groups)):
        exact = states(model, {"input_ids": ids})
        with scoring(model, precision):
            last_hidden_state = model(ids).last_hidden_state.float()
        torch.testing.assert_close(last_hidden_state, exact, atol=0.1, rtol=0.1)
        assert torch.equal(states(model, {"input_ids": ids}), exact)
    assert all(torch.equal(weight, kept_weights[name]) for name, weight in model.named_parameters())


def test_a_frozen_model_is_given_back_as_it_was(bert_folder):
    model = fresh(bert_folder).train()
    model.base_model.embeddings.requires_grad_(False)
    requires_grads = {name: weight.requires_grad for name, weight in model.named_parameters()}
    with without_gradients(model):
        assert not model.training
        assert not any(weight.requires_grad for weight in model.parameters())
    assert model.training
    assert {name: weight.requires_grad for name, weight in model.named_parameters()} == requires_grads
    assert not all(requires_grads.values())


def test_an_unknown_kind_is_an_error_that_names_the_nearest():
    with pytest.raises(ConfigError, match=r"gates: attention: .*'heads'.*'head'"):
        GateKinds(attention="heads")
    with pytest.raises(ConfigError, match=r"feed_forward: .*'head'"):
        GateKinds(feed_forward="head")


# Masks on disk

UNITS = GateKinds(attention="head", feed_forward="neuron")


def mask(folder, language="en", draw=0, *, kinds=UNITS, upper_bound=0.0):
    generator = torch.Generator().manual_seed(draw + 10 * len(language))
    log_alpha = {
        group.name: torch.randn(group.shape, generator=generator)
        for group in gate_groups(fresh(folder), kinds)
    }
    return Mask(language=language, draw=draw, kinds=kinds, log_alpha=log_alpha, above=upper_bound)


def write_masks(path, masks, kinds=UNITS):
    tensors = {name: tensor.numpy() for name, tensor in mask_tensors(masks).items()}
    write_tensors(path, tensors, asdict(kinds))
    return path


def content(mask):
    weights = {name: weight.tolist() for name, weight in mask.log_alpha.items()}
    return mask.language, mask.draw, mask.kinds, mask.above, weights


def test_masks_are_read_as_they_were_written(bert_folder, tmp_path):
    masks = [
        mask(bert_folder, language, draw, upper_bound=0.5 * draw)
        for language in ("de", "en")
        for draw in range(11)
    ]
    path = write_masks(tmp_path / "masks.safetensors", masks)
    result = read_masks(path)
    assert [content(value) for value in result] == [content(value) for value in masks]
    assert content(read_mask(path, "en", draw=10)) == content(masks[-1])
    assert content(read_mask(path, "de")) == content(masks[0])


def test_a_mask_that_is_not_there_is_an_error_that_names_those_there_are(bert_folder, tmp_path):
    path = write_masks(tmp_path / "masks.safetensors", [mask(bert_folder, "sw"), mask(bert_folder, "ru")])
    with pytest.raises(ConfigError, match=r"'rus'.*'ru'\?.*ru, sw"):
        read_mask(path, "rus")
    with pytest.raises(ConfigError, match=r"2.*sw.*1.*0"):
        read_mask(path, "sw", draw=2)


def test_a_file_without_masks_is_an_error_that_says_which_to_give(tmp_path):
    path = tmp_path / "other.safetensors"
    write_tensors(path, {"x": torch.ones(1).numpy()}, {})
    with pytest.raises(StorageError, match=r"other\.safetensors: .* masks\.safetensors of language-gates"):
        read_masks(path)
    path.write_bytes(b"damaged")
    with pytest.raises(StorageError, match="read"):
        read_masks(path)


@pytest.mark.slow
def test_a_pruned_encoder_is_the_encoder_with_its_gates(encoder_folder, tmp_path):
    for kinds in (UNITS, GateKinds()):
        own_mask = mask(encoder_folder, kinds=kinds)
        prune_encoder(encoder_folder, own_mask, tmp_path / "pruned")
        model = load_whole(encoder_folder)
        pruned_model = load_whole(tmp_path / "pruned")
        ids = IDS.clamp(max=model.config.vocab_size - 1)
        with torch.no_grad():
            with with_gates(model, gate_groups(model, kinds), own_mask.gates()):
                expected = model(ids)[0]
            torch.testing.assert_close(pruned_model(ids)[0], expected)


@pytest.mark.slow
def test_a_pruned_folder_is_an_ordinary_one_with_all_there_was(bert_folder, tmp_path):
    prune_encoder(bert_folder, mask(bert_folder), tmp_path / "pruned")
    whole_model = load_whole(bert_folder)
    pruned_model = load_whole(tmp_path / "pruned")
    assert list(dict(whole_model.named_parameters())) == list(dict(pruned_model.named_parameters()))
    for name in ("bert.embeddings.word_embeddings.weight", "cls.predictions.transform.dense.weight"):
        assert torch.equal(whole_model.get_parameter(name), pruned_model.get_parameter(name))
    from transformers import AutoModel, AutoTokenizer

    assert AutoModel.from_pretrained(tmp_path / "pruned").config.model_type == "bert"
    assert AutoTokenizer.from_pretrained(tmp_path / "pruned")("the cat").input_ids


def test_a_mask_of_another_encoder_is_refused(bert_folder, tmp_path):
    own_mask = mask(bert_folder)
    name = "layer.2.feed-forward.neurons"
    other_item = replace(own_mask, log_alpha={**own_mask.log_alpha, name: torch.zeros(7)})
    with pytest.raises(ModelError, match=rf"en.*{name}.*\(7,\).*\(48,\)"):
        prune_encoder(bert_folder, other_item, tmp_path / "pruned")
    deeper = replace(own_mask, log_alpha={**own_mask.log_alpha, "layer.4.attention.heads": torch.zeros(4)})
    with pytest.raises(ModelError, match=r"layer.4.attention.heads.*\(4,\)"):
        prune_encoder(bert_folder, deeper, tmp_path / "pruned")
    assert not (tmp_path / "pruned").exists()


def test_language_maps_stay_with_a_pruned_encoder(bert_folder, tmp_path):
    mapped_folder = copytree(bert_folder, tmp_path / "mapped")
    write_language_maps(LanguageMaps("en", {"de": LanguageMap(torch.eye(32), torch.ones(32))}), mapped_folder)
    prune_encoder(mapped_folder, mask(bert_folder), tmp_path / "pruned")
    maps = language_maps_of(fresh(tmp_path / "pruned"))
    assert set(maps.maps) == {"de"}


@pytest.mark.nightly
@pytest.mark.slow
def test_a_pruned_encoder_can_be_fine_tuned(bert_folder, tmp_path, make_setting):
    prune_encoder(bert_folder, mask(bert_folder), tmp_path / "pruned")
    training = SourceOnly().train(make_setting(encoder=tmp_path / "pruned", epochs=6, learning_rate=5e-3))
    scores = [row["score"] for row in training.rows if "score" in row]
    assert scores
    assert max(scores) > scores[0] + 0.05
