"""Filling columns of CoNLL-U leaves every other byte as it was."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isogloss.core.errors import DataError
from isogloss.data.conllu import HEAD, RELATION, TAG, read_blocks, with_columns, with_misc
from isogloss.data.files import byte_stream

TEXT = """\
# sent_id = a-1
# text = Vámonos al mar
1-2\tVámonos\t_\t_\t_\t_\t_\t_\t_\t_
1\tVamos\tir\t_\t_\tMood=Imp\t_\t_\t0:root\tLang=es
2\tnos\t_\t_\t_\t_\t_\t_\t_\t_
2.1\tel\t_\t_\t_\t_\t_\t_\t1:obj\tCopyOf=-1
3\ta l\t_\t_\t_\t_\t_\t_\t_\tSpaceAfter=No|NER=O

\t
# only a comment

1\t#\t_\t_\t_\t_\t_\t_\t_\t_
"""


def read(text):
    return list(read_blocks(byte_stream("f", text.encode().splitlines(keepends=True))))


def test_blocks_are_the_file_and_know_their_words():
    blocks = read(TEXT)
    assert [line for block in blocks for line in block.lines] == TEXT.splitlines()
    assert [block.words for block in blocks if block.words] == [("Vamos", "nos", "a l"), ("#",)]
    assert [block.number for block in blocks] == [1, 8, 9, 10, 11, 12]
    assert [block.sent_id for block in blocks if block.words] == ["a-1", ""]


def test_columns_filled_in_leave_all_others():
    block = read(TEXT)[0]
    columns = {TAG: ("VERB", "PRON", "ADP"), HEAD: ("0", "1", "1"), RELATION: ("root", "obj", "obl")}
    before = [line.split("\t") for line in block.lines]
    after = [line.split("\t") for line in with_columns(block.lines, columns)]
    changed = [
        (row, column)
        for row, cells in enumerate(after)
        for column, cell in enumerate(cells)
        if cell != before[row][column]
    ]
    assert changed == [(row, column) for row in (3, 4, 6) for column in (TAG, HEAD, RELATION)]
    assert [after[row][TAG] for row in (3, 4, 6)] == list(columns[TAG])


def test_a_key_is_added_to_others_and_takes_its_own_place():
    block = read(TEXT)[0]
    after = [line.split("\t")[-1] for line in with_misc(block.lines, "NER", ("O", "B-PER", "I-PER"))]
    assert after[2:] == ["_", "Lang=es|NER=O", "NER=B-PER", "CopyOf=-1", "SpaceAfter=No|NER=I-PER"]


def test_a_number_of_values_that_is_wrong_is_an_error():
    with pytest.raises((ValueError, StopIteration, RuntimeError)):
        list(with_columns(read(TEXT)[0].lines, {TAG: ("VERB",)}))


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("1\tword", r"f:2: 2 columns in '1\\tword'; expected 10, split by tabs"),
        ("2" + "\tx" * 9, "f:2: word number 2; expected 1, the next of the sentence"),
        ("1\t" + "\tx" * 8, "f:2: an empty FORM; expected the word"),
        ("x" + "\tx" * 9, "f:2: ID 'x'"),
    ],
)
def test_a_broken_line_is_named(line, said):
    with pytest.raises(DataError, match=said):
        read(f"# c\n{line}\n")


@given(st.lists(st.sampled_from(["", " ", "# c", "1\tx" + "\t_" * 8, "2\ty" + "\t_" * 8, "1\tx", "#"])))
def test_any_lines_are_read_or_refused_with_their_place(lines):
    text = "".join(f"{line}\n" for line in lines)
    try:
        blocks = read(text)
    except DataError as error:
        assert str(error).startswith("f:")
    else:
        assert [line for block in blocks for line in block.lines] == lines


@pytest.mark.data
@pytest.mark.slow
@pytest.mark.parametrize("place", ["ud", "ud-extra", "ud-legacy", "ud-pud"])
def test_treebanks_filled_with_what_they_have_are_what_they_were(real_data, place):
    files = real_data.find([f"{place}/*/*.conllu"])
    assert files
    for file in files:
        written = []
        for block in read_blocks(file):
            cells = [line.split("\t") for line in block.lines if not line.startswith("#")]
            words = [row for row in cells if row[0].isdigit()]
            columns = {column: [row[column] for row in words] for column in (TAG, HEAD, RELATION)}
            written += with_columns(block.lines, columns) if words else block.lines
        assert written == [line for _, line in file.lines()], file.name
