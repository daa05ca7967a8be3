"""Mixing by word links: uniformly over linked subwords; subwords without a link are not mixed."""

import pytest
import test_mixup
import torch
from networks import fresh
from test_mixup import LENGTHS, attend, compute_equation_4, entropy_of, mix_states, pairs
from torch import nn

from isogloss.core.errors import ConfigError
from isogloss.diagnostics.mixup import on_links
from isogloss.encoders.families import family_of
from isogloss.encoders.mixup import load_mixup, save_mixup

LINKS = (
    ((1, 1), (2, 1), (3, 4), (3, 5), (1, 5)),  # (source, target): of one to many, and many to one
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
    for row, own in enumerate(pairs):
        for one, other in own:
            links[row, other, one] = True
    return links


def even(links):
    """Return weights that are even over what is linked; over all where nothing is."""
    allowed = links + (links.sum(dim=1, keepdim=True) == 0)
    return allowed / allowed.sum(dim=1, keepdim=True)


@pytest.mark.parametrize("residual", ["normed", "summed"])
@pytest.mark.parametrize("learned", [True, False])
def test_a_subword_takes_up_the_mean_value_of_those_it_is_linked_to(folder, residual, learned):
    """Eqs 3-5 by hand, pair by pair without padding."""
    model, how = fresh(folder).double(), mixup(residual=residual, learned=learned)
    how.ratio_module.double()
    rows, mask = pairs()
    links = links_of(rows.size(1))
    states, _, trace = mix_states(model, how, rows, mask, links)
    site = family_of(model).sites(model)[how.layer - 1]
    for number, (source_length, target_length) in enumerate(LENGTHS):
        h_s, _ = attend(model, site, rows[number, :source_length])
        h_t = attend(model, site, rows[3 + number, :target_length])
        linked = links[number, :target_length, :source_length].double()
        there, back = even(linked), even(linked.T)
        crossed = site.module(model, "attention_output")(there @ site.module(model, "value")(h_s))
        expected, ratio = compute_equation_4(model, site, how, crossed, h_t, entropy_of(there, back))
        some, found = linked.any(dim=1), states[3 + number, :target_length]
        assert trace.ratios[number].item() == pytest.approx(ratio if some.any() else 0.0, abs=1e-6)
        assert torch.allclose(found[some], expected[some], rtol=0, atol=1e-6)
        assert torch.allclose(found[~some], h_t[0][~some], rtol=0, atol=1e-9)


@pytest.mark.parametrize("residual", ["normed", "summed"])
def test_what_has_no_link_is_as_unmixed_to_the_bit(folder, residual):
    model = fresh(folder)
    rows, mask = pairs()
    links = links_of(rows.size(1))
    plain, plain_last, _ = mix_states(model, mixup(ratio=0.0), rows, mask)
    states, last, _ = mix_states(model, mixup(residual=residual), rows, mask, links)
    unlinked = torch.cat((torch.ones_like(links[:, 0]), ~links.any(dim=2)))  # All of the sources, too.
    assert torch.equal(states[unlinked], plain[unlinked])
    assert not torch.isclose(states[~unlinked], plain[~unlinked], atol=1e-3).all(dim=1).any()
    assert torch.equal(last[5], plain_last[5])  # The third pair has no links at all.


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
    other, turned = rows.clone(), links
    if side == "target":
        other[1], turned = rows[1, order], links[:, order]
    else:
        other[0], turned = rows[0, order], links[:, :, order]
    states, _, _ = mix_states(model, mixup(), rows, None, links)
    found, _, _ = mix_states(model, mixup(), other, None, turned)
    expected = states[1, order] if side == "target" else states[1]
    assert torch.allclose(found[1], expected, rtol=0, atol=1e-9)
    wrong, _, _ = mix_states(model, mixup(), other, None, links)
    assert not torch.allclose(wrong[1], expected, rtol=0, atol=1e-3)


def test_padding_changes_nothing(folder):
    model, how = fresh(folder).double(), mixup()
    (rows, mask), (wide, wide_mask) = pairs(), pairs(more=6)
    narrow, _, trace = mix_states(model, how, rows, mask, links_of(rows.size(1)))
    padded, _, trace_wide = mix_states(model, how, wide, wide_mask, links_of(wide.size(1)))
    assert torch.allclose(padded[wide_mask.bool()], narrow[mask.bool()], rtol=0, atol=1e-9)
    assert torch.allclose(trace_wide.ratios, trace.ratios, rtol=0, atol=1e-7)
    assert trace.ratios.std() > 0


def test_the_more_is_linked_the_surer_is_a_pair(folder):
    """With a W below 0, what raises entropy lowers the ratio."""
    rows, mask = torch.randint(5, 40, (6, 4), generator=torch.Generator().manual_seed(0)), None
    links = links_of(4, [[(n, n) for n in range(count)] for count in (1, 2, 4)])
    few, some, every = mix_states(fresh(folder), mixup(), rows, mask, links)[2].ratios.tolist()
    assert few < some < every == pytest.approx(0.5 / (1 + torch.e**-1), abs=1e-6)


def test_without_links_nothing_is_guessed(folder):
    rows, mask = pairs()
    with pytest.raises(ConfigError, match="batch"):
        mix_states(fresh(folder), mixup(), rows, mask)
    plain = mix_states(fresh(folder), mixup(attends=None, ratio=0.0), rows, mask)[1]
    assert torch.equal(mix_states(fresh(folder), mixup(ratio=0.0), rows, mask)[1], plain)


def test_links_change_nothing_where_others_are_attended_to(folder):
    rows, mask = pairs()
    for attends in (None, "cosine"):
        how = mixup(attends=attends)
        plain, given = (mix_states(fresh(folder), how, rows, mask, one)[1] for one in (None, links_of(7)))
        assert torch.equal(plain, given)


def test_what_is_saved_is_read_again(tmp_path):
    save_mixup(mixup(), tmp_path)
    assert load_mixup(tmp_path) == mixup()
