"""Power of a paired t-test over seeds: how many seeds does it take to detect a difference?

Cohen (1988), Chapter 2, with the noncentral t distribution. This concerns seeds, whether retraining would
show the same sign; tests over examples concern whether other examples would.
"""

import math

from isogloss.core.errors import InputError
from isogloss.metrics.estimates import LEVEL, POWER, t_quantile

MAX_SEEDS = 10_000
"""The search for a number of seeds ends here."""


def power_of(difference: float, std: float, seeds: int) -> float:
    """Return the probability that a two-sided paired t-test over ``seeds`` detects a difference.

    ``std`` is the standard deviation over seeds of the paired differences.
    """
    if not (math.isfinite(difference) and math.isfinite(std) and std >= 0 and seeds >= 1):
        raise InputError(
            f"power: difference {difference}, standard deviation {std}, {seeds} seeds. Give finite numbers, "
            f"none but the difference negative, and at least one seed."
        )
    if seeds == 1:
        return 0.0
    if std == 0:
        return 1.0 if difference else LEVEL
    from scipy.special import nctdtr

    freedom = seeds - 1
    shift = abs(difference) / std * math.sqrt(seeds)
    critical = t_quantile(1 - LEVEL / 2, freedom)
    below, far_side = float(nctdtr(freedom, shift, critical)), float(nctdtr(freedom, shift, -critical))
    if math.isnan(below):  # Far out the series fails, where the answer is 1 in all digits.
        return 1.0
    return 1 - below + (0.0 if math.isnan(far_side) else far_side)


def seeds_needed(difference: float, std: float) -> int | None:
    """Return the fewest seeds that detect a difference with 80 % power; None where ``MAX_SEEDS`` do not."""
    if difference == 0:
        raise InputError("power: no number of seeds shows a difference of 0. Ask for another.")
    low, high = 1, 2
    while power_of(difference, std, high) < POWER:
        low, high = high, 2 * high
        if low >= MAX_SEEDS:
            return None
    while high - low > 1:
        middle = (low + high) // 2
        seen = power_of(difference, std, middle) >= POWER
        low, high = (low, middle) if seen else (middle, high)
    return high if high <= MAX_SEEDS else None
