"""How many seeds does it take to see a difference? The power of a paired t-test over seeds.

Cohen (1988), Chapter 2, with the noncentral t distribution. This is about seeds: whether training again
would show the same sign. Tests over examples ask another thing, whether other examples would.
"""

import math

from isogloss.core.errors import InputError

POWER = 0.8
"""Chance of seeing a difference that is there (Cohen's convention)."""

LEVEL = 0.05
"""Chance of seeing one that is not."""

MOST_SEEDS = 10_000
"""Beyond this many the answer is only that it is hopeless."""


def power_of(difference: float, std: float, seeds: int, *, level: float = LEVEL) -> float:
    """Return the chance that a two-sided paired t-test over ``seeds`` sees a difference.

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
        return 1.0 if difference else level
    from scipy.special import nctdtr, stdtrit

    freedom = seeds - 1
    shift = abs(difference) / std * math.sqrt(seeds)
    needed = float(stdtrit(freedom, 1 - level / 2))
    below, far_side = float(nctdtr(freedom, shift, needed)), float(nctdtr(freedom, shift, -needed))
    if math.isnan(below):  # Far out the series gives up, where the answer is 1 in all digits.
        return 1.0
    return 1 - below + (0.0 if math.isnan(far_side) else far_side)


def seeds_needed(difference: float, std: float, *, power: float = POWER, level: float = LEVEL) -> int | None:
    """Return the fewest seeds that see a difference with this power; None where ``MOST_SEEDS`` do not."""
    if difference == 0:
        raise InputError("power: no number of seeds shows a difference of 0. Ask for another.")
    low, high = 1, 2
    while power_of(difference, std, high, level=level) < power:
        low, high = high, 2 * high
        if low >= MOST_SEEDS:
            return None
    while high - low > 1:
        middle = (low + high) // 2
        seen = power_of(difference, std, middle, level=level) >= power
        low, high = (low, middle) if seen else (middle, high)
    return high


def smallest_seen(std: float, seeds: int, *, power: float = POWER, level: float = LEVEL) -> float:
    """Return the least difference that so many seeds see with this power; infinite for one seed."""
    if seeds < 2:
        return math.inf
    if std == 0:
        return 0.0
    low, high = 0.0, std
    while power_of(high, std, seeds, level=level) < power:
        low, high = high, 2 * high
    for _ in range(50):
        middle = (low + high) / 2
        seen = power_of(middle, std, seeds, level=level) >= power
        low, high = (low, middle) if seen else (middle, high)
    return high
