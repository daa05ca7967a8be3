"""Which subwords of two sentences belong together, from their similarities alone (SimAlign).

Jalili Sabet, Dufter, Yvon & Schütze (2020), Sec. 2: argmax (mutual best), itermax (argmax again among what is
left) and match (the best one-to-one match). All take a batch of matrices, padded.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import torch
from jaxtyping import Bool, Float
from torch import Tensor

Matching = Literal["argmax", "itermax", "match"]

Similarity = Float[Tensor, "pair first second"]
Linked = Bool[Tensor, "pair first second"]

DISCOUNT = 0.9
"""Factor of a similarity one of whose words is linked already (SimAlign's α)."""

_NEVER = -1.0
"""Below every similarity: padding is chosen by nobody."""


@dataclass(frozen=True)
class Similarities:
    """Similarities in [0, 1] of the subwords of sentence pairs, and which of them are no padding."""

    values: Similarity
    real: Linked


def cosine_similarities(
    first: Float[Tensor, "pair first dim"],
    second: Float[Tensor, "pair second dim"],
    lengths: tuple[Tensor, Tensor],
) -> Similarities:
    """Compare unit vectors; lengths are the numbers of real ones. Cosines c become (c + 1) / 2."""
    rows, columns = (
        torch.arange(side.shape[1], device=side.device)[None, :] < length[:, None]
        for side, length in zip((first, second), lengths, strict=True)
    )
    values = (torch.bmm(first, second.transpose(1, 2)) + 1) / 2
    return Similarities(values.clamp(0, 1), rows[:, :, None] & columns[:, None, :])


def distorted(similarities: Similarities, weight: float) -> Similarities:
    """Lower similarities off the diagonal by the factor 1 − κ·(x/m − y/n)², κ the weight.

    Places run from 0 to 1; a pair with a side of one subword stays as it is.
    """
    if not weight:
        return similarities
    rows, columns = similarities.real.any(2).sum(1), similarities.real.any(1).sum(1)
    device = similarities.values.device
    down, right = (
        torch.arange(size, device=device)[None, :] / (count - 1).clamp(min=1)[:, None]
        for size, count in zip(similarities.values.shape[1:], (rows, columns), strict=True)
    )
    factor = 1 - weight * (down[:, :, None] - right[:, None, :]) ** 2
    factor[(rows < 2) | (columns < 2)] = 1.0
    return Similarities(similarities.values * factor, similarities.real)


def linked(similarities: Similarities, matching: Matching, *, rounds: int) -> Linked:
    """Return the links of every pair; ``rounds`` is how often itermax looks."""
    return _MATCHINGS[matching](similarities, rounds)


def argmax(similarities: Similarities, rounds: int = 1) -> Linked:  # noqa: ARG001
    """Link two subwords that are each other's most similar one (the first of equals)."""
    return _mutual(similarities.values, similarities.real)


def itermax(similarities: Similarities, rounds: int) -> Linked:
    """Repeat argmax: links stay; a subword without one may take, at a discount, one that has some.

    Of pairs with a side of at most two subwords only the first round counts; it ends where no subword of
    one side is left.
    """
    values, real = similarities.values, similarities.real
    found = _mutual(values, real)
    small = torch.minimum(real.any(2).sum(1), real.any(1).sum(1)) <= 2
    for _ in range(rounds - 1):
        free_first, free_second = real.any(2) & ~found.any(2), real.any(1) & ~found.any(1)
        done = small | ~free_first.any(1) | ~free_second.any(1)
        free = free_first[:, :, None].float() + free_second[:, None, :].float()
        allowed = (free > 0) & ~done[:, None, None] & real
        new = _mutual(values * (DISCOUNT * free).clamp(max=1), real) & allowed
        if not (new & ~found).any():
            break
        found = found | new
    return found


def match(similarities: Similarities, rounds: int = 1) -> Linked:  # noqa: ARG001
    """Link as many subwords as one-to-one links can, with the greatest sum of similarities."""
    from scipy.optimize import linear_sum_assignment

    found = torch.zeros_like(similarities.real)
    values = similarities.values.double().cpu().numpy()
    rows = similarities.real.any(2).sum(1).tolist()
    columns = similarities.real.any(1).sum(1).tolist()
    for pair, (m, n) in enumerate(zip(rows, columns, strict=True)):
        first, second = linear_sum_assignment(values[pair, :m, :n], maximize=True)
        found[pair, torch.from_numpy(first), torch.from_numpy(second)] = True
    return found


def _mutual(values: Similarity, real: Linked) -> Linked:
    values = values.masked_fill(~real, _NEVER)
    forward = torch.zeros_like(real).scatter_(2, values.argmax(2, keepdim=True), value=True)
    backward = torch.zeros_like(real).scatter_(1, values.argmax(1, keepdim=True), value=True)
    return forward & backward & real


_MATCHINGS: dict[Matching, Callable[[Similarities, int], Linked]] = {
    "argmax": argmax,
    "itermax": itermax,
    "match": match,
}
