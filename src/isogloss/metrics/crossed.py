"""Would other examples AND other seeds show it? One test that crosses both: min F′.

Clark (1973), "The language-as-fixed-effect fallacy": where every seed saw every example, a mean difference
has an error from the choice of seeds and one from that of examples. Their squares added are the error of
both, a little too large, since what neither explains is counted twice; so the test is on the safe side. Its
degrees of freedom are Satterthwaite's (1946): few seeds keep few of them, however many examples there are. A
bootstrap that draws examples and seeds anew calls chance a finding far too often with three seeds.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from isogloss.metrics.spread import spread

LEVEL = 0.05
"""Chance of calling nothing something."""

POWER = 0.8
"""Chance of seeing the smallest effect that is called seen."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean over units of replication with its standard errors; nan where one unit has none."""

    mean: float
    unit_error: float
    """Of the choice of units alone."""
    error: float
    """Of units and examples."""
    freedom: float
    """Degrees of freedom of that error; those of the other are ``units`` - 1."""
    units: int

    @property
    def low(self) -> float:
        """Lower end of the 95 % interval."""
        return self.mean - self._half

    @property
    def high(self) -> float:
        """Upper end of the 95 % interval."""
        return self.mean + self._half

    @property
    def smallest_seen(self) -> float:
        """The least effect seen with 80 % power: a multiple of the error (Bloom 1995)."""
        return max((_quantile(1 - LEVEL / 2, n) + _quantile(POWER, n)) * error for error, n in self._errors)

    def p_value(self, bound: float = 0.0) -> float:
        """Return the two-sided p of the mean being this bound: of both tests the larger; nan for one unit.

        With few units the crossed test alone finds differences too often where their errors happen to look
        small (8 % of the time instead of 5 with three); both together do not.
        """
        from scipy.special import stdtr

        if self.units < 2:
            return math.nan
        if self.mean == bound:
            return 1.0
        return max(
            float(2 * stdtr(n, -abs(self.mean - bound) / error)) if error else 0.0
            for error, n in self._errors
        )

    @property
    def _errors(self) -> tuple[tuple[float, float], ...]:
        return (self.unit_error, self.units - 1), (self.error, self.freedom)

    @property
    def _half(self) -> float:
        if self.units < 2:
            return math.nan
        return max(_quantile(1 - LEVEL / 2, n) * error for error, n in self._errors)


def crossed(values: Sequence[float], *, example_error: float = 0.0, examples: int = 0) -> Estimate:
    """Estimate a mean from its value with each unit (seed), and the error that the examples bring.

    ``example_error`` is the standard error over ``examples`` of the mean over units; 0 where examples are no
    sample or are not known: then it is the t-test over units.
    """
    over = spread(values)
    if over.n < 2:
        return Estimate(over.mean, math.nan, math.nan, math.nan, over.n)
    of_units, of_examples = over.variance / over.n, example_error**2
    both = of_units + of_examples
    parts = of_units**2 / (over.n - 1) + (of_examples**2 / (examples - 1) if examples > 1 else 0.0)
    freedom = both**2 / parts if parts else over.n - 1
    return Estimate(over.mean, math.sqrt(of_units), math.sqrt(both), freedom, over.n)


def _quantile(share: float, freedom: float) -> float:
    from scipy.special import stdtrit

    return float(stdtrit(freedom, share))
