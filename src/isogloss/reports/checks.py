"""Checks: the numbers of a claim, each with its interval, units and the range that it must lie in."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pandas as pd

from isogloss.metrics.estimates import (
    LEVEL,
    POWER,
    Estimate,
    crossed_estimate,
    independent_estimate,
    t_p_value,
    t_quantile,
)
from isogloss.metrics.ranks import bootstrap_interval, spearman
from isogloss.reports.comparison import Comparison

FEWEST_SEEDS = 3
"""Fewer do not estimate a standard deviation."""

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


@dataclass(frozen=True, kw_only=True)
class Check:
    """One statement of a claim: a mean over units of replication lies in a range."""

    about: str
    """What the number is: "upos qad: x-mixup − translate-train"."""
    values: Sequence[float] = ()
    """One per unit; empty where nothing was measured, and then ``about`` says what is missing."""
    above: float = -math.inf
    below: float = math.inf
    unit: str = "seed"
    scale: float = 100
    """Factor of numbers in text: 100 for points."""
    digits: int = 1
    comparison: Comparison | None = None
    """Set where the values are differences of scores; it has the error over examples too."""
    statistic: Statistic | Estimate | None = None
    """Set where the number is not the mean of the values, which then only count the units."""
    examples: int | None = None
    """Examples whose error is in the statistic; 0 where a run recorded none, None where none are meant."""
    note: str = ""
    """Additional findings that do not affect the verdict."""
    judged: bool = True
    """Whether it decides the verdict; others are printed with the claim, and are not corrected for."""
    ratio: bool = False
    """Whether the number is a ratio of two sizes, of which 2 and 1/2 are equally far from 1."""

    @property
    def estimate(self) -> Estimate | Statistic:
        """The number with its error."""
        return self.statistic or (
            self.comparison.estimate if self.comparison else crossed_estimate(self.values)
        )

    @property
    def p_value(self) -> float:
        """P of the bound that decides: the least significant bound kept, or the worst one violated."""
        estimate = self.estimate
        ends = [(self.above, estimate.mean > self.above), (self.below, estimate.mean < self.below)]
        p_values = [(estimate.p_value(end), inside) for end, inside in ends if math.isfinite(end)]
        return max([p for p, inside in p_values if not inside] or [p for p, _ in p_values])

    @property
    def text(self) -> str:
        """What the number is, and the number."""
        return f"{self.about} {self.written(self.estimate.mean)}"

    def written(self, value: float) -> str:
        """Format a number of this check."""
        return f"{self.scale * value:.{self.digits}f}".replace("-", "−")


def check_of(
    numbers: Comparison | Iterable[float] | None, label: str, bounds: Bounds, unit: str = "seed"
) -> Check:
    """Return the check of a comparison, of one number per unit, or of a missing measurement."""
    if isinstance(numbers, Comparison):
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

    Its test is Welch's; of one unit on a side it has no p. ``examples`` are their standard error and number.
    """
    estimate = independent_estimate([*ours], [*theirs])
    estimate = estimate.with_examples(*examples) if examples[1] else estimate
    return Check(
        about=label, values=(estimate.mean,) * estimate.units, unit=unit, statistic=estimate, **bounds
    )


def not_measured(label: str) -> Check:
    """Return the check of a missing measurement."""
    return Check(about=f"{label}: not measured")


def unjudged(check: Check) -> Check:
    """Return a check that is printed with its claim and decides nothing."""
    return replace(check, judged=False)


def with_note(checks: Sequence[Check], notes: Sequence[str]) -> list[Check]:
    """Add to the last check findings that do not affect the verdict."""
    return [*checks[:-1], replace(checks[-1], note="; ".join(notes))]


def check_correlation(
    label: str, x: "pd.Series[float]", y: "pd.Series[float]", bounds: Bounds, *, least: int = 1
) -> list[Check]:
    """Check Spearman's ρ over languages, by its exact p against 0 and by Fisher's z against other bounds.

    Empty for fewer than ``least`` languages.
    """
    from scipy.special import ndtri

    joined = pd.concat([x, y], axis=1).dropna()
    sides = [*joined.iloc[:, 0]], [*joined.iloc[:, 1]]
    if (n := len(joined)) < least:
        return []
    if n < FEWEST_LANGUAGES:
        return [
            Check(about=f"{label}: {n} languages, and fewer than {FEWEST_LANGUAGES} are too few, not tested")
        ]
    over = spearman(*sides)
    if math.isnan(over.rho):
        return [Check(about=f"{label}: the same for every language, not tested")]
    error = 1 / math.sqrt(n - 3)
    z = math.atanh(max(-ALMOST_ONE, min(ALMOST_ONE, over.rho)))

    def p_value(bound: float) -> float:
        return over.p_value if bound == 0 else math.erfc(abs(z - math.atanh(bound)) / error / math.sqrt(2))

    def smallest_seen(level: float) -> float:
        return math.tanh(error * float(ndtri(1 - level / 2) + ndtri(POWER)))

    low, high = bootstrap_interval(*sides)
    rho = Statistic(mean=over.rho, low=low, high=high, p_value=p_value, smallest_seen=smallest_seen)
    check = Check(about=label, values=sides[1], statistic=rho, unit="language", scale=1, digits=2)
    return [replace(check, **bounds)]


def check_std_ratio(label: str, above: pd.DataFrame, below: pd.DataFrame, least: float) -> Check:
    """Check the ratio of the standard deviations over the same seeds of two tables [seed column].

    Variances are averaged over columns; one column may stand against several. As both sides have the same
    seeds, the test is Pitman's and Morgan's (1939): the variances of x and ky are equal if and only if x + ky
    and x - ky are uncorrelated. Sums over columns take the place of single covariances, and since columns
    share their models the degrees of freedom are those of one column, which makes the test conservative.
    """
    if len(seeds := above.dropna().index.intersection(below.dropna().index)) < FEWEST_SEEDS:
        return Check(about=f"{label}: fewer than {FEWEST_SEEDS} seeds, not measured")
    x, y = (side.loc[seeds].to_numpy(dtype=float) for side in (above, below))
    x, y = x - x.mean(axis=0), y - y.mean(axis=0)
    large, small = (float((side**2).mean(axis=1).sum()) / (len(seeds) - 1) for side in (x, y))
    shared = float((x * y).mean(axis=1).sum()) / (len(seeds) - 1)
    stds = f"{100 * math.sqrt(large):.1f} / {100 * math.sqrt(small):.1f}"
    if small == 0:
        return Check(
            about=f"{label} ({stds}): every seed scores the same, a ratio needs a spread, not tested"
        )
    n, ratio = len(seeds) - 2, large / small
    free = max(0.0, 1 - shared**2 / (large * small)) if large else 1.0

    def p_value(bound: float) -> float:
        scaled = bound**2 * small
        spread = (large + scaled) ** 2 - (2 * bound * shared) ** 2
        r = (large - scaled) / math.sqrt(spread) if spread > 0 else 0.0
        return t_p_value(r * math.sqrt(n / (1 - r * r)), n) if abs(r) < 1 else 0.0

    def factor(t: float) -> float:
        """Return by how much a ratio of variances differs from the one that a t of its test rejects."""
        k = 1 + 2 * free * t**2 / n
        return k + math.sqrt(k**2 - 1)

    width = factor(t_quantile(1 - LEVEL / 2, n))
    statistic = Statistic(
        mean=math.sqrt(ratio),
        low=math.sqrt(ratio / width),
        high=math.sqrt(ratio * width),
        p_value=p_value,
        smallest_seen=lambda level: (
            least * math.sqrt(factor(t_quantile(1 - level / 2, n) + t_quantile(POWER, n)))
        ),
    )
    words = f"{label} ({stds}, Pitman–Morgan test with {n} {'degree' if n == 1 else 'degrees'} of freedom)"
    values = (ratio,) * len(seeds)
    return Check(about=words, values=values, statistic=statistic, above=least, scale=1, ratio=True)
