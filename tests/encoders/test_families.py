"""Every family has Hugging Face's states to the bit, runs each site once, and leaves no hook."""

import re
import shutil
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import NamedTuple, get_args

import pytest
import torch
import transformers

from each import each
from isogloss.core.errors import ModelError
from isogloss.encoders import FAMILIES
from isogloss.encoders.computation import offer_explicit_attention
from isogloss.encoders.families import family_named, family_of, require
from isogloss.encoders.family import ModuleName
from isogloss.encoders.loading import load_masked_lm, load_model
from isogloss.encoders.tokenizers import load_tokenizer
from networks import batch_of, change_config, fresh, hooks, same, tagger

SINGLE = get_args(ModuleName)
PROJECTIONS = ("query", "key", "value")
IDS = torch.tensor([[2, 9, 10, 11, 3], [2, 12, 3, 0, 0]])
MASK = torch.tensor([[1, 1, 1, 1, 1], [1, 1, 1, 0, 0]])


MODELS = {
    "MT5ForConditionalGeneration": "MT5EncoderModel",
    "Gemma3ForCausalLM": "Gemma3TextModel",
}  # fmt: skip
"""The encoder in transformers, where it is not called like the model in the folder."""

NORMS = {
    "xlm-roberta-xl": "encoder.LayerNorm",
    "modernbert": "final_norm",
    "mt5": "encoder.final_layer_norm",
    "m2m_100": "layer_norm",
}
"""The norm after the last layer, where it is not called norm."""


def parts(family):
    lacking = PROJECTIONS if "projections" in family.lacks else ()
    return [part for part in SINGLE if part not in lacking]


def tensor(output):
    return output if isinstance(output, torch.Tensor) else output[0]


@pytest.fixture
def encoder_folder(any_folder):
    return any_folder


@pytest.fixture
def batch(encoder_folder):
    return batch_of(encoder_folder)


def test_hidden_states_are_those_of_hugging_face_to_the_bit(encoder_folder, batch):
    (name,) = transformers.AutoConfig.from_pretrained(encoder_folder).architectures
    reference = getattr(transformers, MODELS.get(name, re.sub("For.*", "Model", name)))
    ours = load_model(encoder_folder)
    kind = ours.config._attn_implementation
    theirs = reference.from_pretrained(encoder_folder, attn_implementation=kind).eval()
    if "M2M100" in name:
        theirs = theirs.encoder
    with torch.no_grad():
        expected = theirs(**batch, output_hidden_states=True).hidden_states
        states = ours(**batch, output_hidden_states=True).hidden_states
    assert all(
        torch.equal(state, expected_state) for state, expected_state in zip(states, expected, strict=True)
    )


def test_inputs_and_outputs_of_blocks_are_the_hidden_states(encoder_folder, batch):
    encoder = fresh(encoder_folder)
    family = family_of(encoder)
    seen_states = []
    places = [site.module(encoder, "block") for site in family.sites(encoder)]
    handles = [
        place.register_forward_hook(lambda _, __, output: seen_states.append(tensor(output)))
        for place in places
    ]
    handles.append(places[0].register_forward_pre_hook(lambda _, inputs: seen_states.append(inputs[0])))
    with torch.no_grad():
        states = encoder(**batch, output_hidden_states=True).hidden_states
        if "post-norm" in family.lacks and family.name != "xmod":
            seen_states[-1] = encoder.get_submodule(NORMS.get(family.name, "norm"))(seen_states[-1])
    for hook in handles:
        hook.remove()
    assert all(
        torch.equal(state, expected_state) for state, expected_state in zip(seen_states, states, strict=True)
    )


def test_each_part_of_each_site_runs_once(encoder_folder, batch):
    encoder = fresh(encoder_folder)
    family, calls = family_of(encoder), Counter()
    sites, single = family.sites(encoder), parts(family)
    handles = [
        site.module(encoder, part).register_forward_hook(
            lambda *_, key=(site.layer, part): calls.update([key])
        )
        for site in sites
        for part in single
    ]
    with torch.no_grad():
        states = encoder(**batch).last_hidden_state
    again = {"feed_forward_norm": 2} if family.name == "xmod" else {}  # Once more for the adapters.
    assert calls == {(layer, part): again.get(part, 1) for layer in (1, 2, 3) for part in single}

    for hook in handles:
        hook.remove()
    with torch.no_grad():
        states_without_hooks = encoder(**batch).last_hidden_state
    assert torch.equal(states, states_without_hooks)
    assert hooks(encoder) == 0
    assert sum(calls.values()) == len(sites) * (len(single) + bool(again))


def test_projections_are_named_exactly_by_the_families_that_have_them(encoder_folder):
    encoder = fresh(encoder_folder)
    family = family_of(encoder)
    for site in each(family.sites(encoder)):
        named_parts = {part for part in PROJECTIONS if getattr(site, part) is not None}
        assert named_parts == (set() if "projections" in family.lacks else set(PROJECTIONS))
        for part in set(PROJECTIONS) - named_parts:
            with pytest.raises(ModelError, match=f"layer {site.layer}: the {part} projection"):
                site.module(encoder, part)


class SeenTensors(NamedTuple):
    """The first input and the output of a module."""

    input: torch.Tensor
    output: torch.Tensor


def seen_in(encoder, names, batch):
    """Compute a batch and return the tensors of some modules by name."""
    seen_tensors = {}
    handles = [
        encoder.get_submodule(name).register_forward_hook(
            lambda _, inputs, keywords, output, name=name: seen_tensors.update(
                {name: SeenTensors(next(iter((*inputs, *keywords.values()))), tensor(output))}
            ),
            with_kwargs=True,
        )
        for name in names
    ]
    with torch.no_grad():
        encoder(**batch)
    for hook in handles:
        hook.remove()
    return seen_tensors


def test_norms_close_their_sub_layers_or_open_them(encoder_folder, batch):
    encoder = fresh(encoder_folder)
    family = family_of(encoder)
    if family.name == "xmod":
        return  # Either, as config.json says, and one of them twice.
    site = family.sites(encoder)[1]
    sub_layers = ((site.attention, site.attention_norm), (site.feed_forward, site.feed_forward_norm))
    names = {*site.attention, *site.feed_forward, site.attention_norm, site.feed_forward_norm, site.block}
    seen_tensors = seen_in(encoder, names, batch)
    for modules, norm in sub_layers:
        if "post-norm" in family.lacks:
            assert f"{norm}.".startswith(f"{modules[0]}.")
        else:
            assert torch.equal(seen_tensors[modules[-1]].output, seen_tensors[norm].output)
    if "post-norm" not in family.lacks:
        assert torch.equal(seen_tensors[site.block].output, seen_tensors[site.feed_forward_norm].output)
        difference = seen_tensors[site.feed_forward_norm].input - seen_tensors[site.attention_norm].output
    else:
        difference = seen_tensors[site.block].output - seen_tensors[site.feed_forward_norm].input
    has_end_norm = family.name == "gemma3_text"  # Whose sub-layers end in a second norm.
    last_module = site.feed_forward[-1] if has_end_norm else site.feed_forward_out
    outputs = seen_in(encoder, [last_module], batch)[last_module].output
    torch.testing.assert_close(outputs, difference)  # The residual goes around the feed-forward.


def test_regions_divide_the_block_and_blocks_the_layers(encoder_folder):
    encoder = fresh(encoder_folder)
    sites = family_of(encoder).sites(encoder)
    for site in sites:
        attention, feed_forward, block = (
            dict(site.parameters(encoder, region)) for region in ("attention", "feed_forward", "block")
        )
        assert not attention.keys() & feed_forward.keys()
        assert attention | feed_forward == block
    names = {name for site in sites for name, _ in site.parameters(encoder, "block")}
    pattern = re.compile(r"((encoder|transformer)\.layer|layers|encoder\.block)\.\d")
    assert names == {name for name, _ in encoder.named_parameters() if pattern.match(name)}


def test_sites_of_a_model_and_of_its_encoder_are_the_same_modules(encoder_folder):
    model = tagger(encoder_folder)
    family = family_of(model)
    inside, outside = family.sites(model), family.sites(model.base_model)
    assert [site.layer for site in inside] == [1, 2, 3]
    for model_site, encoder_site in zip(inside, outside, strict=True):
        for part in parts(family):
            assert model_site.module(model, part) is encoder_site.module(model.base_model, part)
    assert family.embeddings(model) is family.embeddings(model.base_model)


@pytest.mark.parametrize(("load", "head"), [(load_masked_lm, "masked_lm_scores"), (tagger, "tag_scores")])
def test_heads_give_hugging_faces_logits_at_any_positions(headed_folder, load, head):
    model, batch = load(headed_folder), batch_of(headed_folder)
    rows, columns = torch.tensor([0, 1, 1]), torch.tensor([2, 1, 4])
    with torch.no_grad():
        expected = model(**batch).logits[rows, columns]
        states = model.base_model(**batch).last_hidden_state
        logits = getattr(family_of(model), head)(model, states[rows, columns])
    torch.testing.assert_close(logits, expected)


def test_first_position_is_the_one_hugging_face_gives(encoder_folder, batch):
    encoder = fresh(encoder_folder)
    ids, first_position = batch["input_ids"][1:], family_of(encoder).first_position
    positions = torch.arange(first_position, first_position + ids.shape[1]).unsqueeze(0)
    with torch.no_grad():
        states = encoder(ids).last_hidden_state
        assert torch.equal(encoder(ids, position_ids=positions).last_hidden_state, states)


def test_new_positions_matter_where_a_family_has_that_ability(encoder_folder, batch):
    encoder = fresh(encoder_folder)
    family, ids = family_of(encoder), batch["input_ids"][1:]
    anew = torch.arange(ids.shape[1]).unsqueeze(0) % 3 + family.first_position
    with torch.no_grad():
        is_equal = torch.equal(
            encoder(ids, position_ids=anew).last_hidden_state, encoder(ids).last_hidden_state
        )
    assert is_equal == ("new-positions" in family.lacks)


def test_longest_text_fits_and_where_positions_have_a_table_one_more_does_not(encoder_folder):
    encoder = fresh(encoder_folder)
    longest = family_of(encoder).longest_text(encoder.config)
    assert longest == load_tokenizer(encoder_folder).model_max_length
    assert longest == (1024 if encoder_folder.name == "mt5" else 160)
    with torch.no_grad():
        assert encoder(torch.full((1, longest), 5)).last_hidden_state.shape == (1, longest, 32)
        if encoder_folder.name in {"bert", "distilbert", "rembert", "xlm-roberta", "xlm-roberta-xl", "xmod"}:
            with pytest.raises((IndexError, RuntimeError)):
                encoder(torch.full((1, longest + 1), 5))


# Explicit attention


def both_attentions(folder):
    return [fresh(folder, attention=name) for name in ("eager", offer_explicit_attention())]


def test_explicit_attention_is_the_eager_one_to_the_bit_gradients_included(encoder_folder):
    eager, ours = both_attentions(encoder_folder)
    with torch.no_grad():
        assert torch.equal(eager(input_ids=IDS).last_hidden_state, ours(input_ids=IDS).last_hidden_state)
    states, grads = [], []
    for model in (eager, ours):
        states.append(model(input_ids=IDS, attention_mask=MASK).last_hidden_state)
        states[-1].square().mean().backward()
        grads.append({name: p.grad for name, p in model.named_parameters() if p.grad is not None})
    assert torch.equal(*states)
    assert grads[0] and same(*grads)


def test_explicit_attention_drops_weights_while_training_alone(bert_folder):
    model = load_masked_lm(bert_folder, attention=offer_explicit_attention())
    for part in model.modules():
        if isinstance(part, torch.nn.Dropout):
            part.p = 0.0
    for layer in model.bert.encoder.layer:
        layer.attention.self.dropout.p = 0.5
    still = model(input_ids=IDS, attention_mask=MASK).logits
    model.train()
    noisy_logits = [model(input_ids=IDS, attention_mask=MASK).logits for _ in range(2)]
    assert not torch.equal(noisy_logits[0], noisy_logits[1]) and not torch.equal(noisy_logits[0], still)


# Single families


def test_mdebertas_own_masked_lm_head_is_run_where_config_asks_for_it(deberta_v2_folder, tmp_path):
    config = transformers.AutoConfig.from_pretrained(deberta_v2_folder)
    config.legacy = False
    model = transformers.AutoModelForMaskedLM.from_config(config).eval()
    ids = torch.arange(4, 10).unsqueeze(0)
    with torch.no_grad():
        states = model.base_model(ids).last_hidden_state
        torch.testing.assert_close(FAMILIES["deberta-v2"].masked_lm_scores(model, states), model(ids).logits)


@pytest.mark.parametrize("name", ["roberta", "camembert"])
def test_sisters_of_xlm_r_are_read_like_it(xlm_roberta_folder, tmp_path, name):
    sister = Path(shutil.copytree(xlm_roberta_folder, tmp_path / name))
    change_config(sister, model_type=name, architectures=[f"{name.capitalize()}ForMaskedLM"])
    ours, theirs = load_masked_lm(sister), transformers.AutoModelForMaskedLM.from_pretrained(sister)
    assert type(ours).__name__ == f"{name.capitalize()}ForMaskedLM"
    assert same(ours, theirs)
    family, ids = FAMILIES[name], torch.tensor([[0, 7, 8, 2]])
    with torch.no_grad():
        states = ours.base_model(ids).last_hidden_state
        torch.testing.assert_close(family.masked_lm_scores(ours, states), ours(ids).logits)
        assert torch.equal(states, fresh(xlm_roberta_folder)(ids).last_hidden_state)
    assert len(family.sites(ours)) == 3
    assert family.longest_text(ours.config) == 160


# What a family can


def test_abilities_are_those_the_family_does_not_lack():
    for name in ("bert", "xlm-roberta", "distilbert"):
        require(FAMILIES[name], "post-norm", "projections", use="X-Mixup mixes after attention")
    assert list(FAMILIES) == sorted(FAMILIES) == [family.name for family in FAMILIES.values()]


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("modernbert", "normalises before attention and feed-forward"),
        ("deberta-v2", "also projects distances with the matrices of queries and keys"),
    ],
)
def test_one_that_it_cannot_is_refused_with_the_reason_and_who_can_without_loading(name, reason):
    with pytest.raises(ModelError) as error:
        require(family_named(name, "here"), "post-norm", "projections", use="X-Mixup mixes after attention")
    assert str(error.value) == (
        f"X-Mixup mixes after attention; {name} {reason}. "
        f"Use bert or camembert or distilbert or rembert or roberta or xlm-roberta."
    )


def test_unknown_families_are_refused_with_the_supported_ones():
    model = SimpleNamespace(config=SimpleNamespace(model_type="xlm-robertaa"))
    with pytest.raises(ModelError) as error:
        family_of(model)
    assert str(error.value) == (
        "SimpleNamespace: the architecture 'xlm-robertaa' is not supported. Did you mean 'xlm-roberta'? "
        f"Supported: {', '.join(FAMILIES)}."
    )
