"""The bootstrap's interval holds the truth as often as it says, and is that of drawing one by one."""

import numpy as np
import pytest
from hypothesis import given
from pairs import counted, drawn_means, means

from isogloss.core.errors import InputError
from isogloss.metrics.bootstrap import bootstrap
from isogloss.metrics.paired import Pair, System


def by_loops(pair, rounds, draws):
    """Draw examples and seeds one by one."""
    rng = np.random.default_rng(draws)
    found = []
    for _ in range(rounds):
        seeds, examples = (
            rng.integers(pair.seeds, size=pair.seeds),
            rng.integers(pair.examples, size=pair.examples),
        )
        picked = Pair(
            *(
                System(s.part[seeds][:, examples], s.whole[seeds][:, examples])
                for s in (pair.system, pair.baseline)
            )
        )
        found.append(picked.difference())
    return np.quantile(found, [0.025, 0.975])


@pytest.mark.parametrize("seeds", [1, 4])
def test_the_interval_is_that_of_drawing_one_by_one(seeds):
    rng = np.random.default_rng(3)
    whole = rng.integers(0, 5, (seeds, 150)).astype(float)
    shift = rng.uniform(0.4, 0.8, (2, seeds, 1))
    pair = Pair(*(System(rng.binomial(whole.astype(int), one).astype(float), whole) for one in shift))
    found = bootstrap(pair, rounds=3000)
    low, high = by_loops(pair, 3000, 0)
    width = high - low
    assert (found.low, found.high) == pytest.approx((low, high), abs=0.06 * width)


def test_the_interval_of_a_mean_with_one_seed_is_students():
    pair = drawn_means(np.random.default_rng(0), seeds=1, examples=2000)
    values = (pair.system.part - pair.baseline.part)[0]
    half = 1.96 * values.std(ddof=1) / np.sqrt(len(values))
    found = bootstrap(pair, rounds=4000)
    assert (found.low, found.high) == pytest.approx(
        (values.mean() - half, values.mean() + half), abs=0.1 * half
    )


def test_the_interval_holds_the_truth_nineteen_times_in_twenty():
    rng = np.random.default_rng(7)
    held = 0
    for _ in range(200):
        interval = bootstrap(drawn_means(rng, seeds=1, examples=100, gain=0.1), rounds=300)
        held += interval.low <= 0.1 <= interval.high
    assert 0.9 <= held / 200 <= 0.99


def test_seeds_that_disagree_widen_the_interval():
    rng = np.random.default_rng(0)
    base = rng.random((6, 300))
    agreeing, disagreeing = base + 0.1, base + 0.1 + np.linspace(-0.3, 0.3, 6)[:, None]
    narrow, wide = (bootstrap(means(one, base)) for one in (agreeing, disagreeing))
    assert narrow.high - narrow.low < 1e-9
    assert wide.high - wide.low > 0.2


@given(counted())
def test_the_interval_of_a_system_against_itself_is_nothing(pair):
    same = bootstrap(Pair(pair.system, pair.system), rounds=20)
    assert (same.low, same.high) == (0, 0)


def test_the_same_seed_gives_the_same_interval():
    pair = drawn_means(np.random.default_rng(0))
    assert bootstrap(pair, seed=1) == bootstrap(pair, seed=1) != bootstrap(pair, seed=2)


@pytest.mark.parametrize(("rounds", "level"), [(0, 0.95), (10, 1.0), (10, 0.0)])
def test_no_rounds_and_no_level_are_refused(rounds, level):
    with pytest.raises(InputError, match=f"{rounds} rounds, level {level}. Use 1 or more"):
        bootstrap(drawn_means(np.random.default_rng(0)), rounds=rounds, level=level)
