"""Mixup ratio: how much of the source does a trained X-Mixup model mix into each language's examples?

X-Mixup, Section 4.1, Eq. 5: λ = λ₀·σ((H(A)+H(Aᵀ))W+b) is made for each example from the entropies of the
attention between it and its translation. A good translation should be mixed in more than a poor one: where
the ratio does not vary over examples, or with the noise of the translations, it was not learned.
"""

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from jaxtyping import Float
from torch import Tensor

from isogloss.core.rows import MixupRatio as MixupRatioRow
from isogloss.diagnostics.setting import MeasureSetting, role_of

QUANTILES = {"lowest": 0.0, "q05": 0.05, "q25": 0.25, "median": 0.5, "q75": 0.75, "q95": 0.95, "highest": 1.0}


@dataclass(frozen=True)
class MixupRatio:
    """Mean, spread and quantiles of the mixing ratio λ over the examples of each target language."""

    name: ClassVar[str] = "mixup-ratio"
    subject: ClassVar[str] = "model"
    version: ClassVar[int] = 2

    def measure(self, setting: MeasureSetting) -> list[MixupRatioRow]:
        """Return a row for each target language; none for a model that mixes nothing."""
        if setting.paired is None:
            return []
        model = setting.load(setting.subjects[0])
        rows: list[MixupRatioRow] = []
        for language in setting.languages:
            if role_of(language, setting.source) == "source":
                continue
            found = ratio_summary(setting.paired(language).ratios(model))
            if found["examples"]:
                rows.append(
                    MixupRatioRow(
                        model=setting.subjects[0].id, language=language, split=setting.split, **found
                    )
                )
            else:
                setting.warn(f"{self.name}: no example of {language} has a translation, so none has a ratio.")
        return rows


def ratio_summary(ratios: Float[Tensor, "example"]) -> dict[str, Any]:
    """Return the number of ratios, their mean, unbiased standard deviation and quantiles.

    Examples without a translation, whose ratio is nan, are not counted; all is nan where none has one.
    """
    ratios = ratios[~ratios.isnan()].double()
    if not len(ratios):
        return {"examples": 0, "mean": math.nan, "std": math.nan, **dict.fromkeys(QUANTILES, math.nan)}
    std = float(ratios.std()) if len(ratios) > 1 else math.nan
    quantiles = torch.quantile(ratios, torch.tensor(list(QUANTILES.values()), dtype=ratios.dtype)).tolist()
    found = dict(zip(QUANTILES, quantiles, strict=True))
    return {"examples": len(ratios), "mean": float(ratios.mean()), "std": std, **found}
