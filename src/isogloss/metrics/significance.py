"""Is a difference between two systems more than chance? Paired tests, and Holm's correction for many.

Paper: "The Impact of Cross-Lingual Adjustment …", Section 5: values averaged over seeds and a paired t-test
for a mean over examples; for F1, a permutation test on the predictions of all seeds put together.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from isogloss.core.errors import InputError
from isogloss.metrics.paired import Array, Pair, ratio

ROUNDS = 1000
"""Rounds of the permutation test (the paper's)."""

LARGEST_EXACT = 12
"""Up to this many sentences that differ the permutation test goes through all 2^12 = 4096 arrangements."""

TIE = 1e-12
"""Differences nearer than this count as equal, so that rounding does not split ties."""

TOGETHER = 128
"""Rounds computed at a time: some 10 MB for 10,000 examples."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """A two-sided test: its name, what it looks at, and the chance of no less if there were no difference."""

    name: str
    statistic: float
    p_value: float


def paired_test(pair: Pair, *, rounds: int = ROUNDS, seed: int = 0) -> Verdict:
    """Run the test that fits the measure.

    For a mean over examples the paired t-test on values averaged over seeds, or McNemar's where one seed was
    right or wrong; for any other measure the permutation test.
    """
    if not pair.is_mean:
        return permutation_test(pair, rounds=rounds, seed=seed)
    if pair.seeds == 1 and pair.system.is_right_or_wrong and pair.baseline.is_right_or_wrong:
        return mcnemar_test(pair.system.part[0], pair.baseline.part[0])
    return paired_t_test(pair.system.part.mean(axis=0), pair.baseline.part.mean(axis=0))


def paired_t_test(system: npt.ArrayLike, baseline: npt.ArrayLike) -> Verdict:
    """Test whether the mean difference of paired values [example] is 0.

    One example proves nothing (p = 1); where all differ by the same, that is no chance (p = 0).
    """
    x, y = _two(system, baseline)
    values = x - y
    mean, n = float(values.mean()), len(values)
    error = float(values.std(ddof=1)) / math.sqrt(n) if n > 1 else math.nan
    if n > 1 and (np.abs(values - values[0]) <= TIE).all():
        error = 0.0  # Equal values have no spread; what is left is rounding.
    if abs(mean) <= TIE or n == 1:
        return Verdict("paired t", 0.0, 1.0)
    if error == 0:
        return Verdict("paired t", math.copysign(math.inf, mean), 0.0)
    from scipy.special import stdtr

    return Verdict("paired t", mean / error, float(2 * stdtr(n - 1, -abs(mean / error))))


def mcnemar_test(system: npt.ArrayLike, baseline: npt.ArrayLike) -> Verdict:
    """Test whether one of two systems is right more often, exactly; values are 0 or 1 [example].

    Only examples that one got right and the other wrong say anything; the statistic is how many more of them
    the system got right.
    """
    x, y = _two(system, baseline)
    if not (np.isin(x, (0, 1)).all() and np.isin(y, (0, 1)).all()):
        raise InputError("McNemar's test: values other than 0 and 1. Take the paired t-test for these.")
    gained, lost = int((x > y).sum()), int((x < y).sum())
    from scipy.special import bdtr

    tail = float(bdtr(min(gained, lost), gained + lost, 0.5)) if gained != lost else 0.5
    return Verdict("McNemar", float(gained - lost), min(1.0, 2 * tail))


def permutation_test(
    pair: Pair, *, rounds: int = ROUNDS, seed: int = 0, seeds_apart: bool = False
) -> Verdict:
    """Test whether it matters which of the two systems a sentence's predictions came from.

    The statistic is the difference of the measure over the predictions of all seeds put together. In each
    round the two systems swap their predictions of some sentences, for all seeds at once: the seeds of one
    sentence are no independent witnesses, and a test that swaps them one by one (``seeds_apart``, as the
    paper puts it) finds differences far too often. p is (as large or larger + 1) / (rounds + 1), or, where
    few sentences differ, the exact share of all arrangements.
    """
    if rounds < 1:
        raise InputError(f"permutation test: {rounds} rounds. Use 1 or more; {ROUNDS} is usual.")
    ours, theirs = (_sums(side.part, side.whole, seeds_apart) for side in (pair.system, pair.baseline))
    change = theirs - ours
    moving = change[(change != 0).any(axis=1)]  # Where a swap changes nothing it need not be tried.
    before = np.concatenate([ours.sum(axis=0), theirs.sum(axis=0)])
    observed = float(_difference(before[None])[0])
    exact = len(moving) <= LARGEST_EXACT
    swaps = _every_swap(len(moving)) if exact else _random_swaps(len(moving), rounds, seed)
    as_large = 0
    for some in (swaps[first : first + TOGETHER] for first in range(0, len(swaps), TOGETHER)):
        moved = some.astype(np.float64) @ moving
        found = _difference(before + np.concatenate([moved, -moved], axis=1))
        as_large += int((np.abs(found) >= abs(observed) - TIE).sum())
    p_value = as_large / len(swaps) if exact else (as_large + 1) / (rounds + 1)
    return Verdict("permutation", observed, p_value)


def holm(p_values: Sequence[float]) -> list[float]:
    """Return p-values corrected for their number (Holm 1979): the chance of any false alarm stays as said."""
    values = np.asarray(p_values, dtype=np.float64)
    if not ((values >= 0) & (values <= 1)).all():
        raise InputError(f"holm: {list(p_values)} are not all p-values. Give numbers from 0 to 1.")
    order = np.argsort(values, kind="stable")
    steps = np.minimum(1.0, values[order] * np.arange(len(values), 0, -1))
    corrected = np.empty_like(values)
    corrected[order] = np.maximum.accumulate(steps)
    return [float(value) for value in corrected]


def _two(system: npt.ArrayLike, baseline: npt.ArrayLike) -> tuple[Array, Array]:
    x, y = np.asarray(system, dtype=np.float64), np.asarray(baseline, dtype=np.float64)
    if x.ndim != 1 or x.shape != y.shape or not len(x):
        raise InputError(
            f"paired test: {x.shape} and {y.shape} values. Give two equally long lists of 1 or more."
        )
    if not (np.isfinite(x).all() and np.isfinite(y).all()):
        raise InputError("paired test: a value is no finite number. Leave such examples out on both sides.")
    return x, y


def _sums(part: Array, whole: Array, seeds_apart: bool) -> Array:
    """Return part and whole [unit 2]; a unit is a sentence, or a sentence with one seed."""
    if seeds_apart:
        return np.stack([part.ravel(), whole.ravel()], axis=1)
    return np.stack([part.sum(axis=0), whole.sum(axis=0)], axis=1)


def _difference(sums: Array) -> Array:
    """Return the difference of the measures from the sums [round 4]: ours, theirs; part, whole."""
    return ratio(sums[:, 0], sums[:, 1]) - ratio(sums[:, 2], sums[:, 3])


def _every_swap(n: int) -> npt.NDArray[np.uint8]:
    numbers = np.arange(2**n, dtype=np.uint32)
    return ((numbers[:, None] >> np.arange(n, dtype=np.uint32)) & 1).astype(np.uint8)


@lru_cache(maxsize=2)
def _random_swaps(n: int, rounds: int, seed: int) -> npt.NDArray[np.uint8]:
    """Draw which units swap in each round; the same for every pair of this length."""
    bits = np.random.Generator(np.random.PCG64(seed)).bytes(rounds * ((n + 7) // 8))
    packed = np.frombuffer(bits, dtype=np.uint8).reshape(rounds, -1)
    return np.unpackbits(packed, axis=1, count=n)
