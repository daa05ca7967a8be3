"""Maps of a language's states onto another's, from a few moments of matched states.

States can be read in batches. Maps are a rotation, a shift, or a change of scale.
"""

from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor

from isogloss.encoders.added.language_layers import LanguageMap

Kind = Literal["rotation", "centring", "normalisation"]
"""The kinds of language maps.

- rotation: the orthogonal map with the least squared distance about the means (Procrustes; Schönemann 1966)
- centring: the target's mean becomes the source's
- normalisation: the target's mean and the scale of each dimension become the source's
"""

MIN_SCALE = 1e-6
"""A dimension that varies less than this is left at its scale."""


class Moments:
    """Sums over matched states of two languages, in float64."""

    def __init__(self, dim: int) -> None:
        self.count = 0
        self.sums = torch.zeros(2, dim, dtype=torch.float64)
        self.squares = torch.zeros(2, dim, dtype=torch.float64)
        self.products = torch.zeros(dim, dim, dtype=torch.float64)

    def add(self, source: Float[Tensor, "item dim"], target: Float[Tensor, "item dim"]) -> None:
        """Add matched states."""
        sides = torch.stack((source, target)).to("cpu", torch.float64)
        self.count += sides.size(1)
        self.sums += sides.sum(dim=1)
        self.squares += sides.square().sum(dim=1)
        self.products += sides[1].T @ sides[0]

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
        source_scale, target_scale = moments.scales()
        varying = (source_scale > MIN_SCALE) & (target_scale > MIN_SCALE)
        matrix = torch.diag(torch.where(varying, source_scale / target_scale.clamp(min=MIN_SCALE), 1.0))
    else:
        matrix = torch.eye(dim, dtype=torch.float64)
    return LanguageMap(matrix.float(), (source - target @ matrix).float())
