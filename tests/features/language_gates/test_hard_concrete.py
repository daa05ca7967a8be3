"""Gates: draws have the probabilities of the closed form, and gradients equal finite differences."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from isogloss.features.language_gates.gates import (
    CLOSED_BELOW,
    STRETCH,
    TEMPERATURE,
    kept_share,
    largest_kept,
    log_alpha_for,
    open_probability,
    sample,
    settle,
    shift_to_share,
)

logits = st.floats(-12, 12)
DRAWS = 200_000


def draw_gates(log_alpha, *, count=DRAWS, seed=0):
    many = torch.full((count,), float(log_alpha), dtype=torch.float64)
    return sample(many, torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("log_alpha", [-4.0, -1.5, 0.0, 0.7, 3.0])
def test_the_closed_form_is_the_share_of_open_gates_among_many(log_alpha):
    expected = float(open_probability(torch.tensor(log_alpha, dtype=torch.float64)))
    mean = float((draw_gates(log_alpha) > 0).double().mean())
    assert mean == pytest.approx(expected, abs=5 * math.sqrt(expected * (1 - expected) / DRAWS))


@pytest.mark.parametrize("log_alpha", [-1.0, 0.0, 2.0])
def test_both_ends_are_drawn_as_often_as_each_other_says(log_alpha):
    """A gate at 1 is one at 0 seen from the other side: s and 1 - s, log α and -log α."""
    fully_open = float((draw_gates(log_alpha) == 1).double().mean())
    closed_mean = float((draw_gates(-log_alpha, seed=1) == 0).double().mean())
    assert fully_open == pytest.approx(closed_mean, abs=0.006)
    assert 0.01 < fully_open < 0.99


def test_the_closed_form_is_that_of_the_paper():
    low, high = STRETCH
    x = torch.linspace(-5, 5, 11, dtype=torch.float64)
    expected = torch.sigmoid(x - TEMPERATURE * math.log(-low / high))
    torch.testing.assert_close(open_probability(x), expected)
    assert STRETCH == (-0.1, 1.1)
    assert pytest.approx(2 / 3) == TEMPERATURE


@given(logits, st.integers(0, 2**62))
def test_gates_lie_between_0_and_1_and_the_same_seed_draws_the_same(log_alpha, seed):
    first_samples, second = (draw_gates(log_alpha, count=50, seed=seed) for _ in range(2))
    assert torch.equal(first_samples, second)
    assert bool(((first_samples >= 0) & (first_samples <= 1)).all())


@given(logits)
def test_a_settled_gate_is_symmetric_and_closed_exactly_below_the_threshold(log_alpha):
    x = torch.tensor(log_alpha, dtype=torch.float64)
    assert float(settle(x) + settle(-x)) == pytest.approx(1)
    if abs(log_alpha - CLOSED_BELOW) > 1e-9:
        assert (float(settle(x)) == 0) == (log_alpha < CLOSED_BELOW)


@given(logits, logits)
def test_a_higher_parameter_never_closes_a_gate(left, right):
    low, high = (torch.tensor(x, dtype=torch.float64) for x in sorted((left, right)))
    assert settle(low) <= settle(high)
    assert open_probability(low) <= open_probability(high)


@given(st.floats(0.001, 0.999))
def test_a_probability_and_its_parameter_are_each_others_inverse(probability):
    log_alpha = torch.tensor(log_alpha_for(probability), dtype=torch.float64)
    assert float(open_probability(log_alpha)) == pytest.approx(probability)


def test_gradients_are_those_of_differences():
    x = torch.linspace(-2, 2, 9, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(open_probability, (x,))
    assert torch.autograd.gradcheck(settle, (x,))

    def same_draw(parameters):
        return sample(parameters, torch.Generator().manual_seed(3))

    assert torch.autograd.gradcheck(same_draw, (x,))
    inside = (same_draw(x) > 0) & (same_draw(x) < 1)
    (slopes,) = torch.autograd.grad(same_draw(x).sum(), x)
    assert torch.equal(slopes > 0, inside)


def test_extreme_parameters_draw_numbers():
    for log_alpha in (-80.0, 80.0):
        gates = sample(torch.full((1000,), log_alpha), torch.Generator().manual_seed(0))
        assert gates.tolist() == [float(log_alpha > 0)] * 1000


# An asked share


gates = st.lists(st.tuples(st.floats(-20, 20), st.integers(1, 500)), min_size=1, max_size=30)


def split(samples):
    log_alpha, sizes = zip(*samples, strict=True)
    return (torch.tensor(part, dtype=torch.float64) for part in (log_alpha, sizes))


@given(gates, st.floats(0.01, 0.99))
def test_shifted_gates_keep_the_share_that_was_asked_for_and_their_differences(samples, kept_values):
    log_alpha, sizes = split(samples)
    result = shift_to_share(log_alpha, sizes, kept_values)
    assert float(kept_share(result, sizes)) == pytest.approx(kept_values, abs=1e-5)
    torch.testing.assert_close(result - result[0], log_alpha - log_alpha[0])


@given(gates, st.floats(0.01, 0.99))
def test_no_gradient_changes_the_share_of_shifted_gates(samples, kept_values):
    log_alpha, sizes = split(samples)
    log_alpha.requires_grad_()
    (slopes,) = torch.autograd.grad(
        kept_share(shift_to_share(log_alpha, sizes, kept_values), sizes), log_alpha
    )
    torch.testing.assert_close(slopes, torch.zeros_like(slopes), atol=1e-9, rtol=0)


def test_gradients_through_the_shift_are_those_of_differences():
    log_alpha = torch.tensor([-1.5, 0.2, 0.9, 3.0], dtype=torch.float64, requires_grad=True)
    sizes = torch.tensor([1.0, 5.0, 2.0, 2.0], dtype=torch.float64)
    weights = torch.tensor([0.3, -1.0, 2.0, 0.5], dtype=torch.float64)

    def number(parameters):
        return (shift_to_share(parameters, sizes, 0.4) * weights).sum()

    (grad,) = torch.autograd.grad(number(log_alpha), log_alpha)
    step = 1e-3
    for place in range(4):
        ends = log_alpha.detach().repeat(2, 1)
        ends[0, place] += step
        ends[1, place] -= step
        expected = float(number(ends[0]) - number(ends[1])) / (2 * step)
        assert float(grad[place]) == pytest.approx(expected, abs=0.01)


@given(gates, st.floats(0, 1))
def test_the_largest_that_are_kept_are_no_more_than_asked_and_one_more_would_be(samples, kept_values):
    log_alpha, sizes = split(samples)
    largest_kept_above = largest_kept(log_alpha, sizes, kept_values)
    is_chosen = log_alpha > largest_kept_above
    total = float(sizes.sum())
    assert float(sizes[is_chosen].sum()) <= kept_values * total * (1 + 1e-6)
    if bool(is_chosen.all()):
        return
    assert float(log_alpha[~is_chosen].max()) == pytest.approx(largest_kept_above)
    assert float(sizes[log_alpha >= largest_kept_above].sum()) > kept_values * total


def test_all_are_kept_where_all_are_asked_for():
    assert largest_kept(torch.tensor([1.0, -2.0]), torch.ones(2), 1.0) == -math.inf
    ten_indices = torch.arange(10.0)
    assert largest_kept(ten_indices, torch.ones(10), 1 - 0.3) == 2.0
