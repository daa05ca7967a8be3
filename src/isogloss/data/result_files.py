"""Files next to a record: predictions as Parquet, tensors as safetensors.

Equal content gives equal bytes. Predictions have a row for each example and language: its id, the prediction
(as JSON), and its contribution to each measure, in two columns such as ``span_f1:part`` and ``span_f1:whole``
(``core.rows.models``). Each language is a row group and can be read without the others. The description of
tensors is one JSON object in the file's metadata.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from isogloss.core.atomic_files import write_bytes
from isogloss.core.checksums import read_checked
from isogloss.core.errors import StorageError
from isogloss.core.records import Value
from isogloss.core.rows.models import ByMeasure
from isogloss.core.shared_files import is_taken
from isogloss.core.untrusted import parse_json

if TYPE_CHECKING:
    import pyarrow as pa
    from pyarrow import parquet

MOST_BYTES = 1 << 30
"""Maximum size of a file of predictions or tensors."""

PART = ":part"
WHOLE = ":whole"

COMPRESSION_LEVEL = 9
"""Level of zstd. Higher levels hardly shrink files of predictions."""

Array = npt.NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Predictions:
    """A model's predictions for the examples of a language."""

    language: str
    ids: Sequence[str]
    predicted: Sequence[str]
    """Predictions as JSON."""
    contributions: ByMeasure


@dataclass(frozen=True, kw_only=True)
class StoredPredictions:
    """Stored ids of a language, and part and whole [example] of each measure."""

    ids: tuple[str, ...]
    measures: dict[str, tuple[Array, Array]] = field(default_factory=dict)


def measure_at(metric: str, coordinates: Sequence[float]) -> str:
    """Return the name of a measure at a point of a path or plane, such as "accuracy at 0.25"."""
    return f"{metric} at {' '.join(f'{alpha:.6g}' for alpha in coordinates)}"


def write_predictions(path: Path, languages: Sequence[Predictions]) -> None:
    """Write a file of predictions atomically.

    Each language has one row group, in the given order.
    """
    import pyarrow as pa
    from pyarrow import parquet

    tables = [_table(predictions) for predictions in languages]
    buffer = pa.BufferOutputStream()
    texts = ["language", "predicted", "id"]
    numbers = [name for name in tables[0].column_names if name not in texts]
    with parquet.ParquetWriter(
        buffer,
        tables[0].schema,
        compression="zstd",
        compression_level=COMPRESSION_LEVEL,
        use_dictionary=["language", "predicted", *numbers],  # Ids are all different.
        write_statistics=False,
    ) as writer:
        for table in tables:
            writer.write_table(table, row_group_size=max(1, len(table)))
    write_bytes(path.parent, path.name, buffer.getvalue().to_pybytes())


def read_predictions(path: Path) -> dict[str, StoredPredictions]:
    """Read ids and contributions by language, without the predictions themselves.

    Raises StorageError, with how to create the file again, if it is damaged.
    """
    import pyarrow as pa

    try:
        file = _open(path)
        columns = [name for name in file.schema_arrow.names if name != "predicted"]
        groups = [file.read_row_group(group, columns=columns) for group in range(file.num_row_groups)]
        return {table["language"][0].as_py(): _read_group(table) for table in groups if len(table)}
    except (pa.ArrowException, OSError, KeyError, ValueError) as error:
        raise _unreadable(path, "predictions", error) from error


def read_answers(path: Path) -> dict[str, dict[str, str]]:
    """Read the predictions of each language as a mapping from example id to answer, as JSON.

    The mapping is empty without a file. Raises StorageError if the file is damaged.
    """
    import pyarrow as pa

    answers: dict[str, dict[str, str]] = {}
    try:
        has_file = is_taken(path.parent, path.name)
        table = _open(path).read(columns=["language", "id", "predicted"]) if has_file else None
        for row in table.to_pylist() if table is not None else ():
            parse_json(row["predicted"])
            answers.setdefault(row["language"], {})[row["id"]] = row["predicted"]
    except (pa.ArrowException, OSError, KeyError, TypeError, ValueError) as error:
        raise _unreadable(path, "predictions", error) from error
    return answers


def _open(path: Path) -> "parquet.ParquetFile":
    """Open a file of predictions.

    Raises ValueError if it does not match its checksum or a column has a wrong type.
    """
    import pyarrow as pa
    from pyarrow import parquet, types

    file = parquet.ParquetFile(pa.BufferReader(read_checked(path.parent, path.name, MOST_BYTES)))
    for column in file.schema_arrow:
        is_expected = types.is_float64 if column.name.endswith((PART, WHOLE)) else types.is_string
        if not is_expected(column.type):
            raise ValueError(f"{column.name:.40} is of the type {column.type!s:.40}")
    return file


def _unreadable(path: Path, content: str, error: Exception) -> StorageError:
    return StorageError(
        f"{path}: these {content} cannot be read ({' '.join(str(error).split())}). Delete the folder's "
        f"record.json and run again; only this run is repeated."
    )


def _table(predictions: Predictions) -> "pa.Table":
    import pyarrow as pa

    columns = {
        "language": _texts([predictions.language] * len(predictions.ids)),
        "id": _texts(predictions.ids),
        "predicted": _texts(predictions.predicted),
    }
    for name, (parts, wholes) in predictions.contributions.items():
        columns |= {f"{name}{PART}": _numbers(parts), f"{name}{WHOLE}": _numbers(wholes)}
    return pa.table(columns)


def _texts(texts: Sequence[str]) -> "pa.Array":
    """Return an array of texts, without ``pa.array``, which would import pandas (as slow as many runs)."""
    import pyarrow as pa

    content = [text.encode() for text in texts]
    ends = np.array(list(accumulate((len(text) for text in content), initial=0)), dtype=np.int32)
    return pa.StringArray.from_buffers(len(texts), pa.py_buffer(ends), pa.py_buffer(b"".join(content)))


def _numbers(numbers: Sequence[float]) -> "pa.Array":
    import pyarrow as pa

    content = np.ascontiguousarray(numbers, dtype=np.float64)
    return pa.Array.from_buffers(pa.float64(), len(content), [None, pa.py_buffer(content)])


def _read_group(table: "pa.Table") -> StoredPredictions:
    if columns_with_nulls := [name for name in table.column_names if table[name].null_count]:
        raise ValueError(f"{columns_with_nulls[0]:.40} has empty cells")
    names = [name.removesuffix(PART) for name in table.column_names if name.endswith(PART)]
    return StoredPredictions(
        ids=tuple(table["id"].to_pylist()),
        measures={
            name: (table[f"{name}{PART}"].to_numpy(), table[f"{name}{WHOLE}"].to_numpy()) for name in names
        },
    )


ENDING = ".safetensors"
METADATA_KEY = "about"
"""Only key of the metadata, because the format does not keep the order of several."""


def write_tensors(
    path: Path, tensors: Mapping[str, npt.NDArray[np.generic]], description: Mapping[str, Value]
) -> None:
    """Write a safetensors file atomically, with a description in its metadata."""
    from safetensors.numpy import save

    arrays = {name: np.asarray(tensors[name], order="C") for name in sorted(tensors)}
    text = json.dumps(dict(description), sort_keys=True, ensure_ascii=False, allow_nan=False)
    write_bytes(path.parent, path.name, save(arrays, metadata={METADATA_KEY: text}))


def read_tensors(path: Path) -> tuple[dict[str, npt.NDArray[np.generic]], dict[str, Value]]:
    """Read the tensors by name, and their description, from a file written by ``write_tensors``.

    Raises StorageError, with how to create the file again, if it is damaged or missing.
    """
    from safetensors import SafetensorError, safe_open

    try:
        read_checked(path.parent, path.name, MOST_BYTES)
        with safe_open(path, framework="np") as file:
            description = parse_json((file.metadata() or {})[METADATA_KEY])
            tensors = {name: file.get_tensor(name) for name in sorted(file.keys())}
    except (SafetensorError, OSError, KeyError, ValueError) as error:
        raise _unreadable(path, "tensors", error) from error
    return tensors, description
