"""Batches for evaluation: every row once, the budget kept, and no more padding than asked for."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from isogloss.training.batching import by_length

LENGTHS = st.lists(st.integers(1, 40), max_size=40)


@given(LENGTHS, st.integers(1, 200), st.none() | st.integers(0, 60))
def test_every_row_is_in_one_batch(lengths, budget, padding):
    batches = by_length(lengths, budget, padding=padding)
    assert sorted(row for batch in batches for row in batch) == list(range(len(lengths)))


@given(LENGTHS, st.integers(1, 200), st.none() | st.integers(0, 60))
def test_batches_keep_budget_and_padding(lengths, budget, padding):
    for batch in by_length(lengths, budget, padding=padding):
        padded = len(batch) * max(lengths[row] for row in batch)
        assert padded <= budget or len(batch) == 1
        assert padding is None or padded - sum(lengths[row] for row in batch) <= padding


@given(LENGTHS, st.integers(1, 200), st.integers(0, 60))
def test_no_batch_ends_before_it_must(lengths, budget, padding):
    batches = by_length(lengths, budget, padding=padding)
    for batch, following in pairwise(batches):
        longer = [lengths[row] for row in (*batch, following[0])]
        padded = len(longer) * longer[-1]
        assert padded > budget or padded - sum(longer) > padding
