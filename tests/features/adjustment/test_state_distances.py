"""Squared distances and contrast of matching states."""

import math

import pytest
import torch

from isogloss.features.adjustment.aligned_batches import bidirectional_contrast, squared_distance


def test_the_sum_is_that_of_squared_norms_and_the_mean_is_mse():
    x = torch.randn(7, 5, dtype=torch.float64)
    y = torch.randn(7, 5, dtype=torch.float64)
    norms = sum(float(torch.linalg.vector_norm(a - b)) ** 2 for a, b in zip(x, y, strict=True))
    torch.testing.assert_close(squared_distance(x, y, "sum").item(), norms)
    torch.testing.assert_close(squared_distance(x, y, "mean"), torch.nn.functional.mse_loss(x, y))


def test_without_rows_it_is_nothing():
    none = torch.empty(0, 5)
    assert [float(squared_distance(none, none, form)) for form in ("sum", "mean")] == [0.0, 0.0]


def compute_loss(x, y, same_tensor, temperature):
    def one_way(x, y):
        total = 0.0
        for i in range(len(x)):
            near_powers = [
                math.exp(float(torch.cosine_similarity(x[i], other_item, dim=0)) / temperature)
                for other_item in y
            ]
            wrong = sum(near_powers[j] for j in range(len(y)) if j != i and not same_tensor[i, j])
            total -= math.log(near_powers[i] / (near_powers[i] + wrong))
        return total / len(x)

    return (one_way(x, y) + one_way(y, x)) / 2


def none(count):
    return torch.zeros(count, count, dtype=torch.bool)


@pytest.mark.parametrize("temperature", [0.1, 1.0])
def test_it_is_the_mean_cross_entropy_both_ways(temperature):
    x, y = torch.randn(2, 6, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    result = bidirectional_contrast(x, y, none(6), temperature=temperature)
    assert float(result) == pytest.approx(compute_loss(x, y, none(6), temperature))


def test_equal_texts_are_no_wrong_answers():
    x, y = torch.randn(2, 6, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    same_tensor = none(6)
    same_tensor[1, 4] = same_tensor[4, 1] = True
    same_tensor.fill_diagonal_(True)
    result = bidirectional_contrast(x, y, same_tensor, temperature=0.1)
    assert float(result) == pytest.approx(compute_loss(x, y, same_tensor, 0.1))
    assert float(bidirectional_contrast(x, y, torch.ones(6, 6, dtype=torch.bool), temperature=0.1)) == 0.0


def test_lengths_of_states_do_not_count_and_sides_can_be_exchanged():
    x, y = torch.randn(2, 6, 4, generator=torch.Generator().manual_seed(2))
    result = bidirectional_contrast(x, y, none(6), temperature=0.1)
    torch.testing.assert_close(bidirectional_contrast(3 * x, 0.5 * y, none(6), temperature=0.1), result)
    torch.testing.assert_close(bidirectional_contrast(y, x, none(6), temperature=0.1), result)


def test_without_items_it_is_nothing_and_has_a_gradient():
    x = torch.empty(0, 4, requires_grad=True)
    result = bidirectional_contrast(x, x, none(0), temperature=0.1)
    result.backward()
    assert result.item() == 0.0 and x.grad is not None
