"""Labels are read alike in every file: missing ones, numbers, lists, and spellings of one label."""

import csv
import io
import json
from itertools import product

import pytest

from isogloss.core.errors import DataError
from isogloss.features.described_corpora.contents import inspect_splits
from isogloss.features.described_corpora.descriptions import describe_corpus

MISSING = ("", "nan", "NaN", "null", "NULL", "<NA>", "#N/A", "NaT", "N/A", "n/a", "[]", "{}")
MAYBE_MISSING = ("None", "NA", "nil", "-", "?", "_", ".", "-1")
TWICE = (
    ("1", "1.0"), ("1", "01"), ("pos", "pos\u200b"), ("pos", "\ufeffpos"), ("pos", '"pos"'),
    ("very good", "very  good"),
    ("pos", "p\u043es"), ("pos", "Pos"), ("pos", "ｐｏｓ"),
)  # fmt: skip
STRUCTURES = (["pos", "neg"], {"choices": ["pos"]}, [1, 0], [["pos"]])


@pytest.fixture
def read(tmp_path):
    """Read one split of labelled texts, written in a format."""

    def read_split(labels, form="jsonl", body="", kind="text", split="test"):
        texts = ("first", "second") if kind == "pair" else ("text",)
        rows = [
            {**{name: f"{name} {index}" for name in texts}, "label": label}
            for index, label in enumerate(labels)
        ]
        (tmp_path / f"{split}.{form}").write_text(write_cells(rows, form), encoding="utf-8")
        text = f'kind = "{kind}"\nfiles = {{ {split} = "{split}.{form}" }}\nlanguages = ["en"]\n{body}'
        (tmp_path / "own.toml").write_text(text, encoding="utf-8")
        (contents,) = inspect_splits(describe_corpus(tmp_path / "own.toml"))
        return contents

    return read_split


def write_cells(rows, form):
    if form == "jsonl":
        return "".join(json.dumps(row) + "\n" for row in rows)
    if form == "tsv":
        return "".join(
            "\t".join(str(value) for value in cells) + "\n"
            for cells in (list(rows[0]), *(row.values() for row in rows))
        )
    file = io.StringIO()
    writer = csv.writer(file)
    writer.writerow(rows[0])
    writer.writerows(row.values() for row in rows)
    return file.getvalue()


@pytest.mark.parametrize("form", ["jsonl", "csv", "tsv"])
@pytest.mark.parametrize("text", MISSING)
def test_a_missing_label_is_an_error_with_its_line(read, text, form):
    contents = read(["pos", text, "neg", "pos"], form)
    line = 2 if form == "jsonl" else 3
    assert contents.labels == {"pos": 2, "neg": 1}
    (error,) = contents.errors
    assert f":{line}: no label" in error
    assert 'skip = [""]' in error


@pytest.mark.parametrize("text", [text for text in MISSING if text])
def test_rows_without_a_label_are_left_out_by_what_the_message_says(read, text):
    assert read(["pos", text, "neg"], body='skip = [""]\n').labels == {"pos": 1, "neg": 1}
    assert read(["pos", text, "neg"], body=f"labels = {json.dumps(['pos', 'neg', text])}\n").labels[text] == 1


@pytest.mark.parametrize("text", MAYBE_MISSING)
def test_a_label_that_may_be_missing_is_reported(read, text):
    contents = read(["pos", text, "neg", "pos"], "csv")
    assert text in contents.labels or contents.errors
    assert contents.errors or any(f"label {text}, which" in remark for remark in contents.remarks)


def test_the_hidden_label_of_nli_and_datasets_is_missing(read):
    contents = read(["entailment", "-", "neutral", "contradiction"], kind="pair")
    assert "no label ('-')" in contents.errors[0]
    assert set(contents.labels) == {"entailment", "neutral", "contradiction"}
    assert read([-1, -1], body='labels = ["neg", "pos"]\n').labels == {}
    assert "no label ('-1')" in read(["neg", "pos", -1]).errors[0]
    assert read([-1, 0, 1]).labels == {"-1": 1, "0": 1, "1": 1}


@pytest.mark.parametrize("labels", TWICE)
def test_one_label_in_two_spellings_is_reported(read, labels):
    assert any("labels that" in remark for remark in read(labels).remarks)


@pytest.mark.parametrize("label", STRUCTURES, ids=str)
@pytest.mark.parametrize("form", ["jsonl", "csv"])
def test_lists_and_objects_are_no_labels(read, label, form):
    cell = label if form == "jsonl" else json.dumps(label)
    with pytest.raises(DataError) as error:
        read([cell, cell], form)
    assert 'predicts = "labels"' in str(error.value)
    assert f".{form}:{1 if form == 'jsonl' else 2}: label is a" in str(error.value).replace("an object", "a")


def test_a_list_of_one_label_is_that_label_and_reported(read):
    contents = read([["pos"], ["neg"]])
    assert contents.labels == {"pos": 1, "neg": 1}
    assert "2 labels in lists of one" in contents.remarks[0]


INVENTORIES = (
    ["1", "2", "3", "4", "5"], ["0", "1", "2"], ["-1", "0", "1"], ["3", "2", "1"],
    ["neg", "pos"], ["b", "a", "c"],
)  # fmt: skip
ROWS = ([0, 1, 2, 3, 4], [1, 2, 3, 4, 5], [0, 1, 2], [1, 2, 3], [-1, 0, 1], [0, 1])


@pytest.mark.parametrize(("inventory", "numbers"), product(INVENTORIES, ROWS), ids=str)
@pytest.mark.parametrize("form", ["jsonl", pytest.param("csv", marks=pytest.mark.slow)])
def test_numbers_are_labels_or_positions_in_the_whole_file(read, inventory, numbers, form):
    texts = [str(index) for index in numbers]
    try:
        contents = read(numbers, form, f"labels = {json.dumps(inventory)}\n")
    except DataError:
        return
    if contents.errors:
        return
    as_labels = dict.fromkeys(texts, 1)
    as_positions = {inventory[index]: 1 for index in numbers if 0 <= index < len(inventory)}
    assert contents.labels in (as_labels, as_positions)
    if contents.labels != as_labels and all(label.isdecimal() for label in inventory):
        assert any("numbers read as positions" in remark for remark in contents.remarks)
    if all(text in inventory for text in texts):
        assert contents.labels == as_labels


def test_positions_of_tags_in_any_scheme_are_spans(tmp_path):
    row = {"words": ["Ana", "Li", "in", "Oslo"], "labels": [1, 2, 0, 3]}
    (tmp_path / "test.jsonl").write_text(json.dumps(row) + "\n", encoding="utf-8")
    (tmp_path / "own.toml").write_text(
        'kind = "tagging"\nfiles = { test = "test.jsonl" }\nlanguages = ["en"]\n'
        'labels = ["O", "B-PER", "E-PER", "S-LOC"]\n',
        encoding="utf-8",
    )
    (contents,) = inspect_splits(describe_corpus(tmp_path / "own.toml"))
    assert contents.labels == {"PER": 1, "LOC": 1}
