"""Examples come back from JSON as written, a damaged line is named. Few-shot choices are nested."""

import tracemalloc
from collections import Counter
from dataclasses import fields

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from isogloss.core.errors import ConfigError, DataError, StorageError
from isogloss.data.examples import (
    KINDS,
    Choice,
    Question,
    SentencePair,
    TaggedSentence,
    TextLine,
    Translation,
    shots,
    subsample,
)
from isogloss.features.translation.example_files import example_line, read_examples, write_examples
from says import says

TEXT = st.text(st.characters(), max_size=12)
NUMBER = st.integers(0, 9999)
TEXTS = st.lists(TEXT, max_size=4).map(tuple)
LINKS = st.lists(st.tuples(NUMBER, NUMBER), max_size=3).map(tuple)
OF_FIELD = {
    "heads": st.lists(NUMBER, max_size=4).map(tuple),
    "document": NUMBER,
    "links": LINKS | st.none(),
    "possible": LINKS,
    "answers": st.lists(st.tuples(NUMBER, TEXT), max_size=3).map(tuple),
    "place": st.tuples(NUMBER, NUMBER),
    **dict.fromkeys(("words", "tags", "relations", "lines", "options"), TEXTS),
}


def any_example(kind):
    own_part = {
        Translation: {"words": st.none() | st.tuples(TEXTS, TEXTS)},
        Choice: {"label": st.none() | NUMBER},
    }
    known_values = OF_FIELD | own_part.get(kind, {})
    return st.builds(kind, **{field.name: known_values.get(field.name, TEXT) for field in fields(kind)})


def read_fields(example):
    """All fields that are stored, those too that do not make another example of it."""
    return {
        field.name: getattr(example, field.name)
        for field in fields(example)
        if field.metadata.get("stored", True)
    }


@given(st.lists(st.one_of(*(any_example(value) for value in KINDS.values())), max_size=5))
def test_examples_of_every_kind_come_back_field_by_field(tmp_path_factory, examples):
    path = tmp_path_factory.mktemp("lines") / "examples.jsonl"
    write_examples(path, examples)
    result = list(read_examples(path))
    assert result == examples
    assert [type(item) for item in result] == [type(example) for example in examples]
    assert [read_fields(value) for value in result] == [read_fields(value) for value in examples]
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
    broken_text_line = TextLine(id="1", text="\ud800 é")
    write_examples(tmp_path / "x.jsonl", [broken_text_line])
    assert list(read_examples(tmp_path / "x.jsonl")) == [broken_text_line]


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
    with pytest.raises(StorageError, match=r"x\.jsonl: line 2 .*record\.json"):
        list(read_examples(path))


def test_a_file_that_is_not_there_or_no_text_is_named(tmp_path):
    with pytest.raises(StorageError, match="read"):
        list(read_examples(tmp_path / "none.jsonl"))
    (tmp_path / "x.jsonl").write_bytes(b"\xff\xfe\n")
    with pytest.raises(StorageError, match="read"):
        list(read_examples(tmp_path / "x.jsonl"))


LABELS = ("entailment", "neutral", "contradiction")


def pair(index, language="en"):
    return SentencePair(
        id=str(index), first=f"{language} {index}", second="", label=LABELS[index % len(LABELS)]
    )


PAIRS = [pair(index) for index in range(30)]


@given(st.permutations(PAIRS), st.integers(0, 30), st.integers(0, 3))
def test_choice_does_not_depend_on_the_order_of_reading(order, count, seed):
    assert shots(order, count, seed=seed) == shots(PAIRS, count, seed=seed)


@given(st.integers(0, 30), st.integers(0, 30), st.integers(0, 3))
def test_fewer_shots_are_the_first_of_more(left, right, seed):
    fewer, more = sorted((left, right))
    assert shots(PAIRS, more, seed=seed)[:fewer] == shots(PAIRS, fewer, seed=seed)


@given(st.integers(0, 10), st.integers(0, 10), st.integers(0, 3))
def test_shots_per_label_are_that_many_of_each_and_nested(left, right, seed):
    fewer, more = sorted((left, right))
    few_shots, many = (shots(PAIRS, count, seed=seed, per="label") for count in (fewer, more))
    assert Counter(example.label for example in few_shots) == Counter(dict.fromkeys(LABELS, fewer))
    assert set(few_shots) <= set(many)


def test_shots_per_label_of_choices_are_that_many_of_each_place():
    items = [Choice(id=str(n), context="a", options=("b", "c", "d"), label=n % 3) for n in range(9)]
    assert Counter(shot.label for shot in shots(items, 2, seed=0, per="label")) == {0: 2, 1: 2, 2: 2}


def test_each_seed_chooses_for_itself():
    choice = {tuple(example.id for example in shots(PAIRS, 5, seed=seed)) for seed in range(20)}
    assert len(choice) == 20


def test_every_example_is_chosen_about_as_often():
    counts = Counter(example.id for seed in range(600) for example in shots(PAIRS, 5, seed=seed))
    assert set(counts) == {example.id for example in PAIRS}
    assert 70 < min(counts.values()) <= max(counts.values()) < 135


def test_parallel_corpora_give_the_same_shots():
    swahili = [pair(index, "sw") for index in range(30)]
    assert [shot.id for shot in shots(PAIRS, 7, seed=1)] == [shot.id for shot in shots(swahili, 7, seed=1)]


def test_too_few_examples_are_an_error_that_says_how_many():
    with says(DataError, "31", "at most 30"):
        shots(PAIRS, 31, seed=0)
    with says(DataError, "'contradiction'", "11", "10"):
        shots(PAIRS, 11, seed=0, per="label")


def test_examples_without_a_label_each_have_no_shots_per_label():
    sentence = TaggedSentence(id="7", words=("a",), tags=("X",))
    assert shots([sentence], 1, seed=0) == [sentence]
    with says(DataError, "'7'"):
        shots([sentence], 1, seed=0, per="label")


def test_negative_count_is_refused():
    with pytest.raises(ConfigError, match="-1 examples"):
        shots(PAIRS, -1, seed=0)


@given(st.lists(st.text(max_size=3), max_size=40), st.integers(1, 50), st.integers(0, 9))
def test_a_choice_has_as_many_lines_as_asked_for_in_their_order(lines, count, seed):
    numbered_texts = [f"{index} {line}" for index, line in enumerate(lines)]
    chosen_subsample = subsample(iter(numbered_texts), count, seed=seed)
    assert len(chosen_subsample) == min(count, len(lines))
    places = [numbered_texts.index(line) for line in chosen_subsample]
    assert places == sorted(set(places))


@given(st.integers(1, 30), st.integers(1, 30), st.integers(0, 9))
def test_a_smaller_choice_is_part_of_a_larger_one(left, right, seed):
    lines = [str(index) for index in range(40)]
    smaller, larger = sorted((subsample(lines, n, seed=seed) for n in (left, right)), key=len)
    assert set(smaller) <= set(larger)


def test_every_line_is_as_likely_as_any_other():
    hits = np.zeros(50)
    for seed in range(2000):
        hits[[int(line) for line in subsample((str(value) for value in range(50)), 10, seed=seed)]] += 1
    assert hits.sum() == 20_000
    assert abs(hits - 400).max() < 4.5 * (2000 * 0.2 * 0.8) ** 0.5


def test_only_the_choice_is_kept_in_memory():
    tracemalloc.start()
    subsample((f"{index}" * 100 for index in range(20_000)), 20, seed=0)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 200_000
