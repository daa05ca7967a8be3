"""Linear CKA: similarity of the states of sentences and of their translations, by layer.

Kornblith et al. (2019), "Similarity of Neural Network Representations Revisited", Eq. 3, for linear kernels
‖YᵀX‖²/(‖XᵀX‖·‖YᵀY‖) with Frobenius norms and centred columns. X-Mixup, Section 3, measures the distance of a
language from the source with it. Its printed Eq. 1 wrongly squares the two norms of the denominator: a set of
states would then not have CKA 1 with itself.

With fewer sentences than dimensions CKA is close to 1 whatever the states. The debiased form replaces each
HSIC by its unbiased estimator (Song et al. 2012, Eq. 5), which expects 0 for unrelated states.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor

MIN_UNBIASED_SENTENCES = 4
"""Minimum sentences of the unbiased estimator."""

CONSTANT_TOLERANCE = 1e-10
"""States that differ by less than this share of their norm are constant."""


class StreamedCka:
    """CKA of states that arrive in blocks, several layers at once, from dim by dim sums in float64."""

    def __init__(self) -> None:
        self._kept: tuple[CoMoments, CoMoments, CoMoments] | None = None

    def add(self, x: Float[Tensor, "layer item dim_x"], y: Float[Tensor, "layer item dim_y"]) -> None:
        """Add a block, with items in the same order on both sides."""
        x = x.double()
        y = y.double()
        moments = co_moments(x, x), co_moments(x, y), co_moments(y, y)
        previous = self._kept
        self._kept = moments if previous is None else tuple(map(merge_moments, previous, moments))  # type: ignore[assignment]

    def compute(self) -> Float[Tensor, "layer"]:
        """Return CKA by layer."""
        return self._ratio("hsic")

    def compute_debiased(self) -> Float[Tensor, "layer"]:
        """Return CKA from unbiased estimators by layer. It can be below 0, and is nan for constant states."""
        return self._ratio("unbiased_hsic")

    def _ratio(self, estimator: str) -> Float[Tensor, "layer"]:
        if self._kept is None:
            raise ValueError("no states were added yet.")
        xx, xy, yy = (getattr(moments, estimator)() for moments in self._kept)
        vary = self._kept[0].varies() & self._kept[2].varies()
        ratio: Tensor = xy / (xx * yy).clamp(min=0).sqrt()
        return torch.where(vary & (xx > 0) & (yy > 0), ratio, torch.nan)


@dataclass(frozen=True, kw_only=True)
class CoMoments:
    """Sums over two sets of centred items d and e from which HSIC follows, by layer."""

    items: int
    mean_x: Float[Tensor, "layer dim_x"]
    mean_y: Float[Tensor, "layer dim_y"]
    product: Float[Tensor, "layer dim_x dim_y"]
    """Σ d eᵀ."""
    square_x: Float[Tensor, "layer"]
    """Σ ‖d‖²."""
    square_y: Float[Tensor, "layer"]
    """Σ ‖e‖²."""
    third_x: Float[Tensor, "layer dim_x"]
    """Σ d ‖e‖²."""
    third_y: Float[Tensor, "layer dim_y"]
    """Σ e ‖d‖²."""
    fourth: Float[Tensor, "layer"]
    """Σ ‖d‖² ‖e‖²."""

    def varies(self) -> Bool[Tensor, "layer"]:
        """Return a mask of the layers whose first items differ by more than rounding."""
        return self.square_x > self.items * CONSTANT_TOLERANCE**2 * self.mean_x.square().sum(dim=1)

    def hsic(self) -> Float[Tensor, "layer"]:
        """Return tr(K H L H) of the linear kernels. Constant factors cancel in CKA."""
        return self.product.square().sum(dim=(-2, -1))

    def unbiased_hsic(self) -> Float[Tensor, "layer"]:
        """Return n (n - 3) times Song et al.'s Eq. 5 for linear kernels of centred items.

        Eq. 5 is invariant to shifts of the items, so they may be centred; then the sums of d and e are 0 and
        the terms with 1ᵀK̃ reduce to squared norms.
        """
        n = self.items
        product = self.square_x * self.square_y / ((n - 1) * (n - 2))
        return self.hsic() + product - n / (n - 2) * self.fourth


SUMS = ("product", "square_x", "square_y", "third_x", "third_y", "fourth")


def co_moments(x: Float[Tensor, "layer item dim_x"], y: Float[Tensor, "layer item dim_y"]) -> CoMoments:
    """Return the sums of one block."""
    mean_x = x.mean(dim=1)
    mean_y = y.mean(dim=1)
    d = x - mean_x.unsqueeze(1)
    e = y - mean_y.unsqueeze(1)
    long_d = d.square().sum(dim=2)
    long_e = e.square().sum(dim=2)
    return CoMoments(
        items=x.shape[1],
        mean_x=mean_x,
        mean_y=mean_y,
        product=d.mT @ e,
        square_x=long_d.sum(dim=1),
        square_y=long_e.sum(dim=1),
        third_x=(d * long_e.unsqueeze(2)).sum(dim=1),
        third_y=(e * long_d.unsqueeze(2)).sum(dim=1),
        fourth=(long_d * long_e).sum(dim=1),
    )


def merge_moments(block_x: CoMoments, block_y: CoMoments) -> CoMoments:
    """Return the sums of two blocks about their common mean (Chan et al. 1979, in all orders)."""
    items = block_x.items + block_y.items
    mean_x = (block_x.items * block_x.mean_x + block_y.items * block_y.mean_x) / items
    mean_y = (block_x.items * block_x.mean_y + block_y.items * block_y.mean_y) / items
    shifted_x, shifted_y = (_shift_moments(part, mean_x, mean_y) for part in (block_x, block_y))
    sums = {name: getattr(shifted_x, name) + getattr(shifted_y, name) for name in SUMS}
    return CoMoments(items=items, mean_x=mean_x, mean_y=mean_y, **sums)


def _shift_moments(
    part: CoMoments, mean_x: Float[Tensor, "layer dim_x"], mean_y: Float[Tensor, "layer dim_y"]
) -> CoMoments:
    """Return the sums about other means: every d becomes d + a, every e becomes e + b."""
    n = part.items
    a = part.mean_x - mean_x
    b = part.mean_y - mean_y
    long_a = a.square().sum(dim=1)
    long_b = b.square().sum(dim=1)
    product_b = torch.einsum("lxy,ly->lx", part.product, b)
    product_a = torch.einsum("lxy,lx->ly", part.product, a)
    return CoMoments(
        items=n,
        mean_x=mean_x,
        mean_y=mean_y,
        product=part.product + n * a.unsqueeze(2) * b.unsqueeze(1),
        square_x=part.square_x + n * long_a,
        square_y=part.square_y + n * long_b,
        third_x=part.third_x + 2 * product_b + a * (part.square_y + n * long_b).unsqueeze(1),
        third_y=part.third_y + 2 * product_a + b * (part.square_x + n * long_a).unsqueeze(1),
        fourth=part.fourth
        + 2 * (b * part.third_y).sum(dim=1)
        + 2 * (a * (part.third_x + 2 * product_b)).sum(dim=1)
        + long_b * part.square_x
        + long_a * part.square_y
        + n * long_a * long_b,
    )


def compute_linear_cka(
    x: Float[Tensor, "layer item dim_x"], y: Float[Tensor, "layer item dim_y"], *, is_debiased: bool = False
) -> Float[Tensor, "layer"]:
    """Return CKA by layer. Items have the same order on both sides."""
    sums = StreamedCka()
    sums.add(x, y)
    return sums.compute_debiased() if is_debiased else sums.compute()
