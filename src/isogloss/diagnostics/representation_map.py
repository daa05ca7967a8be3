"""Where sentences of each language lie: the first principal components of parallel text.

X-Mixup, Figs 1 and 4: sentence states of parallel text (mean of the last layer's states) and the languages'
centroids, before and after training. Beyond the pictures: the share of the variance that lies between the
centroids, over all dimensions; 0 where language does not move a sentence's meaning.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar

import torch
from jaxtyping import Float
from torch import Tensor

from isogloss.core.errors import DataError
from isogloss.core.rows import MapPoint
from isogloss.core.runs import Positive
from isogloss.diagnostics.parallel_states import layer_numbers
from isogloss.diagnostics.setting import MeasureSetting
from isogloss.training.states import StatesWanted

COMPONENTS = 2
"""Axes of a picture."""

Item = TypeVar("Item")

FEWEST = 3
"""Sentences a map needs."""


@dataclass(frozen=True, kw_only=True)
class RepresentationMap:
    """Principal components of the sentence states of all languages together, and language centroids."""

    name: ClassVar[str] = "representation-map"
    subject: ClassVar[str] = "parallel"
    version: ClassVar[int] = 2

    layer: int = -1
    """Layer whose states are mapped; -1 is the last, 0 the embeddings."""

    sentences: Positive = 1000
    """Sentences, the same in every language, that decide the components and the centroids."""

    points: Positive = 100
    """Sentences of each language that are kept as points of the map."""

    limit: int = 128
    """Longest sentence in subwords; what is longer is cut."""

    def measure(self, setting: MeasureSetting) -> list[MapPoint]:
        """Return a row for each language's centroid, then one for each point."""
        loaded = setting.encoder(setting.subjects[0])
        (layer,) = layer_numbers((self.layer,), loaded[0], self.name)
        wanted = StatesWanted(layers=(layer,), limit=self.limit, precision=setting.precision)
        texts = self._texts(setting)
        found = [setting.parallel.states(loaded, own, language, wanted)[0] for language, own in texts.items()]
        states = torch.stack(found)
        about = setting.subjects[0].id, layer, states.shape[1]
        return [_point(about, row) for row in map_rows(states, list(texts), self.points)]

    def _texts(self, setting: MeasureSetting) -> dict[str, list[Any]]:
        """Return, by language, the sentences that are in every pair."""
        first, *others = setting.languages
        sides = {other: {one.key: one for one in setting.parallel.pairs(first, other)} for other in others}
        every = list(sides.values())
        shared = [key for key in (every[0] if every else ()) if all(key in side for side in every)]
        if len(shared) < FEWEST:
            raise DataError(
                f"{self.name}: {len(shared)} sentences of {first} have a translation in all of "
                f"{', '.join(others) or 'no language'}; {FEWEST} or more are needed. Take bitext that is "
                f"parallel in all languages (bible, tico19), a parallel test set, or fewer languages."
            )
        chosen = spaced(shared, self.sentences)
        texts = {other: [side[key].second for key in chosen] for other, side in sides.items()}
        return {first: [every[0][key].first for key in chosen], **texts}


def _point(about: tuple[str, int, int], row: Mapping[str, Any]) -> MapPoint:
    model, layer, sentences = about
    return MapPoint(model=model, layer=layer, sentences=sentences, **row)


def map_rows(
    states: Float[Tensor, "language item dim"], languages: Sequence[str], points: int
) -> list[Mapping[str, str | float]]:
    """Return the centroids' rows, then those of at most so many points of each language."""
    states = states.double()
    flat = states.flatten(0, 1)
    directions, explained = principal_components(flat, COMPONENTS)
    placed = (states - flat.mean(dim=0)) @ directions.T
    shares = {"explained_x": float(explained[0]), "explained_y": float(explained[1])}
    between = between_share(states)
    rows: list[Mapping[str, str | float]] = [
        {"what": "centroid", "language": language, "x": x, "y": y, **shares, "between": between}
        for language, (x, y) in zip(languages, placed.mean(dim=1).tolist(), strict=True)
    ]
    for language, own in zip(languages, placed, strict=True):
        kept = spaced(own.tolist(), points)
        rows += [{"what": "sentence", "language": language, "x": x, "y": y} for x, y in kept]
    return rows


def principal_components(
    x: Float[Tensor, "item dim"], count: int
) -> tuple[Float[Tensor, "component dim"], Float[Tensor, "component"]]:
    """Return the directions of largest variance, and the share of the variance along each.

    A direction's sign is free: its entry farthest from 0 is made positive, so that maps do not flip.
    """
    centred = x.double() - x.double().mean(dim=0)
    values, vectors = torch.linalg.eigh(centred.T @ centred)
    directions = vectors.flip(dims=(1,)).T[:count]
    largest = directions.abs().argmax(dim=1, keepdim=True)
    variances = values.flip(dims=(0,)).clamp(min=0)
    shares = variances[:count] / variances.sum().clamp(min=torch.finfo(variances.dtype).tiny)
    return directions * directions.gather(1, largest).sign(), shares


def between_share(states: Float[Tensor, "language item dim"]) -> float:
    """Return the variance between the languages' means as a share of the whole variance, in [0, 1]."""
    states = states.double()
    mean = states.mean(dim=(0, 1))
    whole = float((states - mean).square().sum())
    between = float((states.mean(dim=1) - mean).square().sum()) * states.shape[1]
    return between / whole if whole else 0.0


def spaced(items: Sequence[Item], count: int) -> list[Item]:
    """Return at most so many items, evenly spaced from the first."""
    if len(items) <= count:
        return list(items)
    return [items[place * len(items) // count] for place in range(count)]
