"""How far apart matching states are: the squared L2 distances that alignment makes small.

Cross-lingual adjustment, Eq. 1, is two of these sums.
"""

from typing import Literal

from jaxtyping import Float
from torch import Tensor

Form = Literal["sum", "mean"]
"""sum: over items, as Eq. 1 is printed; mean: over items and dimensions, as in the released code."""


def squared_distance(
    x: Float[Tensor, "item dim"], y: Float[Tensor, "item dim"], form: Form
) -> Float[Tensor, ""]:
    """Return Σ‖xᵢ−yᵢ‖² over matching rows, or its mean over rows and dimensions; 0 without rows."""
    squared = (x - y).square()
    return squared.sum() if form == "sum" else squared.sum() / max(1, squared.numel())
