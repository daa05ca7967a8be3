"""Curves along the paths between two models: one per pair and role over seeds, and their aggregate.

Paper: "Zero-shot Cross-lingual Transfer is Under-specified Optimization", Section 4. Mean and variance over
seeds are divided by the score of the matching bilingual model, which is the path's own point at alpha 1.
"""

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import TypeVar

from isogloss.core.records import Value
from isogloss.metrics.spread import Spread, spread
from isogloss.oldreports.rows import PathPoint

DIGITS = 6
"""Grid values are compared after rounding, so that 0.1 + 0.2 meets 0.3."""

T = TypeVar("T")
K = TypeVar("K", bound=Hashable)


def grouped(items: Iterable[T], key: Callable[[T], K]) -> dict[K, list[T]]:
    """Return the items by key, keys and items in the order met."""
    groups: dict[K, list[T]] = {}
    for item in items:
        groups.setdefault(key(item), []).append(item)
    return groups


@dataclass(frozen=True, slots=True, kw_only=True)
class Curve:
    """What a curve is about; every field but the seed of a path."""

    corpus: str
    task: str
    encoder: str
    source: str
    target: str
    start: str
    end: str
    part: str
    language: str
    role: str
    split: str
    metric: str


@dataclass(frozen=True, slots=True)
class Line:
    """A curve's numbers: the spread over seeds at each alpha, in rising order."""

    curve: Curve
    alphas: tuple[float, ...]
    spreads: tuple[Spread, ...]

    @property
    def seeds(self) -> int:
        """Return the number of seeds behind the best covered point."""
        return max(point.n for point in self.spreads)

    @property
    def bilingual(self) -> float | None:
        """Return the mean score of the matching bilingual model; None where alpha 1 is not on the grid."""
        return next((point.mean for alpha, point in self if alpha == 1 and point.mean > 0), None)

    def __iter__(self) -> Iterator[tuple[float, Spread]]:
        """Go through (alpha, spread)."""
        return zip(self.alphas, self.spreads, strict=True)

    def data(self) -> list[dict[str, Value]]:
        """Return the curve as flat rows, raw and divided by the bilingual model's score."""
        by = self.bilingual
        return [
            {
                **asdict(self.curve),
                "alpha": alpha,
                "seeds": point.n,
                "mean": point.mean,
                "std": point.std,
                "normalised_mean": point.mean / by if by else None,
                "normalised_variance": point.variance / by if by else None,
            }
            for alpha, point in self
        ]


def curve_of(point: PathPoint) -> Curve:
    """Return what a point's curve is about."""
    return Curve(**{name: getattr(point, name) for name in Curve.__slots__})


def lines(points: Iterable[PathPoint]) -> list[Line]:
    """Return one line per curve."""
    found = []
    for curve, members in grouped(points, curve_of).items():
        at = grouped(members, lambda point: round(point.alpha, DIGITS))
        alphas = tuple(sorted(at))
        found.append(Line(curve, alphas, tuple(spread([p.score for p in at[alpha]]) for alpha in alphas)))
    return found


@dataclass(frozen=True, slots=True)
class Aggregate:
    """The normalised curves of several pairs and tasks together: mean and 95 % interval at each alpha."""

    encoder: str
    source: str
    start: str
    task: str
    role: str
    measure: str
    alphas: tuple[float, ...]
    spreads: tuple[Spread, ...]

    @property
    def curves(self) -> int:
        """Return how many curves went in."""
        return max(point.n for point in self.spreads)

    def data(self) -> list[dict[str, Value]]:
        """Return the aggregate as flat rows."""
        names = ("encoder", "source", "start", "task", "role", "measure")
        about: dict[str, Value] = {name: getattr(self, name) for name in names}
        return [
            {**about, "alpha": alpha, "curves": s.n, "mean": s.mean, "low": s.low, "high": s.high}
            for alpha, s in zip(self.alphas, self.spreads, strict=True)
        ]


def aggregate(members: Sequence[Line], measure: str, *, by_task: bool) -> list[Aggregate]:
    """Aggregate over pairs (and tasks) what ``measure`` names: normalised_mean or normalised_variance."""
    found = []
    for key, group in grouped(members, lambda line: _aggregate_key(line, by_task=by_task)).items():
        rows = [row for line in group for row in line.data() if _finite(row[measure])]
        at = grouped(rows, lambda row: _number(row["alpha"]))
        if at:
            alphas = tuple(sorted(at))
            spreads = tuple(spread([_number(row[measure]) for row in at[alpha]]) for alpha in alphas)
            found.append(Aggregate(*key, measure, alphas, spreads))
    return found


def _aggregate_key(line: Line, *, by_task: bool) -> tuple[str, str, str, str, str]:
    about = line.curve
    return about.encoder, about.source, about.start, about.task if by_task else "", about.role


def _finite(value: Value) -> bool:
    return isinstance(value, float) and value == value  # noqa: PLR0124  (nan is the only value unequal to itself)


def _number(value: Value) -> float:
    return float(value or 0.0)
