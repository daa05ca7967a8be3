"""Paired tests of the difference between two systems, over examples or languages, and Holm's correction.

Paper: "The Impact of Cross-Lingual Adjustment …", Section 5: values averaged over seeds and a paired t-test
for a mean over examples; for F1, a permutation test on the pooled predictions of all seeds.

Values are [seed example]: a system's measure with one seed is the sum of its parts over the sum of its
wholes (``core.rows.models``). A mean over examples has wholes of 1.

Power: how many seeds does a paired t-test over seeds take to detect a difference? Cohen (1988), Chapter 2,
with the noncentral t distribution. Tests over seeds concern whether retraining would show the same sign,
tests over examples whether other examples would.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from isogloss.core.errors import InputError
from isogloss.metrics.estimates import LEVEL, MAX_UNITS, POWER, t_p_value, t_quantile

ROUNDS = 1000
"""Rounds of the permutation test (the paper's)."""

MAX_ENUMERATED_SENTENCES = 12
"""With at most this many differing sentences the permutation test enumerates all 2^12 = 4096 swaps."""

DIFFERENCE_TOLERANCE = 1e-12
"""Differences closer than this count as equal, so that rounding does not split ties."""

ROUNDS_PER_CHUNK = 128
"""Rounds computed at a time: some 10 MB for 10,000 examples."""

Array = npt.NDArray[np.float64]

Differences = Mapping[str, tuple[Sequence[str], Array]]
"""By language: ids of examples, and what each adds to the difference (``per_example``)."""


@dataclass(frozen=True, slots=True)
class SignificanceTest:
    """A two-sided test: its name, statistic and p-value."""

    name: str
    statistic: float
    p_value: float


@dataclass(frozen=True)
class System:
    """Contributions of a system's predictions to a measure: ``part`` and ``whole`` are [seed example]."""

    part: Array
    whole: Array

    @property
    def is_mean(self) -> bool:
        """Whether the measure is a mean over examples."""
        return bool((self.whole == 1).all())

    @property
    def is_binary(self) -> bool:
        """Whether each example counts 0 or 1."""
        return self.is_mean and bool(np.isin(self.part, (0, 1)).all())

    def scores(self) -> Array:
        """Return the measure with each seed [seed]."""
        return _ratio(self.part.sum(axis=1), self.whole.sum(axis=1))


@dataclass(frozen=True)
class SystemPair:
    """A system and its baseline, with the same seeds and examples."""

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
            raise InputError("paired test: a value is not finite. Leave such examples out on both sides.")


def paired_test(pair: SystemPair, *, rounds: int = ROUNDS, seed: int = 0) -> SignificanceTest:
    """Run the test that fits the measure.

    For a mean over examples the paired t-test on values averaged over seeds, or McNemar's for binary values
    of one seed; for any other measure the permutation test.
    """
    system, baseline = pair.system, pair.baseline
    if not (system.is_mean and baseline.is_mean):
        return permutation_test(pair, rounds=rounds, seed=seed)
    if len(system.part) == 1 and system.is_binary and baseline.is_binary:
        return mcnemar_test(system.part[0], baseline.part[0])
    return paired_t_test(system.part.mean(axis=0), baseline.part.mean(axis=0))


def paired_t_test(system: npt.ArrayLike, baseline: npt.ArrayLike) -> SignificanceTest:
    """Test whether the mean difference of paired values [example] is 0.

    p is 1 for a single example. If all differences are equal, and t would be infinite, p is computed by the
    exact sign test.
    """
    x, y = _read_pair(system, baseline)
    values = x - y
    n = len(values)
    error = float(values.std(ddof=1)) / math.sqrt(n) if n > 1 else math.nan
    if n > 1 and (np.abs(values - values[0]) <= DIFFERENCE_TOLERANCE).all():
        error = 0.0  # Equal values have no spread; what is left is rounding.
    return _t_test("paired t", float(values.mean()), error, n)


def paired_t_test_over_languages(differences: Differences) -> SignificanceTest:
    """Test whether the mean over languages of the mean difference is 0. p is 1 for a single example.

    A test set has the same sentences in several languages, and one that is hard in one is hard in others, so
    examples with equal ids are one unit. With one language it is the paired t-test on its examples; with
    languages that share no id, the test of a sum of independent means (Liang & Zeger 1986: variance by
    clusters). Without any spread it is the exact sign test.
    """
    mean, error, n = error_over_languages(differences)
    return _t_test("paired t over languages", mean, 0.0 if error <= DIFFERENCE_TOLERANCE else error, n)


def error_over_languages(differences: Differences) -> tuple[float, float, int]:
    """Return the mean over languages of the mean difference, its standard error, and the number of units."""
    if not differences:
        raise InputError("test over languages: no language. Give the differences of one or more.")
    units: dict[str, float] = {}
    means = []
    for ids, values in differences.values():
        mean = float(values.mean())
        means.append(mean)
        for unit, value in zip(ids, values, strict=True):
            share = (float(value) - mean) / (len(values) * len(differences))
            units[unit] = units.get(unit, 0.0) + share
    mean, n = math.fsum(means) / len(means), len(units)
    scale = n / (n - 1) if n > 1 else math.nan
    return mean, math.sqrt(float(np.square(list(units.values())).sum()) * scale), n


def mcnemar_test(system: npt.ArrayLike, baseline: npt.ArrayLike) -> SignificanceTest:
    """Test whether one of two systems is right more often, exactly. Values are 0 or 1 [example].

    Only examples that one system got right and the other wrong matter; the statistic is how many more of
    them the system got right.
    """
    x, y = _read_pair(system, baseline)
    if not (np.isin(x, (0, 1)).all() and np.isin(y, (0, 1)).all()):
        raise InputError("McNemar's test: values other than 0 and 1. Take the paired t-test for these.")
    gains, losses = int((x > y).sum()), int((x < y).sum())
    from scipy.special import bdtr

    tail = float(bdtr(min(gains, losses), gains + losses, 0.5)) if gains != losses else 0.5
    return SignificanceTest("McNemar", float(gains - losses), min(1.0, 2 * tail))


def median_p_value(values: Sequence[float], bound: float) -> float:
    """Return the two-sided p for the median of independent values being ``bound``, by the exact sign test.

    Values at the bound are on no side and do not count. 1 without values.
    """
    greater_count = sum(value > bound for value in values)
    smaller_count = sum(value < bound for value in values)
    count = greater_count + smaller_count
    tail = sum(math.comb(count, k) for k in range(min(greater_count, smaller_count) + 1))
    return min(1.0, float(2 * tail / 2**count))


def permutation_test(pair: SystemPair, *, rounds: int = ROUNDS, seed: int = 0) -> SignificanceTest:
    """Test whether it matters which of the two systems a sentence's predictions came from.

    The statistic is the difference of the measure over the pooled predictions of all seeds. In each round the
    two systems swap their predictions of some sentences, for all seeds at once. The seeds of a sentence are
    not independent: swapping them one by one, as in the paper, rejects a true null far too often. The p-value
    is (as large or larger + 1) / (rounds + 1), or exact if few sentences differ.
    """
    if rounds < 1:
        raise InputError(f"permutation test: {rounds} rounds. Use 1 or more; {ROUNDS} is usual.")
    ours, theirs = (
        np.stack([side.part.sum(axis=0), side.whole.sum(axis=0)], axis=1)
        for side in (pair.system, pair.baseline)
    )
    change = theirs - ours
    moving = change[(change != 0).any(axis=1)]  # Where a swap changes nothing it need not be tried.
    sums = np.concatenate([ours.sum(axis=0), theirs.sum(axis=0)])
    difference = float(_difference(sums[None])[0])
    exact = len(moving) <= MAX_ENUMERATED_SENTENCES
    swaps = _every_swap(len(moving)) if exact else _random_swaps(len(moving), rounds, seed)
    as_large = 0
    for chunk in (
        swaps[start : start + ROUNDS_PER_CHUNK] for start in range(0, len(swaps), ROUNDS_PER_CHUNK)
    ):
        moved_sums = chunk.astype(np.float64) @ moving
        differences = _difference(sums + np.concatenate([moved_sums, -moved_sums], axis=1))
        as_large += int((np.abs(differences) >= abs(difference) - DIFFERENCE_TOLERANCE).sum())
    p_value = as_large / len(swaps) if exact else (as_large + 1) / (rounds + 1)
    return SignificanceTest("permutation", difference, p_value)


def per_example(pair: SystemPair) -> Array:
    """Return each example's contribution to the difference [example], averaged over seeds. It is their mean.

    For a mean these are the differences of the values. Any other ratio R = Σp/Σw is linearised: an example
    contributes R + (p - R·w)/mean(w) (its influence; Efron & Tibshirani 1993, Chapter 21).
    """
    return influence(pair.system) - influence(pair.baseline)


def cohens_d(differences: npt.ArrayLike) -> float:
    """Return Cohen's d of paired values: the mean difference in standard deviations of the differences.

    0 where nothing differs, infinite where all differ by the same; nan for a single one.
    """
    values = np.asarray(differences, dtype=np.float64)
    if len(values) < 2:
        return math.nan
    mean = float(values.mean())
    if (values == values[0]).all():  # Rounding would leave these a standard deviation.
        return math.copysign(math.inf, mean) if values[0] else 0.0
    return mean / float(values.std(ddof=1))


def holm(p_values: Sequence[float]) -> list[float]:
    """Return p-values corrected for their number (Holm 1979), which bounds the family-wise error rate.

    Nan stands for a test that was not made: it stays nan and does not count.
    """
    values = np.asarray(p_values, dtype=np.float64)
    if ((values < 0) | (values > 1)).any():
        raise InputError(f"holm: {list(p_values)} are not all p-values. Give numbers from 0 to 1.")
    order = np.argsort(values, kind="stable")
    tests = np.count_nonzero(~np.isnan(values))
    steps = np.minimum(1.0, values[order] * (tests - np.arange(len(values))))
    adjusted_values = np.empty_like(values)
    adjusted_values[order] = np.maximum.accumulate(steps)
    return [float(value) for value in adjusted_values]


def _t_test(name: str, mean: float, error: float, n: int) -> SignificanceTest:
    if abs(mean) <= DIFFERENCE_TOLERANCE or n < 2:
        return SignificanceTest(name, 0.0, 1.0)
    if error == 0:
        return SignificanceTest(name, math.copysign(math.inf, mean), float(2 ** (1 - n)))
    return SignificanceTest(name, mean / error, t_p_value(mean / error, n - 1))


def _read_pair(system: npt.ArrayLike, baseline: npt.ArrayLike) -> tuple[Array, Array]:
    x, y = np.asarray(system, dtype=np.float64), np.asarray(baseline, dtype=np.float64)
    if x.ndim != 1 or x.shape != y.shape or not len(x):
        raise InputError(
            f"paired test: {x.shape} and {y.shape} values. Give two equally long lists of 1 or more."
        )
    if not (np.isfinite(x).all() and np.isfinite(y).all()):
        raise InputError("paired test: a value is not finite. Leave such examples out on both sides.")
    return x, y


def influence(system: System) -> Array:
    """Return each example's contribution to a measure [example], averaged over seeds. It is their mean."""
    scores, mean_whole = system.scores()[:, None], system.whole.mean(axis=1, keepdims=True)
    extra = _ratio(system.part - scores * system.whole, np.broadcast_to(mean_whole, system.part.shape))
    return np.asarray((extra + scores).mean(axis=0), dtype=np.float64)


def _ratio(numerators: Array, denominators: Array) -> Array:
    """Return the ratios, 0 where the denominator is 0."""
    zeros = np.zeros_like(numerators, dtype=np.float64)
    return np.divide(numerators, denominators, out=zeros, where=denominators != 0)


def _difference(sums: Array) -> Array:
    """Return the difference of the measures from sums [round 4]: our part and whole, their part and whole."""
    return _ratio(sums[:, 0], sums[:, 1]) - _ratio(sums[:, 2], sums[:, 3])


def _every_swap(n: int) -> npt.NDArray[np.uint8]:
    numbers = np.arange(2**n, dtype=np.uint32)
    return ((numbers[:, None] >> np.arange(n, dtype=np.uint32)) & 1).astype(np.uint8)


@lru_cache(maxsize=2)
def _random_swaps(n: int, rounds: int, seed: int) -> npt.NDArray[np.uint8]:
    """Draw which sentences swap in each round, equally for every pair of this length."""
    bits = np.random.Generator(np.random.PCG64(seed)).bytes(rounds * ((n + 7) // 8))
    packed_bits = np.frombuffer(bits, dtype=np.uint8).reshape(rounds, -1)
    return np.unpackbits(packed_bits, axis=1, count=n)


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
    near_side, far_side = float(nctdtr(freedom, shift, critical)), float(nctdtr(freedom, shift, -critical))
    if math.isnan(near_side):  # Far out the series fails, where the answer is 1 in all digits.
        return 1.0
    return 1 - near_side + (0.0 if math.isnan(far_side) else far_side)


def seeds_needed(difference: float, std: float) -> int | None:
    """Return the fewest seeds that detect a difference with 80 % power. None if ``MAX_UNITS`` do not."""
    if difference == 0:
        raise InputError("power: no number of seeds shows a difference of 0. Ask for another.")
    low, high = 1, 2
    while power_of(difference, std, high) < POWER:
        low, high = high, 2 * high
        if low >= MAX_UNITS:
            return None
    while high - low > 1:
        midpoint = (low + high) // 2
        is_detected = power_of(difference, std, midpoint) >= POWER
        low, high = (low, midpoint) if is_detected else (midpoint, high)
    return high if high <= MAX_UNITS else None
