"""X-Mixup models: their mixing ratios, scores with other ratios or layers, and attention to linked words.

X-Mixup, Section 4.1, Eq. 5: λ = λ₀·σ((H(A)+H(Aᵀ))W+b) is computed for each example from the entropies of the
attention between it and its translation. A good translation should be mixed in more than a poor one: where
the ratio does not vary over examples, or with the noise of the translations, it was not learned.

The largest ratio λ₀ and the layer that mixes are chosen before training. The sweep changes them afterwards
without retraining W and b. At λ₀ 0 no layer mixes.

Link attention (Eq. 3): in the layer that mixes, a sentence attends to its translation by the queries and keys
that otherwise attend within a sentence. The state mixed into a word is its translation only as far as these
weights are on it; word links are the reference. It is measured in every layer of any encoder or model, for
attention and for the cosine of the same states.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import product
from typing import TYPE_CHECKING, ClassVar, Literal

from jaxtyping import Bool, Float

from isogloss.core.errors import DataError
from isogloss.core.progress import Progress
from isogloss.core.run_parts import Positive, Share
from isogloss.diagnostics.setting import Diagnostic, LoadedEncoder, MeasureSetting, role_of
from isogloss.encoders.subwords import pad_rows, padding_mask
from isogloss.features.x_mixup.rows import LinkAttentionRow, MixupRatioRow, SweepPointRow
from isogloss.training.bitext import AlignedBitext, PairEncoding, read_bitext
from isogloss.training.length_batches import in_batches

if TYPE_CHECKING:
    from torch import Tensor, nn

    from isogloss.encoders.mixup import Mixup
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
        """Return a row for each target language. None for a model that does not mix."""
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
    """Largest mixup ratios (lambda) to try, in addition to the trained one. 0 disables mixing."""

    layers: tuple[Positive, ...] = ()
    """Layers to try, counted from 1. Default: only the trained one."""

    def measure(self, setting: MeasureSetting) -> list[SweepPointRow]:
        """Return a row for each target language, layer and ratio. None for a model that does not mix."""
        if setting.paired is None:
            return []
        model = setting.load(setting.subjects[0])
        return [
            row
            for language in _targets(setting)
            for row in self._sweep_language(setting, setting.paired(language), model, language)
        ]

    def _sweep_language(
        self, setting: MeasureSetting, scorer: Evaluation, model: nn.Module, language: str
    ) -> Iterator[SweepPointRow]:
        from isogloss.encoders.mixup import check_mixup

        trained_point = scorer.mixup.layer, scorer.mixup.ratio
        points = grid_of(trained_point, self.ratios, self.layers)
        for layer, _ in points:
            check_mixup(model.config, layer, scorer.mixup.mixed)
        score = cache(lambda layer, ratio: mixing_at(scorer, layer, ratio).score(model))
        share = cache(lambda layer: mean_share(scorer, model, layer))
        for count, (layer, ratio) in enumerate(points):
            setting.on_progress(Progress(self.name, count, len(points), language))
            yield SweepPointRow(
                model=setting.subjects[0].id,
                language=language,
                split=setting.split,
                layer=layer,
                ratio=ratio,
                trained=(layer, ratio) == trained_point,
                mean=ratio * share(layer),
                metric=scorer.metric,
                # Without a ratio nothing is mixed, in whichever layer.
                score=score(layer if ratio else trained_point[0], ratio),
                baseline=scorer.baseline,
                examples=len(scorer.examples),
            )
        setting.on_progress(Progress(self.name, len(points), len(points), language))


def _targets(setting: MeasureSetting) -> list[str]:
    return [language for language in setting.languages if role_of(language, setting.source) == "target"]


def ratio_summary(ratios: Float[Tensor, "example"]) -> dict[str, float]:
    """Return mean, unbiased standard deviation and quantiles of one or more ratios."""
    import torch

    ratios = ratios.double()
    std = float(ratios.std()) if len(ratios) > 1 else math.nan
    quantiles = torch.quantile(ratios, torch.tensor(list(QUANTILES.values()), dtype=ratios.dtype)).tolist()
    return {"mean": float(ratios.mean()), "std": std, **dict(zip(QUANTILES, quantiles, strict=True))}


def grid_of(
    trained_point: tuple[int, float], ratios: Sequence[float], layers: Sequence[int]
) -> list[tuple[int, float]]:
    """Return the layers and largest ratios to try, in rising order, including the trained pair."""
    points = {(layer, ratio) for layer in layers or trained_point[:1] for ratio in ratios}
    return sorted(points | {trained_point})


def mixing_at(scorer: Evaluation, layer: int, ratio: float) -> Evaluation:
    """Return the same evaluation with a different layer and largest ratio."""
    return replace(scorer, mixup=replace(scorer.mixup, layer=layer, ratio=ratio))


def mean_share(scorer: Evaluation, model: nn.Module, layer: int) -> float:
    """Return the mean of λ/λ₀ over examples in a layer."""
    return float(mixing_at(scorer, layer, 1.0).ratios(model).nanmean())


Looks = Literal["attention", "cosine"]


@dataclass(frozen=True, kw_only=True)
class LinkAttention(Diagnostic):
    """Measure how much attention of X-Mixup's Eq. 3 a word gives to the word it translates, by layer."""

    name: ClassVar[str] = "link-attention"
    subject: ClassVar[str] = "words"
    version: ClassVar[int] = 1

    looks: tuple[Looks, ...] = ("attention", "cosine")
    """Computation of the weights: attention (the paper), or cosine (`attends = "cosine"` of x-mixup)."""

    longest: Positive = 64
    """Maximum sentence length in words. Longer translations are skipped."""

    def measure(self, setting: MeasureSetting) -> list[LinkAttentionRow]:
        """Return, for each language after the first, a row for each layer, of attention to the first."""
        from isogloss.encoders.mixup import Mixup

        encoder = setting.encoder(setting.subjects[0])
        pivot, *partners = setting.languages
        rows: list[LinkAttentionRow] = []
        for partner in partners:
            pairs = self._pairs(setting, encoder, f"{pivot}-{partner}")
            for look, layer in product(self.looks, range(1, encoder[0].config.num_hidden_layers + 1)):
                mixup = Mixup(layer=layer, learned=False, attends=None if look == "attention" else look)
                scores = _score_links(setting, encoder, pairs, mixup)
                mass, hits, chance = scores.mean(dim=0).tolist()
                rows.append(
                    LinkAttentionRow(
                        model=setting.subjects[0].id,
                        first=pivot,
                        second=partner,
                        layer=layer,
                        look=look,
                        subwords=len(scores),
                        mass=mass,
                        hits=hits,
                        chance=chance,
                    )
                )
        return rows

    def _pairs(self, setting: MeasureSetting, encoder: LoadedEncoder, name: str) -> AlignedBitext:

        pairs = read_bitext(
            {name: setting.bitext(name)}, encoder[1], PairEncoding(pulled="words", longest=self.longest)
        )
        if not pairs.rows[0]["pulled"]:
            raise DataError(
                f"{self.name}: of {pairs.rows[0]['translations']} translations {name} none of at most "
                f"{self.longest} words has a link. Align more of them, or let longest be larger."
            )
        return pairs


def _score_links(
    setting: MeasureSetting, encoder: LoadedEncoder, pairs: AlignedBitext, mixup: Mixup
) -> Float[Tensor, "subword 3"]:
    """Return mass, hit and chance of each linked subword of the second language."""
    import torch

    from isogloss.training.precision import release_memory

    parts = []
    batches = in_batches([pairs.length(index) for index in range(len(pairs))])
    for count, indices in enumerate(batches, start=1):
        weights = _weights(encoder, pairs, indices, mixup, setting.precision)
        parts.append(on_links(weights, *_links(pairs, indices, weights.shape[1:])))
        setting.on_progress(Progress("link attention", count, len(batches), f"layer {mixup.layer}"))
    release_memory()
    return torch.cat(parts)


def _weights(
    encoder: LoadedEncoder, pairs: AlignedBitext, indices: Sequence[int], mixup: Mixup, precision: str
) -> Float[Tensor, "pair target source"]:
    """Return the weights of Eq. 3, the mean over heads, on the CPU."""
    from isogloss.encoders.mixup import mixing
    from isogloss.training.precision import scoring

    texts = [pairs[index][side].tolist() for side in (0, 1) for index in indices]
    sides = zip(*(pairs.languages(index) for index in indices), strict=True)
    ids, mask = pad_rows(texts, pairs.padding), padding_mask([len(text) for text in texts])
    model = encoder[0].base_model
    model.eval()
    with scoring(model, precision) as device:
        ids, mask = ids.to(device), mask.to(device)
        with mixing(encoder[0], mixup, mask, tuple(language for side in sides for language in side)) as trace:
            model(input_ids=ids, attention_mask=mask)
    return trace.weights.float().mean(dim=1).cpu()


def _links(
    pairs: AlignedBitext, indices: Sequence[int], shape: Sequence[int]
) -> tuple[Bool[Tensor, "pair target source"], Float[Tensor, " pair"]]:
    """Return the subwords of linked words, and the number of subwords of each source."""
    import torch

    links = torch.zeros(len(indices), *shape, dtype=torch.bool)
    for row, index in enumerate(indices):
        for begin, end, other_begin, other_end in pairs[index].aligned:
            links[row, other_begin:other_end, begin:end] = True
    return links, torch.tensor([float(len(pairs[index].source)) for index in indices])


def on_links(
    weights: Float[Tensor, "pair target source"],
    links: Bool[Tensor, "pair target source"],
    lengths: Float[Tensor, " pair"],
) -> Float[Tensor, "subword 3"]:
    """Return mass, hit and chance for each target subword with a link.

    The weight on its linked subwords; whether the largest weight is on them; their weight if all were equal.
    """
    import torch

    mass = (weights * links).sum(dim=2)
    hits = links.gather(2, weights.argmax(dim=2, keepdim=True)).squeeze(2).float()
    chance = links.sum(dim=2) / lengths[:, None]
    return torch.stack((mass, hits, chance), dim=2)[links.any(dim=2)]
