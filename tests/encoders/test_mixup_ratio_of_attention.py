import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from isogloss.encoders.mixup import LearnedRatio, attention_entropy, log_attention, two_way_entropy

SHAPES = st.tuples(*[st.integers(1, high) for high in (3, 3, 6, 6)], st.integers(0, 2**31 - 1))


def draw_attention(shape, *, pad=(0, 0)):
    """Raw weights and masks. The last ``pad`` subwords of target and source are padding full of noise."""
    pairs, heads, target, source, seed = shape
    generator = torch.Generator().manual_seed(seed)
    raw = torch.randn(
        pairs, heads, target + pad[0], source + pad[1], generator=generator, dtype=torch.float64
    )
    masks = [
        (torch.arange(real_target + more) < real_target).expand(pairs, -1)
        for real_target, more in zip((target, source), pad, strict=True)
    ]
    return 3 * raw, *masks


def naive_entropy(raw):
    """Eq. 5 with loops: raw [head query key] without padding."""
    total = 0.0
    for head in raw.tolist():
        for query in head:
            top = max(query)
            weights = [math.exp(item - top) for item in query]
            shares = [weight / sum(weights) for weight in weights]
            total -= sum(share * math.log(share) for share in shares if share > 0) / len(head)
    return total / len(raw)


@given(SHAPES)
def test_entropy_is_the_mean_over_heads_and_subwords_of_each_distributions_entropy(shape):
    raw, target, source = draw_attention(shape)
    tensor = attention_entropy(log_attention(raw, source), queries=target, keys=source)
    assert tensor.tolist() == pytest.approx([naive_entropy(item) for item in raw], abs=1e-12)


@given(SHAPES)
def test_both_ways_are_normalised_for_themselves(shape):
    raw, target, source = draw_attention(shape)
    ratios = [naive_entropy(item) + naive_entropy(item.transpose(1, 2)) for item in raw]
    assert two_way_entropy(raw, target=target, source=source).tolist() == pytest.approx(ratios, abs=1e-12)


@given(SHAPES, st.tuples(st.integers(0, 4), st.integers(0, 4)))
def test_padding_changes_nothing(shape, pad):
    raw, target, source = draw_attention(shape, pad=pad)
    real_raw = raw[:, :, : shape[2], : shape[3]]
    whole_tensors = (
        torch.ones(shape[0], shape[2], dtype=torch.bool),
        torch.ones(shape[0], shape[3], dtype=torch.bool),
    )
    single_two_way_entropy = two_way_entropy(real_raw, target=whole_tensors[0], source=whole_tensors[1])
    padded_two_way_entropy = two_way_entropy(raw, target=target, source=source)
    assert torch.allclose(padded_two_way_entropy, single_two_way_entropy, rtol=0, atol=1e-12)


@given(SHAPES)
def test_even_attention_has_the_largest_entropy_and_sure_attention_none(shape):
    raw, target, source = draw_attention(shape)
    largest = math.log(shape[2]) + math.log(shape[3])
    even = two_way_entropy(torch.zeros_like(raw), target=target, source=source)
    assert even.tolist() == pytest.approx([largest] * shape[0], abs=1e-12)
    assert bool((two_way_entropy(raw, target=target, source=source) <= largest + 1e-9).all())
    sure_matrix = torch.eye(4, dtype=torch.float64).expand(1, 1, 4, 4) * 1e4
    unit_tensor = torch.ones(1, 4, dtype=torch.bool)
    assert two_way_entropy(sure_matrix, target=unit_tensor, source=unit_tensor).item() == 0


def test_gradients_are_those_of_finite_differences_and_padding_has_none():
    raw, target, source = draw_attention((2, 2, 3, 4, 0), pad=(2, 1))
    raw.requires_grad_()
    ratio = LearnedRatio().double()
    with torch.no_grad():
        ratio.weight.fill_(-0.7)
        ratio.bias.fill_(0.4)

    def λ(raw, weight, bias):  # noqa: PLC2401 (the paper's letter)
        entropy = two_way_entropy(raw, target=target, source=source)
        return torch.func.functional_call(ratio, {"weight": weight, "bias": bias}, (entropy, 0.5))

    assert torch.autograd.gradcheck(λ, (raw, ratio.weight, ratio.bias))
    λ(raw, ratio.weight, ratio.bias).sum().backward()
    assert bool((raw.grad[:, :, 3:] == 0).all())
    assert bool((raw.grad[:, :, :, 4:] == 0).all())
    assert bool((raw.grad[:, :, :3, :4] != 0).any())


@given(st.floats(0, 20), st.floats(-3, 3), st.floats(-3, 3), st.floats(0, 1))
def test_the_ratio_is_the_equation(entropy, weight, bias, largest):
    ratio = LearnedRatio().double()
    with torch.no_grad():
        ratio.weight.fill_(weight)
        ratio.bias.fill_(bias)
    expected = largest / (1 + math.exp(-(entropy * weight + bias)))
    result = ratio(torch.tensor([entropy], dtype=torch.float64), largest)
    assert result.item() == pytest.approx(expected, abs=1e-12)
    assert 0 <= result.item() <= largest


def test_the_ratio_begins_in_the_middle_and_its_first_gradient_tells_pairs_apart():
    ratio = LearnedRatio()
    entropy = torch.tensor([1.0, 5.0])
    assert ratio(entropy, 0.5).tolist() == [0.25, 0.25]
    (ratio(entropy, 0.5) * torch.tensor([1.0, -1.0])).sum().backward()
    assert ratio.weight.grad.item() == pytest.approx(0.5 * 0.25 * (1 - 5))
