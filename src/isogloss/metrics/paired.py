"""Two systems on the same examples: what both contributed, their difference, and how large it is.

Values are [seed example]: a system's measure with one seed is the sum of its parts over the sum of its
wholes (``core.contributions``). A mean over examples has wholes of 1.
"""

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from isogloss.core.errors import InputError

Array = npt.NDArray[np.float64]


@dataclass(frozen=True)
class System:
    """What one system's predictions add to a measure: ``part`` and ``whole`` are [seed example]."""

    part: Array
    whole: Array

    @property
    def is_mean(self) -> bool:
        """Tell whether the measure is a mean over examples."""
        return bool((self.whole == 1).all())

    @property
    def is_right_or_wrong(self) -> bool:
        """Tell whether each example counts 0 or 1."""
        return self.is_mean and bool(np.isin(self.part, (0, 1)).all())

    def scores(self) -> Array:
        """Return the measure with each seed [seed]."""
        return ratio(self.part.sum(axis=1), self.whole.sum(axis=1))


@dataclass(frozen=True)
class Pair:
    """A system and the one it is held against, with the same seeds and examples."""

    system: System
    baseline: System

    def __post_init__(self) -> None:
        """Refuse what cannot be compared."""
        parts = (self.system.part, self.system.whole, self.baseline.part, self.baseline.whole)
        shapes = {array.shape for array in parts}
        if len(shapes) > 1 or len(parts[0].shape) != 2 or not parts[0].size:
            raise InputError(
                f"paired test: values of shapes {', '.join(map(str, sorted(shapes)))}. Give [seed example] "
                f"for both systems, with the same seeds and examples, at least one of each."
            )
        if not all(np.isfinite(array).all() for array in parts):
            raise InputError(
                "paired test: a value is no finite number. Leave such examples out on both sides."
            )

    @property
    def seeds(self) -> int:
        """Number of seeds."""
        return int(self.system.part.shape[0])

    @property
    def examples(self) -> int:
        """Number of examples."""
        return int(self.system.part.shape[1])

    @property
    def is_mean(self) -> bool:
        """Tell whether the measure is a mean over examples."""
        return self.system.is_mean and self.baseline.is_mean

    def differences(self) -> Array:
        """Return system minus baseline with each seed [seed]."""
        return self.system.scores() - self.baseline.scores()

    def difference(self) -> float:
        """Return system minus baseline, averaged over seeds."""
        return float(self.differences().mean())


def ratio(part: Array, whole: Array) -> Array:
    """Return part over whole, 0 where that is 0."""
    found: Array = np.divide(part, whole, out=np.zeros_like(part, dtype=np.float64), where=whole != 0)
    return found


def per_example(pair: Pair) -> Array:
    """Return how much each example adds to the difference, averaged over seeds [example]; their mean is it.

    For a mean these are the differences of the values. For any other ratio R = Σp/Σw it is linear near the
    data: an example adds (p - R·w)/mean(w) beside R (its influence; Efron & Tibshirani 1993, Chapter 21).
    """
    return _influence(pair.system) - _influence(pair.baseline)


def _influence(system: System) -> Array:
    scores = system.scores()[:, None]
    beside = ratio(
        system.part - scores * system.whole, np.broadcast_to(_mean_whole(system), system.part.shape)
    )
    return np.asarray((beside + scores).mean(axis=0), dtype=np.float64)


def _mean_whole(system: System) -> Array:
    return np.asarray(system.whole.mean(axis=1, keepdims=True), dtype=np.float64)


def cohens_d(differences: npt.ArrayLike) -> float:
    """Return Cohen's d of paired values: the mean difference in standard deviations of the differences.

    0 where nothing differs, infinite where all differ by the same; nan for a single one.
    """
    values = np.asarray(differences, dtype=np.float64)
    if len(values) < 2:
        return math.nan
    mean, std = _mean_and_std(values)
    if std == 0:
        return math.copysign(math.inf, mean) if mean else 0.0
    return mean / std


def _mean_and_std(values: Array) -> tuple[float, float]:
    """Return mean and unbiased standard deviation, that of equal values being 0 in spite of rounding."""
    if (values == values[0]).all():
        return float(values[0]), 0.0
    return float(values.mean()), float(values.std(ddof=1))
