"""Describe sets of states: anisotropy, principal components, variance between languages, and retrieval.

Anisotropy is the mean cosine of different sentences of one language (Ethayarajh 2019, "How Contextual are
Contextualized Word Representations?", Section 3.3). Near 1 all states point one way, and a cosine between
languages (retrieval, alignment, distances) says little until each language's mean is subtracted; decoders are
often so.
"""

import torch
from jaxtyping import Float
from torch import Tensor

from isogloss.similarity.nearest import SIMILARITY_TOLERANCE

QUERIES_PER_BLOCK = 1024
"""Sentences compared with all candidates at a time, which bounds memory."""


def mean_cosine(states: Float[Tensor, "item dim"]) -> float:
    """Return the mean cosine of all pairs of different rows, from -1 / (items - 1) to 1."""
    # The squared length of the sum of unit vectors is the sum of all their cosines, self-pairs included.
    unit = torch.nn.functional.normalize(states.double(), dim=1)
    count = len(unit)
    return float((unit.sum(dim=0).square().sum() - unit.square().sum()) / (count * (count - 1)))


def principal_components(
    x: Float[Tensor, "item dim"], count: int
) -> tuple[Float[Tensor, "component dim"], Float[Tensor, "component"]]:
    """Return the directions of largest variance, and the share of the variance along each.

    The largest absolute entry of a direction is positive, so that maps do not flip.
    """
    centred_states = x.double() - x.double().mean(dim=0)
    values, vectors = torch.linalg.eigh(centred_states.T @ centred_states)
    directions = vectors.flip(dims=(1,)).T[:count]
    largest = directions.abs().argmax(dim=1, keepdim=True)
    variances = values.flip(dims=(0,)).clamp(min=0)
    shares = variances[:count] / variances.sum().clamp(min=torch.finfo(variances.dtype).tiny)
    return directions * directions.gather(1, largest).sign(), shares


def language_variance_share(states: Float[Tensor, "language item dim"]) -> float:
    """Return the variance between the languages' means as a share of the whole variance, in [0, 1]."""
    states = states.double()
    mean = states.mean(dim=(0, 1))
    total = float((states - mean).square().sum())
    language_variance = float((states.mean(dim=1) - mean).square().sum()) * states.shape[1]
    return language_variance / total if total else 0.0


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
