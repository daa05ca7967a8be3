"""Examples of every kind come back as they were written; a damaged line is named."""

from dataclasses import fields

import pytest
from hypothesis import given, strategies

from isogloss.core.errors import StorageError
from isogloss.data.examples import (
    KINDS,
    Question,
    TextLine,
    Translation,
    example_line,
    read_examples,
    write_examples,
)

TEXT = strategies.text(strategies.characters(), max_size=12)
NUMBER = strategies.integers(0, 9999)
TEXTS = strategies.lists(TEXT, max_size=4).map(tuple)
LINKS = strategies.lists(strategies.tuples(NUMBER, NUMBER), max_size=3).map(tuple)
OF_FIELD = {
    "heads": strategies.lists(NUMBER, max_size=4).map(tuple),
    "document": NUMBER,
    "links": LINKS | strategies.none(),
    "possible": LINKS,
    "answers": strategies.lists(strategies.tuples(NUMBER, TEXT), max_size=3).map(tuple),
    "place": strategies.tuples(NUMBER, NUMBER),
    **dict.fromkeys(("words", "tags", "relations", "lines"), TEXTS),
}


def any_example(kind):
    known = OF_FIELD | (
        {"words": strategies.none() | strategies.tuples(TEXTS, TEXTS)} if kind is Translation else {}
    )
    return strategies.builds(kind, **{one.name: known.get(one.name, TEXT) for one in fields(kind)})


def said(example):
    """All fields, those too that do not make another example of it."""
    return {one.name: getattr(example, one.name) for one in fields(example)}


@given(strategies.lists(strategies.one_of(*map(any_example, KINDS.values())), max_size=5))
def test_examples_of_every_kind_come_back_field_by_field(tmp_path_factory, examples):
    path = tmp_path_factory.mktemp("lines") / "examples.jsonl"
    write_examples(path, examples)
    found = list(read_examples(path))
    assert found == examples
    assert [type(one) for one in found] == [type(one) for one in examples]
    assert list(map(said, found)) == list(map(said, examples))
    assert path.read_bytes().count(b"\n") == len(examples)


def test_a_line_can_be_read_by_people():
    assert example_line(TextLine(id="1", text="grüß\ndich")) == (
        '{"kind": "TextLine", "id": "1", "text": "grüß\\ndich"}'
    )
    question = Question(id="q", passage="a b", question="c", answers=((2, "b"),))
    assert '"answers": [[2, "b"]]' in example_line(question)
    assert '"links"' not in example_line(Translation(id="1", first="a", second="b"))
    assert '"links": []' in example_line(Translation(id="1", first="a", second="b", links=()))


def test_half_a_surrogate_pair_comes_back(tmp_path):
    broken = TextLine(id="1", text="\ud800 é")
    write_examples(tmp_path / "x.jsonl", [broken])
    assert list(read_examples(tmp_path / "x.jsonl")) == [broken]


@pytest.mark.parametrize(
    "line",
    [
        "{",
        "[]",
        '{"kind": "Question", "id": "1", "passage": "", "question": "", "answers": [["a", 1]]}',
        '"text"',
        "{}",
        '{"kind": "Nothing"}',
        '{"kind": "TextLine", "id": 3, "text": "a"}',
        '{"kind": "TextLine", "id": "3"}',
        '{"kind": ["a"], "id": "3"}',
        "\x00",
    ],
)
def test_a_damaged_line_is_named(tmp_path, line):
    path = tmp_path / "x.jsonl"
    path.write_text(f"{example_line(TextLine(id='1', text='a'))}\n{line}\n")
    with pytest.raises(StorageError, match=r"x\.jsonl: line 2 is no example .*run again"):
        list(read_examples(path))


def test_a_file_that_is_not_there_or_no_text_is_named(tmp_path):
    with pytest.raises(StorageError, match="cannot be read"):
        list(read_examples(tmp_path / "none.jsonl"))
    (tmp_path / "x.jsonl").write_bytes(b"\xff\xfe\n")
    with pytest.raises(StorageError, match="cannot be read"):
        list(read_examples(tmp_path / "x.jsonl"))
