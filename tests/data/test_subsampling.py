import tracemalloc

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from isogloss.data.shots import subsample


@given(st.lists(st.text(max_size=3), max_size=40), st.integers(1, 50), st.integers(0, 9))
def test_a_choice_has_as_many_lines_as_asked_for_in_their_order(lines, count, seed):
    numbered = [f"{number} {line}" for number, line in enumerate(lines)]
    chosen = subsample(iter(numbered), count, seed=seed)
    assert len(chosen) == min(count, len(lines))
    places = [numbered.index(line) for line in chosen]
    assert places == sorted(set(places))


@given(st.integers(1, 30), st.integers(1, 30), st.integers(0, 9))
def test_a_smaller_choice_is_part_of_a_larger_one(one, other, seed):
    lines = [str(number) for number in range(40)]
    smaller, larger = sorted((subsample(lines, n, seed=seed) for n in (one, other)), key=len)
    assert set(smaller) <= set(larger)


def test_every_line_is_as_likely_as_any_other():
    hits = np.zeros(50)
    for seed in range(2000):
        hits[[int(line) for line in subsample(map(str, range(50)), 10, seed=seed)]] += 1
    assert hits.sum() == 20_000
    assert abs(hits - 400).max() < 4.5 * (2000 * 0.2 * 0.8) ** 0.5


def test_only_the_choice_is_kept_in_memory():
    tracemalloc.start()
    subsample((f"{number}" * 100 for number in range(20_000)), 20, seed=0)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 200_000
