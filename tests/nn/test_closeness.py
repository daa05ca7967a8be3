"""Squared distances: their sum and mean, as numpy and torch have them."""

import torch

from isogloss.nn.distance import squared_distance


def test_the_sum_is_that_of_squared_norms_and_the_mean_is_mse():
    x, y = torch.randn(7, 5, dtype=torch.float64), torch.randn(7, 5, dtype=torch.float64)
    norms = sum(float(torch.linalg.vector_norm(a - b)) ** 2 for a, b in zip(x, y, strict=True))
    torch.testing.assert_close(squared_distance(x, y, "sum").item(), norms)
    torch.testing.assert_close(squared_distance(x, y, "mean"), torch.nn.functional.mse_loss(x, y))


def test_without_rows_it_is_nothing():
    none = torch.empty(0, 5)
    assert [float(squared_distance(none, none, form)) for form in ("sum", "mean")] == [0.0, 0.0]
