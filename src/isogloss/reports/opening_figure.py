"""What the figure at the opening of a page shows: scores along paths between models, and sentences.

A feature measures paths and makes the figure (table ``opening-figures``). The page draws it.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import pandas as pd

from isogloss.core.registry import Registry
from isogloss.reports.measurements import Measurements
from isogloss.reports.names import percent


@dataclass(frozen=True, kw_only=True)
class Stretch:
    """Neighbouring values of α at which the predictions for a sentence are the same."""

    first: float
    last: float
    predicted: Sequence[str]
    """Empty where the sentence was not measured."""

    @property
    def alphas(self) -> str:
        """The range of α in words."""
        return " to ".join(dict.fromkeys(f"{alpha:g}" for alpha in (self.first, self.last)))

    @property
    def between(self) -> bool:
        """Whether it has a point between the two models."""
        return self.first <= 1 and self.last >= 0


@dataclass(frozen=True, kw_only=True)
class ShownSentence:
    """A sentence as a table: units and gold labels, then a row for each stretch of the path."""

    title: str
    units: Sequence[str]
    gold: Sequence[str]
    stretches: Sequence[Stretch]


@dataclass(frozen=True, kw_only=True)
class ComparedStretch:
    """Neighbouring values of α at which no seed's predictions for a sentence change."""

    first: float
    last: float
    by_seed: Sequence[Sequence[str]]
    """The predictions of each seed. Empty where the sentence was not measured."""

    @property
    def alphas(self) -> str:
        """The range of α in words."""
        return " to ".join(dict.fromkeys(f"{alpha:g}" for alpha in (self.first, self.last)))

    @property
    def between(self) -> bool:
        """Whether it has a point between the two models."""
        return self.first <= 1 and self.last >= 0

    def differs(self, unit: int) -> bool:
        """Return whether seeds predict different labels for a unit."""
        return len({labels[unit] for labels in self.by_seed if labels}) > 1


@dataclass(frozen=True, kw_only=True)
class ComparedSentence:
    """A sentence as all seeds that stored it predict it: a table for each stretch of the path."""

    title: str
    seeds: Sequence[str]
    units: Sequence[str]
    gold: Sequence[str]
    stretches: Sequence[ComparedStretch]


@dataclass(frozen=True)
class Curve:
    """The scores of one seed along a path, in percent, at the values of α that were measured."""

    alphas: Sequence[float]
    scores: Sequence[float]


@dataclass(frozen=True, kw_only=True)
class Side:
    """The scores in one language along a path: a curve for each seed, and their mean by α."""

    role: str
    name: str
    curves: Sequence[Curve]
    means: Mapping[float, float]
    """Scores of 0 to 1."""

    def range_at(self, alpha: float) -> str:
        """Return the lowest and the highest score of several curves in percent. Empty for one curve."""
        scores = [curve.scores[curve.alphas.index(alpha)] for curve in self.curves if alpha in curve.alphas]
        ends = list(dict.fromkeys(percent(end / 100) for end in (min(scores), max(scores)))) if scores else []
        return "–".join(ends) if len(ends) > 1 else ""

    def mean_at(self, alpha: float) -> str:
        """Return the mean over seeds in percent. A dash without a measurement."""
        return percent(self.means.get(alpha, math.nan))


@dataclass(frozen=True, kw_only=True)
class PathPanel:
    """The paths of one pair of languages. The first side is the one that ends higher."""

    title: str
    alt: str
    sides: Sequence[Side]


@dataclass(frozen=True, kw_only=True)
class PathFigure:
    """Paths from one method's models to another's, with a panel per pair of languages and shared axes."""

    start: str
    end: str
    metric: str
    split: str
    alphas: Sequence[float]
    """Every α at which a panel was measured. Other panels may lack it."""
    zero: float
    """The α nearest to 0, the initial position of the figure."""
    low: int
    """Lower end of the axis in percent, a multiple of ten."""
    high: int
    """Upper end of the axis in percent, a multiple of ten."""
    pairs: int
    """Pairs of languages measured. Those with the lowest target scores have panels."""
    panels: Sequence[PathPanel]
    sentences: Sequence[ShownSentence]
    """Some whose predictions change, where their path stored them."""
    of_seeds: Sequence[ShownSentence]
    """One of each further seed."""
    compared: Sequence[ComparedSentence]
    """One of each panel that several seeds stored."""


@dataclass(frozen=True, kw_only=True)
class OpeningPaths:
    """Paths that a feature measures, and the figure that opens a page with them."""

    points: Callable[[Measurements], pd.DataFrame]
    """All points: a score at an α in a language, with the model at the start of the path (``start.way``)."""
    choose: Callable[[pd.DataFrame], pd.DataFrame]
    """Selects the points of one setting."""
    draw: Callable[[Measurements, pd.DataFrame], PathFigure | None]
    """Makes the figure of points. None without points."""


OPENING_PATHS: Registry[OpeningPaths] = Registry({}, features="opening-figures")


def opening_paths() -> OpeningPaths:
    """Return the paths of the first feature that has some. Without one, there are no points."""
    none = OpeningPaths(
        points=lambda _: pd.DataFrame(),
        choose=lambda rows: rows,
        draw=lambda _, rows: None,  # noqa: ARG005
    )
    return next((OPENING_PATHS[name] for name in OPENING_PATHS), none)
