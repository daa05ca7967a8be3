"""Losses on matching states: squared distance, and contrast within a batch."""

from typing import Literal

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.nn.functional import cross_entropy, normalize

Form = Literal["sum", "mean"]
"""sum: over items, as Eq. 1 is printed; mean: over items and dimensions, as in the released code."""


def squared_distance(
    x: Float[Tensor, "item dim"], y: Float[Tensor, "item dim"], form: Form
) -> Float[Tensor, ""]:
    """Return Σ‖xᵢ−yᵢ‖² over matching rows, or its mean over rows and dimensions; 0 without rows."""
    squared = (x - y).square()
    return squared.sum() if form == "sum" else squared.sum() / max(1, squared.numel())


def bidirectional_contrast(
    x: Float[Tensor, "item dim"],
    y: Float[Tensor, "item dim"],
    same: Bool[Tensor, "item item"],
    *,
    temperature: float,
) -> Float[Tensor, ""]:
    """Return the mean cross entropy of finding yᵢ from xᵢ and xᵢ from yᵢ; 0 without items.

    ``same`` marks pairs of items that are equal in either language: none is a wrong answer to the other.
    """
    if not len(x):
        return (x.sum() + y.sum()) * 0.0
    similarities = normalize(x, dim=1) @ normalize(y, dim=1).T / temperature
    diagonal = torch.eye(len(x), dtype=torch.bool, device=x.device)
    similarities = similarities.masked_fill(same & ~diagonal, -torch.inf)
    targets = torch.arange(len(x), device=x.device)
    return (cross_entropy(similarities, targets) + cross_entropy(similarities.T, targets)) / 2
