"""A diagnostic: does a pair's mixing ratio (X-Mixup, Eq. 5) follow the errors of its translation?"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.stats import spearmanr

from isogloss.diagnostics.setting import MeasureSetting

RATES = (0.0, 0.1, 0.2, 0.4, 0.8)


def rate_of(index: int) -> float:
    """Return the rate of errors in the translation of a pair, by its number."""
    return RATES[index % len(RATES)]


@dataclass(frozen=True, kw_only=True)
class NoiseRatioRow:
    """λ over the test pairs of one error rate, and ρ of rate and λ over all pairs."""

    model: str
    language: str
    rate: float
    examples: int
    mean: float
    std: float
    rho: float


@dataclass(frozen=True)
class NoiseRatio:
    """Mean and standard deviation of λ by the rate of errors of the translation that is mixed in."""

    name: ClassVar[str] = "noise-ratio"
    subject: ClassVar[str] = "model"

    def measure(self, setting: MeasureSetting) -> Iterator[NoiseRatioRow]:
        """Yield a row for each target language and rate, for models that mix."""
        if setting.paired is None:
            return
        model = setting.load(setting.subjects[0])
        for language in (
            language_code for language_code in setting.languages if language_code not in setting.source
        ):
            scorer = setting.paired(language)
            ratios = scorer.ratios(model).numpy()
            rates = np.array([rate_of(int(example.id)) for example in scorer.examples])
            rho = float(spearmanr(rates, ratios).statistic)
            for rate in RATES:
                rate_ratio = ratios[rates == rate]
                yield NoiseRatioRow(
                    model=setting.subjects[0].id,
                    language=language,
                    rate=rate,
                    examples=len(rate_ratio),
                    mean=float(rate_ratio.mean()),
                    std=float(rate_ratio.std(ddof=1)),
                    rho=rho,
                )
