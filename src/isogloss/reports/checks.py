"""Checks: the numbers of a claim, each with its interval, units and required range."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median
from typing import Any

from isogloss.metrics.estimates import (
    LEVEL,
    MAX_UNITS,
    Estimate,
    crossed_estimate,
)
from isogloss.metrics.significance import median_p_value
from isogloss.reports.comparison import FEWEST, SystemComparison

FEWEST_PERMUTED = 6
"""With fewer seeds, no permutation of spreads has a p below 5 %."""

FEWEST_SIGNS = 9
"""From this many units on, a statement about the median unit also needs the exact sign test.

Student's t tests the mean. As a test of the median it rejects up to 5 % of true bounds with three to eight
skewed units, and 7 % with twelve. With nine units the sign test can reach the level of ten corrected tests.
"""

ALMOST_ONE = 1 - 1e-9
"""The largest ρ that has a Fisher's z."""


@dataclass(frozen=True, kw_only=True)
class Statistic:
    """A number that is not a mean over units, such as a correlation, with its own interval and test."""

    mean: float
    low: float
    high: float
    p_value: Callable[[float], float]
    """Gives the two-sided p of the true number being a bound."""
    smallest_seen: Callable[[float], float]
    """Gives the smallest number that a test at a level detects with 80 % power."""


Bounds = Mapping[str, Any]
"""Fields of a check: the range that a claim gives (above, below), and scale and digits of the text."""

UNITS = {"seed": "seed", "encoder.seed": "pretraining seed"}
"""Names of the units of replication, by column."""

HELPS: Bounds = {"above": 0.0}


@dataclass(frozen=True, kw_only=True)
class Check:
    """One statement of a claim: a mean over units of replication is in a range."""

    about: str
    """Description of the number: "upos qad: x-mixup − translate-train"."""
    values: Sequence[float] = ()
    """One value per unit. Empty if nothing was measured. ``about`` then describes what is missing."""
    above: float = -math.inf
    below: float = math.inf
    unit: str = "seed"
    scale: float = 100
    """Factor of numbers in text: 100 for points."""
    digits: int = 1
    comparison: SystemComparison | None = None
    """Set if the values are differences of scores. Includes the error over examples."""
    statistic: Statistic | Estimate | None = None
    """Set where the number is not the mean of the values, which then only count the units."""
    examples: int | None = None
    """Examples whose error is part of the statistic. 0 if a run recorded none, None if none are meant."""
    note: str = ""
    """Additional findings that do not affect the verdict."""
    judged: bool = True
    """Whether it decides the verdict. Other checks are printed with the claim and need no correction."""
    of_median: bool = False
    """Whether the statement is about the median unit, because units other than differences can be skewed."""
    ratio: bool = False
    """Whether the number is a ratio of two sizes, so that 2 and 1/2 are equally far from 1."""
    printed: str = ""
    """The words of the paper if it prints no number, so that the bounds are this project's. Otherwise empty.
    """
    statement: str = ""
    """The statement of the claim that it checks, the same for all tasks, corpora and encoders."""
    compared: str = ""
    """Name of the comparison, equal for all splits, metrics and layers. One check of each comparison decides.
    """
    preference: tuple[float, ...] = ()
    """Sort key: among checks of one comparison with enough units, the check with the smallest key decides."""

    def __post_init__(self) -> None:
        """Raise ValueError for a judged number without a range."""
        if self.judged and self.values and math.isinf(self.above) and math.isinf(self.below):
            raise ValueError(f"the check {self.about!r} has no range: give above, below or judged=False")

    @property
    def estimate(self) -> Estimate | Statistic:
        """The number with its error."""
        return self.statistic or (
            self.comparison.estimate if self.comparison else crossed_estimate(self.values)
        )

    @property
    def p_value(self) -> float:
        """P of the bound that decides: the least significant bound kept, or the worst one violated.

        Nan for a number without a range, which decides nothing.
        """
        estimate = self.estimate
        ends = [(self.above, estimate.mean > self.above), (self.below, estimate.mean < self.below)]
        p_values = [(self._p_of(estimate, end), inside) for end, inside in ends if math.isfinite(end)]
        outside = [p for p, inside in p_values if not inside]
        return max(outside or [p for p, _ in p_values], default=math.nan)

    def _p_of(self, estimate: "Estimate | Statistic", bound: float) -> float:
        p = estimate.p_value(bound)
        if self.of_median and len(self.values) >= FEWEST_SIGNS:
            return max(p, median_p_value(self.values, bound))
        return p

    def units_to_decide(self, tests: int = 1) -> int | None:
        """Return the number of units that decide the check in 80 % of studies, if its number is the true one.

        Contradiction of one of several ``tests`` is corrected for them. None if no number of units would
        decide: the number equals a bound, only more examples would help, or its error is unknown.
        """
        ends = [end for end in (self.above, self.below) if math.isfinite(end)]
        estimate = self.estimate
        if len(self.values) < 2 or not ends or not math.isfinite(estimate.mean):
            return None
        violated_ends = [end for end in ends if (estimate.mean <= end) == (end == self.above)]
        bound = min(violated_ends or ends, key=lambda end: abs(estimate.mean - end))
        level = LEVEL / tests if violated_ends else LEVEL
        if isinstance(estimate, Estimate):
            return estimate.units_to_detect(estimate.mean - bound, level)
        return self._scale_units(estimate, bound, level)

    def _scale_units(self, statistic: "Statistic", bound: float, level: float) -> int | None:
        """Return the units for a ratio or a correlation: errors on a log or z scale shrink by their root."""
        transform = math.log if self.ratio else fisher_z
        origin = bound if self.ratio else 0.0
        values = (statistic.mean, bound, statistic.smallest_seen(level), origin)
        if not all(math.isfinite(value) for value in values) or (self.ratio and min(values) <= 0):
            return None
        mean, end, detectable, start = (transform(value) for value in values)
        if mean == end or detectable == start:
            return None
        times = ((detectable - start) / (mean - end)) ** 2
        minimum = FEWEST_PERMUTED if self.ratio else 2
        units = math.ceil(max(minimum, len(self.values) * times))
        return units if units <= MAX_UNITS else None

    @property
    def inside(self) -> bool:
        """Whether the number is in its range."""
        return self.above < self.estimate.mean < self.below

    @property
    def typical(self) -> bool:
        """Whether mean and median agree about the bounds. A single failed run can move the mean."""
        if isinstance(self.statistic, Statistic):
            return True
        return (self.above < median(self.values) < self.below) == self.inside

    @property
    def text(self) -> str:
        """Description and value of the number."""
        return f"{self.about} {self.written(self.estimate.mean)}"

    def written(self, value: float) -> str:
        """Format a number of this check."""
        return f"{self.scale * value:.{self.digits}f}".replace("-", "−")


def fisher_z(rho: float) -> float:
    """Return Fisher's z of a correlation, finite for 1 and -1."""
    return math.atanh(max(-ALMOST_ONE, min(ALMOST_ONE, rho)))


def check_of(
    numbers: SystemComparison | Iterable[float] | None, label: str, bounds: Bounds, unit: str = "seed"
) -> Check:
    """Return the check of a comparison, of one number per unit, or of a missing measurement."""
    if isinstance(numbers, SystemComparison):
        return Check(about=label, values=numbers.values, comparison=numbers, unit=unit, **bounds)
    if not (values := [float(value) for value in (() if numbers is None else numbers)]):
        return not_measured(label)
    return Check(about=label, values=values, unit=unit, **{"scale": 1, "digits": 2, **bounds})


def not_measured(label: str) -> Check:
    """Return the check of a missing measurement."""
    return Check(about=f"{label}: not measured")


def without_judgement(check: Check) -> Check:
    """Return a check that is printed with its claim and decides nothing."""
    return replace(check, judged=False)


def choose_deciding_checks(checks: Sequence[Check]) -> list[Check]:
    """Choose the checks that decide a verdict, so that further measurements do not change it.

    Each comparison contributes its preferred check among the checks with FEWEST units or more, or with any. A
    comparison with fewer units, or with missing parts, does not decide if a further comparison checks the
    same statement.
    """
    checks_of_comparisons: dict[tuple[str, str], list[Check]] = {}
    for check in checks:
        checks_of_comparisons.setdefault((check.statement, check.compared), []).append(check)
    deciding_checks = []
    for (_, comparison), several in checks_of_comparisons.items():
        best_preference = min((_order_by_preference(check) for check in several), default=None)
        deciding_checks += [
            check for check in several if not comparison or _order_by_preference(check) == best_preference
        ]
    most_units = {check.statement: 0 for check in deciding_checks}
    for check in deciding_checks:
        if check.judged:
            most_units[check.statement] = max(most_units[check.statement], grade_units(check))
    return [
        without_judgement(check)
        if check.statement and grade_units(check) < most_units[check.statement]
        else check
        for check in deciding_checks
    ]


def grade_units(check: Check) -> int:
    """Return 0 for a check without units, 1 for fewer than FEWEST units, else 2."""
    return (len(check.values) > 0) + (len(check.values) >= FEWEST)


def _order_by_preference(check: Check) -> tuple[float, ...]:
    return -grade_units(check), *check.preference
