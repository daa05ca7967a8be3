"""Maps of sentence states: the first principal components of parallel text in several languages.

X-Mixup, Figs 1 and 4: sentence states of parallel text (mean of the last layer's states) and the languages'
centroids, before and after training. It also reports the share of the variance between the centroids, over
all dimensions; 0 where states do not depend on the language.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, ClassVar, TypeVar

from jaxtyping import Float

from isogloss.core.errors import DataError, add_location
from isogloss.core.run_parts import Positive, Whole
from isogloss.diagnostics.setting import Diagnostic, MeasureSetting, layer_numbers
from isogloss.features.representations.rows import MapPointRow

if TYPE_CHECKING:
    from torch import Tensor

COMPONENTS = 2
"""Axes of a map."""

Item = TypeVar("Item")

MIN_MAP_SENTENCES = 3
"""Minimum sentences of a map."""


@dataclass(frozen=True, kw_only=True)
class RepresentationMap(Diagnostic):
    """Principal components of the pooled sentence states of all languages, and language centroids."""

    name: ClassVar[str] = "representation-map"
    subject: ClassVar[str] = "parallel"
    version: ClassVar[int] = 2

    layer: Whole = -1
    """Layer whose states are mapped. -1 is the last, 0 the embeddings."""

    sentences: Positive = 1000
    """Sentences, the same in every language, from which components and centroids are computed."""

    points: Positive = 100
    """Sentences of each language recorded as points of the map."""

    limit: Positive = 128
    """Maximum sentence length in subwords. Longer ones are truncated."""

    def measure(self, setting: MeasureSetting) -> list[MapPointRow]:
        """Return a row for each language's centroid, then one for each point."""
        import torch

        from isogloss.training.states import StateOptions

        encoder = setting.encoder(setting.subjects[0])
        with add_location(self.name):
            (layer,) = layer_numbers((self.layer,), encoder)
        request = StateOptions(layers=(layer,), limit=self.limit, precision=setting.precision)
        texts = self._texts(setting)
        states = [
            setting.parallel.states(encoder, lines, language, request)[0] for language, lines in texts.items()
        ]
        frame = setting.subjects[0].id, layer
        return list(map_points(frame, torch.stack(states), list(texts), self.points))

    def _texts(self, setting: MeasureSetting) -> dict[str, list[object]]:
        """Return by language the sentences that are in every pair."""
        pivot, *partners = setting.languages
        sides = {
            partner: {pair.key: pair for pair in setting.parallel.pairs(pivot, partner)}
            for partner in partners
        }
        all_sides = list(sides.values())
        shared = [
            key for key in (all_sides[0] if all_sides else ()) if all(key in side for side in all_sides)
        ]
        if len(shared) < MIN_MAP_SENTENCES:
            raise DataError(
                f"{self.name}: {len(shared)} sentences of {pivot} are translated into all of "
                f"{', '.join(partners) or 'no language'}; {MIN_MAP_SENTENCES} or more are needed. Take "
                f"bitext that is parallel in all languages (bible, tico19), a parallel test set, or fewer "
                f"languages."
            )
        keys = space_evenly(shared, self.sentences)
        texts = {partner: [side[key].second for key in keys] for partner, side in sides.items()}
        return {pivot: [all_sides[0][key].first for key in keys], **texts}


def map_points(
    frame: tuple[str, int], states: Float[Tensor, "language item dim"], languages: Sequence[str], points: int
) -> Iterator[MapPointRow]:
    """Yield the languages' centroids, then at most ``points`` items of each. ``about`` is model and layer."""
    from isogloss.features.representations.geometry import language_variance_share, principal_components

    states = states.double()
    flat = states.flatten(0, 1)
    directions, variance_shares = principal_components(flat, COMPONENTS)
    projections = (states - flat.mean(dim=0)) @ directions.T
    row = partial(MapPointRow, model=frame[0], layer=frame[1], sentences=states.shape[1])
    centroid = partial(row, explained_x=float(variance_shares[0]), explained_y=float(variance_shares[1]))
    language_share = language_variance_share(states)
    for language, (x, y) in zip(languages, projections.mean(dim=1).tolist(), strict=True):
        yield centroid(what="centroid", language=language, x=x, y=y, between=language_share)
    for language, points_of_language in zip(languages, projections, strict=True):
        for x, y in space_evenly(points_of_language.tolist(), points):
            yield row(what="sentence", language=language, x=x, y=y)


def space_evenly(items: Sequence[Item], count: int) -> list[Item]:
    """Return at most ``count`` items, evenly spaced from the first."""
    if len(items) <= count:
        return list(items)
    return [items[index * len(items) // count] for index in range(count)]
