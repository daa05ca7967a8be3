import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isogloss.methods.x_mixup import SourceSchedule, share_of_real


@given(st.integers(0, 20_000), st.integers(30, 5000))
def test_the_share_is_the_inverse_sigmoid_decay(step, k):
    assert share_of_real(step, k) == pytest.approx(k / (k + math.exp(step / k)), rel=1e-9)


@pytest.mark.parametrize(
    ("step", "k", "share"),
    [(0, 1000, 0.999001), (1000, 1000, 0.997289), (5000, 1000, 0.870767), (6908, 1000, 0.499939),
     (10_000, 1000, 0.043428), (10_000, 2000, 0.930920), (10**9, 1000, 0.0)],
)  # fmt: skip
def test_the_share_falls_as_the_paper_has_it(step, k, share):
    assert share_of_real(step, k) == pytest.approx(share, abs=1e-6)


@given(st.integers(0, 30_000), st.integers(1, 3000))
def test_the_share_never_rises_and_is_a_probability(step, k):
    assert 0 <= share_of_real(step + 1, k) <= share_of_real(step, k) <= 1


@pytest.mark.parametrize("sampling", ["batch", "example"])
def test_what_a_step_takes_follows_from_seed_and_step_alone(sampling):
    def draws(seed, steps):
        return [SourceSchedule(k=50, seed=seed, sampling=sampling).takes_real(step, 6) for step in steps]

    assert draws(0, range(300)) == list(reversed(draws(0, reversed(range(300)))))
    assert draws(0, range(300)) != draws(1, range(300))


def test_a_batch_draws_once_and_examples_each_for_themselves():
    steps = range(100, 300)
    batches = [SourceSchedule(k=50, seed=0, sampling="batch").takes_real(step, 6) for step in steps]
    each = [SourceSchedule(k=50, seed=0, sampling="example").takes_real(step, 6) for step in steps]
    assert all(len(set(one)) == 1 for one in batches)
    assert any(len(set(one)) == 2 for one in each)
    assert {one[0] for one in batches} == {True, False}


@pytest.mark.parametrize("sampling", ["batch", "example"])
@pytest.mark.parametrize("step", [0, 196, 300])
def test_real_sources_are_as_frequent_as_the_share_says(sampling, step):
    drawn = [SourceSchedule(k=50, seed=seed, sampling=sampling).takes_real(step, 4) for seed in range(1000)]
    frequency = sum(map(sum, drawn)) / 4000
    assert frequency == pytest.approx(share_of_real(step, 50), abs=0.05)
