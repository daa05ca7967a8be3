"""Checks: the numbers of a claim, each with its interval, units and the range that it must lie in."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from isogloss.core.languages import UNKNOWN, is_built_in, language_facts
from isogloss.data.languages import LANGUAGES
from isogloss.metrics.estimates import (
    POWER,
    Estimate,
    crossed_estimate,
    independent_estimate,
)
from isogloss.metrics.ranks import INTERVAL_Z, spearman_within, trend_p_value
from isogloss.metrics.spreads import logits, spread_ratio
from isogloss.reports.comparison import FEWEST, Comparison

FEWEST_SEEDS = 3
"""Fewer say nothing of a spread."""

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
"""Built-in languages are one group where they share so many content words with the source, or fewer."""

RATIO_LOST = 1.4
"""By how many half-widths of an interval an effect must differ to be seen in 80 % of studies."""

SPLITS = ("test", "dev")
"""Splits in the order in which they are preferred."""


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
    printed: str = ""
    """The words of the paper, where it prints no number and the bounds are this project's; else empty."""
    statement: str = ""
    """The statement of the claim that it checks, the same for all tasks, corpora and encoders."""
    compared: str = ""
    """What is compared, the same on each split, by each metric and in each layer: one of these decides."""
    preference: tuple[float, ...] = ()
    """The least decides of the checks of one comparison that have enough units."""

    def __post_init__(self) -> None:
        """Refuse a number that is to decide without saying which range it is compared with."""
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
        p_values = [(estimate.p_value(end), inside) for end, inside in ends if math.isfinite(end)]
        outside = [p for p, inside in p_values if not inside]
        return max(outside or [p for p, _ in p_values], default=math.nan)

    @property
    def inside(self) -> bool:
        """Whether the number lies in its range."""
        return self.above < self.estimate.mean < self.below

    @property
    def typical(self) -> bool:
        """Whether the median over units agrees with the mean, which a single run that fails moves."""
        if isinstance(self.statistic, Statistic):
            return True
        return (self.above < median(self.values) < self.below) == self.inside

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


def check_trend(
    numbers: Iterable[float] | None, conditions: int, label: str, bounds: Bounds, unit: str = "seed"
) -> Check:
    """Check rank correlations with so many ordered conditions, one per unit.

    Where all are 1, or all -1, they have no spread, and their p is that of Page's trend test.
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


def related_languages(code: str) -> str:
    """Return the group of languages that one is related to: its family, "" for one of unknown family.

    Built-in languages are grouped by how many words they share with the source of their world.
    """
    if is_built_in(code):
        return "near" if LANGUAGES[code].shared >= SHARED_WORDS else "far"
    family = language_facts(code).family
    return "" if family == UNKNOWN else family


def check_correlation(
    label: str, x: "pd.Series[float]", y: "pd.Series[float]", bounds: Bounds, *, least: int = 1
) -> list[Check]:
    """Check Spearman's ρ over languages: within groups of related ones, or over such groups.

    Languages of one family are no independent draws. Within groups where these have FEWEST_LANGUAGES
    languages or more, else over the means of so many groups. Empty for fewer than ``least`` languages.
    """
    joined = pd.concat([x, y], axis=1).dropna()
    if (n := len(joined)) < least:
        return []
    if n < FEWEST_LANGUAGES:
        return [
            Check(about=f"{label}: {n} languages, and fewer than {FEWEST_LANGUAGES} are too few, not tested")
        ]
    sides = [joined.iloc[:, side] for side in range(2)]
    groups = pd.Series([related_languages(str(code)) for code in joined.index], index=joined.index)
    sizes = groups.map(groups.value_counts())
    number = groups.nunique()
    if (sizes > 1).sum() >= FEWEST_LANGUAGES:
        several = f", within {groups[sizes > 1].nunique()} groups of related languages"
        words = f"{label}{several if number > 1 else ''}"
        return [_correlation(words, sides[0], sides[1], groups, bounds, "language")]
    if number >= FEWEST_LANGUAGES:
        means = [side.groupby(groups).mean() for side in sides]
        ungrouped = pd.Series("", index=means[0].index)
        return [_correlation(f"{label}, over families", means[0], means[1], ungrouped, bounds, "family")]
    return [
        Check(
            about=f"{label}: {n} languages of {number} groups of related ones, and fewer than "
            f"{FEWEST_LANGUAGES} groups are too few, not tested"
        )
    ]


def _correlation(
    label: str,
    x: "pd.Series[float]",
    y: "pd.Series[float]",
    groups: "pd.Series[str]",
    bounds: Bounds,
    unit: str,
) -> Check:
    """Check a correlation within groups, by Student's t against 0 and by Fisher's z against other bounds."""
    from scipy.special import ndtri

    over = spearman_within([*x], [*y], [*groups])
    if math.isnan(over.rho):
        return Check(about=f"{label}: the same for every language, not tested")
    error = over.error
    z = math.atanh(max(-ALMOST_ONE, min(ALMOST_ONE, over.rho)))

    def p_value(bound: float) -> float:
        return over.p_value if bound == 0 else math.erfc(abs(z - math.atanh(bound)) / error / math.sqrt(2))

    def smallest_seen(level: float) -> float:
        return math.tanh(error * float(ndtri(1 - level / 2) + ndtri(POWER)))

    low, high = (math.tanh(z + side * INTERVAL_Z * error) for side in (-1, 1))
    rho = Statistic(mean=over.rho, low=low, high=high, p_value=p_value, smallest_seen=smallest_seen)
    values = [0.0] * over.items
    check = Check(about=label, values=values, statistic=rho, unit=unit, scale=1, digits=2)
    return replace(check, **bounds)


def check_spreads(
    label: str, above: pd.DataFrame, below: pd.DataFrame, least: float, printed: str = ""
) -> list[Check]:
    """Check that one number varies more over the same seeds than another, by tables [seed column].

    In points by ``least``, and on the logit scale at all: near 100 % scores have little room to vary, which
    makes any other score look unsteady.
    """
    if len(seeds := above.dropna().index.intersection(below.dropna().index)) < FEWEST_SEEDS:
        return [Check(about=f"{label}: fewer than {FEWEST_SEEDS} seeds, not measured", statement="points")]
    tables = [side.loc[seeds].to_numpy(dtype=float) for side in (above, below)]
    return [
        _spread_check(label, "points", tables, least, printed),
        _spread_check(label, "logits", [logits(side) for side in tables], 1.0),
    ]


def _spread_check(
    label: str, scale: str, tables: Sequence[npt.NDArray[np.float64]], least: float, printed: str = ""
) -> Check:
    """Check that the first of two tables of scores on a scale varies more over seeds than the second."""
    words = f"{label}, in {scale}"
    if not all(np.isfinite(table).all() for table in tables):
        return Check(about=f"{words}: a score of 0 or 100 % has no logit, not tested", statement=scale)
    over = spread_ratio(*tables)
    if not math.isfinite(over.ratio):
        same = "every seed scores the same, a ratio needs a spread, not tested"
        return Check(about=f"{words}: {same}", statement=scale)
    low, high = over.interval()
    half = max(high / over.ratio if over.ratio else math.inf, 1.0)
    statistic = Statistic(
        mean=over.ratio,
        low=low,
        high=high,
        p_value=over.p_value,
        smallest_seen=lambda _: least * half**RATIO_LOST,
    )
    spreads = " / ".join(f"{(100 if scale == 'points' else 1) * side.mean():.2g}" for side in over.distances)
    return Check(
        about=f"{words} ({spreads})",
        values=(over.ratio,) * len(over.distances[0]),
        statistic=statistic,
        above=least,
        scale=1,
        ratio=True,
        printed=printed,
        statement=scale,
    )


def compared(
    checks: Iterable[Check],
    of: str,
    *,
    statement: str = "",
    split: str = "",
    preference: Sequence[float] = (),
) -> list[Check]:
    """Say of checks what they compare, and which one is preferred where it was measured in several ways.

    ``of`` is equal for each split, metric, layer and distance; without a statement they keep their own.
    """
    order = SPLITS.index(split) if split in SPLITS else len(SPLITS)
    return [
        replace(
            check,
            compared=of,
            statement=statement or check.statement,
            preference=(order, *preference),
        )
        for check in checks
    ]


def deciding_checks(checks: Sequence[Check]) -> list[Check]:
    """Return the checks that decide: what else was measured of other systems changes no verdict.

    Of the checks of one comparison the preferred one of those with FEWEST units or more, or with any. A
    comparison with fewer units, or of which a part was not measured, decides nothing where the same statement
    was checked by another comparison.
    """
    by_comparison: dict[tuple[str, str], list[Check]] = {}
    for check in checks:
        by_comparison.setdefault((check.statement, check.compared), []).append(check)
    chosen = []
    for (_, of), several in by_comparison.items():
        best = min((_rank(check) for check in several), default=None)
        chosen += [check for check in several if not of or _rank(check) == best]
    most = {check.statement: 0 for check in chosen}
    for check in chosen:
        if check.judged:
            most[check.statement] = max(most[check.statement], enough(check))
    return [
        unjudged(check) if check.statement and enough(check) < most[check.statement] else check
        for check in chosen
    ]


def enough(check: Check) -> int:
    """Return 0 for a check without units, 1 for one of a pilot, and 2 for one with FEWEST units or more."""
    return (len(check.values) > 0) + (len(check.values) >= FEWEST)


def _rank(check: Check) -> tuple[float, ...]:
    return -enough(check), *check.preference
