"""Maps of one language's states onto another's in closed form: a rotation, a shift, a change of scale.

Each follows from a few moments of matched states, so that states stream by and are never held together.
"""

from dataclasses import dataclass
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor

Kind = Literal["rotation", "centring", "normalisation"]
"""rotation: the orthogonal map with the least squared distance about the means (Procrustes; Schönemann 1966);
centring: the target's mean becomes the source's; normalisation: so does the scale of each dimension."""

LEAST_SCALE = 1e-6
"""A dimension that varies less than this is left at its scale."""


@dataclass(frozen=True, eq=False)
class LanguageMap:
    """x ↦ x·matrix + shift."""

    matrix: Float[Tensor, "dim dim"]
    shift: Float[Tensor, "dim"]

    def __call__(self, states: Float[Tensor, "... dim"]) -> Float[Tensor, "... dim"]:
        """Map states, in their own precision and on their device."""
        with torch.autocast(states.device.type, enabled=False):
            return states @ self.matrix.to(states) + self.shift.to(states)


class Moments:
    """Sums over matched states of two languages, in float64."""

    def __init__(self, dim: int) -> None:
        self.count = 0
        self.sums = torch.zeros(2, dim, dtype=torch.float64)
        self.squares = torch.zeros(2, dim, dtype=torch.float64)
        self.products = torch.zeros(dim, dim, dtype=torch.float64)

    def add(self, source: Float[Tensor, "item dim"], target: Float[Tensor, "item dim"]) -> None:
        """Add matched states."""
        both = torch.stack((source, target)).to("cpu", torch.float64)
        self.count += both.size(1)
        self.sums += both.sum(dim=1)
        self.squares += both.square().sum(dim=1)
        self.products += both[1].T @ both[0]

    def means(self) -> Float[Tensor, "side dim"]:
        """Return the mean of the source and of the target."""
        return self.sums / max(1, self.count)

    def scales(self) -> Float[Tensor, "side dim"]:
        """Return the standard deviation of each dimension, of the source and of the target."""
        variance = self.squares / max(1, self.count) - self.means().square()
        return variance.clamp(min=0).sqrt()

    def covariance(self) -> Float[Tensor, "dim dim"]:
        """Return Σ(t−t̄)(s−s̄)ᵀ."""
        source, target = self.means()
        return self.products - self.count * torch.outer(target, source)


def language_map(moments: Moments, kind: Kind) -> LanguageMap:
    """Return the map of the target's states onto the source's."""
    source, target = moments.means()
    dim = len(source)
    if kind == "rotation":
        left, _, right = torch.linalg.svd(moments.covariance())
        matrix = left @ right
    elif kind == "normalisation":
        wide, narrow = moments.scales()
        known = (wide > LEAST_SCALE) & (narrow > LEAST_SCALE)
        matrix = torch.diag(torch.where(known, wide / narrow.clamp(min=LEAST_SCALE), 1.0))
    else:
        matrix = torch.eye(dim, dtype=torch.float64)
    return LanguageMap(matrix.float(), (source - target @ matrix).float())
