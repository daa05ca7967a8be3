"""Mixup sweep: how good is a trained X-Mixup model when other ratios, or other layers, mix at inference?

X-Mixup, Section 4.1: the largest ratio λ₀ (Eq. 5) and the layer that mixes are chosen before training. Here
they are changed afterwards, W and b of Eq. 5 staying as trained: nothing is trained again. At λ₀ 0 no layer
mixes; with what the model was trained with, the score is the one it has on paired inputs.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, ClassVar

from isogloss.core.progress import Progress
from isogloss.core.rows import SweepPoint
from isogloss.core.run_parts import Positive, Share
from isogloss.diagnostics.setting import MeasureSetting, role_of
from isogloss.encoders.mixup import check_mixup
from isogloss.training.evaluation import Evaluation


@dataclass(frozen=True, kw_only=True)
class MixupSweep:
    """Scores of a trained model with other largest ratios and in other layers, without training again."""

    name: ClassVar[str] = "mixup-sweep"
    subject: ClassVar[str] = "model"
    version: ClassVar[int] = 2

    ratios: tuple[Share, ...] = tuple(step / 10 for step in range(11))
    """Largest ratios (lambda 0) that are tried; 0 mixes nothing. The trained one is tried too."""

    layers: tuple[Positive, ...] = ()
    """Layers that are tried, counted from 1; none named means the trained one alone."""

    def measure(self, setting: MeasureSetting) -> list[SweepPoint]:
        """Return a row for each target language, layer and ratio; none for a model that mixes nothing."""
        if setting.paired is None:
            return []
        model = setting.load(setting.subjects[0])
        rows: list[SweepPoint] = []
        for language in setting.languages:
            if role_of(language, setting.source) == "target":
                rows += self._of_language(setting, setting.paired(language), model, language)
        return rows

    def _of_language(
        self, setting: MeasureSetting, scorer: Evaluation, model: Any, language: str
    ) -> Iterator[SweepPoint]:
        trained = scorer.mixup.layer, scorer.mixup.largest
        places = places_of(trained, self.ratios, self.layers)
        for layer, _ in places:
            check_mixup(model.config, layer)
        score = cache(lambda layer, ratio: mixing_at(scorer, layer, ratio).score(model))
        share = cache(lambda layer: mean_share(scorer, model, layer))
        for done, (layer, ratio) in enumerate(places):
            setting.on_progress(Progress(self.name, done, len(places), language))
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
        setting.on_progress(Progress(self.name, len(places), len(places), language))


def places_of(
    trained: tuple[int, float], ratios: Sequence[float], layers: Sequence[int]
) -> list[tuple[int, float]]:
    """Return layers and largest ratios to try, in rising order, each pair once and the trained one too."""
    every = {(layer, ratio) for layer in layers or trained[:1] for ratio in ratios}
    return sorted(every | {trained})


def mixing_at(scorer: Evaluation, layer: int, ratio: float) -> Evaluation:
    """Return the same examples, to be mixed in a layer and with a largest ratio."""
    return replace(scorer, mixup=replace(scorer.mixup, layer=layer, largest=ratio))


def mean_share(scorer: Evaluation, model: Any, layer: int) -> float:
    """Return which share of the largest ratio the examples have on average in a layer: the mean of λ/λ₀."""
    return float(mixing_at(scorer, layer, 1.0).ratios(model).nanmean())
