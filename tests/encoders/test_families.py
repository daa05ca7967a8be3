import re
from collections import Counter
from types import SimpleNamespace

import pytest
import torch
import transformers

from isogloss.core.errors import ModelError
from isogloss.encoders import (
    FAMILIES,
    family_named,
    family_of,
    load_masked_lm,
    load_model,
    load_tokenizer,
    load_with_new_head,
    require,
)

SINGLE = (
    "block",
    "query",
    "key",
    "value",
    "attention_output",
    "attention_norm",
    "feed_forward_in",
    "feed_forward_out",
    "feed_forward_norm",
)


PROJECTIONS = ("query", "key", "value")


def parts(family):
    lacking = PROJECTIONS if "projections" in family.lacks else ()
    return [part for part in SINGLE if part not in lacking]


def tensor(output):
    return output if isinstance(output, torch.Tensor) else output[0]


@pytest.fixture
def batch(encoder_folder):
    tokenizer = load_tokenizer(encoder_folder)
    return dict(tokenizer(["the cat sat", "a dog ran over hills"], padding=True, return_tensors="pt"))


def test_hidden_states_are_those_of_hugging_face_to_the_bit(encoder_folder, batch):
    (name,) = transformers.AutoConfig.from_pretrained(encoder_folder).architectures
    reference = getattr(transformers, name.replace("ForMaskedLM", "Model"))
    theirs = reference.from_pretrained(encoder_folder).eval()
    ours = load_model(encoder_folder)
    with torch.no_grad():
        expected = theirs(**batch, output_hidden_states=True).hidden_states
        found = ours(**batch, output_hidden_states=True).hidden_states
    assert all(torch.equal(one, other) for one, other in zip(found, expected, strict=True))


def test_outputs_of_embeddings_and_blocks_are_the_hidden_states(encoder_folder, batch):
    encoder = load_model(encoder_folder)
    family, seen = family_of(encoder), []
    places = [family.embeddings(encoder), *(site.module(encoder, "block") for site in family.sites(encoder))]
    hooks = [place.register_forward_hook(lambda _, __, out: seen.append(tensor(out))) for place in places]
    with torch.no_grad():
        states = encoder(**batch, output_hidden_states=True).hidden_states
        if "post-norm" in family.lacks:
            seen[-1] = encoder.final_norm(seen[-1])
    for hook in hooks:
        hook.remove()
    assert all(torch.equal(one, other) for one, other in zip(seen, states, strict=True))


def test_each_part_of_each_site_runs_once(encoder_folder, batch):
    encoder = load_model(encoder_folder)
    family, calls = family_of(encoder), Counter()
    sites, single = family.sites(encoder), parts(family)
    hooks = [
        site.module(encoder, part).register_forward_hook(
            lambda *_, key=(site.layer, part): calls.update([key])
        )
        for site in sites
        for part in single
    ]
    with torch.no_grad():
        plain = encoder(**batch).last_hidden_state
    assert calls == Counter((layer, part) for layer in (1, 2, 3) for part in single)

    for hook in hooks:
        hook.remove()
    with torch.no_grad():
        again = encoder(**batch).last_hidden_state
    assert torch.equal(plain, again)
    assert not any(module._forward_hooks for module in encoder.modules())
    assert sum(calls.values()) == len(sites) * len(single)


def test_projections_are_named_exactly_by_the_families_that_have_them(encoder_folder):
    encoder = load_model(encoder_folder)
    family = family_of(encoder)
    for site in family.sites(encoder):
        named = {part for part in PROJECTIONS if getattr(site, part) is not None}
        assert named == (set() if "projections" in family.lacks else set(PROJECTIONS))
        for part in set(PROJECTIONS) - named:
            with pytest.raises(ModelError, match=f"layer {site.layer}: the {part} projection is no module"):
                site.module(encoder, part)


def seen_in(encoder, site, names, batch):
    seen = {}
    hooks = [
        encoder.get_submodule(name).register_forward_hook(
            lambda _, given, out, name=name: seen.update({name: (given[0], tensor(out))})
        )
        for name in names
    ]
    with torch.no_grad():
        encoder(**batch)
    for hook in hooks:
        hook.remove()
    return seen


def test_norms_close_their_sub_layers_or_open_them(encoder_folder, batch):
    encoder = load_model(encoder_folder)
    family = family_of(encoder)
    site = family.sites(encoder)[1]
    sub_layers = ((site.attention, site.attention_norm), (site.feed_forward, site.feed_forward_norm))
    names = {*site.attention, *site.feed_forward, site.attention_norm, site.feed_forward_norm, site.block}
    seen = seen_in(encoder, site, names, batch)
    for modules, norm in sub_layers:
        if "post-norm" in family.lacks:
            assert modules[0] == norm
        else:
            assert torch.equal(seen[modules[-1]][1], seen[norm][1])
    if "post-norm" not in family.lacks:
        assert torch.equal(seen[site.block][1], seen[site.feed_forward_norm][1])
        added = seen[site.feed_forward_norm][0] - seen[site.attention_norm][1]
    else:
        added = seen[site.block][1] - seen[site.feed_forward_norm][0]
    outputs = seen_in(encoder, site, [site.feed_forward_out], batch)[site.feed_forward_out][1]
    torch.testing.assert_close(outputs, added)  # The residual goes around the feed-forward.


def test_regions_divide_the_block_and_blocks_the_layers(encoder_folder):
    encoder = load_model(encoder_folder)
    sites = family_of(encoder).sites(encoder)
    for site in sites:
        attention, feed_forward, block = (
            dict(site.parameters(encoder, region)) for region in ("attention", "feed_forward", "block")
        )
        assert not attention.keys() & feed_forward.keys()
        assert attention | feed_forward == block
    named = {name for site in sites for name, _ in site.parameters(encoder, "block")}
    own = re.compile(r"(encoder\.layer|transformer\.layer|layers)\.\d")
    assert named == {name for name, _ in encoder.named_parameters() if own.match(name)}


def test_sites_of_a_model_and_of_its_encoder_are_the_same_modules(encoder_folder):
    model = load_masked_lm(encoder_folder)
    family = family_of(model)
    inside, outside = family.sites(model), family.sites(model.base_model)
    assert [site.layer for site in inside] == [1, 2, 3]
    for one, other in zip(inside, outside, strict=True):
        for part in parts(family):
            assert one.module(model, part) is other.module(model.base_model, part)
    assert family.embeddings(model) is family.embeddings(model.base_model)


def test_masked_lm_scores_are_those_of_hugging_face_at_these_positions(encoder_folder, batch):
    model = load_masked_lm(encoder_folder)
    rows, columns = torch.tensor([0, 1, 1]), torch.tensor([2, 1, 4])
    with torch.no_grad():
        expected = model(**batch).logits[rows, columns]
        states = model.base_model(**batch).last_hidden_state
        found = family_of(model).masked_lm_scores(model, states[rows, columns])
    torch.testing.assert_close(found, expected)


def test_tag_scores_are_those_of_hugging_face_at_these_positions(encoder_folder, batch):
    kind = "AutoModelForTokenClassification"
    model = load_with_new_head(encoder_folder, kind, labels=("a", "b", "c"), seed=0)
    rows, columns = torch.tensor([0, 1, 1]), torch.tensor([2, 1, 4])
    with torch.no_grad():
        expected = model(**batch).logits[rows, columns]
        states = model.base_model(**batch).last_hidden_state
        found = family_of(model).tag_scores(model, states[rows, columns])
    torch.testing.assert_close(found, expected)


def test_answers_are_scored_by_a_head_that_depends_on_the_seed_alone(encoder_folder, batch):
    kind = "AutoModelForQuestionAnswering"
    models = [
        load_with_new_head(encoder_folder, kind, labels=("start", "end"), seed=seed) for seed in (1, 1, 2)
    ]
    with torch.no_grad():
        one, same, other = (model(**batch).start_logits for model in models)
    assert one.shape == batch["input_ids"].shape
    assert torch.equal(one, same) and not torch.equal(one, other)


def test_first_position_is_the_one_hugging_face_gives(encoder_folder, batch):
    encoder = load_model(encoder_folder)
    ids, first = batch["input_ids"][1:], family_of(encoder).first_position
    own = torch.arange(first, first + ids.shape[1]).unsqueeze(0)
    with torch.no_grad():
        states = encoder(ids).last_hidden_state
        assert torch.equal(encoder(ids, position_ids=own).last_hidden_state, states)


def test_new_positions_matter_where_a_family_has_that_ability(encoder_folder, batch):
    encoder = load_model(encoder_folder)
    family, ids = family_of(encoder), batch["input_ids"][1:]
    anew = torch.arange(ids.shape[1]).unsqueeze(0) % 3 + family.first_position
    with torch.no_grad():
        same = torch.equal(encoder(ids, position_ids=anew).last_hidden_state, encoder(ids).last_hidden_state)
    assert same == ("new-positions" in family.lacks)


def test_longest_text_fits_and_where_positions_have_a_table_one_more_does_not(encoder_folder):
    encoder = load_model(encoder_folder)
    longest = family_of(encoder).longest_text(encoder.config)
    assert longest == 160
    with torch.no_grad():
        assert encoder(torch.full((1, longest), 5)).last_hidden_state.shape == (1, longest, 32)
        if encoder_folder.name in {"bert", "distilbert", "xlm-roberta"}:
            with pytest.raises((IndexError, RuntimeError)):
                encoder(torch.full((1, longest + 1), 5))


def test_padding_changes_no_state(encoder_folder, batch):
    encoder = load_model(encoder_folder)
    length = int(batch["attention_mask"][0].sum())
    with torch.no_grad():
        padded = encoder(**batch).last_hidden_state[0, :length]
        alone = encoder(batch["input_ids"][:1, :length]).last_hidden_state[0]
    torch.testing.assert_close(padded, alone)


# What a family can


def test_a_method_that_a_family_can_do_is_not_refused():
    for name in ("bert", "xlm-roberta", "distilbert"):
        require(FAMILIES[name], "post-norm", "projections", what="X-Mixup mixes after attention")


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("modernbert", "normalises before attention and feed-forward"),
        ("deberta-v2", "projects distances with the matrices of queries and keys as well"),
    ],
)
def test_one_that_it_cannot_is_refused_with_the_reason_and_who_can_without_loading(name, reason):
    with pytest.raises(ModelError) as caught:
        require(family_named(name, "here"), "post-norm", "projections", what="X-Mixup mixes after attention")
    assert str(caught.value) == (
        f"X-Mixup mixes after attention; {name} {reason}. "
        f"Use bert or camembert or distilbert or roberta or xlm-roberta."
    )


def test_unknown_families_are_refused_with_the_supported_ones():
    model = SimpleNamespace(config=SimpleNamespace(model_type="xlm-robertaa"))
    with pytest.raises(ModelError) as caught:
        family_of(model)
    assert str(caught.value) == (
        "SimpleNamespace: the architecture 'xlm-robertaa' is not supported. Did you mean 'xlm-roberta'? "
        "Supported: bert, camembert, deberta-v2, distilbert, modernbert, roberta, xlm-roberta."
    )


def test_families_are_listed_under_their_model_type():
    assert list(FAMILIES) == sorted(FAMILIES)
    assert all(family.name == name for name, family in FAMILIES.items())
