"""Hard-concrete gates: random numbers from 0 to 1, often exactly 0 or 1, whose parameters can be learned.

Louizos, Welling & Kingma (2018), "Learning Sparse Neural Networks through L0 Regularization", Sections 2.2
and 4: a binary concrete number is stretched to a little below 0 and above 1 and clamped, so that ends have
a probability, and the expected number of open gates has a closed form that gradients go through.
"""

import math

import torch
from jaxtyping import Float
from torch import Tensor

STRETCH = (-0.1, 1.1)
"""γ and ζ, the ends before clamping (their Section 4)."""

TEMPERATURE = 2 / 3
"""β (their Section 4; Maddison et al. 2017)."""

SHARE_TOLERANCE, MAX_NEWTON_STEPS = 1e-6, 60
"""Tolerance of a requested share, and the most steps of Newton's method."""

SHARE_ROUNDING = 1e-9
"""Tolerance of shares: 1 - 0.3 is a little less than 0.7 in floating point."""

_LOW, _HIGH = STRETCH

CLOSED_BELOW = math.log(-_LOW / _HIGH)
"""The log α at and below which a gate is closed once it is settled."""

_SHIFT = TEMPERATURE * CLOSED_BELOW


def sample(log_alpha: Float[Tensor, "..."], generator: torch.Generator) -> Float[Tensor, "..."]:
    """Draw gates (their Eqs. 10 and 11); gradients reach log α through those that are not clamped.

    The generator is on the device of log α.
    """
    tiny = torch.finfo(log_alpha.dtype).eps
    u = torch.rand(log_alpha.shape, generator=generator, dtype=log_alpha.dtype, device=log_alpha.device)
    u = u.clamp(tiny, 1 - tiny)
    return settled((u.log() - (-u).log1p() + log_alpha) / TEMPERATURE)


def settled(log_alpha: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
    """Return the gates a trained model is used with (their Eq. 13), from 0 to 1."""
    return (log_alpha.sigmoid() * (_HIGH - _LOW) + _LOW).clamp(0, 1)


def open_probability(log_alpha: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
    """Return P(gate ≠ 0) (their Eq. 12); its sum is the expected number of open gates."""
    return (log_alpha - _SHIFT).sigmoid()


def log_alpha_for(probability: float) -> float:
    """Return the log α of a gate that is open with some probability, above 0 and below 1."""
    return math.log(probability) - math.log1p(-probability) + _SHIFT


def kept_share(log_alpha: Float[Tensor, " gate"], sizes: Float[Tensor, " gate"]) -> Float[Tensor, ""]:
    """Return the expected share of the parameters that is kept, where gates have ``sizes`` of them."""
    return open_probability(log_alpha) @ sizes / sizes.sum()


def shifted(
    log_alpha: Float[Tensor, " gate"], sizes: Float[Tensor, " gate"], share: float
) -> Float[Tensor, " gate"]:
    """Shift all log α by one number so that an expected share is kept, above 0 and below 1.

    To first order the share is constant along gradients: the gain of one gate is the loss of all together.
    """
    shift = _shift(log_alpha.detach(), sizes, share)
    open_now = open_probability(log_alpha.detach() + shift)
    slopes = open_now * (1 - open_now) * sizes
    centre = log_alpha @ slopes / slopes.sum()
    return log_alpha + shift - (centre - centre.detach())


def _shift(log_alpha: Float[Tensor, " gate"], sizes: Float[Tensor, " gate"], share: float) -> float:
    """Return the number by Newton's method, by halving where that leaves the interval it must lie in."""
    low, high = (log_alpha_for(share) - float(end) for end in (log_alpha.max(), log_alpha.min()))
    shift = (low + high) / 2
    for _ in range(MAX_NEWTON_STEPS):
        open_now = open_probability(log_alpha + shift)
        missed = float(open_now @ sizes / sizes.sum()) - share
        if abs(missed) < SHARE_TOLERANCE:
            break
        low, high = (low, shift) if missed > 0 else (shift, high)
        slope = float((open_now * (1 - open_now)) @ sizes / sizes.sum())
        newton = shift - missed / slope if slope > 0 else low
        shift = newton if low < newton < high else (low + high) / 2
    return shift


def largest_kept(log_alpha: Float[Tensor, " gate"], sizes: Float[Tensor, " gate"], share: float) -> float:
    """Return the log α above which lie the largest ones that have at most a share of all parameters."""
    order = log_alpha.argsort(descending=True)
    so_far = sizes[order].double().cumsum(dim=0)
    count = int((so_far <= share * so_far[-1] * (1 + SHARE_ROUNDING)).sum())
    return float(log_alpha[order[count]]) if count < len(order) else -math.inf
