"""Means over repeated runs and their uncertainty, over seeds only, or over seeds and examples (min F′).

Clark (1973), "The language-as-fixed-effect fallacy": where every seed saw every example, a mean difference
has an error from the choice of seeds and an error from the choice of examples. The sum of their squares
estimates the total variance. It is slightly too large, because residual variance is counted twice, so the
test is conservative. Its degrees of freedom are Satterthwaite's (1946): few seeds keep few of them, however
many examples there are. A bootstrap that resamples examples and seeds rejects a true null far too often with
three seeds.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

from isogloss.core.errors import InputError

LEVEL = 0.05
"""Probability of a false alarm. Intervals cover 1 - LEVEL."""

POWER = 0.8
"""Probability of detecting the smallest detectable effect (Cohen's convention)."""

MAX_UNITS = 10_000
"""The search for a number of units ends here."""


@dataclass(frozen=True, slots=True)
class MeanStd:
    """Mean, unbiased standard deviation and 95 % interval of the mean of ``n`` numbers.

    All but the mean are nan for n = 1.
    """

    mean: float
    std: float
    low: float
    high: float
    n: int


def mean_std(values: Sequence[float]) -> MeanStd:
    """Return the mean, the unbiased standard deviation and Student's t interval of the mean."""
    n = len(values)
    if n == 0:
        raise InputError("mean_std: no values. Give at least one; two or more for a standard deviation.")
    mean = math.fsum(values) / n
    if n == 1:
        return MeanStd(mean, math.nan, math.nan, math.nan, 1)
    std = math.sqrt(math.fsum((value - mean) ** 2 for value in values) / (n - 1))
    margin = t_quantile(1 - LEVEL / 2, n - 1) * std / math.sqrt(n)
    return MeanStd(mean, std, mean - margin, mean + margin, n)


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean over units of replication with its standard errors. nan for a single unit."""

    mean: float
    unit_error: float
    """Standard error over units, without examples."""
    error: float
    """Standard error over units and examples."""
    freedom: float
    """Degrees of freedom of ``error``."""
    units: int
    """Number of units. Two independent groups have the smaller number."""
    unit_freedom: float
    """Degrees of freedom of ``unit_error``."""

    @property
    def low(self) -> float:
        """Lower end of the 95 % interval."""
        return self.mean - self._half

    @property
    def high(self) -> float:
        """Upper end of the 95 % interval."""
        return self.mean + self._half

    def smallest_seen(self, level: float = LEVEL) -> float:
        """Return the smallest effect that a test at a level detects with 80 % power (Bloom 1995)."""
        return max((t_quantile(1 - level / 2, n) + t_quantile(POWER, n)) * error for error, n in self._errors)

    def units_to_detect(self, effect: float, level: float = LEVEL) -> int | None:
        """Return the fewest units with which a test at a level detects an effect with 80 % power.

        More units shrink the error over units and leave that over examples as it is: None where MAX_UNITS are
        too few. Units without any spread are tested by their signs.
        """
        if self.units < 2 or effect == 0:
            return None
        if not self.error:
            return max(2, math.ceil(1 - math.log2(level)))
        unit_variance = self.unit_error**2 * self.units
        example_error = math.sqrt(max(0.0, self.error**2 - self.unit_error**2))
        freedom = self.unit_freedom / (self.units - 1)

        def detects(units: int) -> bool:
            estimate = _estimate(
                0.0, unit_variance / units, freedom * (units - 1), units, example_error, MAX_UNITS
            )
            return estimate.smallest_seen(level) <= abs(effect)

        if not detects(MAX_UNITS):
            return None
        low = 1
        high = MAX_UNITS
        while high - low > 1:
            midpoint = (low + high) // 2
            low, high = (low, midpoint) if detects(midpoint) else (midpoint, high)
        return high

    def p_value(self, bound: float = 0.0) -> float:
        """Return the two-sided p for the mean being this bound: the larger of both tests. nan for one unit.

        With few units the crossed test rejects too often if their errors happen to be small (8 % instead of 5
        % with three units). Requiring both tests corrects this.
        """
        if self.units < 2:
            return math.nan
        return max(self._p(bound, error, freedom) for error, freedom in self._errors)

    def p_units(self, bound: float = 0.0) -> float:
        """Return the two-sided p for the mean being this bound, by the test over units without examples."""
        if self.units < 2:
            return math.nan
        return self._p(bound, self.unit_error, self.unit_freedom)

    def _p(self, bound: float, error: float, freedom: float) -> float:
        """Return the two-sided p by Student's t, or by the sign test for equal units, which have no spread.

        Rank correlations of few points, and differences on few examples, are equal by chance in few seeds.
        """
        if self.mean == bound:
            return 1.0
        return t_p_value((self.mean - bound) / error, freedom) if error else 2.0 ** (1 - self.units)

    def with_examples(self, error: float, examples: int) -> "Estimate":
        """Return the estimate with the standard error over a number of examples added."""
        return _estimate(self.mean, self.unit_error**2, self.unit_freedom, self.units, error, examples)

    @property
    def _errors(self) -> tuple[tuple[float, float], ...]:
        return (self.unit_error, self.unit_freedom), (self.error, self.freedom)

    @property
    def _half(self) -> float:
        if self.units < 2:
            return math.nan
        return max(t_quantile(1 - LEVEL / 2, n) * error for error, n in self._errors)


def crossed_estimate(values: Sequence[float], *, example_error: float = 0.0, examples: int = 0) -> Estimate:
    """Estimate a mean from its value with each unit (seed) and the error over examples.

    ``example_error`` is the standard error over ``examples`` of the mean over units. 0, for unknown examples
    or examples that are not a sample, gives the t-test over units.
    """
    statistics = mean_std(values)
    if statistics.n < 2:
        return Estimate(statistics.mean, math.nan, math.nan, math.nan, statistics.n, math.nan)
    return _estimate(
        statistics.mean,
        statistics.std**2 / statistics.n,
        statistics.n - 1,
        statistics.n,
        example_error,
        examples,
    )


def independent_estimate(ours: Sequence[float], theirs: Sequence[float]) -> Estimate:
    """Estimate the difference of two means over independent units (Welch 1947).

    Encoders that were pretrained with equal seeds share nothing but a number: pairing them would cost half of
    the degrees of freedom for nothing.
    """
    sides = mean_std(ours), mean_std(theirs)
    mean, units = sides[0].mean - sides[1].mean, min(side.n for side in sides)
    if units < 2:
        return Estimate(mean, math.nan, math.nan, math.nan, units, math.nan)
    variances = [side.std**2 / side.n for side in sides]
    total = math.fsum(variances)
    parts = math.fsum(v**2 / (side.n - 1) for v, side in zip(variances, sides, strict=True))
    freedom = total**2 / parts if parts else sum(side.n for side in sides) - 2
    return _estimate(mean, total, freedom, units)


@dataclass(frozen=True, slots=True)
class RandomEffects:
    """The mean of an effect that differs between studies or tasks."""

    mean: float
    low: float
    high: float
    between: float
    """Standard deviation of the effect between studies."""
    studies: int


def random_effects(means: Sequence[float], errors: Sequence[float]) -> RandomEffects:
    """Estimate the mean effect over studies from the effect of each and its standard error.

    Variance between studies is estimated by DerSimonian and Laird (1986). The 95 % interval is by Hartung and
    Knapp (2001), with Student's t (number of studies minus 1 degrees of freedom), and at least as wide as
    without the correction.
    """
    if len(means) != len(errors) or len(means) < 2 or not all(error > 0 for error in errors):
        raise InputError(
            f"random_effects: {len(means)} means and {len(errors)} standard errors. Give as many of each, "
            f"two or more, with errors above 0."
        )
    k = len(means)
    weights = [1 / error**2 for error in errors]
    total = math.fsum(weights)
    fixed_mean = math.fsum(w * mean for w, mean in zip(weights, means, strict=True)) / total
    spread = math.fsum(w * (mean - fixed_mean) ** 2 for w, mean in zip(weights, means, strict=True))
    scale = total - math.fsum(w**2 for w in weights) / total
    study_variance = max(0.0, (spread - (k - 1)) / scale)
    weights = [1 / (error**2 + study_variance) for error in errors]
    total = math.fsum(weights)
    mean = math.fsum(w * value for w, value in zip(weights, means, strict=True)) / total
    residual_spread = math.fsum(w * (value - mean) ** 2 for w, value in zip(weights, means, strict=True)) / (
        k - 1
    )
    margin = t_quantile(1 - LEVEL / 2, k - 1) * math.sqrt(max(1.0, residual_spread) / total)
    return RandomEffects(mean, mean - margin, mean + margin, math.sqrt(study_variance), k)


def _estimate(
    mean: float,
    unit_variance: float,
    unit_freedom: float,
    units: int,
    example_error: float = 0.0,
    examples: int = 0,
) -> Estimate:
    """Add the variance over examples to the variance over units, with Satterthwaite's degrees of freedom."""
    if units < 2:
        return Estimate(mean, math.nan, math.nan, math.nan, units, math.nan)
    example_variance = example_error**2
    total = unit_variance + example_variance
    parts = unit_variance**2 / unit_freedom + (example_variance**2 / (examples - 1) if examples > 1 else 0.0)
    freedom = total**2 / parts if parts else unit_freedom
    return Estimate(mean, math.sqrt(unit_variance), math.sqrt(total), freedom, units, unit_freedom)


def t_p_value(t: float, freedom: float) -> float:
    """Return the two-sided p-value of Student's t."""
    from scipy.special import stdtr

    return float(2 * stdtr(freedom, -abs(t)))


@cache
def t_quantile(share: float, freedom: float) -> float:
    """Return a quantile of Student's t.

    It is cached, because a report needs few different quantiles often.
    """
    from scipy.special import stdtrit

    return float(stdtrit(freedom, share))
