"""Contrastive alignment: each item must find its translation among all items of the batch, both ways.

InfoNCE (van den Oord et al. 2018, Eq. 4) on cosines, in both directions.
"""

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.nn.functional import cross_entropy, normalize


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
    near = normalize(x, dim=1) @ normalize(y, dim=1).T / temperature
    itself = torch.eye(len(x), dtype=torch.bool, device=x.device)
    near = near.masked_fill(same & ~itself, -torch.inf)
    own = torch.arange(len(x), device=x.device)
    return (cross_entropy(near, own) + cross_entropy(near.T, own)) / 2
