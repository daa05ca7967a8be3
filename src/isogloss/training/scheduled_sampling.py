"""Scheduled sampling of the source side: the real source at first, its back-translation more and more.

In use the source side is a translation, so training must come to see some (X-Mixup, Eq. 6; the decay is
Bengio et al.'s, 2015). What a step takes follows from (seed, step) alone.
"""

import math
from typing import Literal

import numpy as np

from isogloss.core.seeds import derive

Sampling = Literal["batch", "example"]


def share_of_real(step: int, k: int) -> float:
    """Return p* = k/(k+exp(i/k)), the probability of the real source in mini-batch i, counted from 0."""
    x = math.log(k) - step / k  # k/(k+exp(i/k)) = σ(ln k - i/k), which no i makes overflow
    return 1 / (1 + math.exp(-x)) if x >= 0 else math.exp(x) / (1 + math.exp(x))


def takes_real(step: int, count: int, *, k: int, seed: int, sampling: Sampling) -> list[bool]:
    """Decide for each of a batch's pairs whether the real source is taken: p ≤ p* (Eq. 6).

    One p for the whole batch, as in the paper, or one for each example.
    """
    rng = np.random.Generator(np.random.PCG64(derive(seed, "source", step)))
    drawn = rng.random(1).repeat(count) if sampling == "batch" else rng.random(count)
    return [bool(one) for one in drawn <= share_of_real(step, k)]
