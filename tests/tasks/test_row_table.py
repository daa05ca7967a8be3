"""A table of rows has the rows that were added, in a tenth of the memory of a list."""

import sys
from array import array
from dataclasses import fields, replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from isogloss.tasks import row_table
from isogloss.tasks.batch import EncodedRow
from isogloss.tasks.row_table import RowTable, encode_in_blocks
from task_examples import SMALL_TASKS, examples_of

WIDEST_ROW = 500
"""Bytes of a sentence of 36 subwords and 20 words at most."""

SIGNED = st.integers(-(2**62), 2**62)
SEQUENCES = st.one_of(
    st.lists(SIGNED, max_size=5),
    st.lists(st.integers(-130, 130), max_size=5).map(tuple),
    st.lists(st.integers(0, 70000), max_size=5).map(lambda numbers: array("I", numbers)),
    st.tuples(st.integers(-9, 9), st.integers(-9, 9)).map(lambda ends: range(*ends)),
)
PAIRS = st.lists(st.tuples(st.integers(0, 300), st.integers(0, 300)), max_size=4).map(tuple)
ROWS = st.builds(
    EncodedRow,
    example=st.integers(0, 2**40),
    links=st.none() | PAIRS,
    segments=st.none() | SEQUENCES,
    **dict.fromkeys(
        ("subwords", "positions", "options", "words", "word_of", "characters", "gold", "heads"), SEQUENCES
    ),
)


def as_tuples(row):
    """Return a row with tuples in place of all other sequences, so that equal rows compare equal."""
    values = {field.name: getattr(row, field.name) for field in fields(row)}
    return replace(
        row,
        **{
            name: tuple(value)
            for name, value in values.items()
            if isinstance(value, list | array | range | tuple | bytes)
        },
    )


@given(rows=st.lists(ROWS, max_size=6), part=st.sampled_from([1, 5, 1_000_000]))
def test_any_rows_are_what_was_added(rows, part):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(row_table, "PART", part)
        table = RowTable(rows)
    assert len(table) == len(rows)
    assert [as_tuples(row) for row in table] == [as_tuples(row) for row in rows]
    for row, added_row in zip(table, rows, strict=True):
        assert [isinstance(value, range) for value in (row.words, row.positions)] == [
            isinstance(value, range) for value in (added_row.words, added_row.positions)
        ]


@given(
    rows=st.lists(ROWS, min_size=1, max_size=4), index=st.integers(-6, 6), step=st.sampled_from([1, 2, -1])
)
def test_positions_and_slices_are_those_of_a_list(rows, index, step):
    table, plain_rows = RowTable(rows), [as_tuples(row) for row in rows]
    assert [as_tuples(row) for row in table[index::step]] == plain_rows[index::step]
    if -len(rows) <= index < len(rows):
        assert as_tuples(table[index]) == plain_rows[index]
    else:
        with pytest.raises(IndexError):
            table[index]


@pytest.mark.parametrize("name", SMALL_TASKS)
def test_rows_of_every_task_survive_and_blocks_change_nothing(name, either_tokenizer, monkeypatch):
    task, examples = SMALL_TASKS[name], examples_of(name)
    rows = task.encode(examples, either_tokenizer)
    assert [as_tuples(row) for row in RowTable(rows)] == [as_tuples(row) for row in rows]
    monkeypatch.setattr(row_table, "BLOCK", 2)
    in_blocks = encode_in_blocks(examples, lambda block: task.encode(block, either_tokenizer))
    assert [as_tuples(row) for row in in_blocks] == [as_tuples(row) for row in rows]


def test_probabilities_of_a_teacher_stay_with_their_row():
    soft = torch.rand(2, 3)
    table = RowTable(
        [EncodedRow(example=0, subwords=(1, 2)), EncodedRow(example=1, subwords=(3,), soft=soft)]
    )
    assert table[0].soft is None
    assert table[1].soft is soft


def test_a_sentence_takes_a_fifth_of_what_its_row_takes():
    random = np.random.default_rng(0)
    rows = [
        EncodedRow(
            example=index,
            subwords=tuple(random.integers(0, 250_000, 36).tolist()),
            positions=tuple(sorted(random.choice(36, 20, replace=False).tolist())),
            words=tuple(range(20)),
            word_of=array("i", random.integers(-1, 20, 36).tolist()),
            gold=tuple(random.integers(0, 17, 20).tolist()),
        )
        for index in range(1000)
    ]
    table_bytes = RowTable(rows).nbytes / len(rows)
    # Small integers are shared by all rows of a process, so only the ids of subwords count here.
    row_bytes = sum(
        sys.getsizeof(value) for value in (rows[0], *(getattr(rows[0], name) for name in row_table.COLUMNS))
    ) + sum(map(sys.getsizeof, rows[0].subwords))
    assert table_bytes <= WIDEST_ROW
    assert table_bytes < row_bytes / 5
