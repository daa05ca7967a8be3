"""Predictions and tensors: what was written is read, in the same bytes, or one clear error."""

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from pyarrow import parquet

from isogloss.core.errors import StorageError
from isogloss.core.records import PREDICTIONS
from isogloss.core.rows.models import Contributions
from isogloss.data.result_files import (
    Predictions,
    read_predictions,
    read_tensors,
    write_predictions,
    write_tensors,
)

TEXTS = st.text(st.characters(codec="utf-8"), max_size=5)
NUMBERS = st.floats(0, 1e6)


@st.composite
def languages(draw):
    names = draw(st.lists(st.sampled_from(["en", "de", "qaa"]), min_size=1, unique=True))
    predictions = []
    for name in names:
        size = draw(st.integers(1, 5))
        texts = st.lists(TEXTS, min_size=size, max_size=size)
        numbers = st.lists(NUMBERS, min_size=size, max_size=size)
        contributions = {item: Contributions(draw(numbers), draw(numbers)) for item in ("f1", "em")}
        predictions.append(
            Predictions(language=name, ids=draw(texts), predicted=draw(texts), contributions=contributions)
        )
    return predictions


def some(language="en", size=3):
    numbers = [float(index) for index in range(size)]
    return Predictions(
        language=language,
        ids=[f"s{index}" for index in range(size)],
        predicted=['"NOUN"'] * size,
        contributions={"accuracy": Contributions(numbers, [1.0] * size)},
    )


@pytest.mark.nightly
@pytest.mark.slow
@given(languages())
def test_what_is_kept_comes_back_by_language(tmp_path_factory, kept_values):
    path = tmp_path_factory.mktemp("kept") / PREDICTIONS
    write_predictions(path, kept_values)
    predictions = read_predictions(path)
    assert list(predictions) == [row.language for row in kept_values]
    for item in kept_values:
        back = predictions[item.language]
        assert back.ids == tuple(item.ids)
        assert {
            name: (part.tolist(), whole_measure.tolist())
            for name, (part, whole_measure) in back.measures.items()
        } == {
            name: (list(part), list(whole_contribution))
            for name, (part, whole_contribution) in item.contributions.items()
        }


def test_the_file_is_a_plain_table_with_a_line_an_example_and_language(tmp_path):
    write_predictions(tmp_path / PREDICTIONS, [some("en"), some("de", 2)])
    table = parquet.read_table(tmp_path / PREDICTIONS)
    assert table.column_names == ["language", "id", "predicted", "accuracy:part", "accuracy:whole"]
    assert table["language"].to_pylist() == ["en", "en", "en", "de", "de"]
    assert table["predicted"].to_pylist() == ['"NOUN"'] * 5
    assert parquet.ParquetFile(tmp_path / PREDICTIONS).num_row_groups == 2


def test_the_same_predictions_give_the_same_bytes(tmp_path):
    for name in ("a", "b"):
        write_predictions(tmp_path / name, [some("en"), some("de")])
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "b"]


def test_ten_thousand_predictions_of_one_label_take_few_bytes(tmp_path):
    predictions = some(size=10_000)
    right = [float(index % 7 > 0) for index in range(10_000)]
    kept_predictions = Predictions(
        language="en",
        ids=predictions.ids,
        predicted=['"neutral"' if index % 3 else '"entailment"' for index in range(10_000)],
        contributions={"accuracy": Contributions(right, [1.0] * 10_000)},
    )
    write_predictions(tmp_path / PREDICTIONS, [kept_predictions])
    assert (tmp_path / PREDICTIONS).stat().st_size < 60_000


def test_a_language_without_examples_is_not_there(tmp_path):
    write_predictions(tmp_path / PREDICTIONS, [some("en", 0), some("de")])
    assert list(read_predictions(tmp_path / PREDICTIONS)) == ["de"]


@pytest.mark.parametrize("damage", [lambda kept_values: kept_values[:-20], lambda _: b"", lambda _: b"{}"])
def test_a_damaged_file_is_an_error_that_says_what_to_do(tmp_path, damage):
    path = tmp_path / PREDICTIONS
    write_predictions(path, [some()])
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(StorageError, match=r"folder's record.json"):
        read_predictions(path)


def test_a_table_of_something_else_is_an_error_too(tmp_path):
    import pyarrow as pa

    parquet.write_table(pa.table({"x": [1]}), tmp_path / PREDICTIONS)
    with pytest.raises(StorageError, match="read"):
        read_predictions(tmp_path / PREDICTIONS)


TENSORS = st.dictionaries(
    st.text(min_size=1).filter(lambda name: name != "__metadata__"),
    arrays.arrays(
        st.sampled_from([np.float32, np.float64, np.int64, np.bool_]),
        arrays.array_shapes(min_dims=0, max_dims=3, min_side=0),
    ),
    max_size=4,
)
ABOUT = st.dictionaries(st.text(), st.none() | st.booleans() | st.integers() | st.text(), max_size=4)


@given(TENSORS, ABOUT)
def test_what_was_written_is_read_back(tmp_path_factory, tensors, options):
    path = tmp_path_factory.mktemp("tensors") / "masks.safetensors"
    write_tensors(path, tensors, options)
    fields, message = read_tensors(path)
    assert message == options
    assert fields.keys() == tensors.keys()
    for name, tensor in tensors.items():
        assert (fields[name].dtype, fields[name].shape) == (tensor.dtype, tensor.shape)
        assert fields[name].tobytes() == tensor.tobytes()


def test_another_order_gives_the_same_bytes(tmp_path):
    tensors = {name: np.full((2, 3), index, np.float32) for index, name in enumerate("cab")}
    write_tensors(tmp_path / "one", tensors, {"x": 1, "a": "ü"})
    write_tensors(tmp_path / "other", dict(reversed(tensors.items())), {"a": "ü", "x": 1})
    assert (tmp_path / "one").read_bytes() == (tmp_path / "other").read_bytes()


def test_a_transposed_tensor_is_written_as_it_reads(tmp_path):
    tensor = np.arange(6, dtype=np.float32).reshape(2, 3).T
    write_tensors(tmp_path / "one", {"x": tensor}, {})
    assert np.array_equal(read_tensors(tmp_path / "one")[0]["x"], tensor)


@pytest.mark.parametrize("content", [None, b"", b"no tensors at all"])
def test_a_damaged_file_says_how_to_make_it_again(tmp_path, content):
    path = tmp_path / "masks.safetensors"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(StorageError, match=r"masks.safetensors: .*record\.json"):
        read_tensors(path)


@pytest.mark.slow
def test_predictions_are_written_without_pandas(tmp_path):
    program = """
import sys
from pathlib import Path
from isogloss.data.result_files import Predictions, write_predictions
predictions = Predictions(language="en", ids=["é", ""], predicted=["1", "2"], contributions={})
write_predictions(Path("p"), [predictions])
print(*sys.modules)
"""
    imported_parts = subprocess.check_output([sys.executable, "-c", program], text=True, cwd=tmp_path).split()
    assert "pyarrow" in imported_parts and "pandas" not in imported_parts
    table = parquet.read_table(tmp_path / "p")
    assert table["id"].to_pylist() == ["é", ""] and table.schema.metadata is None
