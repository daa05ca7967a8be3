"""Deltas: how far, and in which directions, did two trainings move from the bilingual model?

Paper: "Zero-shot Cross-lingual Transfer is Under-specified Optimization", Appendix B, Fig. 4:
δ_S = θ_S - θ_ST, δ_T = θ_T - θ_ST.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from math import acos, degrees, sqrt
from typing import ClassVar

from torch import Tensor

from isogloss.core.rows import Delta
from isogloss.diagnostics.setting import MeasureSetting
from isogloss.diagnostics.weights import PARTS, chosen_parameters, weights_of


@dataclass(frozen=True)
class Deltas:
    """Norms of δ_S and δ_T, their ratio, and the angle between them."""

    name: ClassVar[str] = "deltas"
    subject: ClassVar[str] = "cell"
    version: ClassVar[int] = 2

    between: tuple[str, ...] = ("bilingual", "source-only", "target-only")
    """The origin, and the two models whose differences from it are compared."""

    def measure(self, setting: MeasureSetting) -> list[Delta]:
        """Return a row for all parameters, one for the encoder's and one for the head's."""
        models = [setting.load(subject) for subject in setting.subjects]
        rows: list[Delta] = []
        ids = dict(zip(("origin", "first", "second"), (one.id for one in setting.subjects), strict=True))
        for part in PARTS:
            names = chosen_parameters(models[0], part)
            origin, first, second = (weights_of(model, names) for model in models)
            one, two, angle = norms_and_angle(zip(origin, first, second, strict=True))
            ratio = one / two if two else None
            rows.append(Delta(**ids, part=part, norm_first=one, norm_second=two, ratio=ratio, angle=angle))
        return rows


def norms_and_angle(weights: Iterable[tuple[Tensor, Tensor, Tensor]]) -> tuple[float, float, float | None]:
    """Return ‖δ₁‖, ‖δ₂‖ and the angle between them in degrees (None when a norm is 0).

    ``weights`` are (origin, first, second) tensors; sums run in float64, one tensor at a time.
    """
    one = two = product = 0.0
    for origin, first, second in weights:
        x, y = (first.double() - origin.double()).flatten(), (second.double() - origin.double()).flatten()
        one, two, product = one + float(x @ x), two + float(y @ y), product + float(x @ y)
    if one == 0 or two == 0:
        return sqrt(one), sqrt(two), None
    cosine = max(-1.0, min(1.0, product / sqrt(one * two)))
    return sqrt(one), sqrt(two), degrees(acos(cosine))
