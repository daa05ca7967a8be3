"""CoNLL-U comes back byte for byte, and a broken line is named."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isogloss.core.errors import DataError
from isogloss.data.files import File, byte_stream
from isogloss.data.formats.conllu import (
    HEAD,
    RELATION,
    TAG,
    UPOS,
    read_blocks,
    read_conllu,
    with_columns,
    with_misc,
    with_tree,
    write_conllu,
)
from says import says
from trees import is_tree

WORD = "{0}\t{1}\t_\t{2}\t_\t_\t{3}\t{4}\t_\t_"


def file_of(*lines):
    return File(name="x.conllu", read=lambda: iter([line + "\n" for line in lines]), fingerprint=str)


def word(text=1, form="w", tag="NOUN", head=0, relation=""):
    return WORD.format(text, form, tag, head, relation or ("dep" if head else "root"))


def read_broken(*lines):
    with pytest.raises(DataError) as error:
        list(read_conllu(file_of(*lines)))
    return str(error.value)


def test_fields_are_those_of_the_words_alone(native_files):
    first_sentence, second = read_conllu(native_files.find(["ud/UD_English-EWT/*train.conllu"])[0])
    assert first_sentence.id == "fixture-1"
    assert first_sentence.words == ("She", "'ll", "read", ",", "and", "he", "books", ".")
    assert first_sentence.heads == (3, 3, 0, 6, 6, 3, 6, 3)
    assert first_sentence.tags[:3] == ("PRON", "AUX", "VERB")
    assert second.relations == ("root", "advmod:lmod")


def test_file_is_written_back_byte_for_byte(native_files):
    files = native_files.find(["ud*/*/*.conllu"])
    assert len(files) == 4
    for file in files:
        text = "".join(line + "\n" for line in write_conllu(read_conllu(file), "ud"))
        assert text == "".join(file.read())


def test_changed_fields_are_written_into_the_old_lines(native_files):
    sentence = next(read_conllu(native_files.find(["ud/UD_English-EWT/*train.conllu"])[0]))
    changed_sentence = replace(
        sentence, tags=("X", *sentence.tags[1:]), relations=("dep", *sentence.relations[1:])
    )
    conllus = list(write_conllu([changed_sentence], "ud"))
    assert conllus[4] == "1\tShe\tshe\tX\tPRP\tCase=Nom|Number=Sing\t3\tdep\t3:nsubj\t_"
    assert conllus[:4] + conllus[5:] == [*sentence.lines[:4], *sentence.lines[5:], ""]


@st.composite
def annotated_lines(draw):
    """A sentence's lines with comments, ranges, empty nodes, an enhanced graph and anything in MISC."""
    cells = st.text(
        st.characters(exclude_characters="\t\n\r", exclude_categories=["Cs"]), min_size=1, max_size=5
    )
    size = draw(st.integers(1, 5))
    lines = ["# " + draw(cells) for _ in range(draw(st.integers(0, 2)))]
    if draw(st.booleans()):
        lines.append("\t".join(["0.1", *[draw(cells) for _ in range(9)]]))
    for index in range(1, size + 1):
        if draw(st.booleans()) and index < size:
            lines.append("\t".join([f"{index}-{index + 1}", draw(cells), *"_______", draw(cells)]))
        head = index - 1  # a chain
        graph = draw(st.sampled_from(["_", f"{head}:dep|{index}.1:nsubj>obj", "0:root"]))
        other_samples = [draw(cells) for _ in range(5)]
        tree = [
            draw(st.sampled_from(sorted(UPOS))),
            other_samples[2],
            other_samples[3],
            str(head),
            "dep:x" if head else "root:x",
            graph,
            other_samples[4],
        ]
        lines.append("\t".join([str(index), other_samples[0], other_samples[1], *tree]))
        for copy in range(draw(st.integers(0, 2))):
            lines.append("\t".join([f"{index}.{copy + 1}", *[draw(cells) for _ in range(9)]]))
    return lines, size


@given(st.lists(annotated_lines(), min_size=1, max_size=3))
def test_all_that_is_not_read_is_written_back_untouched(sentences):
    lines = [line for sentence, _ in sentences for line in (*sentence, "")]
    assert list(write_conllu(read_conllu(file_of(*lines)), "ud")) == lines


@given(annotated_lines())
def test_a_predicted_tree_changes_its_own_columns_alone(item):
    lines, size = item
    (sentence,) = read_conllu(file_of(*lines))
    heads = (*range(2, size + 1), 0)
    relations = [*(f"r{place}" for place in range(size - 1)), "root"]
    conllus = list(write_conllu([with_tree(sentence, heads, relations)], "ud"))
    assert len(conllus) == len(lines) + 1
    words = iter(range(size))
    for line_before, text_after in zip(lines, conllus, strict=False):
        if line_before.startswith("#") or not line_before.split("\t")[0].isdigit():
            assert text_after == line_before
            continue
        word = next(words)
        cells = line_before.split("\t")
        cells[6:8] = str(heads[word]), relations[word]
        assert text_after.split("\t") == cells


def test_a_tree_of_another_length_is_refused():
    sentence = next(read_conllu(file_of(word(), word(2, head=1))))
    with says(ValueError, "'1'"):
        with_tree(sentence, [0], ["root", "dep"])


def test_lines_that_lost_a_word_are_refused(native_files):
    sentence = next(read_conllu(native_files.find(["ud/UD_English-EWT/*train.conllu"])[0]))
    with pytest.raises(DataError, match="8"):
        list(write_conllu([replace(sentence, lines=sentence.lines[:-1])], "ud"))


def test_sentence_without_sent_id_is_called_by_its_number_and_a_second_one_by_its_count():
    file = file_of(word(), "", "# sent_id = a", word(), "", "# sent_id = a", word())
    assert [sentence.id for sentence in read_conllu(file)] == ["1", "a", "a#2"]


def test_old_tag_of_version_1_is_kept_as_found():
    assert next(read_conllu(file_of(word(tag="CONJ")))).tags == ("CONJ",)


@pytest.mark.parametrize(
    ("line", "messages"),
    [
        ("2\tw\t_\tNOUN\t_\t_\t1\tnsubj\t_", "9 columns"),
        ("2 w _ NOUN _ _ 1 nsubj _ _", "1 columns"),
        (word(3, head=1), "word number 3; expected 2"),
        (word("²", head=1), "ID '²'; expected a word number"),
        (word("2-", head=1), "ID '2-'"),
        (word(2, form="", head=1), "an empty FORM"),
        (word(2, tag="NN", head=1), "UPOS 'NN'; expected one of ADJ, ADP"),
        (word(2, tag="_", head=1), "UPOS '_'"),
        (word(2, head="_"), "HEAD '_'; expected 0 for the root"),
        (word(2, head=-1), "HEAD '-1'"),
        (word(2, head=9), "HEAD 9"),
        (word(2, head=1, relation="_"), "DEPREL '_'"),
        (word(2, head=0), "2 words with HEAD 0 in the sentence; expected one root"),
        (word(2, head=1, relation="root"), "DEPREL 'root' with HEAD 1"),
        (word(2, head=1, relation="root:x"), "DEPREL 'root:x' with HEAD 1"),
        (word(2, head=2, relation="x"), "a cycle"),
    ],
)
def test_broken_line_names_file_line_and_what_was_found(line, messages):
    message = read_broken("# text = w w", word(), line)
    assert message.startswith("x.conllu:3: ")
    assert messages in message


def test_sentence_without_root_and_comments_without_words_are_errors():
    assert read_broken(word(head=2), word(2, head=1)).startswith("x.conllu:1: 0 words with HEAD 0")
    assert read_broken(word(relation="nsubj")).startswith("x.conllu:1: DEPREL 'nsubj' with HEAD 0")
    assert read_broken(word(), "", "# alone", "").startswith("x.conllu:3: comments without words")


@given(st.data())
def test_heads_are_accepted_just_when_every_word_leads_to_the_one_root(data):
    size = data.draw(st.integers(1, 6))
    heads = data.draw(st.lists(st.integers(0, size), min_size=size, max_size=size))
    lines = [word(index, head=head) for index, head in enumerate(heads, start=1)]
    if is_tree(heads):
        assert next(read_conllu(file_of(*lines))).heads == tuple(heads)
    else:
        read_broken(*lines)


def test_ids_are_unique_even_where_one_looks_like_a_repeated_one():
    names = ["a", "a", "a#2", "a#2", "2"]
    lines = [line for name in names for line in (f"# sent_id = {name}", word(), "")]
    assert [sentence.id for sentence in read_conllu(file_of(*lines))] == ["a", "a#2", "a#2#2", "a#2#3", "2"]


def test_sent_id_is_found_however_it_is_spaced():
    for comment in (
        "# sent_id = a b",
        "#sent_id=a b",
        "#\tsent_id  =  a b  ",
        "# sent_id = \n# sent_id = a b",
    ):
        (sentence,) = read_conllu(file_of(*comment.split("\n"), word()))
        assert sentence.id == "a b"


BLOCKS = """\
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


def blocks_of(text):
    return list(read_blocks(byte_stream("f", text.encode().splitlines(keepends=True))))


def test_blocks_are_the_file_and_know_their_words():
    blocks = blocks_of(BLOCKS)
    assert [line for block in blocks for line in block.lines] == BLOCKS.splitlines()
    assert [block.words for block in blocks if block.words] == [("Vamos", "nos", "a l"), ("#",)]
    assert [block.number for block in blocks] == [1, 8, 9, 10, 11, 12]
    assert [block.sent_id for block in blocks if block.words] == ["a-1", ""]


def test_columns_filled_in_leave_all_others():
    block = blocks_of(BLOCKS)[0]
    columns = {TAG: ("VERB", "PRON", "ADP"), HEAD: ("0", "1", "1"), RELATION: ("root", "obj", "obl")}
    parts_before = [line.split("\t") for line in block.lines]
    parts_after = [line.split("\t") for line in with_columns(block.lines, columns)]
    changed_rows = [
        (row, column)
        for row, cells in enumerate(parts_after)
        for column, cell in enumerate(cells)
        if cell != parts_before[row][column]
    ]
    assert changed_rows == [(row, column) for row in (3, 4, 6) for column in (TAG, HEAD, RELATION)]
    assert [parts_after[row][TAG] for row in (3, 4, 6)] == list(columns[TAG])


def test_a_key_is_added_to_others_and_takes_its_own_place():
    block = blocks_of(BLOCKS)[0]
    parts_after = [line.split("\t")[-1] for line in with_misc(block.lines, "NER", ("O", "B-PER", "I-PER"))]
    assert parts_after[2:] == ["_", "Lang=es|NER=O", "NER=B-PER", "CopyOf=-1", "SpaceAfter=No|NER=I-PER"]


def test_a_number_of_values_that_is_wrong_is_an_error():
    with pytest.raises((ValueError, StopIteration, RuntimeError)):
        list(with_columns(blocks_of(BLOCKS)[0].lines, {TAG: ("VERB",)}))


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("1\tword", r"f:2: .*2.*'1\\tword'.*10"),
        ("2" + "\tx" * 9, "f:2: .*2.*1"),
        ("1\t" + "\tx" * 8, "f:2: .*FORM"),
        ("x" + "\tx" * 9, "f:2: ID 'x'"),
    ],
)
def test_a_broken_line_of_a_file_to_be_labelled_is_named(line, message):
    with pytest.raises(DataError, match=message):
        blocks_of(f"# c\n{line}\n")


@given(st.lists(st.sampled_from(["", " ", "# c", "1\tx" + "\t_" * 8, "2\ty" + "\t_" * 8, "1\tx", "#"])))
def test_any_lines_are_read_or_refused_with_their_place(lines):
    text = "".join(f"{line}\n" for line in lines)
    try:
        blocks = blocks_of(text)
    except DataError as error:
        assert str(error).startswith("f:")
    else:
        assert [line for block in blocks for line in block.lines] == lines
