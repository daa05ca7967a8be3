"""Checks: the numbers of a claim, each with its interval, units and required range."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from isogloss.core.languages import UNKNOWN, is_built_in, language_facts
from isogloss.data.generated import generated_languages
from isogloss.metrics.estimates import (
    LEVEL,
    MAX_UNITS,
    POWER,
    Estimate,
    crossed_estimate,
    independent_estimate,
)
from isogloss.metrics.ranks import INTERVAL_Z, spearman_within, trend_p_value
from isogloss.metrics.significance import median_p_value
from isogloss.metrics.spreads import compare_spreads, logits
from isogloss.reports.comparison import FEWEST, SystemComparison

FEWEST_SEEDS = 3
"""The minimum number of seeds for a comparison of spreads."""

FEWEST_PERMUTED = 6
"""With fewer seeds, no permutation of spreads has a p below 5 %."""

FEWEST_SIGNS = 9
"""From this many units on, a statement about the median unit also needs the exact sign test.

Student's t tests the mean. As a test of the median it rejects up to 5 % of true bounds with three to eight
skewed units, and 7 % with twelve. With nine units the sign test can reach the level of ten corrected tests.
"""

FEWEST_LANGUAGES = 8
"""With fewer, rank correlations are hardly ever significant: with five languages only ρ = 1."""

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
HURTS: Bounds = {"below": 0.0}
AS_BEFORE: Bounds = {"above": -0.01, "below": 0.01}
"""Within one point: an insignificant difference may yet be large, so equality needs bounds."""

SHARED_WORDS = 0.1
"""Built-in languages are near their source if they share this many of its words or more, else far."""

RATIO_LOST = 1.4
"""An effect is detected in 80 % of studies if it lies 1.4 half-widths of the interval from the bound."""

SPLITS = ("test", "dev")
"""Preferred split of comparisons that have several: the test split."""


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
        transform = math.log if self.ratio else _fisher_z
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


def _fisher_z(rho: float) -> float:
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


def check_independent(
    ours: Iterable[float],
    theirs: Iterable[float],
    label: str,
    bounds: Bounds,
    unit: str = "seed",
    *,
    examples: tuple[float, int] = (0.0, 0),
) -> Check:
    """Return the check of a difference of two means over independent units, such as two encoders' seeds.

    It is Welch's test, without a p-value if a side has only one unit. ``examples`` are their standard error
    and number.
    """
    estimate = independent_estimate(list(ours), list(theirs))
    estimate = estimate.with_examples(*examples) if examples[1] else estimate
    return Check(
        about=label, values=(estimate.mean,) * estimate.units, unit=unit, statistic=estimate, **bounds
    )


def not_measured(label: str) -> Check:
    """Return the check of a missing measurement."""
    return Check(about=f"{label}: not measured")


def without_judgement(check: Check) -> Check:
    """Return a check that is printed with its claim and decides nothing."""
    return replace(check, judged=False)


def with_note(checks: Sequence[Check], notes: Sequence[str]) -> list[Check]:
    """Add to the last check findings that do not affect the verdict."""
    return [*checks[:-1], replace(checks[-1], note="; ".join(notes))]


def check_trend(
    numbers: Iterable[float] | None, conditions: int, label: str, bounds: Bounds, unit: str = "seed"
) -> Check:
    """Check that a score rises or falls over ordered conditions, by one rank correlation per unit.

    If all correlations are 1, or all are -1, the p-value is from Page's trend test.
    """
    check = check_of(numbers, label, bounds, unit)
    if len(check.values) < 2 or any(abs(value) < ALMOST_ONE for value in check.values):
        return check
    rho = check.values[0]
    p = trend_p_value(conditions, len(check.values))
    if any(value * rho < 0 for value in check.values):
        return check
    statistic = Statistic(
        mean=rho, low=rho, high=rho, p_value=lambda _: p, smallest_seen=lambda _: check.above
    )
    return replace(check, statistic=statistic)


def find_language_group(language_code: str) -> str:
    """Return the family of a language, or "" if it is unknown.

    Built-in languages are "near" or "far", by the words that they share with the source language.
    """
    if is_built_in(language_code):
        return "near" if generated_languages().share_of_common_words(language_code) >= SHARED_WORDS else "far"
    family = language_facts(language_code).family
    return "" if family == UNKNOWN else family


def check_correlation(
    label: str, x: "pd.Series[float]", y: "pd.Series[float]", bounds: Bounds, *, min_languages: int = 1
) -> list[Check]:
    """Check Spearman's ρ over languages, within groups of related languages or over the groups' means.

    Languages of one family are not independent draws. The correlation is computed within groups that have
    FEWEST_LANGUAGES languages or more, and else over the means of the groups. Empty for fewer than
    ``min_languages`` languages.
    """
    pairs = pd.concat([x, y], axis=1).dropna()
    if (n := len(pairs)) < min_languages:
        return []
    if n < FEWEST_LANGUAGES:
        return [
            Check(about=f"{label}: {n} languages, and fewer than {FEWEST_LANGUAGES} are too few, not tested")
        ]
    sides = [pairs.iloc[:, side] for side in range(2)]
    groups = pd.Series(
        [find_language_group(str(language_code)) for language_code in pairs.index], index=pairs.index
    )
    sizes = groups.map(groups.value_counts())
    group_count = groups.nunique()
    if (sizes > 1).sum() >= FEWEST_LANGUAGES:
        several = f", within {groups[sizes > 1].nunique()} groups of related languages"
        words = f"{label}{several if group_count > 1 else ''}"
        return [_check_correlation_within(words, sides[0], sides[1], groups, bounds, "language")]
    if group_count >= FEWEST_LANGUAGES:
        means = [side.groupby(groups).mean() for side in sides]
        no_groups = pd.Series("", index=means[0].index)
        return [
            _check_correlation_within(
                f"{label}, over families", means[0], means[1], no_groups, bounds, "family"
            )
        ]
    return [
        Check(
            about=f"{label}: {n} languages of {group_count} families; expected {FEWEST_LANGUAGES} families, "
            f"or as many languages that share one, not tested"
        )
    ]


def _check_correlation_within(
    label: str,
    x: "pd.Series[float]",
    y: "pd.Series[float]",
    groups: "pd.Series[str]",
    bounds: Bounds,
    unit: str,
) -> Check:
    """Check a correlation within groups, by Student's t against 0 and by Fisher's z against other bounds."""
    from scipy.special import ndtri

    summary = spearman_within(list(x), list(y), list(groups))
    if math.isnan(summary.rho):
        return Check(about=f"{label}: the same for every language, not tested")
    error = summary.error
    z = _fisher_z(summary.rho)

    def p_value(bound: float) -> float:
        return summary.p_value if bound == 0 else math.erfc(abs(z - math.atanh(bound)) / error / math.sqrt(2))

    def smallest_seen(level: float) -> float:
        return math.tanh(error * float(ndtri(1 - level / 2) + ndtri(POWER)))

    low, high = (math.tanh(z + side * INTERVAL_Z * error) for side in (-1, 1))
    rho = Statistic(mean=summary.rho, low=low, high=high, p_value=p_value, smallest_seen=smallest_seen)
    format_bounds: Bounds = {"scale": 1, "digits": 2, **bounds}
    return Check(about=label, values=[0.0] * summary.items, statistic=rho, unit=unit, **format_bounds)


def check_spreads(
    label: str, wider: pd.DataFrame, narrower: pd.DataFrame, min_ratio: float, statement: str = ""
) -> list[Check]:
    """Check that one number varies more over the same seeds than another, by tables [seed column].

    In points by ``min_ratio``, and on the logit scale at all: near 100 % scores have little room to vary,
    which makes any other score look unsteady.
    """
    if len(seeds := wider.dropna().index.intersection(narrower.dropna().index)) < FEWEST_SEEDS:
        return [Check(about=f"{label}: fewer than {FEWEST_SEEDS} seeds, not measured", statement="points")]
    tables = [side.loc[seeds].to_numpy(dtype=float) for side in (wider, narrower)]
    return [
        _check_spread(label, "points", tables, min_ratio, statement),
        _check_spread(label, "logits", [logits(side) for side in tables], 1.0),
    ]


def _check_spread(
    label: str, scale: str, tables: Sequence[npt.NDArray[np.float64]], min_ratio: float, text: str = ""
) -> Check:
    """Check that the first of two tables of scores on a scale varies more over seeds than the second."""
    words = f"{label}, in {scale}"
    if not all(np.isfinite(table).all() for table in tables):
        return Check(about=f"{words}: a score of 0 or 100 % has no logit, not tested", statement=scale)
    spread_ratio = compare_spreads(*tables)
    if not math.isfinite(spread_ratio.ratio):
        problem = "every seed scores the same, a ratio needs a spread, not tested"
        return Check(about=f"{words}: {problem}", statement=scale)
    low, high = spread_ratio.interval()
    interval_factor = max(high / spread_ratio.ratio if spread_ratio.ratio else math.inf, 1.0)
    statistic = Statistic(
        mean=spread_ratio.ratio,
        low=low,
        high=high,
        p_value=spread_ratio.p_value,
        smallest_seen=lambda _: min_ratio * interval_factor**RATIO_LOST,
    )
    spreads = " / ".join(
        f"{(100 if scale == 'points' else 1) * side.mean():.2g}" for side in spread_ratio.distances
    )
    return Check(
        about=f"{words} ({spreads})",
        values=(spread_ratio.ratio,) * len(spread_ratio.distances[0]),
        statistic=statistic,
        above=min_ratio,
        scale=1,
        ratio=True,
        printed=text,
        statement=scale,
    )


def name_comparison(
    checks: Iterable[Check],
    comparison: str,
    *,
    statement: str = "",
    split: str = "",
    preference: Sequence[float] = (),
) -> list[Check]:
    """Name the comparison that checks belong to, and the preference among the checks of one comparison.

    ``comparison`` is equal for each split, metric, layer and distance; without a statement they keep their
    own.
    """
    order = SPLITS.index(split) if split in SPLITS else len(SPLITS)
    return [
        replace(
            check,
            compared=comparison,
            statement=statement or check.statement,
            preference=(order, *preference),
        )
        for check in checks
    ]


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
