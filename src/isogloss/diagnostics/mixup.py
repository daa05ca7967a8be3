"""Mixing ratios of trained X-Mixup models, and their scores with other ratios or layers at inference.

X-Mixup, Section 4.1, Eq. 5: λ = λ₀·σ((H(A)+H(Aᵀ))W+b) is computed for each example from the entropies of the
attention between it and its translation. A good translation should be mixed in more than a poor one: where
the ratio does not vary over examples, or with the noise of the translations, it was not learned.

The largest ratio λ₀ and the layer that mixes are chosen before training. The sweep changes them afterwards
without retraining W and b. At λ₀ 0 no layer mixes.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import ClassVar

import torch
from jaxtyping import Float
from torch import Tensor, nn

from isogloss.core.progress import Progress
from isogloss.core.rows.mixing import MixupRatio as MixupRatioRow
from isogloss.core.rows.mixing import SweepPoint
from isogloss.core.run_parts import Positive, Share
from isogloss.diagnostics.setting import Diagnostic, MeasureSetting, role_of
from isogloss.encoders.mixup import check_mixup
from isogloss.training.evaluation import Evaluation

QUANTILES = {"lowest": 0.0, "q05": 0.05, "q25": 0.25, "median": 0.5, "q75": 0.75, "q95": 0.95, "highest": 1.0}


@dataclass(frozen=True)
class MixupRatio(Diagnostic):
    """Mean, standard deviation and quantiles of the mixing ratio λ over examples, by target language."""

    name: ClassVar[str] = "mixup-ratio"
    subject: ClassVar[str] = "model"
    version: ClassVar[int] = 2
    needs_labels: ClassVar[bool] = False

    def measure(self, setting: MeasureSetting) -> list[MixupRatioRow]:
        """Return a row for each target language; none for a model that does not mix."""
        if setting.paired is None:
            return []
        model = setting.load(setting.subjects[0])
        rows: list[MixupRatioRow] = []
        for language in _targets(setting):
            ratios = setting.paired(language).ratios(model)
            ratios = ratios[~ratios.isnan()]
            if len(ratios):
                rows.append(
                    MixupRatioRow(
                        model=setting.subjects[0].id,
                        language=language,
                        split=setting.split,
                        examples=len(ratios),
                        **ratio_summary(ratios),
                    )
                )
            else:
                setting.warn(f"{self.name}: no example of {language} has a translation, so none has a ratio.")
        return rows


@dataclass(frozen=True, kw_only=True)
class MixupSweep(Diagnostic):
    """Scores of a trained model with other largest ratios and in other layers, without retraining."""

    name: ClassVar[str] = "mixup-sweep"
    subject: ClassVar[str] = "model"
    version: ClassVar[int] = 2

    ratios: tuple[Share, ...] = tuple(step / 10 for step in range(11))
    """Largest ratios (lambda 0) that are tried; 0 mixes nothing. The trained one is tried too."""

    layers: tuple[Positive, ...] = ()
    """Layers that are tried, counted from 1; none named means the trained one alone."""

    def measure(self, setting: MeasureSetting) -> list[SweepPoint]:
        """Return a row for each target language, layer and ratio; none for a model that does not mix."""
        if setting.paired is None:
            return []
        model = setting.load(setting.subjects[0])
        return [
            row
            for language in _targets(setting)
            for row in self._of_language(setting, setting.paired(language), model, language)
        ]

    def _of_language(
        self, setting: MeasureSetting, scorer: Evaluation, model: nn.Module, language: str
    ) -> Iterator[SweepPoint]:
        trained = scorer.mixup.layer, scorer.mixup.largest
        points = grid_of(trained, self.ratios, self.layers)
        for layer, _ in points:
            check_mixup(model.config, layer)
        score = cache(lambda layer, ratio: mixing_at(scorer, layer, ratio).score(model))
        share = cache(lambda layer: mean_share(scorer, model, layer))
        for done, (layer, ratio) in enumerate(points):
            setting.on_progress(Progress(self.name, done, len(points), language))
            yield SweepPoint(
                model=setting.subjects[0].id,
                language=language,
                split=setting.split,
                layer=layer,
                ratio=ratio,
                trained=(layer, ratio) == trained,
                mean=ratio * share(layer),
                metric=scorer.metric,
                # Without a ratio nothing is mixed, in whichever layer.
                score=score(layer if ratio else trained[0], ratio),
                baseline=scorer.baseline,
                examples=len(scorer.examples),
            )
        setting.on_progress(Progress(self.name, len(points), len(points), language))


def _targets(setting: MeasureSetting) -> list[str]:
    return [code for code in setting.languages if role_of(code, setting.source) == "target"]


def ratio_summary(ratios: Float[Tensor, "example"]) -> dict[str, float]:
    """Return mean, unbiased standard deviation and quantiles of one or more ratios."""
    ratios = ratios.double()
    std = float(ratios.std()) if len(ratios) > 1 else math.nan
    quantiles = torch.quantile(ratios, torch.tensor(list(QUANTILES.values()), dtype=ratios.dtype)).tolist()
    return {"mean": float(ratios.mean()), "std": std, **dict(zip(QUANTILES, quantiles, strict=True))}


def grid_of(
    trained: tuple[int, float], ratios: Sequence[float], layers: Sequence[int]
) -> list[tuple[int, float]]:
    """Return the layers and largest ratios to try, in rising order, each pair once, the trained one too."""
    points = {(layer, ratio) for layer in layers or trained[:1] for ratio in ratios}
    return sorted(points | {trained})


def mixing_at(scorer: Evaluation, layer: int, ratio: float) -> Evaluation:
    """Return the same evaluation with another layer and largest ratio."""
    return replace(scorer, mixup=replace(scorer.mixup, layer=layer, largest=ratio))


def mean_share(scorer: Evaluation, model: nn.Module, layer: int) -> float:
    """Return the mean of λ/λ₀ over examples in a layer."""
    return float(mixing_at(scorer, layer, 1.0).ratios(model).nanmean())
