from collections import Counter
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from each import each
from isogloss.training import batching
from isogloss.training.batching import Bucketed
from isogloss.training.length_batches import by_length

LENGTHS = st.lists(st.lists(st.integers(1, 40), min_size=1, max_size=30), min_size=1, max_size=3)


def bucket_rows(groups, *, size=4, epochs=2, seed=0):
    """Rows are (group, number, length). A batch is the list of its rows."""
    rows = {
        str(group): [(group, index, length) for index, length in enumerate(item)]
        for group, item in enumerate(groups)
    }
    return Bucketed(
        groups=rows,
        length=lambda row: row[2],
        size=size,
        epochs=epochs,
        seed=seed,
        make=lambda rows, *_: rows,
    )


def all_of(batches):
    return [batches[step] for step in range(len(batches))]


@given(LENGTHS, st.integers(1, 7), st.integers(1, 3), st.integers(0, 5))
def test_every_row_comes_once_an_epoch(groups, size, epochs, seed):
    batches = bucket_rows(groups, size=size, epochs=epochs, seed=seed)
    result = all_of(batches)
    steps_per_epoch = batches.steps_per_epoch
    assert len(result) == epochs * steps_per_epoch
    for epoch in range(epochs):
        rows = [
            row for batch in result[epoch * steps_per_epoch : (epoch + 1) * steps_per_epoch] for row in batch
        ]
        assert Counter(rows) == Counter(row for group in batches.groups.values() for row in group)


@given(LENGTHS, st.integers(1, 7))
def test_a_batch_holds_one_group_and_at_most_its_size(groups, size):
    for batch in each(all_of(bucket_rows(groups, size=size))):
        assert len({row[0] for row in batch}) == 1
        assert 1 <= len(batch) <= size


@given(LENGTHS, st.data())
def test_a_batch_does_not_depend_on_those_asked_for_before(groups, data):
    inorder = all_of(bucket_rows(groups, epochs=3))
    batches = bucket_rows(groups, epochs=3)
    for step in data.draw(st.permutations(range(len(inorder)))):
        assert batches[step] == inorder[step]


def test_seeds_and_epochs_differ_and_one_seed_does_not():
    groups = [list(range(1, 60))]
    batches, same_batches, other_batches = (all_of(bucket_rows(groups, seed=seed)) for seed in (0, 0, 1))
    assert batches == same_batches
    assert batches != other_batches
    half_count = len(batches) // 2
    assert batches[:half_count] != batches[half_count:]


def test_groups_are_mixed_over_an_epoch():
    order = [batch[0][0] for batch in all_of(bucket_rows([[5] * 80, [5] * 80], epochs=1))]
    assert order not in (sorted(order), sorted(order, reverse=True))


@pytest.mark.parametrize("step", [-1, 4])
def test_a_step_outside_is_an_index_error(step):
    with pytest.raises(IndexError):
        bucket_rows([[1] * 8], epochs=2)[step]


def test_skewed_lengths_waste_little_padding():
    rng = np.random.default_rng(0)
    lengths = np.clip(rng.lognormal(3, 0.7, size=4000).astype(int), 3, 128).tolist()
    batches = all_of(bucket_rows([lengths], size=32, epochs=1))

    def waste(made):
        padded_total = sum(len(batch) * max(row[2] for row in batch) for batch in made)
        return 1 - sum(lengths) / padded_total

    drawn_permutation = rng.permutation(len(lengths))
    unsorted_value = [
        [(0, 0, lengths[row]) for row in part] for part in np.array_split(drawn_permutation, len(batches))
    ]
    assert waste(batches) < 0.08
    assert waste(unsorted_value) > 0.5


def test_rows_of_one_length_still_meet_different_rows():
    item, two = (bucket_rows([[5] * 64], size=8, epochs=1, seed=seed) for seed in (0, 1))
    assert {frozenset(batch) for batch in all_of(item)} != {frozenset(batch) for batch in all_of(two)}


def test_sorting_reaches_over_many_batches_but_not_over_all():
    size = 2
    lengths = list(range(1, 1 + 2 * size * batching.SORTED_TOGETHER))
    widths = [max(row[2] for row in batch) for batch in all_of(bucket_rows([lengths], size=size, epochs=1))]
    assert widths != sorted(widths)


ROW_LENGTHS = st.lists(st.integers(1, 40), min_size=1, max_size=40)
PADDING = st.none() | st.integers(0, 60)


@given(ROW_LENGTHS, st.integers(1, 200), PADDING)
def test_rows_are_batched_once_by_length_within_budget_and_padding(lengths, budget, padding):
    batches = by_length(lengths, budget, padding=padding)
    assert sorted(row for batch in batches for row in batch) == list(range(len(lengths)))
    for batch in each(batches):
        padded_count = len(batch) * max(lengths[row] for row in batch)
        assert padded_count <= budget or len(batch) == 1
        assert padding is None or padded_count - sum(lengths[row] for row in batch) <= padding
    ends = [max(lengths[row] for row in batch) for batch in batches]
    assert ends == sorted(ends)


@given(ROW_LENGTHS, st.integers(1, 200), PADDING)
def test_no_batch_by_length_ends_before_it_must(lengths, budget, padding):
    batches = by_length(lengths, budget, padding=padding)
    joined_lengths = [
        [lengths[row] for row in (*batch, following[0])] for batch, following in pairwise(batches)
    ]
    wider = [len(rows) * rows[-1] for rows in joined_lengths]
    assert all(
        padded_value > budget or (padding is not None and padded_value - sum(rows) > padding)
        for rows, padded_value in zip(joined_lengths, wider, strict=True)
    )


def test_nothing_is_batched_of_no_rows():
    assert by_length([], 100) == []
