from collections import Counter
from types import SimpleNamespace

import pytest
import torch

from isogloss.core.errors import ModelError
from isogloss.encoders import FAMILIES, family_of, load_masked_lm, load_model, load_tokenizer

SINGLE = (
    "block",
    "attention",
    "query",
    "key",
    "value",
    "attention_output",
    "attention_norm",
    "feed_forward_in",
    "feed_forward_out",
    "feed_forward_norm",
)


@pytest.fixture
def batch(encoder_folder):
    tokenizer = load_tokenizer(encoder_folder)
    return dict(tokenizer(["the cat sat", "a dog ran over hills"], padding=True, return_tensors="pt"))


def test_hidden_states_are_those_of_hugging_face_to_the_bit(encoder_folder, batch):
    from transformers import BertModel, XLMRobertaModel

    reference = {"bert": BertModel, "xlm-roberta": XLMRobertaModel}[encoder_folder.name]
    theirs = reference.from_pretrained(encoder_folder, add_pooling_layer=False).eval()
    ours = load_model(encoder_folder)
    with torch.no_grad():
        expected = theirs(**batch, output_hidden_states=True).hidden_states
        found = ours(**batch, output_hidden_states=True).hidden_states
    assert all(torch.equal(one, other) for one, other in zip(found, expected, strict=True))


def test_outputs_of_embeddings_and_blocks_are_the_hidden_states(encoder_folder, batch):
    encoder = load_model(encoder_folder)
    family, seen = family_of(encoder), []
    places = [family.embeddings(encoder), *(site.module(encoder, "block") for site in family.sites(encoder))]
    hooks = [place.register_forward_hook(lambda _, __, out: seen.append(out)) for place in places]
    with torch.no_grad():
        states = encoder(**batch, output_hidden_states=True).hidden_states
    for hook in hooks:
        hook.remove()
    assert all(torch.equal(one, other) for one, other in zip(seen, states, strict=True))


def test_each_part_of_each_site_runs_once(encoder_folder, batch):
    encoder = load_model(encoder_folder)
    sites, calls = family_of(encoder).sites(encoder), Counter()
    hooks = [
        site.module(encoder, part).register_forward_hook(
            lambda *_, key=(site.layer, part): calls.update([key])
        )
        for site in sites
        for part in SINGLE
    ]
    with torch.no_grad():
        plain = encoder(**batch).last_hidden_state
    assert calls == Counter((layer, part) for layer in (1, 2, 3) for part in SINGLE)

    for hook in hooks:
        hook.remove()
    with torch.no_grad():
        again = encoder(**batch).last_hidden_state
    assert torch.equal(plain, again)
    assert not any(module._forward_hooks for module in encoder.modules())
    assert sum(calls.values()) == len(sites) * len(SINGLE)


def test_norms_close_their_sub_layers(encoder_folder, batch):
    encoder = load_model(encoder_folder)
    site, seen = family_of(encoder).sites(encoder)[1], {}
    for part in ("block", "attention", "attention_norm", "feed_forward_norm"):
        site.module(encoder, part).register_forward_hook(
            lambda _, __, out, part=part: seen.update({part: out})
        )
    with torch.no_grad():
        encoder(**batch)
    assert torch.equal(seen["attention"][0], seen["attention_norm"])
    assert torch.equal(seen["block"], seen["feed_forward_norm"])


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
    assert named == {name for name, _ in encoder.named_parameters() if name.startswith("encoder.")}


def test_sites_of_a_model_and_of_its_encoder_are_the_same_modules(encoder_folder):
    model = load_masked_lm(encoder_folder)
    family = family_of(model)
    inside, outside = family.sites(model), family.sites(model.base_model)
    assert [site.layer for site in inside] == [1, 2, 3]
    for one, other in zip(inside, outside, strict=True):
        assert all(one.module(model, part) is other.module(model.base_model, part) for part in SINGLE)
    assert family.embeddings(model) is family.embeddings(model.base_model)


def test_masked_lm_scores_are_those_of_hugging_face_at_these_positions(encoder_folder, batch):
    model = load_masked_lm(encoder_folder)
    rows, columns = torch.tensor([0, 1, 1]), torch.tensor([2, 1, 4])
    with torch.no_grad():
        expected = model(**batch).logits[rows, columns]
        states = model.base_model(**batch).last_hidden_state
        found = family_of(model).masked_lm_scores(model, states[rows, columns])
    torch.testing.assert_close(found, expected)


def test_first_position_is_the_one_hugging_face_gives(encoder_folder, batch):
    encoder = load_model(encoder_folder)
    seen = []
    positions = encoder.embeddings.position_embeddings
    positions.register_forward_hook(lambda _, given, __: seen.append(given[0]))
    with torch.no_grad():
        encoder(batch["input_ids"][1:])
    length = batch["input_ids"].shape[1]
    first = family_of(encoder).first_position
    assert seen[0].flatten().tolist() == list(range(first, first + length))


def test_longest_text_fits_and_one_more_does_not(encoder_folder):
    encoder = load_model(encoder_folder)
    longest = family_of(encoder).longest_text(encoder.config)
    assert longest == 160
    with torch.no_grad():
        assert encoder(torch.full((1, longest), 5)).last_hidden_state.shape == (1, longest, 32)
        with pytest.raises((IndexError, RuntimeError)):
            encoder(torch.full((1, longest + 1), 5))


def test_unknown_families_are_refused_with_the_supported_ones():
    model = SimpleNamespace(config=SimpleNamespace(model_type="xlm-robertaa"))
    with pytest.raises(ModelError) as caught:
        family_of(model)
    assert str(caught.value) == (
        "SimpleNamespace: the architecture 'xlm-robertaa' is not supported. Did you mean 'xlm-roberta'? "
        "Supported: bert, xlm-roberta."
    )


def test_families_are_listed_under_their_model_type():
    assert list(FAMILIES) == ["bert", "xlm-roberta"]
    assert all(family.name == name for name, family in FAMILIES.items())
