"""Mixing by word links: uniformly over linked subwords. Subwords without a link are not mixed."""

import pytest
import test_mixup
import torch
from test_mixup import LENGTHS, attend, compute_equation_4, entropy_of, mix_states, pairs
from torch import nn

from isogloss.core.errors import ConfigError
from isogloss.encoders.families import family_of
from isogloss.encoders.mixup import load_mixup, save_mixup
from isogloss.features.x_mixup.diagnostics import on_links
from networks import fresh

LINKS = (
    ((1, 1), (2, 1), (3, 4), (3, 5), (1, 5)),  # (source, target): one to many, and many to one
    ((1, 2), (2, 1)),
    (),
)


@pytest.fixture(params=["bert", "distilbert"])
def folder(request):
    return request.getfixturevalue(f"{request.param}_folder")


def mixup(**changes):
    return test_mixup.mixup(**({"attends": "links"} | changes))


def links_of(width, pairs=LINKS):
    links = torch.zeros(len(pairs), width, width, dtype=torch.bool)
    for row, own_pair in enumerate(pairs):
        for left, right in own_pair:
            links[row, right, left] = True
    return links


def even(links):
    """Return weights that are even over what is linked. Over all where nothing is."""
    allowed_links = links + (links.sum(dim=1, keepdim=True) == 0)
    return allowed_links / allowed_links.sum(dim=1, keepdim=True)


@pytest.mark.parametrize("residual", ["normed", "summed"])
@pytest.mark.parametrize("learned_value", [True, False])
def test_a_subword_takes_up_the_mean_value_of_those_it_is_linked_to(folder, residual, learned_value):
    """Eqs 3-5 by hand, pair by pair without padding."""
    model = fresh(folder).double()
    options = mixup(residual=residual, learned=learned_value)
    options.ratio_module.double()
    rows, mask = pairs()
    links = links_of(rows.size(1))
    states, _, trace = mix_states(model, options, rows, mask, links)
    site = family_of(model).sites(model)[options.layer - 1]
    for index, (source_length, target_length) in enumerate(LENGTHS):
        h_s, _ = attend(model, site, rows[index, :source_length])
        h_t = attend(model, site, rows[3 + index, :target_length])
        linked_words = links[index, :target_length, :source_length].double()
        translations = even(linked_words)
        back = even(linked_words.T)
        crossed_value = site.module(model, "attention_output")(
            translations @ site.module(model, "value")(h_s)
        )
        expected, ratio = compute_equation_4(
            model, site, options, crossed_value, h_t, entropy_of(translations, back)
        )
        items = linked_words.any(dim=1)
        result = states[3 + index, :target_length]
        assert trace.ratios[index].item() == pytest.approx(ratio if items.any() else 0.0, abs=1e-6)
        assert torch.allclose(result[items], expected[items], rtol=0, atol=1e-6)
        assert torch.allclose(result[~items], h_t[0][~items], rtol=0, atol=1e-9)


@pytest.mark.parametrize("residual", ["normed", "summed"])
def test_what_has_no_link_is_as_unmixed_to_the_bit(folder, residual):
    model = fresh(folder)
    rows, mask = pairs()
    links = links_of(rows.size(1))
    plain_state, plain_last, _ = mix_states(model, mixup(ratio=0.0), rows, mask)
    states, last_state, _ = mix_states(model, mixup(residual=residual), rows, mask, links)
    unlinked_tensor = torch.cat((torch.ones_like(links[:, 0]), ~links.any(dim=2)))  # Includes all sources.
    assert torch.equal(states[unlinked_tensor], plain_state[unlinked_tensor])
    assert (
        not torch.isclose(states[~unlinked_tensor], plain_state[~unlinked_tensor], atol=1e-3).all(dim=1).any()
    )
    assert torch.equal(last_state[5], plain_last[5])  # The third pair has no links at all.


def test_weights_lie_on_what_is_linked_and_nowhere_else(folder):
    rows, mask = pairs()
    links = links_of(rows.size(1))
    _, _, trace = mix_states(fresh(folder), mixup(), rows, mask, links)
    mass, hits, _ = on_links(trace.weights.mean(dim=1), links, torch.tensor([5.0, 6.0, 3.0])).T
    assert len(mass) == 5  # Subwords with a link.
    assert torch.allclose(mass, torch.ones(5), atol=1e-6)
    assert hits.tolist() == [1] * 5
    assert trace.weights[0, :, 1, 1:3].flatten().tolist() == pytest.approx([0.5] * 2 * trace.weights.size(1))


@pytest.mark.parametrize("side", ["target", "source"])
def test_words_in_another_order_with_their_links_take_up_the_same(folder, side):
    """In an encoder without positions, target states do not depend on the order of the source words."""
    model = fresh(folder).double()
    nn.init.zeros_(model.base_model.embeddings.position_embeddings.weight)
    order = torch.tensor([3, 0, 4, 2, 1])
    rows = torch.randint(5, 40, (2, 5), generator=torch.Generator().manual_seed(3))
    links = links_of(5, [((0, 1), (2, 3), (4, 3))])
    other_rows = rows.clone()
    turned_links = links
    if side == "target":
        other_rows[1] = rows[1, order]
        turned_links = links[:, order]
    else:
        other_rows[0] = rows[0, order]
        turned_links = links[:, :, order]
    states, _, _ = mix_states(model, mixup(), rows, None, links)
    state, _, _ = mix_states(model, mixup(), other_rows, None, turned_links)
    expected = states[1, order] if side == "target" else states[1]
    assert torch.allclose(state[1], expected, rtol=0, atol=1e-9)
    wrong, _, _ = mix_states(model, mixup(), other_rows, None, links)
    assert not torch.allclose(wrong[1], expected, rtol=0, atol=1e-3)


def test_padding_changes_nothing(folder):
    model = fresh(folder).double()
    options = mixup()
    rows, mask = pairs()
    wide, wide_mask = pairs(more=6)
    narrow, _, trace = mix_states(model, options, rows, mask, links_of(rows.size(1)))
    padded_state, _, trace_wide = mix_states(model, options, wide, wide_mask, links_of(wide.size(1)))
    assert torch.allclose(padded_state[wide_mask.bool()], narrow[mask.bool()], rtol=0, atol=1e-9)
    assert torch.allclose(trace_wide.ratios, trace.ratios, rtol=0, atol=1e-7)
    assert trace.ratios.std() > 0


def test_the_more_is_linked_the_surer_is_a_pair(folder):
    """With a W below 0, what raises entropy lowers the ratio."""
    rows = torch.randint(5, 40, (6, 4), generator=torch.Generator().manual_seed(0))
    mask = None
    links = links_of(4, [[(n, n) for n in range(count)] for count in (1, 2, 4)])
    few_ratios, ratio, interval = mix_states(fresh(folder), mixup(), rows, mask, links)[2].ratios.tolist()
    assert few_ratios < ratio < interval == pytest.approx(0.5 / (1 + torch.e**-1), abs=1e-6)


def test_without_links_nothing_is_guessed(folder):
    rows, mask = pairs()
    with pytest.raises(ConfigError, match="batch"):
        mix_states(fresh(folder), mixup(), rows, mask)
    plain_state = mix_states(fresh(folder), mixup(attends=None, ratio=0.0), rows, mask)[1]
    assert torch.equal(mix_states(fresh(folder), mixup(ratio=0.0), rows, mask)[1], plain_state)


def test_links_change_nothing_where_others_are_attended_to(folder):
    rows, mask = pairs()
    for attends in (None, "cosine"):
        options = mixup(attends=attends)
        plain_state, state = (
            mix_states(fresh(folder), options, rows, mask, item)[1] for item in (None, links_of(7))
        )
        assert torch.equal(plain_state, state)


def test_what_is_saved_is_read_again(tmp_path):
    save_mixup(mixup(), tmp_path)
    assert load_mixup(tmp_path) == mixup()
