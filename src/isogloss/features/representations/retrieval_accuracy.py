"""Accuracy of retrieving translations by states."""

import torch
from jaxtyping import Float
from torch import Tensor

from isogloss.similarity.nearest import SIMILARITY_TOLERANCE

QUERIES_PER_BLOCK = 1024
"""Sentences compared with all candidates at a time, which bounds memory."""


def retrieval_accuracy(
    x: Float[Tensor, "item dim"], y: Float[Tensor, "item dim"], *, neighbours: int = 0
) -> float:
    """Return the share of rows of x whose nearest row of y has the same index.

    Rows have length 1. Nearest by cosine, or by CSLS with ``neighbours`` > 0. Where k rows of y tie with
    the right one, it counts 1/k.
    """
    # CSLS is 2 cos(x, y) - r(x) - r(y); r(x) is the same for all candidates, so their order needs only r(y).
    offset = mean_nearest(y, x, neighbours) / 2 if neighbours else torch.zeros(len(y), device=y.device)
    own_similarity = (x * y).sum(dim=1) - offset
    correct = 0.0
    for start in range(0, len(x), QUERIES_PER_BLOCK):
        rows = slice(start, start + QUERIES_PER_BLOCK)
        margins = x[rows] @ y.T - offset - own_similarity[rows].unsqueeze(1)
        numbers = torch.arange(len(margins), device=x.device)
        margins[numbers, numbers + start] = 0  # The right one ties with itself, whatever the rounding.
        is_nearest = ~(margins > SIMILARITY_TOLERANCE).any(dim=1)
        ties = (margins >= -SIMILARITY_TOLERANCE).sum(dim=1)
        correct += float((is_nearest / ties).sum(dtype=torch.float64))
    return correct / len(x)


def mean_nearest(
    x: Float[Tensor, "item dim"], y: Float[Tensor, "other dim"], neighbours: int
) -> Float[Tensor, " item"]:
    """Return the mean cosine of each row of x with its nearest rows of y (r of CSLS).

    If y has few rows, all of them count.
    """
    k = min(neighbours, len(y))
    blocks = (x[start : start + QUERIES_PER_BLOCK] @ y.T for start in range(0, len(x), QUERIES_PER_BLOCK))
    return torch.cat([block.topk(k, dim=1).values.mean(dim=1) for block in blocks])
