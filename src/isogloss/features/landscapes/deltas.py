"""Lengths and angle of two models' differences from an origin (Appendix B of the paper)."""

from collections.abc import Iterable, Sequence
from math import acos, degrees, sqrt

from torch import Tensor, nn

from isogloss.diagnostics.weight_space import matching_weights
from isogloss.features.landscapes.rows import DeltaRow


def norms_and_angle(weights: Iterable[tuple[Tensor, Tensor, Tensor]]) -> tuple[float, float, float | None]:
    """Return ‖δ₁‖, ‖δ₂‖ and the angle between them in degrees (None when a norm is 0).

    ``weights`` are (origin, first, second) tensors; sums run in float64, one tensor at a time.
    """
    square_x = square_y = product = 0.0
    for origin, weights_x, weights_y in weights:
        x = (weights_x.double() - origin.double()).flatten()
        y = (weights_y.double() - origin.double()).flatten()
        square_x, square_y, product = (
            square_x + float(x @ x),
            square_y + float(y @ y),
            product + float(x @ y),
        )
    if square_x == 0 or square_y == 0:
        return sqrt(square_x), sqrt(square_y), None
    cosine = max(-1.0, min(1.0, product / sqrt(square_x * square_y)))
    return sqrt(square_x), sqrt(square_y), degrees(acos(cosine))


def delta_between(
    models: Sequence[nn.Module], names: Sequence[str], part: str, ids: Sequence[str] = ("", "", "")
) -> DeltaRow:
    """Return lengths and angle of the differences of two models from an origin, over some parameters.

    ``models`` are the origin, the first and the second; ModelError where one lacks a parameter.
    """
    origin, first_weights, second_weights = matching_weights(names, models)
    norm_first, norm_second, angle = norms_and_angle(zip(origin, first_weights, second_weights, strict=True))
    return DeltaRow(
        **dict(zip(("origin", "first", "second"), ids, strict=True)),
        part=part,
        norm_first=norm_first,
        norm_second=norm_second,
        ratio=norm_first / norm_second if norm_second else None,
        angle=angle,
    )
