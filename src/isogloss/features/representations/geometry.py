"""Describe a set of states: anisotropy, principal components, and the variance between languages.

Anisotropy is the mean cosine of different sentences of one language (Ethayarajh 2019, "How Contextual are
Contextualized Word Representations?", Section 3.3). Near 1 all states point one way, and a cosine between
languages (retrieval, alignment, distances) says little until each language's mean is subtracted; decoders are
often so.
"""

import torch
from jaxtyping import Float
from torch import Tensor


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
