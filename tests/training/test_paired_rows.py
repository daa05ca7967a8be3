import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from isogloss.tasks.batch import EncodedRow
from isogloss.training.paired_rows import Labelled, collate_sides, paired_rows, spread


def row(example, length, gold=(0,)):
    return EncodedRow(example=example, subwords=tuple(range(10, 10 + length)), gold=gold)


def rows(counts, longer=0):
    """Rows of as many examples, so many rows each; a row's length says which of its example it is."""
    return [
        Labelled(row(example, 1 + number + longer))
        for example, count in enumerate(counts)
        for number in range(count)
    ]


@given(st.integers(1, 9), st.integers(0, 9))
def test_spreading_keeps_the_order_leaves_none_out_and_repeats_evenly(few, more):
    found = spread([row(number, 1) for number in range(few)], few + more)
    numbers = [one.example for one in found]
    assert numbers == sorted(numbers)
    times = [numbers.count(number) for number in range(few)]
    assert max(times) - min(times) <= 1
    assert min(times) >= 1


@given(st.lists(st.tuples(st.integers(1, 4), st.integers(0, 4)), min_size=1, max_size=5))
def test_rows_of_the_same_example_are_paired_and_examples_without_one_left_out(counts):
    found = paired_rows(rows([one for one, _ in counts]), rows([other for _, other in counts]))
    assert all(pair.source.example == pair.target.example for pair in found)
    for example, (one, other) in enumerate(counts):
        own = [pair for pair in found if pair.source.example == example]
        assert len(own) == (max(one, other) if other else 0)
        if other:
            assert {len(pair.source.row.subwords) for pair in own} == set(range(1, one + 1))
            assert {len(pair.target.row.subwords) for pair in own} == set(range(1, other + 1))


def test_back_translations_stand_beside_their_example_where_there_are_some():
    found = paired_rows(rows([1, 2]), rows([1, 1]), rows([0, 1], longer=5))
    assert [pair.back is None for pair in found] == [True, False, False]
    assert [len(pair) for pair in found] == [1, 1, 2]


def test_a_batch_holds_the_sources_first_and_its_places_in_that_order():
    sources = [Labelled(row(0, 3, gold=(1,))), Labelled(row(1, 2, gold=(0,)))]
    targets = [Labelled(row(0, 2, gold=(1,))), Labelled(row(1, 5, gold=(0,)))]
    batch = collate_sides(sources, targets, padding=0, labels=2)
    assert batch.both.mask.sum(dim=1).tolist() == [3, 2, 2, 5]
    assert batch.source.batch.gold.tolist() == batch.target.batch.gold.tolist() == [1, 0]
    source, target = batch.split(torch.arange(4))
    assert (source.tolist(), target.tolist()) == ([0, 1], [2, 3])
    assert batch.source.soft is None
    assert torch.equal(batch.to("cpu").both.subwords, batch.both.subwords)


def test_where_some_rows_have_probabilities_gold_labels_become_such():
    soft = torch.tensor([[0.25, 0.75, 0.0]], dtype=torch.float16)
    batch = collate_sides(
        [Labelled(row(0, 3, gold=(2,))), Labelled(row(1, 2, gold=()), soft)],
        [Labelled(row(0, 3, gold=())), Labelled(row(1, 2, gold=()))],
        padding=0,
        labels=3,
    )
    assert batch.source.soft.tolist() == [[0.0, 0.0, 1.0], [0.25, 0.75, 0.0]]
    assert batch.target.soft is None


def test_rows_of_which_only_some_have_labels_are_refused():
    with pytest.raises(ValueError, match="a batch has all labels or none"):
        collate_sides([Labelled(row(0, 3)), Labelled(row(1, 2, gold=()))], rows([1, 1]), padding=0, labels=2)
