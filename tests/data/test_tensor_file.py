"""Tensors beside a record: read back to the bit, written to the same bytes, damage is said."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from isogloss.core.errors import StorageError
from isogloss.data.result_files import read_tensors, write_tensors

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
def test_what_was_written_is_read_back(tmp_path_factory, tensors, about):
    path = tmp_path_factory.mktemp("tensors") / "masks.safetensors"
    write_tensors(path, tensors, about)
    found, said = read_tensors(path)
    assert said == about
    assert found.keys() == tensors.keys()
    for name, tensor in tensors.items():
        assert (found[name].dtype, found[name].shape) == (tensor.dtype, tensor.shape)
        assert found[name].tobytes() == tensor.tobytes()


def test_another_order_gives_the_same_bytes(tmp_path):
    tensors = {name: np.full((2, 3), number, np.float32) for number, name in enumerate("cab")}
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
    with pytest.raises(StorageError, match=r"masks.safetensors: these tensors cannot be read .*record\.json"):
        read_tensors(path)
